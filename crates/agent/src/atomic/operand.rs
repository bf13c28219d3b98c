//! The operand in the program's memory: plain atomic accesses of any size.

use crate::gate::guarded;
use crate::log::{is_cut, rewind};
use crate::state::Here;
use crate::stop::broken;
use crate::wait::{Patience, announce, announce_end};
use core::hint::black_box;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use geryon_abi::layout::wait;

pub(super) fn load(address: u64, size: u8) -> u64 {
    // SAFETY: the application's own operand; it faults here as it would there.
    unsafe {
        match size {
            1 => (*(address as *const AtomicU8)).load(Ordering::SeqCst) as u64,
            2 => (*(address as *const AtomicU16)).load(Ordering::SeqCst) as u64,
            4 => (*(address as *const AtomicU32)).load(Ordering::SeqCst) as u64,
            _ => (*(address as *const AtomicU64)).load(Ordering::SeqCst),
        }
    }
}

/// Exchange if equal; the value seen. What is seen all replicas are told: a register that has changed
/// behind the instruction contradicts the processor's verdict, and this replica crashes.
pub(super) fn exchange(address: u64, size: u8, old: u64, new: u64) -> u64 {
    macro_rules! at {
        ($t:ty, $n:ty) => {{
            // SAFETY: the application's own operand.
            let a = unsafe { &*(address as *const $t) };
            let (done, seen) = match a.compare_exchange(
                old as $n,
                new as $n,
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(v) => (true, v),
                Err(v) => (false, v),
            };
            // (The compiler knows what the instruction promises.)
            if black_box(done) != (black_box(seen) == old as $n) {
                broken();
            }
            seen as u64
        }};
    }
    match size {
        1 => at!(AtomicU8, u8),
        2 => at!(AtomicU16, u16),
        4 => at!(AtomicU32, u32),
        _ => at!(AtomicU64, u64),
    }
}

/// Can it be stored to?
pub(super) fn is_writable(at: u64, size: u8) -> bool {
    guarded(|| {
        let holds = load(at, size);
        exchange(at, size, holds, holds);
    })
}

/// Another thread's plain store (the release of a lock, say) has yet to come: one of these. None when the log was
/// cut off before the present record meanwhile.
pub(super) fn await_value(mut b: Here, at: u64, size: u8, values: [u64; 2]) -> Option<u64> {
    let seen = load(at, size);
    if values.contains(&seen) {
        return Some(seen);
    }
    b.standing = b.pos;
    announce(wait::VALUE, wait::operand(at, size), values[1]);
    let mut patience = Patience::new();
    let seen = loop {
        let seen = load(at, size);
        if values.contains(&seen) {
            break seen;
        }
        if patience.spend() {
            if is_cut(b, b.pos) {
                announce_end();
                rewind(b, b.pos);
                return None;
            }
            patience = Patience::new();
        }
    };
    announce_end();
    if is_cut(b, b.pos) {
        rewind(b, b.pos);
        return None;
    }
    Some(seen)
}
