//! Processes of a follower that share memory hand their turn on: one of them at a time comes to it.

use crate::cores::Cores;
use crate::explore;
use crate::fault::{Fault, Name};
use crate::word::{Word32, Word64};
use geryon_abi::layout::kin::{ENDED, RUNS};
use geryon_ring::kin::Turn;
use loom::cell::UnsafeCell;
use loom::thread;
use std::rc::Rc;

/// A place in the log of one process, and in that of another one.
const PLACE: u64 = 7;
const LATER: u64 = 9;

/// Enough to notice that somebody takes the place of one before for that of one behind (2), and a word that is said of one
/// that has given the turn away (3).
const PREEMPTIONS: usize = 3;

struct Replica {
    number: Word32,
    owner: Word32,
    stands: Word64,
    memory: UnsafeCell<u64>,
}

impl Replica {
    fn turn(&self) -> Turn<'_, Word32, Word64> {
        Turn {
            number: &self.number,
            owner: &self.owner,
            stands: &self.stands,
        }
    }

    /// What a process does with its turn.
    fn store(&self, who: u64) {
        // SAFETY: loom reports a write that is not ordered with another one.
        self.memory.with_mut(|v| unsafe { *v = who });
    }

    fn awaits(&self, number: u32, before: u32, place: u64) {
        while !self.turn().is_due(number, before, place) {
            thread::yield_now();
        }
    }
}

/// Process 1 has the first turn, 2 the second one, 3 the third: each gives it away at the same place of its log.
/// `ends`: the first one ends behind that, and the monitor says so.
fn three(ends: bool) {
    explore(PREEMPTIONS, move || {
        let cores = Rc::new(Cores::default());
        let word = |v| Word32::new(v, Name::Other, Fault::None, &cores);
        let shared = Rc::new(Replica {
            number: word(1),
            owner: word(1),
            stands: Word64::new(RUNS, Name::Other, Fault::None, &cores),
            memory: UnsafeCell::new(0),
        });
        let second = {
            let r = shared.clone();
            thread::spawn(move || {
                r.awaits(2, 1, PLACE);
                r.turn().take(2, 2);
                // It stands before, for another record of its own.
                assert!(r.turn().stands_at(2, LATER));
                r.store(2);
                assert!(r.turn().stands_at(2, PLACE));
            })
        };
        let third = {
            let r = shared.clone();
            thread::spawn(move || {
                r.awaits(3, 2, PLACE);
                r.turn().take(3, 3);
                r.store(3);
            })
        };
        shared.store(1);
        assert!(shared.turn().stands_at(1, PLACE));
        // A second time.
        shared.turn().stands_at(1, if ends { ENDED } else { PLACE });
        second.join().unwrap();
        third.join().unwrap();
        // SAFETY: nobody else is there.
        assert_eq!(shared.memory.with(|v| unsafe { *v }), 3);
    });
}

#[test]
fn one_at_a_time_has_the_turn() {
    three(false);
}

#[test]
fn an_end_behind_the_turn_does_not_give_the_next_one_away() {
    three(true);
}
