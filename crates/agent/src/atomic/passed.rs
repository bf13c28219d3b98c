//! A follower does not find in memory what the leader's thread has found there, stored by another one. Could that still
//! store it? Not when it has come to a mark that its leader's thread made later (`log/marks.rs`), or to a later load. (Whoever
//! stands there waits for others; by the leader's time nobody waits in a circle.)

use crate::clock::LIFE;
use crate::gate::guarded;
use crate::log::marks;
use crate::state::{Here, block_at};
use crate::thread;
use core::sync::atomic::Ordering;
use geryon_abi::layout::{Poll, wait};
use geryon_abi::record::{CLOCKED, detail_of, kind, kind_of};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

/// Who has done all that it can have stored before a load. One slot after the other is looked at: who has passed once has for
/// good, as long as no thread is born and none ends (a thread that is made where nobody was may have stored it, or
/// one that waited for the end of another).
#[derive(Debug, Default)]
pub struct Passed {
    /// The next birth or death, when the first slot was looked at.
    life: Option<u32>,
    /// The slot that is next.
    next: usize,
    /// How often its leader had found the same when that was looked at first: this was behind the load.
    told: Option<u64>,
}

impl Passed {
    /// Follower: has every other thread, behind the load with this number?
    pub fn is_all(&mut self, me: Here, epoch: u64) -> bool {
        let life = LIFE.next();
        if self.life != Some(life) {
            *self = Passed::default();
            if thread::is_any_exiting() {
                return false;
            }
            self.life = Some(life);
        }
        while self.next < thread::slots() {
            let b = block_at(self.next);
            let lives = b.this != 0 && b.free.load(Ordering::SeqCst) == 0;
            if lives && self.next as u32 != me.slot {
                let tells = || b.ring().control().again.load(Ordering::Acquire);
                let told = *self.told.get_or_insert_with(tells);
                if !has_passed(b, epoch, told) {
                    return false;
                }
            }
            self.next += 1;
            self.told = None;
        }
        LIFE.next() == life
    }
}

/// `told`: what its leader had found again, by then or later.
fn has_passed(b: Here, epoch: u64, told: u64) -> bool {
    // (Before its place: who waits there then has done what it does behind these.)
    let polls = polls(b);
    let place = place(b);
    // SAFETY: a word of another thread's block, written whole.
    if unsafe { core::ptr::from_ref(&b.loaded).read_volatile() } > epoch {
        return true;
    }
    if Poll::is_same_place(polls, told) && polls > told {
        // It polls, and has polled more often.
        return true;
    }
    if joins(b) {
        return true;
    }
    let (ring, pos) = (b.ring(), place.pos);
    let start = Poll::tells(pos, 0);
    let polled = match Poll::is_same_place(polls, start) {
        true => polls,
        false => start,
    };
    if ring.head() <= pos {
        // It stores nothing before its leader has logged what it does next, or has found the same again.
        let is_behind = Poll::is_same_place(told, start) && polled < told;
        return place.waits && !is_behind || marks::before(b, polled) >= epoch;
    }
    let first = ring.read(pos);
    let loads = kind_of(first) == kind::LOAD && detail_of(first) & CLOCKED == 0;
    if place.stands && loads && ring.read(pos + 2) > epoch && place == self::place(b) {
        return true;
    }
    let come_to = match place.stands {
        true => marks::record(pos) + 1,
        false => polled,
    };
    marks::before(b, come_to) >= epoch
}

/// Where it has found the same again, and how often, as its leader tells it.
fn polls(b: Here) -> u64 {
    let poll = core::ptr::from_ref(&b.poll);
    // SAFETY: words of another thread's block, written whole; the place is written behind the count (`Poll::logged`).
    unsafe {
        let pos = poll.byte_add(Poll::POS).cast::<u64>().read_volatile();
        let count = poll.byte_add(Poll::COUNT).cast::<u64>().read_volatile();
        Poll::tells(pos, count)
    }
}

/// Does it wait for the end of a thread that has not ended? (That one is asked, too, and ends behind a tick of `LIFE`.)
fn joins(b: Here) -> bool {
    let waits = || b.waiting.load(Ordering::SeqCst) == wait::KERNEL;
    if !waits() {
        return false;
    }
    // SAFETY: a word of another thread's block, written whole.
    let word = unsafe { core::ptr::from_ref(&b.waiting_value).read_volatile() };
    if !waits() || !thread::is_id_word(word) {
        return false;
    }
    let mut id = 0;
    // SAFETY: inside `guarded`.
    guarded(|| id = unsafe { (word as *const u32).read_volatile() }) && id as i32 > 0
}

/// Where another thread is.
#[derive(PartialEq, Eq)]
struct Place {
    /// In its log.
    pos: u64,
    /// It waits for a record there. (It may have come to a load that finds the same again, and to the record's operation later.)
    waits: bool,
    /// It has come to the operation of the record there, and waits.
    stands: bool,
}

fn place(b: Here) -> Place {
    // SAFETY: words of another thread's block, written whole.
    let at = || unsafe {
        (
            core::ptr::from_ref(&b.pos).read_volatile(),
            core::ptr::from_ref(&b.standing).read_volatile(),
        )
    };
    let waits = || b.waiting.load(Ordering::SeqCst);
    let before = (waits(), at());
    let ((pos, standing), is_whole) = (before.1, before == (waits(), at()));
    // (Who waits for its turn may have taken the record's first word.)
    let stands = matches!(before.0, wait::TURN | wait::VALUE);
    Place {
        pos: if stands { standing } else { pos },
        waits: is_whole && (stands || before.0 == wait::RECORD),
        stands: is_whole && stands,
    }
}
