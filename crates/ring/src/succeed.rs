//! A follower is asked to lead: the first of its threads to notice prepares the process, the others wait
//! for that. Who waits for a record that will not come learns here that it makes one itself.

use crate::word::Atom;
use crate::world::Waits;
use core::sync::atomic::Ordering;
use geryon_abi::layout::promotion::{ASKED, DONE, NONE, UNDER_WAY};

/// A thread of a replica that may be asked.
pub trait Heir: Waits {
    /// The word below.
    type Word: Atom<Value = u32>;
    /// See `geryon_abi::layout::promotion`: one for the process, which the monitor writes, too.
    fn promotion(&self) -> &Self::Word;
    /// May this thread prepare the process?
    fn may_prepare(self) -> bool;
    /// It does, and says last that the process leads.
    fn prepare(self);
    /// The process leads, and this thread finds what belongs to that.
    fn settle(self);
    /// Wait a moment for another thread of the process that is at work.
    fn linger(self, patience: &mut Self::Patience);
}

/// Is this process, which was made to follow, to lead? It does when this returns true.
#[inline(always)]
pub fn promoted<H: Heir>(h: H) -> bool {
    match h.promotion().load(Ordering::Acquire) {
        NONE => false,
        DONE => {
            h.settle();
            true
        }
        ASKED | UNDER_WAY => take_over(h),
        // Another word, by a flipped bit in its address.
        _ => h.broken(),
    }
}

#[cold]
fn take_over<H: Heir>(h: H) -> bool {
    let (asked, seq) = (h.promotion(), Ordering::SeqCst);
    let first = h.may_prepare() && asked.compare_exchange(ASKED, UNDER_WAY, seq, seq).is_ok();
    if first {
        h.prepare();
        asked.store(DONE, seq);
        return true;
    }
    let mut patience = h.patience();
    while asked.load(seq) != DONE {
        h.linger(&mut patience);
    }
    h.settle();
    true
}
