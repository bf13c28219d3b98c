//! A follower's side of the log: read, tell how far, acknowledge, wait for what comes.

use crate::memory::{Control, Log};
use crate::word::Atom;
use crate::world::{Thread, at};
use core::sync::atomic::Ordering;
use geryon_abi::layout::wait;
use geryon_abi::point::FaultPoint;

/// Is the word at the present position there? False when it will not come, because this replica leads by
/// now.
#[inline(always)]
pub fn comes<T: Thread>(t: T) -> bool {
    t.pos() < t.limit() || await_record(t, t.pos())
}

/// The next word of a record that may be larger than the ring; None when its writer was
/// lost before it had written this.
#[inline(always)]
pub fn get_torn<T: Thread>(t: T) -> Option<u64> {
    if !comes(t) {
        return None;
    }
    let w = t.ring().read(t.pos());
    t.set_pos(t.pos() + 1);
    if t.pos().is_multiple_of(T::TAIL_EVERY) {
        tell_tail(t);
    }
    Some(w)
}

/// The next `words` words of such a record, to the memory at `to`. False when its writer was lost
/// before it had written all of them.
///
/// # Safety
/// `to` is writable for all of them, and nobody else uses it.
pub unsafe fn get_words_torn<T: Thread>(t: T, to: *mut u8, words: u64) -> bool {
    take_words_torn(t, words, |r, pos, done, part| {
        let to = to.wrapping_add(8 * done as usize);
        // SAFETY: the caller's promise; below the limit all is published, and the tail is not yet told.
        unsafe { r.load(pos, to, part) };
    })
}

/// The same, part by part: `take` is told where a part lies in the log, behind how many words of the record,
/// and how long it is.
#[inline(always)]
pub fn take_words_torn<T: Thread>(
    t: T,
    words: u64,
    mut take: impl FnMut(&T::Ring, u64, u64, u64),
) -> bool {
    let mut done = 0;
    while done < words {
        if !comes(t) {
            return false;
        }
        let r = t.ring();
        let until_told = T::TAIL_EVERY - t.pos() % T::TAIL_EVERY;
        let there = (t.limit() - t.pos()).min(r.side_by_side(t.pos()));
        let part = there.min(until_told).min(words - done);
        take(&r, t.pos(), done, part);
        t.set_pos(t.pos() + part);
        done += part;
        if t.pos().is_multiple_of(T::TAIL_EVERY) {
            tell_tail(t);
        }
    }
    true
}

/// The word `n` ahead, without taking it; None when its writer was lost before it had written this.
#[inline(always)]
pub fn look<T: Thread>(t: T, n: u64) -> Option<u64> {
    let at = t.pos() + n;
    if at >= t.limit() && !await_record(t, at) {
        return None;
    }
    Some(t.ring().read(at))
}

/// What a thread has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The first word of a record, which is not taken.
    Record(u64),
    /// What it could go on with without one.
    Other,
    /// There will be none, because this replica leads by now.
    Leads,
}

/// The first word of the next record, without taking it; or `other` holds, which the leader's thread brings about and wakes nobody for.
pub fn look_or<T: Thread>(t: T, other: &dyn Fn() -> bool) -> Came {
    let at = t.pos();
    match at >= t.limit() {
        true => match await_record_or(t, at, Some(other)) {
            There::Word => Came::Record(t.ring().read(at)),
            There::Other => Came::Other,
            There::Leads => Came::Leads,
        },
        false => Came::Record(t.ring().read(at)),
    }
}

/// The next word, without taking it, if it is there already.
pub fn glance<T: Thread>(t: T) -> Option<u64> {
    // (The limit stays: to see a record is not to be admitted to it.)
    let is_there = t.pos() < t.limit() || t.pos() < t.ring().head();
    is_there.then(|| t.ring().read(t.pos()))
}

/// Is the word `n` ahead there already?
pub fn is_there<T: Thread>(t: T, n: u64) -> bool {
    let at = t.pos() + n;
    at < t.limit() || at < t.ring().head()
}

/// The record at `pos` was the leader's mistake and is not in the log any more.
pub fn rewind<T: Thread>(t: T, pos: u64) {
    t.set_pos(pos);
    t.set_limit(pos);
}

