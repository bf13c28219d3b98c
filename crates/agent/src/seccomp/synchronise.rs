//! SECCOMP_FILTER_FLAG_TSYNC: a thread gives its filters to all others of its process.
//!
//! From which of its calls on another thread has them must be the same in all replicas. It is where one thread runs at a
//! time; where threads run in parallel nothing says so, and the flag is refused.

use super::chain;
use crate::state::{Here, block, block_at, private};
use core::sync::atomic::Ordering;
use geryon_abi::layout::filter::{FIRST_ADDRESS, NONE};
use geryon_abi::layout::{MAX_THREADS, block_address, vforked};

/// Is it known when another thread has the filter?
pub fn is_possible() -> bool {
    let p = private();
    p.serial.get() == 1 || p.replicas == 1 || others().next().is_none()
}

/// Give `filter` to all other threads. They must have none but those that this thread had, of which `before` was the
/// newest one; else nothing happens, and the id of one that has others is the error.
pub fn synchronise(before: u64, filter: u64) -> Result<(), u32> {
    for other in others() {
        let theirs = other.filter;
        let is_older = theirs == NONE || (theirs >= FIRST_ADDRESS && chain::has(before, theirs));
        if !is_older {
            return Err(other.shown_tid);
        }
    }
    for mut other in others() {
        other.filter = filter;
    }
    Ok(())
}

fn others() -> impl Iterator<Item = Here> {
    let own = block().slot as usize;
    let all = (0..MAX_THREADS).filter(move |slot| *slot != own);
    all.map(block_at).filter(|b| {
        let lives = b.this == block_address(b.slot as usize) && b.free.load(Ordering::Acquire) == 0;
        lives && b.vforked == vforked::NOT
    })
}
