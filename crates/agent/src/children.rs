//! The children of this process, by the ids that the program knows and those of its own.

use crate::gate::{real, rpc};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::layout::{MAX_CHILDREN, rpc as number};
use geryon_abi::table::nr;

const ESRCH: i64 = -3;

/// (Id the program sees) << 32 | (own id, where the kernel calls it otherwise; 0: it was born while this process, or
/// the one that it is a copy of, led).
static CHILDREN: [AtomicU64; MAX_CHILDREN] = [const { AtomicU64::new(0) }; MAX_CHILDREN];
static HIGH: AtomicU32 = AtomicU32::new(0);

fn entries() -> impl Iterator<Item = &'static AtomicU64> {
    CHILDREN.iter().take(HIGH.load(Ordering::Acquire) as usize)
}

/// A child was born. (A leader notes its own as well: a copy of it is to know for whom it has still to wait.)
pub fn adopt(shown: u32, own: u32) {
    let other = if own == shown { 0 } else { own };
    let entry = (shown as u64) << 32 | other as u64;
    for (i, c) in CHILDREN.iter().enumerate() {
        if c.compare_exchange(0, entry, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            HIGH.fetch_max(i as u32 + 1, Ordering::AcqRel);
            return;
        }
    }
    // Many have ended whose end the program does not want to hear of: nobody waits for those.
    for c in entries() {
        let old = c.load(Ordering::Acquire);
        let own = match old as u32 {
            0 => old >> 32,
            own => own.into(),
        };
        if old != 0 && real(nr::kill, [own, 0, 0, 0, 0, 0]) == ESRCH {
            c.store(0, Ordering::Release);
        }
    }
    let free = entries().find(|c| c.load(Ordering::Acquire) == 0);
    if let Some(c) = free {
        c.store(entry, Ordering::Release);
    }
}

/// A child that is gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// The kernel calls it otherwise: so.
    Other(u32),
    /// The kernel calls it as the program does.
    Same,
    /// This process has not made it: another one has left it.
    Orphan,
}

/// A child is gone.
pub fn disown(shown: u32) -> Gone {
    let own = entries().find_map(|c| {
        let entry = c.load(Ordering::Acquire);
        (entry != 0 && (entry >> 32) as u32 == shown).then(|| {
            c.store(0, Ordering::Release);
            entry as u32
        })
    });
    match own {
        None => Gone::Orphan,
        Some(0) => Gone::Same,
        Some(own) => Gone::Other(own),
    }
}

/// The own id of the child that the program calls so, if the kernel calls it otherwise.
pub fn called(shown: u32) -> Option<u32> {
    entries()
        .map(|c| c.load(Ordering::Acquire))
        .find(|entry| *entry != 0 && (entry >> 32) as u32 == shown)
        .map(|entry| entry as u32)
        .filter(|own| *own != 0)
}

/// What the program calls the child that the kernel calls so, if it is one that was not waited for.
pub fn shown(own: u32) -> Option<u32> {
    let all = entries().map(|c| c.load(Ordering::Acquire));
    let mut all = all.map(|entry| ((entry >> 32) as u32, entry as u32));
    let is = |(shown, other): &(u32, u32)| match other {
        0 => *shown == own,
        other => *other == own,
    };
    all.find(|entry| entry.0 != 0 && is(entry)).map(|e| e.0)
}

/// A forked process has none yet.
pub fn forget() {
    for c in entries() {
        c.store(0, Ordering::Relaxed);
    }
    HIGH.store(0, Ordering::Relaxed);
}

/// New leader: tell the monitor which children are still to be waited for. The former leader's kernel may
/// have given one to a wait that is not in the log.
pub fn tell() {
    for child in entries() {
        let shown = child.load(Ordering::Acquire) >> 32;
        if shown != 0 {
            rpc(number::UNREAPED, shown, 0, 0);
        }
    }
}