/// Was the log cut off at or before this position?
pub fn is_cut<T: Thread>(t: T, pos: u64) -> bool {
    t.ring().head() <= pos
}

/// The word at `pos`, for reports: it may have been overwritten by now.
pub fn word_at<T: Thread>(t: T, pos: u64) -> u64 {
    t.ring().read(pos)
}

/// The records read so far were compared and are equal.
#[inline(always)]
pub fn verified<T: Thread>(t: T) {
    t.set_verified(t.pos());
}

/// Tell the leader which slots it may overwrite.
pub fn tell_tail<T: Thread>(t: T) {
    let r = t.ring();
    t.begins_telling();
    let tail = r.control().tail(t.replica());
    tail.store(t.pos(), Ordering::SeqCst);
    t.ends_telling();
    wake_leader(t, &r);
}

/// Everything below the present position was verified.
pub fn acknowledge<T: Thread>(t: T) {
    let r = t.ring();
    verified(t);
    t.begins_telling();
    let me = t.replica();
    t.passes::<{ at(FaultPoint::Acknowledging) }>();
    r.control().tail(me).store(t.pos(), Ordering::Release);
    t.passes::<{ at(FaultPoint::HalfAcknowledged) }>();
    let ack = r.control().ack(me);
    ack.store(t.pos(), Ordering::SeqCst);
    t.ends_telling();
    t.passes::<{ at(FaultPoint::Acknowledged) }>();
    wake_leader(t, &r);
}

/// The flag goes down before the wake-up: a leader that is only just going to sleep on it does not.
fn wake_leader<T: Thread>(t: T, r: &T::Ring) {
    let sleeps = r.control().leader_sleeps();
    if sleeps.load(Ordering::SeqCst) != 0 {
        sleeps.store(0, Ordering::SeqCst);
        t.wake_flagged(sleeps);
    }
}

/// Wait until the word at `at` is there; the leader learns only what was taken. False when it will
/// not come, because this replica leads by now.
fn await_record<T: Thread>(t: T, at: u64) -> bool {
    await_record_or(t, at, None) == There::Word
}

/// What has come of a wait for a word.
#[derive(PartialEq, Eq)]
enum There {
    Word,
    Other,
    Leads,
}

/// The same, or until `other` holds.
#[cold]
fn await_record_or<T: Thread>(t: T, at: u64, other: Option<&dyn Fn() -> bool>) -> There {
    let r = t.ring();
    let head = r.head();
    if at < head {
        t.set_limit(t.admitted(at, head));
        return There::Word;
    }
    if t.promoted() {
        // What the former leader has published meanwhile comes first.
        let head = r.head();
        t.set_limit(t.admitted(at, head));
        return match at < head {
            true => There::Word,
            false => There::Leads,
        };
    }
    tell_tail(t);
    t.stands_at_end();
    t.announce(wait::RECORD, at, 0);
    let mut patience = t.patience();
    let came = loop {
        if other.is_some_and(|holds| holds()) {
            break There::Other;
        }
        // Before the head: what the former leader has published is read to its end first.
        let promoted = t.promoted();
        let head = r.head();
        if at < head {
            t.set_limit(t.admitted(at, head));
            break There::Word;
        }
        if promoted {
            break There::Leads;
        }
        if t.spend(&mut patience) {
            sleep_at_end(t, &r, head, other);
        }
    };
    t.announce_end();
    came
}

fn sleep_at_end<T: Thread>(t: T, r: &T::Ring, head: u64, other: Option<&dyn Fn() -> bool>) {
    let sleeps = r.control().follower_sleeps();
    sleeps.fetch_or(1 << t.replica(), Ordering::SeqCst);
    t.passes::<{ at(FaultPoint::FollowerSleepy) }>();
    t.heavy_barrier();
    // (Who is asked to lead is woken after the question.)
    if r.head() == head && !t.promoted() {
        match other {
            Some(_) => t.sleep_shortly(r.control().head(), head),
            None => t.sleep(r.control().head(), head),
        }
    }
    sleeps.fetch_and(!(1 << t.replica()), Ordering::SeqCst);
}
