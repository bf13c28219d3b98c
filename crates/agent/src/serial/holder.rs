//! The thread that has the turn, or has lent it, as those see it that wait for it: for how long they leave it alone.

use super::{last_pos, last_slot, owner};
use crate::state::block_at;
use core::sync::atomic::Ordering;
use geryon_abi::layout::wait;
use geryon_abi::table::nr;

/// Who waits takes a turn that has been lent for longer (nanoseconds; at most twice as long).
const LENT_NS: u64 = 1_000_000;
/// How often a waiting thread looks at the one that has the turn.
pub(super) const LOOK_NS: u64 = 50_000_000;
/// The same at first.
const FIRST_LOOK_NS: u64 = 20_000_000;
/// Processor time after which a thread that has the turn, and that others wait for, loses it
/// although it has come to no hand-over: it may be spinning on a word that another thread is to
/// change. From there to its next call it runs beside the others, in every replica; what it shares
/// with them in that time is not repeated exactly. So long, because a compressor's thread may well
/// compute for half a minute between two calls; who spins at a load or an atomic instruction is not meant (`look.rs`).
const SPIN_NS: u64 = 60_000_000_000;

/// The thread that has the turn, as a waiting one sees it.
#[derive(Default)]
pub(super) struct Holder {
    slot: u32,
    events: u64,
    used: u64,
    /// The monitor knows that it computes while others wait.
    told: bool,
}

impl Holder {
    /// For how many nanoseconds it is left alone.
    pub(super) fn look_again(&self) -> u64 {
        if self.told { LOOK_NS } else { FIRST_LOOK_NS }
    }

    /// It has had the turn since the last look, and has come to no event: the monitor is to interrupt it where
    /// all replicas' threads are in the same state, which those that spin are at any time.
    pub(super) fn complain(&mut self) {
        let slot = owner().load(Ordering::SeqCst);
        let h = block_at(slot as usize);
        let computes = h.frame == 0 && h.has_turn.load(Ordering::SeqCst) != 0;
        if self.told || self.used == 0 || slot != self.slot || h.events != self.events || !computes
        {
            return;
        }
        self.told = true;
        h.starves.store(1, Ordering::SeqCst);
        crate::gate::rpc(geryon_abi::layout::rpc::STARVES, slot as u64, 0, 0);
    }

    /// Has it used much processor time without an event since we first saw it?
    pub(super) fn spins(&mut self) -> bool {
        let slot = owner().load(Ordering::SeqCst);
        let h = block_at(slot as usize);
        let (events, used) = (h.events, thread_time(h.own_tid.load(Ordering::Relaxed)));
        if slot != self.slot || events != self.events || self.used == 0 {
            *self = Holder {
                slot,
                events,
                used,
                told: false,
            };
        }
        used.saturating_sub(self.used) > SPIN_NS
    }

    /// Take its turn away, if it is still running the program's code.
    pub(super) fn rob(&self) -> bool {
        let h = block_at(self.slot as usize);
        if h.has_turn.swap(0, Ordering::SeqCst) == 0 {
            return false;
        }
        let in_kernel = h.waiting.load(Ordering::SeqCst) == wait::KERNEL;
        if (h.frame != 0 && !in_kernel) || h.events != self.events {
            // It is just coming to an event: let it.
            h.has_turn.store(1, Ordering::SeqCst);
            return false;
        }
        h.robbed.store(1, Ordering::SeqCst);
        last_slot().store(h.slot as u64, Ordering::SeqCst);
        last_pos().store(h.pos, Ordering::SeqCst);
        true
    }
}

/// Processor time of a thread of this process, in nanoseconds.
fn thread_time(tid: u32) -> u64 {
    const PER_THREAD_SCHED: u64 = 6;
    let clock = (!(tid as u64) << 3) | PER_THREAD_SCHED;
    let mut t = [0u64; 2];
    crate::gate::real(
        nr::clock_gettime,
        [
            clock as u32 as i32 as u64,
            t.as_mut_ptr() as u64,
            0,
            0,
            0,
            0,
        ],
    );
    t[0] * 1_000_000_000 + t[1]
}

/// A turn that is lent, as who waits for it sees it from time to time.
#[derive(Default)]
pub(super) struct Loan {
    /// It has slept since it looked last.
    slept: bool,
    /// Since which place in the log, when it was seen last, and one.
    since: u64,
    /// The last nap, and all since the holder was looked at (nanoseconds).
    nap: u64,
    napped: u64,
}

impl Loan {
    /// It is lent from this place on: was it before the last nap, too?
    pub(super) fn is_overdue(&mut self, place: u64) -> bool {
        // The next nap is a short one.
        self.nap = 0;
        let since = core::mem::replace(&mut self.since, place + 1);
        core::mem::take(&mut self.slept) && since == place + 1
    }

    /// Sleep for a while, at first as long as a turn may be lent. True until that makes `limit` in all.
    pub(super) fn nap(&mut self, limit: u64, sleep: impl Fn(u64)) -> bool {
        self.nap = (2 * self.nap).clamp(LENT_NS, limit);
        sleep(self.nap);
        self.slept = true;
        self.napped += self.nap;
        let goes_on = self.napped < limit;
        if !goes_on {
            self.napped = 0;
        }
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn a_loan_is_overdue_when_it_is_the_same_behind_a_nap() {
        let mut loan = Loan::default();
        let nap = |loan: &mut Loan| loan.nap(FIRST_LOOK_NS, |_| {});
        assert!(!loan.is_overdue(0));
        // Who has not gone to sleep yet looks often.
        assert!(!loan.is_overdue(0));
        nap(&mut loan);
        assert!(loan.is_overdue(0));
        nap(&mut loan);
        // Lent anew.
        assert!(!loan.is_overdue(7));
        nap(&mut loan);
        assert!(loan.is_overdue(7));
    }

    #[test]
    fn naps_become_longer_until_it_is_time_to_look_at_the_holder() {
        let (mut loan, slept) = (Loan::default(), Cell::new(0));
        let mut naps = 1;
        while loan.nap(FIRST_LOOK_NS, |ns| slept.set(slept.get() + ns)) {
            naps += 1;
        }
        assert!(naps < 10 && slept.get() >= FIRST_LOOK_NS, "{naps}");
        // Who has seen a loan looks again soon.
        loan.is_overdue(3);
        loan.nap(FIRST_LOOK_NS, |ns| assert_eq!(ns, LENT_NS));
    }
}
