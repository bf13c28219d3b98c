//! The log's protocol under every interleaving that loom's model of memory allows.
//!
//! The steps are those of `crates/agent/src/log.rs` (function of the same name) with three
//! differences: a ring of two words instead of `RING_WORDS`, no patience (who cannot go on sleeps
//! at once), and slots that are plain memory, so that loom reports two accesses that nothing
//! orders, even where the hardware would forgive them.
//!
//! * A futex compares and enqueues under a lock, as the kernel does.
//! * `membarrier(GLOBAL_EXPEDITED)` in the sleeper and the compiler fence in the leader are a
//!   SeqCst fence each: what the pair of them amounts to.
//! * loom takes a SeqCst access for AcqRel. A SeqCst store that is followed by a SeqCst load of
//!   another word has a fence in between here ([`seq_cst`]).
//!
//! A lost wake-up is a deadlock, a word read too early or overwritten too early is a causality
//! violation. Each [`Fault`] takes one step out; its test says that the model notices.

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread::{self, Thread};
use std::sync::Arc;

const SLOTS: u64 = 2;
const TAIL_EVERY: u64 = SLOTS;
/// The most followers that a model here has.
const FOLLOWERS: usize = 2;
/// Forced switches between threads in one execution, enough for each [`Fault`] to be noticed.
/// `LOOM_MAX_PREEMPTIONS` in the environment sets another bound.
const PREEMPTIONS: usize = 2;

/// A step that is left out or done wrongly.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// `Ring::publish` stores the head without release.
    PublishRelaxed,
    /// `Ring::head` loads without acquire.
    HeadRelaxed,
    /// The leader is not registered for the sleeper's barrier.
    NoBarrierInLeader,
    /// The sleeper issues no barrier.
    NoBarrierInFollower,
    /// `publish` does not look for sleepers.
    NoWake,
    /// `tell_tail` stores without release.
    TellTailRelaxed,
    /// `acknowledge` stores the tail without release.
    AcknowledgeTailRelaxed,
    /// `acknowledge` stores without the total order.
    AckUnordered,
    /// `sleep_on_followers` sleeps without raising the flag in the total order.
    LeaderSleepsUnordered,
    /// `view` lets `await_record` tell the position looked at instead of the position taken.
    ViewTellsAhead,
    /// The monitor wakes the leader without changing the words that the leader sleeps on.
    DropLeavesWords,
}

/// A word of shared memory that somebody may sleep on.
struct Word {
    value: AtomicU64,
    sleepers: Mutex<Vec<Thread>>,
}

impl Word {
    fn new() -> Word {
        Word {
            value: AtomicU64::new(0),
            sleepers: Mutex::new(Vec::new()),
        }
    }

    fn sleep(&self, seen: u64) {
        let mut sleepers = self.sleepers.lock().unwrap();
        if self.value.load(Ordering::Relaxed) as u32 == seen as u32 {
            sleepers.push(thread::current());
            // No guard may live where loom finds a deadlock: it would panic again.
            drop(sleepers);
            thread::park();
        }
    }

    fn wake(&self) {
        let sleepers = std::mem::take(&mut *self.sleepers.lock().unwrap());
        sleepers.iter().for_each(Thread::unpark);
    }
}

struct Line {
    tail: Word,
    ack: Word,
    /// What the follower did before it acknowledged.
    verified: UnsafeCell<u64>,
}

/// `RingControl`, its slots and the word of `Header` that counts here.
struct Ring {
    head: Word,
    follower_sleeps: AtomicU32,
    leader_sleeps: AtomicU32,
    lines: [Line; FOLLOWERS],
    slots: [UnsafeCell<u64>; SLOTS as usize],
    alive: AtomicU32,
    fault: Fault,
}

/// Between a SeqCst store and a SeqCst load of another word.
fn seq_cst(holds: bool) {
    if holds {
        fence(Ordering::SeqCst);
    }
}

