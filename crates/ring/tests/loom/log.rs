//! Words are neither read before they were written nor overwritten before they were read, no wake-up is
//! lost, and what is confirmed was verified.

use crate::fault::Fault;
use crate::world::{Here, Shared};
use crate::{PREEMPTIONS, explore};
use geryon_ring::follow::{acknowledge, comes, get_torn, get_words_torn, look};
use geryon_ring::lead::{append, confirmed, publish, put, put_words};
use geryon_ring::memory::Control;
use geryon_ring::roll::By;
use geryon_ring::word::Atom;
use geryon_ring::world::Thread;
use loom::sync::atomic::Ordering;
use loom::thread;

fn get(t: &Here) -> u64 {
    get_torn(t).expect("nobody is asked to lead")
}

/// The leader appends `words`; each follower reads all of them.
fn stream(followers: usize, words: u64, preemptions: usize, fault: Fault) {
    explore(preemptions, move || {
        let shared = Shared::new(followers, fault);
        let readers: Vec<_> = (1..=followers)
            .map(|i| {
                let follower = shared.follower(i);
                thread::spawn(move || (0..words).for_each(|w| assert_eq!(get(&follower), w)))
            })
            .collect();
        let leader = shared.leader();
        for w in 0..words {
            put(&leader, w);
            publish(&leader);
        }
        leader.ends();
        readers.into_iter().for_each(|r| r.join().unwrap());
    });
}

/// The leader appends a word and goes on when each follower has verified it.
fn rendezvous(followers: usize, rounds: u64, preemptions: usize, fault: Fault) {
    explore(preemptions, move || {
        let shared = Shared::new(followers, fault);
        let readers: Vec<_> = (1..=followers)
            .map(|i| {
                let follower = shared.follower(i);
                thread::spawn(move || {
                    for round in 0..rounds {
                        assert_eq!(get(&follower), round);
                        // SAFETY: loom reports a read that is not ordered with this write.
                        let verified = |v: *mut u64| unsafe { *v = round + 1 };
                        follower.line().verified.with_mut(verified);
                        acknowledge(&follower);
                    }
                })
            })
            .collect();
        let leader = shared.leader();
        for round in 0..rounds {
            append(&leader, [round]);
            publish(&leader);
            confirmed(&leader, (&leader).pos(), By::All);
            for line in &shared.lines[1..=followers] {
                // The next round's write may come only after the next word was published.
                // SAFETY: loom reports a write that is not ordered with this read.
                assert_eq!(line.verified.with(|v| unsafe { *v }), round + 1);
            }
        }
        leader.ends();
        readers.into_iter().for_each(|r| r.join().unwrap());
    });
}

// ---- words ------------------------------------------------------------------------------------

#[test]
fn a_follower_reads_what_was_written() {
    stream(1, 4, PREEMPTIONS, Fault::None);
}

#[test]
fn two_followers_read_what_was_written() {
    stream(2, 3, 1, Fault::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_head_without_release_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::PublishRelaxed);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_head_without_acquire_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::HeadRelaxed);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_tail_without_release_is_noticed() {
    stream(1, 3, PREEMPTIONS, Fault::TellTailRelaxed);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_tail_told_too_early_is_noticed() {
    stream(1, 4, PREEMPTIONS, Fault::TailAhead);
}

/// Words that are appended and read many at a time, more than the ring has.
#[test]
fn a_block_that_is_larger_than_the_ring_is_read_as_it_was_written() {
    explore(1, || {
        let shared = Shared::new(1, Fault::None);
        let follower = shared.follower(1);
        let reader = thread::spawn(move || {
            let mut read = [0u64; 5];
            assert_eq!(get(&follower), 0);
            // SAFETY: an own array of so many words.
            assert!(unsafe { get_words_torn(&follower, read.as_mut_ptr().cast(), 5) });
            assert_eq!(read, [1, 2, 3, 4, 5]);
        });
        let leader = shared.leader();
        let words = [1u64, 2, 3, 4, 5];
        put(&leader, 0);
        // SAFETY: an own array of so many words.
        unsafe { put_words(&leader, words.as_ptr().cast(), 5) };
        publish(&leader);
        leader.ends();
        reader.join().unwrap();
    });
}

/// The leader waits for room while the follower acknowledges, which wakes sleepers on `ack` only:
/// the tail that it tells when it has read on wakes the leader.
fn room_after_acknowledge(fault: Fault) {
    explore(PREEMPTIONS, move || {
        let shared = Shared::new(1, fault);
        let follower = shared.follower(1);
        let reader = thread::spawn(move || {
            assert_eq!(get(&follower), 0);
            acknowledge(&follower);
            assert_eq!(get(&follower), 1);
            assert_eq!(get(&follower), 2);
        });
        let leader = shared.leader();
        (0..3).for_each(|w| put(&leader, w));
        publish(&leader);
        leader.ends();
        reader.join().unwrap();
    });
}

#[test]
fn an_acknowledgement_makes_room() {
    room_after_acknowledge(Fault::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn an_acknowledged_tail_without_release_is_noticed() {
    room_after_acknowledge(Fault::AcknowledgeTailRelaxed);
}

/// A look at a word that moves the thread's position while it waits.
fn look_by_moving(t: &Here, n: u64) -> Option<u64> {
    let taken = t.pos();
    t.set_pos(taken + n);
    comes(t);
    t.set_pos(taken);
    look(t, n)
}

/// A record of two words of which the second comes later; the follower looks at both, and again
/// at the first, before it takes them (a compare-and-exchange that has to come again).
fn looking_ahead(look: fn(&Here, u64) -> Option<u64>) {
    explore(PREEMPTIONS, move || {
        let shared = Shared::new(1, Fault::None);
        let follower = shared.follower(1);
        let reader = thread::spawn(move || {
            for _ in 0..2 {
                let words = (look(&follower, 0), look(&follower, 1));
                assert_eq!(words, (Some(0), Some(1)));
            }
            (0..3).for_each(|w| assert_eq!(get(&follower), w));
        });
        let leader = shared.leader();
        for w in 0..3 {
            put(&leader, w);
            publish(&leader);
        }
        leader.ends();
        reader.join().unwrap();
    });
}

#[test]
fn a_viewed_word_stays() {
    looking_ahead(|t, n| look(t, n));
}

/// The tail told is beyond a word that is looked at again: the leader overwrites it.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_tail_told_while_looking_ahead_is_noticed() {
    looking_ahead(look_by_moving);
}

// ---- sleep ------------------------------------------------------------------------------------

#[test]
fn a_sleeping_follower_is_woken() {
    stream(1, 2, 4, Fault::None);
}

#[test]
fn two_sleeping_followers_are_woken() {
    stream(2, 1, PREEMPTIONS, Fault::None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_leader_that_no_barrier_reaches_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::LeaderUnregistered);
}

#[test]
#[should_panic(expected = "the compiler may move this")]
fn a_leader_without_the_compiler_s_barrier_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::NoLightBarrier);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_follower_without_barrier_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::NoBarrier);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_follower_with_a_fence_for_a_barrier_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::FenceForBarrier);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_flag_that_is_raised_behind_the_last_look_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::FlagBehindCheck);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_leader_that_wakes_nobody_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::NoWake);
}

