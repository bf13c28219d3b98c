//! Before a mapping goes away or is synchronised, the monitor compares what all replicas have stored there. Nobody
//! may store meanwhile. In serial order nobody does; else the leader's other threads stand where they are about
//! to do something that is logged, and the monitor is asked until the followers' threads have come there, too.

use crate::gate::rpc;
use crate::state::{block, block_at, leads, private};
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::layout::object::compare;
use geryon_abi::layout::{MAX_THREADS, rpc as number, vforked};

const EAGAIN: i64 = -11;
/// Between two questions.
const MOMENT: u64 = 1_000_000;
/// So often the monitor is asked, until once it was in vain; then only so often each time.
const PATIENCE: u32 = 2000;
const LESS: u32 = 20;

/// Leader: how many threads have the others stand.
static STANDS: AtomicU32 = AtomicU32::new(0);
/// Comparisons that were left out.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);

/// About to make a call or to take a lock: not while another thread has this one stand.
#[inline(always)]
pub fn stand() {
    if STANDS.load(Ordering::Relaxed) != 0 && leads() {
        stand_still();
    }
}

#[cold]
#[inline(never)]
fn stand_still() {
    if block().vforked != vforked::NOT {
        // Its parent's thread waits for it, and is not at rest.
        return;
    }
    loop {
        let seen = STANDS.load(Ordering::SeqCst);
        if seen == 0 {
            return;
        }
        crate::wait::sleep32(&STANDS, seen, false);
    }
}

/// First steps of a forked child: nobody else is here.
pub fn born() {
    STANDS.store(0, Ordering::SeqCst);
}

/// Follower, about to end: not before the leader has compared what both have stored.
pub fn ends() {
    if !super::maps_objects() {
        return;
    }
    while !leads() && rpc(number::ENDS, 0, 0, 0) == EAGAIN {
        crate::wait::pause(MOMENT);
    }
}

/// Leader: all have come to a call that takes these bytes away or synchronises them.
pub fn ask_to_compare(start: u64, len: u64, how: u64) {
    let p = private();
    // In serial order the others stand still, but for those whose turn was taken away.
    let robbed = |slot| block_at(slot).robbed.load(Ordering::SeqCst) != 0;
    let takes_turns = p.serial.get() != 0 && block().vforked == vforked::NOT;
    if p.multi.get() == 0 || (takes_turns && !(0..MAX_THREADS).any(robbed)) {
        rpc(number::COMPARE, start, len, how | compare::ALONE);
        return;
    }
    STANDS.fetch_add(1, Ordering::SeqCst);
    let mut left = match IN_VAIN.load(Ordering::Relaxed) {
        0 => PATIENCE,
        _ => LESS,
    };
    loop {
        let last = if left == 0 { compare::LAST } else { 0 };
        if rpc(number::COMPARE, start, len, how | last) != EAGAIN {
            break;
        }
        left -= 1;
        crate::wait::pause(MOMENT);
    }
    if left == 0 {
        IN_VAIN.fetch_add(1, Ordering::Relaxed);
    }
    STANDS.fetch_sub(1, Ordering::SeqCst);
    crate::wait::wake_at(&raw const STANDS as u64, false);
}