impl Ring {
    #[expect(
        clippy::arc_with_non_send_sync,
        reason = "loom's threads are of one system thread, and its Arc panics after a deadlock"
    )]
    fn new(followers: usize, fault: Fault) -> Arc<Ring> {
        let line = || Line {
            tail: Word::new(),
            ack: Word::new(),
            verified: UnsafeCell::new(0),
        };
        Arc::new(Ring {
            head: Word::new(),
            follower_sleeps: AtomicU32::new(0),
            leader_sleeps: AtomicU32::new(0),
            lines: [line(), line()],
            slots: [UnsafeCell::new(u64::MAX), UnsafeCell::new(u64::MAX)],
            alive: AtomicU32::new((1 << followers) - 1),
            fault,
        })
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// The order of a store or load that `fault` makes relaxed.
    fn order(&self, fault: Fault, right: Ordering) -> Ordering {
        if self.has(fault) {
            Ordering::Relaxed
        } else {
            right
        }
    }

    fn head(&self) -> u64 {
        self.head
            .value
            .load(self.order(Fault::HeadRelaxed, Ordering::Acquire))
    }

    fn read(&self, pos: u64) -> u64 {
        // SAFETY: loom reports a write that is not ordered with this read.
        self.slots[(pos % SLOTS) as usize].with(|word| unsafe { *word })
    }

    /// `Ring::lowest_tail`, `Ring::lowest_ack`.
    fn lowest(&self, mask: u32, word: impl Fn(&Line) -> &Word) -> u64 {
        let taking_part = self
            .lines
            .iter()
            .enumerate()
            .filter(|(i, _)| mask & (1 << i) != 0);
        taking_part
            .map(|(_, l)| word(l).value.load(Ordering::Acquire))
            .min()
            .unwrap_or(u64::MAX)
    }

    fn sleep_on_followers(&self, mask: u32, low: u64, word: impl Fn(&Line) -> &Word) {
        for (i, line) in self.lines.iter().enumerate() {
            let w = word(line);
            if mask & (1 << i) != 0 && w.value.load(Ordering::Acquire) == low {
                self.leader_sleeps.store(1, Ordering::SeqCst);
                seq_cst(!self.has(Fault::LeaderSleepsUnordered));
                if w.value.load(Ordering::SeqCst) == low
                    && self.alive.load(Ordering::SeqCst) & (1 << i) != 0
                {
                    w.sleep(low);
                }
                self.leader_sleeps.store(0, Ordering::SeqCst);
                return;
            }
        }
    }

    /// The monitor's `Segment::drop_replica`.
    fn drop_replica(&self, i: usize) {
        self.alive.fetch_and(!(1 << i), Ordering::SeqCst);
        for word in [&self.lines[i].ack, &self.lines[i].tail] {
            if !self.has(Fault::DropLeavesWords) {
                word.value.store(u64::MAX, Ordering::SeqCst);
            }
            word.wake();
        }
    }
}

struct Leader {
    ring: Arc<Ring>,
    pos: u64,
    limit: u64,
}

impl Leader {
    fn new(ring: &Arc<Ring>) -> Leader {
        Leader {
            ring: ring.clone(),
            pos: 0,
            limit: SLOTS,
        }
    }

    /// Positions are the words.
    fn put(&mut self) {
        if self.pos >= self.limit {
            self.make_room();
        }
        let pos = self.pos;
        // SAFETY: loom reports an access that is not ordered with this write.
        self.ring.slots[(pos % SLOTS) as usize].with_mut(|word| unsafe { *word = pos });
        self.pos += 1;
    }

    fn publish(&self) {
        let r = &self.ring;
        r.head
            .value
            .store(self.pos, r.order(Fault::PublishRelaxed, Ordering::Release));
        seq_cst(!r.has(Fault::NoBarrierInLeader));
        if r.follower_sleeps.load(Ordering::Relaxed) != 0 && !r.has(Fault::NoWake) {
            r.head.wake();
        }
    }

    fn make_room(&mut self) {
        self.publish();
        loop {
            let mask = self.ring.alive.load(Ordering::Acquire);
            let low = self.ring.lowest(mask, |l| &l.tail);
            if low == u64::MAX {
                self.limit = self.pos + SLOTS;
                break;
            }
            self.limit = low + SLOTS;
            if self.pos < self.limit {
                break;
            }
            self.ring.sleep_on_followers(mask, low, |l| &l.tail);
        }
    }

