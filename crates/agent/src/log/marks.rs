//! Where a thread stood when another one loaded what threads store plainly. Such loads have numbers. A thread of the leader
//! that comes to another record, or polls, marks the number of the last one: what it had stored before that could be found
//! then. A place is one in the log and, between two records, how often the same was found again there (`Poll::tells`).

use crate::state::{Here, header};
use core::sync::atomic::Ordering;
use geryon_abi::layout::{MARKS, MOST, Mark, Poll, marks_address};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

/// A thread that polls makes a mark after so many loads of others; and after fewer
pub(crate) const SOON: u64 = 16;
/// when it has polled so often.
pub(crate) const OFTEN: u64 = 1 << 10;
/// A thread that has polled so often gives way to others: natively it would poll for as long, but each follower polls as often, too,
/// and keeps from its core who is waited for.
pub(crate) const GIVES_WAY: u64 = 1 << 6;

/// Leader: the number of a load that has just been made.
pub fn number() -> u64 {
    header().open.loads.0.fetch_add(1, Ordering::AcqRel) + 1
}

/// The marks of a thread's ring.
fn marks(b: Here) -> &'static [Mark; MARKS] {
    let words = header().ring_words as usize;
    // SAFETY: they lie in the segment, behind the words of a slot's ring; all that changes is atomic.
    unsafe { &*(marks_address(b.slot as usize, words) as *const [Mark; MARKS]) }
}

/// Leader: a record is to be published, other than that of such a load.
#[inline(always)]
pub fn note(b: Here) {
    let now = header().open.loads.0.load(Ordering::Relaxed);
    if now > b.noted {
        mark(b, now, record(b.ring().head()));
    }
}

/// Leader: a load is about to find the same again. Is it time to give way?
pub fn note_poll(b: Here) -> bool {
    let now = header().open.loads.0.load(Ordering::Relaxed);
    let count = b.poll.count + 1;
    if now >= b.noted + SOON || now > b.noted && count.is_multiple_of(OFTEN) {
        mark(b, now, b.poll.told());
    }
    count.is_multiple_of(GIVES_WAY)
}

/// The place of a record, behind whatever was found again before it.
pub const fn record(pos: u64) -> u64 {
    Poll::tells(pos, MOST)
}

#[cold]
#[inline(never)]
fn mark(mut b: Here, now: u64, place: u64) {
    b.noted = now;
    let ring = b.ring();
    let made = &ring.control().marked;
    let number = made.load(Ordering::Relaxed);
    let mark = &marks(b)[number as usize % MARKS];
    mark.epoch.store(0, Ordering::Release);
    mark.start.store(place, Ordering::Release);
    mark.epoch.store(now, Ordering::Release);
    made.store(number + 1, Ordering::Release);
}

/// (Of a log so long that places begin anew the nearer one counts.)
const fn is_before(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) < 0
}

/// The number in the last mark of a thread's ring before this place; 0: it is not known.
pub fn before(b: Here, place: u64) -> u64 {
    let marks = marks(b);
    let made = b.ring().control().marked.load(Ordering::Acquire);
    let at = |n: u64| {
        let m = &marks[n as usize % MARKS];
        let number = m.epoch.load(Ordering::Acquire);
        let start = m.start.load(Ordering::Acquire);
        let whole = m.epoch.load(Ordering::Acquire) == number;
        (start, if whole { number } else { 0 })
    };
    // The first one that is not before it.
    let oldest = made.saturating_sub(MARKS as u64 - 1);
    let (mut low, mut high) = (oldest, made);
    while low < high {
        let middle = low + (high - low) / 2;
        match is_before(at(middle).0, place) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    if low == oldest {
        return 0;
    }
    let (start, number) = at(low - 1);
    match is_before(start, place) {
        true => number,
        false => 0,
    }
}
