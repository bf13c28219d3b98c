//! Where a thread stood when another one loaded what threads store plainly. Such loads have numbers. A thread of the leader
//! that comes to another record marks the number of the last one: what it had stored before that record could be found
//! then.

use crate::state::{Here, header};
use core::sync::atomic::Ordering;
use geryon_abi::layout::{MARKS, Mark, marks_address};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

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
        mark(b, now);
    }
}

#[cold]
#[inline(never)]
fn mark(mut b: Here, now: u64) {
    b.noted = now;
    let ring = b.ring();
    let made = &ring.control().marked;
    let number = made.load(Ordering::Relaxed);
    let mark = &marks(b)[number as usize % MARKS];
    mark.epoch.store(0, Ordering::Release);
    mark.start.store(ring.head(), Ordering::Release);
    mark.epoch.store(now, Ordering::Release);
    made.store(number + 1, Ordering::Release);
}

/// The number in the last mark of a thread's ring before this position; 0: it is not known.
pub fn before(b: Here, pos: u64) -> u64 {
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
        match at(middle).0 < pos {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    if low == oldest {
        return 0;
    }
    let (start, number) = at(low - 1);
    if start < pos { number } else { 0 }
}
