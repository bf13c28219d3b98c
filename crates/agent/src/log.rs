//! The thread's stream of records: the leader appends, a follower reads. The protocol is `geryon_ring`'s;
//! here is what the agent makes of a log that ends, and of turns on the way.

pub mod marks;
pub mod passed;
mod stamps;
mod strict;
mod world;

use crate::access::put_what_differs;
use crate::event::plain;
use crate::gate::guarded;
use crate::state::{Here, block};
use geryon_abi::layout::{RING_WORDS, why};
use geryon_abi::record::{kind, kind_of, word};
use geryon_ring::follow::{comes, get_torn as next, glance, look, look_or, take_words_torn};
use geryon_ring::memory::Log;

pub use geryon_ring::follow::{
    Came, acknowledge, get_torn, is_cut, is_there, rewind, tell_tail, verified, word_at,
};
pub use geryon_ring::lead::{append, check_place, confirmed, is_end, put, put_again, reserve};
pub use geryon_ring::roll::{are_all, readers, sleepers};
pub use strict::hold_if_late;
pub use world::register_barrier;

/// A follower tells the leader how far it is at least this often.
const TAIL_EVERY: u64 = RING_WORDS as u64 / 8;

/// Leader: let the followers see everything appended so far.
#[inline(always)]
pub fn publish(b: Here) {
    marks::note(b);
    stamps::note(b);
    geryon_ring::lead::publish(b);
}

/// Leader: the same, of a load that has a number of its own.
pub fn publish_load(b: Here) {
    stamps::note(b);
    geryon_ring::lead::publish(b);
}

/// Leader: append `words` words that lie at `from`.
///
/// # Safety
/// They are readable, or this is called inside `guarded`.
pub unsafe fn put_words(b: Here, from: u64, words: u64) {
    // SAFETY: the caller's promise.
    unsafe { geryon_ring::lead::put_words(b, from as *const u8, words) }
}

/// Follower: the next `words` words of a record that may be larger than the ring, to the memory at `to`.
/// False when its writer was lost before it had written all of them.
///
/// # Safety
/// It is the program's memory that lies there, and nobody else uses it. (Where it cannot be written it stays
/// as it is.)
pub unsafe fn get_words_torn(b: Here, to: u64, words: u64) -> bool {
    take_words_torn(b, words, |r, pos, done, part| {
        let to = to + 8 * done;
        // SAFETY: inside `guarded`; below the limit all is published, and the tail is not yet told.
        if !guarded(|| unsafe { r.load(pos, to as *mut u8, part) }) {
            for k in 0..part {
                put_what_differs(to + 8 * k, &r.read(pos + k).to_le_bytes());
            }
        }
    })
}

/// Follower: the first word of the next record, whatever its kind; None when there will be none,
/// because this replica leads by now.
#[inline(always)]
pub fn get_first(b: Here) -> Option<u64> {
    comes(b).then(|| get(b))
}

/// This thread makes the next record of its own code itself: not beside one that has the turn.
#[cold]
fn leads_from_here(b: Here) {
    // (It may stand in the middle of a call whose beginning is logged: no copy of it is made meanwhile.)
    if crate::serial::active() {
        crate::serial::acquire(b);
    }
}

/// Follower: the next word of a record.
#[inline(always)]
pub fn get(b: Here) -> u64 {
    match next(b) {
        Some(w) => w,
        None => crate::promotion::torn_record(b),
    }
}

/// Follower: has the leader logged a signal as the next record?
pub fn signal_is_next(b: Here) -> bool {
    glance(b).is_some_and(|w| kind_of(w) == kind::SIGNAL)
}

/// Follower: has the leader logged a next record?
pub fn has_next(b: Here) -> bool {
    glance(b).is_some()
}

/// Follower: the first word of the next record; turns are taken on the way. None when there will
/// be none, because this replica leads by now.
#[inline(always)]
pub fn first(b: Here) -> Option<u64> {
    loop {
        let Some(w) = get_first(b) else {
            leads_from_here(b);
            return None;
        };
        if kind_of(w) == kind::TURN {
            crate::serial::take(b, w);
        } else if kind_of(w) == kind::KIN {
            crate::serial::kin::take(b, w, false);
        } else if !crate::serial::active() || crate::serial::runs(b) {
            if passed::passes_over(b, w) {
                continue;
            }
            return Some(w);
        } else {
            crate::diverge::diverged(why::KIND, b.pos - 1, plain(word(kind::TURN, 0, 0, 0)));
        }
    }
}

/// Follower: the first word of the next record, without taking it.
#[inline(always)]
pub fn peek(b: Here) -> Option<u64> {
    let w = look(b, 0);
    if w.is_none() {
        leads_from_here(b);
    }
    w
}

/// Follower: the same, or what it can go on with without a record.
pub fn peek_or(b: Here, other: &dyn Fn() -> bool) -> Came {
    let came = look_or(b, other);
    if came == Came::Leads {
        leads_from_here(b);
    }
    came
}

/// Follower: the next word of a record, without taking it.
#[inline(always)]
pub fn get_ahead(b: Here) -> u64 {
    view(b, 0)
}

/// Follower: the word `n` ahead, without taking it.
pub fn view(b: Here, n: u64) -> u64 {
    match look(b, n) {
        Some(w) => w,
        None => crate::promotion::torn_record(b),
    }
}

/// Follower: take `n` words that were viewed.
pub fn take(b: Here, n: u64) {
    for _ in 0..n {
        get(b);
    }
}

/// Take the position that this thread's slot had before (a slot's stream never starts anew).
pub fn resume_stream(leads: bool) {
    geryon_ring::lead::resume(block(), leads);
}

/// Note the first word of a record that this thread has produced or consumed.
#[inline(always)]
pub fn remember(mut b: Here, word: u64) {
    let at = (b.events & 15) as usize;
    b.last[at] = word;
    b.events += 1;
    delay();
}

/// A test may have the thread sleep here.
#[inline(always)]
pub fn delay() {
    crate::wait::pause_if(point!(RecordDelayed, 0));
}
