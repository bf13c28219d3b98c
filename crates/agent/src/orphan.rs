//! PR_SET_PDEATHSIG: a thread wants to be told when its process's parent ends. To the kernel the parent of a replica may be
//! another replica, whose end is none of the program's: it is not asked, and the monitor sends the signal.
//!
//! PR_SET_CHILD_SUBREAPER: a process is to have the children that its descendants leave. The kernel is not asked for that
//! either: those that follow are descendants of the leader's as well, and what they leave would come to the program. So the
//! monitor says who of its children has ended, as it does behind a takeover. Such children are not among those that this
//! process has made: once a wait for one is in the log, the monitor is told.

use crate::gate::{guarded, rpc};
use crate::state::{Here, block, block_at, leads, private};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{MAX_THREADS, children, rpc as number, vforked};

const PR_SET_PDEATHSIG: u32 = 1;
const PR_GET_PDEATHSIG: u32 = 2;
const PR_SET_CHILD_SUBREAPER: u32 = 36;
const PR_GET_CHILD_SUBREAPER: u32 = 37;
const MOST: u64 = 64;
const EFAULT: i64 = -14;
const EINVAL: i64 = -22;

/// A prctl(2) that concerns the end of parents; false for any other one.
pub fn prctl(frame: &mut Frame) -> bool {
    let mut b = block();
    let value = frame.rsi;
    frame.rax = match frame.rdi as u32 {
        PR_SET_PDEATHSIG if value > MOST => EINVAL as u64,
        PR_SET_PDEATHSIG => {
            b.at_parents_end = 1 + value as u32;
            0
        }
        PR_GET_PDEATHSIG => show(value, b.at_parents_end.saturating_sub(1)),
        // (A vfork's child says it of itself, in its parent's memory.)
        PR_SET_CHILD_SUBREAPER if b.vforked != vforked::NOT => {
            b.reaps_orphans = (value != 0).into();
            rpc(number::REAPS_ORPHANS, (value != 0).into(), 0, 0);
            0
        }
        PR_GET_CHILD_SUBREAPER if b.vforked != vforked::NOT => show(value, b.reaps_orphans),
        PR_SET_CHILD_SUBREAPER => {
            reaps_orphans((value != 0).into());
            0
        }
        PR_GET_CHILD_SUBREAPER => show(value, private().reaps_orphans.get()),
        _ => return false,
    };
    true
}

fn show(at: u64, value: u32) -> u64 {
    // SAFETY: inside `guarded`.
    let tell = || unsafe { (at as *mut u32).write_unaligned(value) };
    if guarded(tell) { 0 } else { EFAULT as u64 }
}

/// The thread is about to have another program, in which that holds, too.
pub fn executes(b: Here) {
    if b.at_parents_end != 0 {
        rpc(number::AT_PARENTS_END, b.at_parents_end.into(), 0, 0);
    }
}

fn reaps_orphans(value: u32) {
    let p = private();
    p.reaps_orphans.set(value);
    if value != 0 && p.children.get() == children::BY_KERNEL {
        // (Another thread may be in a wait that the kernel answers.)
        p.children.set(children::CHANGING);
    }
    if leads() {
        rpc(number::REAPS_ORPHANS, value.into(), 0, 0);
    }
    if value != 0 {
        p.children.set(children::BY_MONITOR);
    }
}

/// The record is under way that a child was waited for which this process has not made.
pub fn finds(mut b: Here, child: u32) {
    (b.orphan, b.orphan_at) = (child, 0);
}

/// It is in the log.
pub fn reaped(mut b: Here) {
    b.orphan_at = b.pos;
    if leads() && private().replicas > 1 {
        rpc(number::ORPHAN_REAPED, b.orphan.into(), 0, 0);
    }
}

/// New leader: the former one may have been lost before it could tell, if that is where the log ends.
pub fn tell() {
    for slot in 0..MAX_THREADS {
        let b = block_at(slot);
        let is_last = b.orphan_at == 0 || b.orphan_at == b.pos;
        if b.this != 0 && b.orphan != 0 && is_last {
            rpc(number::ORPHAN_REAPED, b.orphan.into(), 0, 0);
        }
    }
}
