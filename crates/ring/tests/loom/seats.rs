//! Replicas that go and replicas that come while the leader runs.

use crate::fault::Fault;
use crate::word::Word32;
use crate::world::{Here, Shared};
use crate::{PREEMPTIONS, explore};
use geryon_ring::follow::{acknowledge, get_torn};
use geryon_ring::lead::{confirmed, publish, put};
use geryon_ring::roll::{By, are_all, readers};
use geryon_ring::seats;
use geryon_ring::world::Thread;
use loom::thread;

/// A follower that never answers is dropped while the leader waits for it.
fn dropping(wait: fn(&Here), fault: Fault) {
    explore(PREEMPTIONS, move || {
        let shared = Shared::new(1, fault);
        let monitor = shared.clone();
        let monitor = thread::spawn(move || monitor.drop_replica(1));
        let leader = shared.leader();
        wait(&leader);
        leader.ends();
        monitor.join().unwrap();
    });
}

fn for_confirmation(leader: &Here) {
    put(leader, 0);
    publish(leader);
    confirmed(leader, 1, By::All);
}

fn for_room(leader: &Here) {
    (0..3).for_each(|w| put(leader, w));
}

#[test]
fn nobody_waits_for_a_dropped_replica() {
    dropping(for_confirmation, Fault::None);
    dropping(for_room, Fault::None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_drop_that_leaves_the_flag_is_noticed_by_confirmation() {
    dropping(for_confirmation, Fault::FlagLeft);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_drop_that_leaves_the_flag_is_noticed_by_room() {
    dropping(for_room, Fault::FlagLeft);
}

/// A copy of the follower is made where that stands, at the beginning, and joins; the follower reads on as
/// soon as the copy has its seat. Both read all that the leader writes, `words`.
fn joining(words: u64, preemptions: usize, fault: Fault) {
    explore(preemptions, move || {
        let shared = Shared::new(1, fault);
        // The seat's former owner was dropped.
        seats::vacates(&*shared, 2, Word32::wake);
        let (monitor, source) = (shared.clone(), shared.follower(1));
        let monitor = thread::spawn(move || {
            let copy = Here::new(&monitor, 2, (&source).pos(), (&source).pos());
            let (pos, verified) = ((&source).pos(), source.verified.get());
            let sits = |monitor: &Shared| {
                if fault != Fault::JoinsWithoutTail {
                    seats::stands(monitor, 2, pos, verified);
                }
                seats::takes(monitor, 2, false);
            };
            if fault != Fault::SourceGoesFirst {
                sits(&monitor);
            }
            // The source goes on.
            let source = thread::spawn(move || {
                (0..words).for_each(|w| assert_eq!(get_torn(&source), Some(w)));
            });
            if fault == Fault::SourceGoesFirst {
                sits(&monitor);
            }
            seats::joins(&*monitor, 2);
            if fault == Fault::JoinsWithoutTail {
                seats::stands(&*monitor, 2, pos, verified);
            }
            (0..words).for_each(|w| assert_eq!(get_torn(&copy), Some(w)));
            source.join().unwrap();
        });
        let leader = shared.leader();
        for w in 0..words {
            put(&leader, w);
            publish(&leader);
        }
        leader.ends();
        monitor.join().unwrap();
    });
}

#[test]
fn a_copy_reads_on_where_its_source_stood() {
    joining(3, 2, Fault::None);
}

/// It joins before its tails are set, which are still those of the one before.
#[test]
#[should_panic]
fn a_copy_that_joins_before_its_tail_is_set_is_noticed() {
    joining(3, 2, Fault::JoinsWithoutTail);
}

/// The source reads on before the copy has its seat.
#[test]
#[should_panic]
fn a_source_that_goes_on_too_early_is_noticed() {
    joining(3, 2, Fault::SourceGoesFirst);
}

/// A copy that has its seat is a reader at every moment, also while it joins.
#[test]
fn who_joins_is_never_out_of_both_masks() {
    explore(3, || {
        let shared = Shared::new(1, Fault::None);
        seats::takes(&*shared, 2, false);
        let monitor = shared.clone();
        let monitor = thread::spawn(move || seats::joins(&*monitor, 2));
        let leader = shared.leader();
        assert_eq!(readers(&leader), 0b110);
        assert!(!are_all(&leader, 0b010));
        leader.ends();
        monitor.join().unwrap();
    });
}

/// A copy whose source slept at the ring's end sleeps there, too, before it has looked again.
fn joining_asleep(fault: Fault) {
    explore(PREEMPTIONS, move || {
        let shared = Shared::new(1, fault);
        let monitor = shared.clone();
        let monitor = thread::spawn(move || {
            let head = 0;
            let copy = Here::new(&monitor, 1, head, head);
            if fault != Fault::JoinsUnflagged {
                seats::wants_waking(&*monitor, 1);
            }
            if fault != Fault::JoinsWithoutBarrier {
                monitor.cores.barrier();
            }
            seats::joins(&*monitor, 1);
            // What its source was interrupted in is made again.
            (&copy).sleep(&monitor.head, head);
            assert_eq!(get_torn(&copy), Some(0));
            acknowledge(&copy);
        });
        let leader = shared.leader();
        put(&leader, 0);
        publish(&leader);
        leader.ends();
        monitor.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeping_copy_without_a_flag_is_noticed() {
    joining_asleep(Fault::JoinsUnflagged);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeping_copy_without_a_barrier_is_noticed() {
    joining_asleep(Fault::JoinsWithoutBarrier);
}

#[test]
fn a_sleeping_copy_is_woken() {
    joining_asleep(Fault::None);
}

/// The seat of a copy that does not come: whoever waits for it goes on.
#[test]
fn nobody_waits_for_a_copy_that_does_not_come() {
    explore(PREEMPTIONS, || {
        let shared = Shared::new(0, Fault::None);
        let monitor = shared.clone();
        let monitor = thread::spawn(move || {
            seats::stands(&*monitor, 1, 0, 0);
            seats::takes(&*monitor, 1, false);
            seats::leaves(&*monitor, 1);
            seats::goes(&*monitor, 1);
            seats::vacates(&*monitor, 1, Word32::wake);
        });
        let leader = shared.leader();
        for_room(&leader);
        publish(&leader);
        leader.ends();
        monitor.join().unwrap();
    });
}
