//! A follower is asked to lead: it has read all that its former leader has published, one of its threads
//! prepares it, and none sleeps on.

use crate::explore;
use crate::fault::Fault;
use crate::world::Shared;
use crate::{PREEMPTIONS, word::Word64};
use geryon_abi::layout::promotion;
use geryon_ring::follow::get_torn;
use geryon_ring::lead::{publish, put};
use geryon_ring::succeed::promoted;
use geryon_ring::word::Atom;
use loom::sync::atomic::Ordering;
use loom::thread;

/// The monitor, once the former leader is gone: it asks, wakes, and wakes again until it is answered
/// (one that had just looked when the question came sleeps behind the wake-up that went with it).
fn ask(shared: &Shared, fault: Fault) {
    let wake = || Word64::wake(&shared.head);
    if fault == Fault::WokenBeforeAsked {
        wake();
    }
    shared.promotion.store(promotion::ASKED, Ordering::SeqCst);
    while fault != Fault::WokenBeforeAsked
        && shared.promotion.load(Ordering::SeqCst) != promotion::DONE
    {
        wake();
        thread::yield_now();
    }
}

fn succession(words: u64, preemptions: usize, fault: Fault) {
    explore(preemptions, move || {
        let shared = Shared::new(1, fault);
        let follower = shared.follower(1);
        let heir = thread::spawn(move || {
            for w in 0..words {
                assert_eq!(get_torn(&follower), Some(w), "what was published is read");
            }
            assert_eq!(get_torn(&follower), None);
            assert_eq!(follower.prepared.get(), 1);
        });
        let leader = shared.leader();
        for w in 0..words {
            put(&leader, w);
            publish(&leader);
        }
        leader.ends();
        ask(&shared, fault);
        heir.join().unwrap();
    });
}

#[test]
fn an_heir_reads_everything_and_leads() {
    succession(1, PREEMPTIONS, Fault::None);
    succession(2, 1, Fault::None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_heir_that_is_woken_before_it_is_asked_is_noticed() {
    succession(1, PREEMPTIONS, Fault::WokenBeforeAsked);
}

/// Two threads of the heir notice at once: one prepares the process, and both go on only behind that.
fn two_threads(fault: Fault) {
    explore(PREEMPTIONS, move || {
        let shared = Shared::new(1, fault);
        shared.promotion.store(promotion::ASKED, Ordering::SeqCst);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let here = shared.follower(1);
                thread::spawn(move || {
                    assert!(promoted(&here));
                    // SAFETY: loom reports a write that is not ordered with this read.
                    let prepared = here.line().verified.with(|v| unsafe { *v });
                    assert_eq!(prepared, 1, "prepared once");
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

#[test]
fn one_thread_prepares_its_process_before_any_goes_on() {
    two_threads(Fault::None);
}

#[test]
#[should_panic]
fn two_threads_that_both_prepare_are_noticed() {
    two_threads(Fault::BothPrepare);
}