    fn confirmed(&self, pos: u64) {
        loop {
            let mask = self.ring.alive.load(Ordering::Acquire);
            let low = self.ring.lowest(mask, |l| &l.ack);
            if low >= pos {
                break;
            }
            self.ring.sleep_on_followers(mask, low, |l| &l.ack);
        }
    }
}

struct Follower {
    ring: Arc<Ring>,
    index: usize,
    pos: u64,
    limit: u64,
}

impl Follower {
    fn new(ring: &Arc<Ring>, index: usize) -> Follower {
        Follower {
            ring: ring.clone(),
            index,
            pos: 0,
            limit: 0,
        }
    }

    fn line(&self) -> &Line {
        &self.ring.lines[self.index]
    }

    fn get(&mut self) -> u64 {
        if self.pos >= self.limit {
            self.await_record(self.pos);
        }
        let word = self.ring.read(self.pos);
        self.pos += 1;
        if self.pos.is_multiple_of(TAIL_EVERY) {
            self.tell_tail(self.pos);
        }
        word
    }

    /// The word `n` ahead, without taking it.
    fn view(&mut self, n: u64) -> u64 {
        let at = self.pos + n;
        if at >= self.limit {
            // log.rs moves its position while it waits.
            let taken = self.pos;
            self.pos = at;
            self.await_record(if self.ring.has(Fault::ViewTellsAhead) {
                at
            } else {
                taken
            });
            self.pos = taken;
        }
        self.ring.read(at)
    }

    fn tell_tail(&self, pos: u64) {
        let r = &self.ring;
        let tail = &self.line().tail;
        tail.value
            .store(pos, r.order(Fault::TellTailRelaxed, Ordering::SeqCst));
        seq_cst(true);
        self.wake_leader(tail);
    }

    fn acknowledge(&self) {
        let r = &self.ring;
        let line = self.line();
        line.tail.value.store(
            self.pos,
            r.order(Fault::AcknowledgeTailRelaxed, Ordering::Release),
        );
        line.ack
            .value
            .store(self.pos, r.order(Fault::AckUnordered, Ordering::SeqCst));
        seq_cst(!r.has(Fault::AckUnordered));
        self.wake_leader(&line.ack);
    }

    fn wake_leader(&self, word: &Word) {
        if self.ring.leader_sleeps.load(Ordering::SeqCst) != 0 {
            word.wake();
        }
    }

