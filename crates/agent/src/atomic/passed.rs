//! A follower does not find in memory what the leader's thread has found there, stored by another one. Could that still
//! store it? Not when it has come to a mark that its leader's thread made later (`log/marks.rs`), or to a later load. (Whoever
//! stands there waits for others; by the leader's time nobody waits in a circle.)

use crate::gate::guarded;
use crate::log::marks;
use crate::state::{Here, block_at};
use crate::thread;
use core::sync::atomic::Ordering;
use geryon_abi::layout::wait;
use geryon_abi::record::{CLOCKED, detail_of, kind, kind_of};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

/// Follower: has every other thread done all that it can have stored before the load with this number?
pub fn all_passed(me: Here, epoch: u64) -> bool {
    (0..thread::slots()).all(|slot| {
        let b = block_at(slot);
        let counts = slot as u32 != me.slot && b.this != 0 && b.free.load(Ordering::SeqCst) == 0;
        !counts || has_passed(b, epoch)
    })
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
