//! Waits on condition variables that were begun in a follower, which never waits on one itself. Should it
//! come to lead in the midst of such a wait, the wait goes on in the original function, as if it had begun there: it ends
//! when somebody signals, or in time, and not before. (Programs whose waiters look at nothing when they wake are common:
//! the barriers of Splash-3 are made so, and a wake-up without cause lets a thread through them too early.)
//!
//! A follower's signal is noted for one of the waits that it may end, a broadcast for all of them. Which
//! wait the leader's signal has ended is known when the log says that it is over; until then the oldest is
//! as good as any.

use crate::state::{Here, block_at};
use crate::wait::Patience;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::layout::{MAX_THREADS, carries, wait};

/// State of a wait, in the low bits of its word; the condition's address is in the others.
const STATE: u64 = 7;
/// Nobody has signalled yet.
const WAITING: u64 = 1;
/// This process leads, and the wait goes on in the original function: from there on its signals are the kernel's.
const GIVEN: u64 = 2;
/// It was signalled.
const SIGNALLED: u64 = 3;

/// One thread's wait.
struct Wait {
    /// Condition and state; 0 for none.
    word: AtomicU64,
    /// Its number, from the oldest to the youngest.
    number: AtomicU64,
    /// The condition on which the last wait of this thread was signalled in the leader, while here the
    /// signal is still to come; 0 for none.
    owed: AtomicU64,
}

/// The waits of all threads, by slot.
struct Waits {
    of: [Wait; MAX_THREADS],
    /// Slots from here on have never been used.
    end: AtomicU32,
    /// How many there are, with those that are owed a signal.
    active: AtomicU32,
    next: AtomicU64,
}

static WAITS: Waits = Waits::new();

impl Waits {
    const fn new() -> Waits {
        Waits {
            of: [const {
                Wait {
                    word: AtomicU64::new(0),
                    number: AtomicU64::new(0),
                    owed: AtomicU64::new(0),
                }
            }; MAX_THREADS],
            end: AtomicU32::new(0),
            active: AtomicU32::new(0),
            next: AtomicU64::new(0),
        }
    }

    fn used(&self) -> &[Wait] {
        &self.of[..self.end.load(Ordering::Acquire) as usize]
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.active.load(Ordering::Acquire) == 0
    }

    /// A word of which 0 means none changes from `before` to `now`.
    fn count(&self, before: u64, now: u64) {
        match (before != 0, now != 0) {
            (false, true) => self.active.fetch_add(1, Ordering::AcqRel),
            (true, false) => self.active.fetch_sub(1, Ordering::AcqRel),
            _ => return,
        };
    }

    /// The thread on `slot` begins to wait on a condition, whose mutex it still holds.
    fn begin(&self, slot: usize, c: u64) {
        self.end.fetch_max(slot as u32 + 1, Ordering::AcqRel);
        let w = &self.of[slot];
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        w.number.store(number, Ordering::Relaxed);
        // (A thread that left its last wait by a jump has never ended it.)
        let now = c | WAITING;
        self.count(w.word.swap(now, Ordering::AcqRel), now);
    }

    /// The wait of the thread on `slot` is over in the leader: was it signalled there?
    fn end(&self, slot: usize, signalled: bool) {
        let w = &self.of[slot];
        let was = w.word.swap(0, Ordering::AcqRel);
        if was == 0 {
            // Not one of this process alone.
            return;
        }
        self.count(was, 0);
        let c = was & !STATE;
        match (was & STATE == SIGNALLED, signalled) {
            (true, false) => {
                // That was another thread's.
                self.signal_a_wait(c);
            }
            (false, true) if !self.take_back(c) => {
                self.count(w.owed.swap(c, Ordering::AcqRel), c);
            }
            _ => {}
        }
    }