    fn await_record(&mut self, taken: u64) {
        let r = self.ring.clone();
        self.limit = r.head();
        if self.pos < self.limit {
            return;
        }
        self.tell_tail(taken);
        loop {
            let head = r.head();
            if self.pos < head {
                self.limit = head;
                break;
            }
            r.follower_sleeps.fetch_add(1, Ordering::SeqCst);
            seq_cst(!r.has(Fault::NoBarrierInFollower));
            if r.head() == head {
                r.head.sleep(head);
            }
            r.follower_sleeps.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 10_000;
    builder.check(model);
}

/// The leader appends `words`; each follower reads all of them.
fn stream(followers: usize, words: u64, preemptions: usize, fault: Fault) {
    explore(preemptions, move || {
        let ring = Ring::new(followers, fault);
        let readers: Vec<_> = (0..followers)
            .map(|i| {
                let mut follower = Follower::new(&ring, i);
                thread::spawn(move || (0..words).for_each(|w| assert_eq!(follower.get(), w)))
            })
            .collect();
        let mut leader = Leader::new(&ring);
        for _ in 0..words {
            leader.put();
            leader.publish();
        }
        readers.into_iter().for_each(|r| r.join().unwrap());
    });
}

/// The leader appends a word and goes on when each follower has verified it.
fn rendezvous(followers: usize, rounds: u64, preemptions: usize, fault: Fault) {
    explore(preemptions, move || {
        let ring = Ring::new(followers, fault);
        let readers: Vec<_> = (0..followers)
            .map(|i| {
                let mut follower = Follower::new(&ring, i);
                thread::spawn(move || {
                    for round in 0..rounds {
                        assert_eq!(follower.get(), round);
                        // SAFETY: loom reports a read that is not ordered with this write.
                        follower
                            .line()
                            .verified
                            .with_mut(|v| unsafe { *v = round + 1 });
                        follower.acknowledge();
                    }
                })
            })
            .collect();
        let mut leader = Leader::new(&ring);
        for round in 0..rounds {
            leader.put();
            leader.publish();
            leader.confirmed(leader.pos);
            for line in &ring.lines[..followers] {
                // The next round's write may come only after the next word was published.
                // SAFETY: loom reports a write that is not ordered with this read.
                assert_eq!(line.verified.with(|v| unsafe { *v }), round + 1);
            }
        }
        readers.into_iter().for_each(|r| r.join().unwrap());
    });
}

// ---- words: none read before it was written, none overwritten before it was read --------------

#[test]
fn a_follower_reads_what_was_written() {
    stream(1, 3, PREEMPTIONS, Fault::None);
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

/// The leader waits for room while the follower acknowledges, which wakes sleepers on `ack` only:
/// the tail that it tells when it has read on wakes the leader.
fn room_after_acknowledge(fault: Fault) {
    explore(PREEMPTIONS, move || {
        let ring = Ring::new(1, fault);
        let mut follower = Follower::new(&ring, 0);
        let reader = thread::spawn(move || {
            assert_eq!(follower.get(), 0);
            follower.acknowledge();
            assert_eq!(follower.get(), 1);
            assert_eq!(follower.get(), 2);
        });
        let mut leader = Leader::new(&ring);
        (0..3).for_each(|_| leader.put());
        leader.publish();
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

/// A record of two words of which the second comes later; the follower looks at both, and again
/// at the first, before it takes them (a compare-and-exchange that has to come again).
fn looking_ahead(fault: Fault) {
    explore(PREEMPTIONS, move || {
        let ring = Ring::new(1, fault);
        let mut follower = Follower::new(&ring, 0);
        let reader = thread::spawn(move || {
            assert_eq!((follower.view(0), follower.view(1)), (0, 1));
            assert_eq!((follower.view(0), follower.view(1)), (0, 1));
            (0..3).for_each(|w| assert_eq!(follower.get(), w));
        });
        let mut leader = Leader::new(&ring);
        for _ in 0..3 {
            leader.put();
            leader.publish();
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_viewed_word_stays() {
    looking_ahead(Fault::None);
}

/// The tail told is beyond a word that is looked at again: the leader overwrites it.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_tail_told_while_looking_ahead_is_noticed() {
    looking_ahead(Fault::ViewTellsAhead);
}

// ---- sleep: no wake-up is lost ----------------------------------------------------------------

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
fn a_leader_without_barrier_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::NoBarrierInLeader);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_follower_without_barrier_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::NoBarrierInFollower);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_leader_that_wakes_nobody_is_noticed() {
    stream(1, 1, PREEMPTIONS, Fault::NoWake);
}

#[test]
fn what_is_confirmed_was_verified() {
    rendezvous(1, 2, PREEMPTIONS, Fault::None);
}

#[test]
fn what_is_confirmed_was_verified_by_both() {
    rendezvous(2, 1, PREEMPTIONS, Fault::None);
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

/// A follower that never answers is dropped while the leader waits for it.
fn dropping(wait: fn(&mut Leader), fault: Fault) {
    explore(PREEMPTIONS, move || {
        let ring = Ring::new(1, fault);
        let monitor = ring.clone();
        let monitor = thread::spawn(move || monitor.drop_replica(0));
        let mut leader = Leader::new(&ring);
        wait(&mut leader);
        monitor.join().unwrap();
    });
}

fn for_confirmation(leader: &mut Leader) {
    leader.put();
    leader.publish();
    leader.confirmed(1);
}

fn for_room(leader: &mut Leader) {
    (0..3).for_each(|_| leader.put());
}

#[test]
fn nobody_waits_for_a_dropped_replica() {
    dropping(for_confirmation, Fault::None);
    dropping(for_room, Fault::None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_drop_that_leaves_the_words_is_noticed_by_confirmation() {
    dropping(for_confirmation, Fault::DropLeavesWords);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_drop_that_leaves_the_words_is_noticed_by_room() {
    dropping(for_room, Fault::DropLeavesWords);
}
