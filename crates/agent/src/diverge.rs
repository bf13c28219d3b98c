//! Divergence: tell the monitor, and never go on.

use crate::gate::{real, rpc};
use crate::log::word_at;
use crate::state::block;
use core::sync::atomic::{AtomicBool, Ordering};
use geryon_abi::layout::{Report, rpc as number, vforked};
use geryon_abi::table::nr;

/// The process is about to end, and nothing that it finds counts any more.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Follower: its process is about to end, as its leader's is. What other threads of it still repeat meanwhile may be out of their
/// leader's reach.
pub fn ends() {
    ENDS.store(true, Ordering::SeqCst);
}

/// A child that another thread forked meanwhile goes on.
pub fn begins() {
    ENDS.store(false, Ordering::SeqCst);
}

/// This replica differs from the log at the record that starts at `pos`. It returns when that record
/// was the mistake of a leader that is gone: the log ends there, and the caller looks again.
pub fn diverged(why: u32, pos: u64, ours: [u64; 8]) {
    let b = block();
    while ENDS.load(Ordering::SeqCst) && b.vforked == vforked::NOT {
        real(nr::pause, [0; 6]);
    }
    let mut theirs = [0; 8];
    for (i, w) in theirs.iter_mut().enumerate() {
        *w = word_at(b, pos + i as u64);
    }
    let report = Report {
        why,
        slot: b.slot,
        pos,
        theirs,
        ours,
        frame: b.frame,
        pc: 0,
    };
    b.waiting
        .store(geryon_abi::layout::wait::DIVERGED, Ordering::Relaxed);
    rpc(number::DIVERGENCE, &report as *const Report as u64, 0, 0);
    crate::wait::announce_end();
    crate::log::rewind(b, pos);
}

/// The same where there is no way back: something was done already.
#[cold]
pub fn diverged_for_good(why: u32, pos: u64, ours: [u64; 8]) -> ! {
    loop {
        diverged(why, pos, ours);
    }
}
