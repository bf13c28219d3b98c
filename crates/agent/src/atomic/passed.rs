//! A follower does not find in memory what the leader's thread has found there, stored by another one. Could that still
//! store it? Not when it has come to a mark that its leader's thread made later (`log/marks.rs`), or to a later load. (Whoever
//! stands there waits for others; by the leader's time nobody waits in a circle.) Nor when it has come further than its leader's
//! thread was a moment ago, which may find the same again and again.

use crate::gate::guarded;
use crate::log::marks;
use crate::state::{Here, block_at};
use crate::thread;
use core::sync::atomic::Ordering;
use geryon_abi::layout::poll::{self, is_further, is_told_of};
use geryon_abi::layout::{Poll, wait};
use geryon_abi::record::{CLOCKED, detail_of, kind, kind_of};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

/// Follower: the other threads, one after the other, as seen by one that waits.
pub struct Others {
    /// Those before it have passed.
    slot: usize,
    /// How far this one's leader was when it was looked at first.
    leader: Option<u64>,
    /// So many loads had been made by the leader's threads before that, and have all passed those so far?
    loads: (u64, bool),
}

impl Others {
    /// None has passed, as far as is known.
    pub fn new() -> Others {
        Others {
            slot: 0,
            leader: None,
            loads: (marks::last(), true),
        }
    }

    /// Has every other thread done all that it can have stored before the load with this number? (That was made before this was
    /// asked first.)
    pub fn have_passed(&mut self, me: Here, epoch: u64) -> bool {
        if marks::are_passed(epoch) {
            return true;
        }
        while self.slot < thread::slots() {
            let b = block_at(self.slot);
            let counts =
                self.slot as u32 != me.slot && b.this != 0 && b.free.load(Ordering::SeqCst) == 0;
            if counts {
                let leader = *self.leader.get_or_insert_with(|| leaders(b));
                let is_further = is_further(own(b), leader);
                if !is_further && !has_passed(b, epoch) {
                    return false;
                }
                self.loads.1 &= is_further || has_passed(b, self.loads.0);
            }
            (self.slot, self.leader) = (self.slot + 1, None);
        }
        let (all, have) = self.loads;
        marks::have_passed(if have { all } else { epoch });
        true
    }
}

/// How far a thread's leader is: behind which record, and how often it has found the same again there.
fn leaders(b: Here) -> u64 {
    let ring = b.ring();
    let head = ring.head();
    let told = ring.control().again.load(Ordering::Acquire);
    match is_told_of(told, head) {
        true => told,
        false => poll::told(head, 0),
    }
}

/// How far it is itself.
fn own(b: Here) -> u64 {
    // SAFETY: words of another thread's block, written whole; of a row the count is written first (`Poll::logged`).
    let (pos, poll) = unsafe {
        (
            core::ptr::from_ref(&b.pos).read_volatile(),
            core::ptr::from_ref(&b.poll),
        )
    };
    // SAFETY: the same.
    let row = unsafe { poll.byte_add(Poll::POS).cast::<u64>().read_volatile() };
    // SAFETY: the same.
    let count = unsafe { poll.byte_add(Poll::COUNT).cast::<u64>().read_volatile() };
    poll::told(pos, if row == pos { count } else { 0 })
}

fn has_passed(b: Here, epoch: u64) -> bool {
    let place = place(b);
    // SAFETY: a word of another thread's block, written whole.
    if unsafe { core::ptr::from_ref(&b.loaded).read_volatile() } > epoch {
        return true;
    }
    let (ring, pos) = (b.ring(), place.pos);
    if ring.head() <= pos {
        // It stores nothing before its leader has logged what it does next, or before that thread has ended.
        return place.waits && !finds_again(b, pos) || joins(b);
    }
    let first = ring.read(pos);
    let loads = kind_of(first) == kind::LOAD && detail_of(first) & CLOCKED == 0;
    if place.stands && loads && ring.read(pos + 2) > epoch {
        return true;
    }
    marks::before(b, if place.stands { pos + 1 } else { pos }) >= epoch
}

/// Has its leader found the same again there, and gone on? (That is not logged.)
fn finds_again(b: Here, pos: u64) -> bool {
    // SAFETY: another thread's block; the words that count are written whole.
    let poll = unsafe { core::ptr::from_ref(&b.poll).read_volatile() };
    let told = b.ring().control().again.load(Ordering::Acquire);
    poll.goes_on(pos) && poll.is_behind(told)
}

/// Does it wait for the end of a thread that has not ended?
fn joins(b: Here) -> bool {
    // SAFETY: a word of another thread's block, written whole.
    let word = unsafe { core::ptr::from_ref(&b.waiting_value).read_volatile() };
    if b.waiting.load(Ordering::SeqCst) != wait::KERNEL || !thread::is_id_word(word) {
        return false;
    }
    let mut id = 0;
    // SAFETY: inside `guarded`.
    guarded(|| id = unsafe { (word as *const u32).read_volatile() }) && id as i32 > 0
}

/// Where another thread is.
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