    /// A signal on this condition has ended another wait than the one it was noted for. False if there is
    /// no such note.
    fn take_back(&self, c: u64) -> bool {
        let noted = |w: &Wait| {
            w.word
                .compare_exchange(
                    c | SIGNALLED,
                    c | WAITING,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
        };
        self.used().iter().any(noted)
    }

    /// Note a signal for the oldest wait on this condition. False when there is none.
    fn signal_a_wait(&self, c: u64) -> bool {
        loop {
            let waits = |w: &&Wait| is_waiting(w, c);
            let oldest = self.used().iter().filter(waits);
            let Some(w) = oldest.min_by_key(|w| w.number.load(Ordering::Relaxed)) else {
                return false;
            };
            if note(w, c) {
                return true;
            }
        }
    }

    /// Somebody signals. True when there was a wait here that this ends, or has ended.
    fn signal(&self, c: u64) -> bool {
        !self.is_empty() && (self.used().iter().any(|w| self.pay(w, c)) || self.signal_a_wait(c))
    }

    /// Somebody signals all who wait.
    fn broadcast(&self, c: u64) {
        if self.is_empty() {
            return;
        }
        for w in self.used() {
            self.pay(w, c);
            while is_waiting(w, c) && !note(w, c) {}
        }
    }

    /// Is this the signal that was still to come?
    fn pay(&self, w: &Wait, c: u64) -> bool {
        let paid = w
            .owed
            .compare_exchange(c, 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if paid {
            self.count(c, 0);
        }
        paid
    }

    /// The thread on `slot` waits no more, and nobody owes it anything.
    fn forget(&self, slot: usize) {
        let w = &self.of[slot];
        self.count(w.word.swap(0, Ordering::AcqRel), 0);
        self.count(w.owed.swap(0, Ordering::AcqRel), 0);
    }
}

fn is_waiting(w: &Wait, c: u64) -> bool {
    w.word.load(Ordering::Acquire) == c | WAITING
}

/// Note a signal for this wait; false when it is over, or has one.
fn note(w: &Wait, c: u64) -> bool {
    w.word
        .compare_exchange(
            c | WAITING,
            c | SIGNALLED,
            Ordering::AcqRel,
            Ordering::Relaxed,
        )
        .is_ok()
}

/// Follower: this thread begins to wait on a condition, whose mutex it still holds.
pub(super) fn begin(b: Here, c: u64) {
    WAITS.begin(b.slot as usize, c);
}

/// Follower: the log says that this thread's wait is over: was it signalled?
pub(super) fn end(b: Here, signalled: bool) {
    WAITS.end(b.slot as usize, signalled);
}

/// Somebody signals. True when there was a wait here that this ends, or has ended.
#[inline(always)]
pub(super) fn signal(c: u64) -> bool {
    if WAITS.is_empty() {
        return false;
    }
    let used_up = WAITS.signal(c);
    if !used_up {
        await_given(c);
    }
    used_up
}

/// Somebody signals all who wait.
#[inline(always)]
pub(super) fn broadcast(c: u64) {
    if !WAITS.is_empty() {
        WAITS.broadcast(c);
        await_given(c);
    }
}

/// The original function is about to signal: whose wait is given to it has to be known there. Its thread sleeps then, in
/// the condition (or behind that, for the mutex).
#[cold]
fn await_given(c: u64) {
    for (slot, w) in WAITS.used().iter().enumerate() {
        let is_given = || w.word.load(Ordering::Acquire) == c | GIVEN;
        let mut patience = Patience::new();
        while is_given() && block_at(slot).waiting.load(Ordering::Acquire) != wait::KERNEL {
            if patience.spend() {
                patience = Patience::new();
            }
        }
    }
}

/// This thread ends.
pub fn forget(b: Here) {
    WAITS.forget(b.slot as usize);
}

/// After a fork: nobody waits in the child.
pub fn reset() {
    for slot in 0..WAITS.end.load(Ordering::Relaxed) as usize {
        WAITS.forget(slot);
    }
}

/// New leader: this thread's wait goes on. `lock` has it hold the mutex, which is what waits behind a signal do, too;
/// `wait` waits in the original function. The result of either.
///
/// Who signals without the mutex may do so in between: such a signal is noted as long as the wait is not given to the
/// original function, and waits until that knows it from then on ([`await_given`]).
pub(super) fn outlast(mut b: Here, lock: impl FnOnce() -> i32, wait: impl FnOnce() -> i32) -> i32 {
    let w = &WAITS.of[b.slot as usize];
    b.carries.store(carries::NOTED, Ordering::Relaxed);
    let mut result = lock();
    if result == 0 {
        let now = w.word.load(Ordering::Acquire);
        let given = (now & !STATE) | GIVEN;
        let gives = now & STATE == WAITING
            && w.word
                .compare_exchange(now, given, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if gives {
            b.carries.store(carries::GIVEN, Ordering::Relaxed);
            result = wait();
            b = crate::state::block_anew();
        }
    }
    WAITS.count(w.word.swap(0, Ordering::AcqRel), 0);
    b.carries.store(carries::NOTHING, Ordering::Relaxed);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: u64 = 0x1000;
    const D: u64 = 0x2000;

    fn state(w: &Waits, slot: usize) -> u64 {
        w.of[slot].word.load(Ordering::Relaxed) & STATE
    }

    fn waits(slots: &[usize]) -> Waits {
        let w = Waits::new();
        slots.iter().for_each(|s| w.begin(*s, C));
        w
    }

    #[test]
    fn a_signal_is_noted_for_the_oldest_wait_on_its_condition() {
        let w = waits(&[3, 1]);
        w.begin(0, D);
        assert!(w.signal(C));
        assert_eq!(
            [0, 1, 3].map(|s| state(&w, s)),
            [WAITING, WAITING, SIGNALLED]
        );
        assert!(w.signal(C) && !w.signal(C));
        assert_eq!([0, 1].map(|s| state(&w, s)), [WAITING, SIGNALLED]);
    }

    #[test]
    fn what_the_log_says_decides_whose_signal_it_was() {
        let w = waits(&[1, 2]);
        assert!(w.signal(C));
        w.end(2, true);
        assert_eq!(state(&w, 1), WAITING);
        assert!(w.signal(C));
        w.end(1, true);
        assert!(w.is_empty());
    }

    #[test]
    fn a_wait_that_timed_out_leaves_its_signal_to_another() {
        let w = waits(&[1, 2]);
        assert!(w.signal(C));
        w.end(1, false);
        assert_eq!(state(&w, 2), SIGNALLED);
    }

    #[test]
    fn a_signal_that_comes_late_ends_no_other_wait() {
        let w = waits(&[1]);
        w.end(1, true);
        w.begin(2, C);
        assert!(w.signal(C));
        assert_eq!(state(&w, 2), WAITING);
        assert!(w.signal(C));
        assert_eq!(state(&w, 2), SIGNALLED);
    }

    #[test]
    fn a_broadcast_ends_all_waits_on_its_condition() {
        let w = waits(&[1, 2]);
        w.begin(3, D);
        w.broadcast(C);
        assert_eq!(
            [1, 2, 3].map(|s| state(&w, s)),
            [SIGNALLED, SIGNALLED, WAITING]
        );
    }

    #[test]
    fn who_ends_is_waited_for_by_nobody() {
        let w = waits(&[1, 2]);
        w.end(2, true);
        w.forget(1);
        w.forget(2);
        assert!(w.is_empty() && !w.signal(C));
    }
}
