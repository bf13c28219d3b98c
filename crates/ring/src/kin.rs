//! The turn of processes that share memory, in a replica that follows: see `geryon_abi::layout::kin`. Each process
//! hands it to the next one at the place that the log names; the monitor does so for one that has ended.
//!
//! Whoever takes it says first who has it, then that this one has not come to where it gives it away, and last which turn
//! it is. Who waits looks in the opposite order: where somebody stands is believed only of the turn that is the present one.

use crate::word::Atom;
use core::sync::atomic::Ordering::SeqCst;
use geryon_abi::layout::kin::{ENDED, RUNS};

/// The words of one replica.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a, W, P> {
    /// The number of the present turn.
    pub number: &'a W,
    /// Who has it.
    pub owner: &'a W,
    /// Where that one stands.
    pub stands: &'a P,
}

impl<W: Atom<Value = u32>, P: Atom<Value = u64>> Turn<'_, W, P> {
    /// `me` stands at this place and does nothing without another record, or has ended. False: it does not have the turn.
    pub fn stands_at(&self, me: u32, place: u64) -> bool {
        loop {
            // This first: who takes the turn changes it last. What is said here a second time, or of one that has given the
            // turn away and ended, must not come behind what the next one says: nobody would ever hear of that, or the one
            // behind it would take the turn at once.
            let before = self.stands.load(SeqCst);
            if self.owner.load(SeqCst) != me {
                return false;
            }
            if self
                .stands
                .compare_exchange(before, place, SeqCst, SeqCst)
                .is_ok()
            {
                return true;
            }
        }
    }

    /// A thread of `me` goes on, which has the turn if `me` has it.
    pub fn goes_on(&self, me: u32) {
        if self.owner.load(SeqCst) == me {
            self.stands.store(RUNS, SeqCst);
        }
    }

    /// May turn `number` be taken, which is that of who waits: has `before` given it away at `place`, or ended?
    pub fn is_due(&self, number: u32, before: u32, place: u64) -> bool {
        // In this order. (Where one stood that had it earlier may be the very place, in another log.)
        self.number.load(SeqCst) == number.wrapping_sub(1)
            && self.owner.load(SeqCst) == before
            && matches!(self.stands.load(SeqCst), at if at == place || at == ENDED)
    }

    /// It is due: `me` has it from now on.
    pub fn take(&self, me: u32, number: u32) {
        self.owner.store(me, SeqCst);
        // (An exchange: loom does not know that what the one before says a second time comes before this.)
        self.stands.swap(RUNS, SeqCst);
        self.number.store(number, SeqCst);
    }
}