// ---- confirmation -----------------------------------------------------------------------------

#[test]
fn what_is_confirmed_was_verified() {
    rendezvous(1, 2, PREEMPTIONS, Fault::None);
}

#[test]
fn what_is_confirmed_was_verified_by_both() {
    rendezvous(2, 1, PREEMPTIONS, Fault::None);
}

/// The leader goes on when one of two followers has verified its word. The other one may never come.
fn majority(comes: bool, fault: Fault) {
    explore(2, move || {
        let shared = Shared::new(2, fault);
        let readers: Vec<_> = (1..=if comes { 2 } else { 1 })
            .map(|i| {
                let follower = shared.follower(i);
                thread::spawn(move || {
                    assert_eq!(get(&follower), 0);
                    // SAFETY: loom reports a read that is not ordered with this write.
                    follower.line().verified.with_mut(|v| unsafe { *v = 1 });
                    acknowledge(&follower);
                })
            })
            .collect();
        let leader = shared.leader();
        append(&leader, [0]);
        publish(&leader);
        confirmed(&leader, 1, By::Majority);
        let acked = |i: &usize| shared.ack(*i).load(Ordering::Acquire) >= 1;
        let first = [1, 2].into_iter().find(acked).expect("one has confirmed");
        // SAFETY: loom reports a write that is not ordered with this read.
        let verified = shared.lines[first].verified.with(|v| unsafe { *v });
        assert_eq!(verified, 1);
        leader.ends();
        readers.into_iter().for_each(|r| r.join().unwrap());
    });
}

#[test]
fn of_three_replicas_two_are_enough() {
    majority(true, Fault::None);
    majority(false, Fault::None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_flag_that_an_acknowledgement_leaves_up_is_noticed() {
    rendezvous(1, 1, PREEMPTIONS, Fault::FlagLeft);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_unordered_acknowledgement_is_noticed() {
    rendezvous(1, 1, PREEMPTIONS, Fault::AckUnordered);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_leader_that_sleeps_unordered_is_noticed() {
    rendezvous(1, 1, PREEMPTIONS, Fault::LeaderSleepsUnordered);
}

/// A follower that acknowledges before it has verified.
#[test]
#[should_panic(expected = "Causality violation")]
fn an_acknowledgement_that_comes_too_early_is_noticed() {
    explore(PREEMPTIONS, || {
        let shared = Shared::new(1, Fault::None);
        let follower = shared.follower(1);
        let reader = thread::spawn(move || {
            assert_eq!(get(&follower), 0);
            acknowledge(&follower);
            // SAFETY: loom reports a read that is not ordered with this write.
            follower.line().verified.with_mut(|v| unsafe { *v = 1 });
        });
        let leader = shared.leader();
        append(&leader, [0]);
        publish(&leader);
        confirmed(&leader, 1, By::All);
        // SAFETY: loom reports a write that is not ordered with this read.
        shared.lines[1].verified.with(|v| unsafe { *v });
        leader.ends();
        reader.join().unwrap();
    });
}
