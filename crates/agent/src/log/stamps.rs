//! When the leader has published what, in one order for all its threads: a number for each publication, behind the ring's
//! marks, at the place of its first word. A follower that is strict (`strict.rs`) passes records in that order.
//!
//! The number is taken before the publication is seen, and so inside whatever orders the operation (the clock's lock, the
//! section, the mutex that has been taken): numbers of operations on one object are ordered as their ticks are. It is a
//! count and not the processor's time: rdtsc is an input to a program, and faults in each of its threads, the agent's
//! code included. To take it is a locked instruction, so what the thread has stored before can be seen by then.

use crate::state::{Here, header, private};
use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::layout::stamps_address;
use geryon_abi::layout::strict::{self, ROUND_BITS, round, stamp_of};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

/// What is left of a count that is as old as that.
const COUNT_MASK: u64 = u64::MAX >> ROUND_BITS;

/// The word of the stamp of what is published from `pos` on.
fn word(b: Here, pos: u64) -> &'static AtomicU64 {
    let words = header().ring_words;
    let first = stamps_address(b.slot as usize, words as usize) as *const AtomicU64;
    // SAFETY: there are as many as the ring has words, where the monitor has asked for stamps.
    unsafe { &*first.add((pos & (words - 1)) as usize) }
}

/// Leader: what it has appended is about to be published.
#[inline(always)]
pub fn note(b: Here) {
    if private().stamps.get() != 0 {
        stamp(b);
    }
}

#[inline(never)]
fn stamp(b: Here) {
    let now = header().open.stamps.0.fetch_add(1, Ordering::AcqRel) + 1;
    let at = b.ring().head();
    word(b, at).store(
        now << ROUND_BITS | round(at, header().ring_words),
        Ordering::Relaxed,
    );
}

/// The stamp of what was published from this position on; None in the midst of that.
pub fn at(b: Here, pos: u64) -> Option<u64> {
    stamp_of(
        word(b, pos).load(Ordering::Relaxed),
        round(pos, header().ring_words),
    )
}

/// Was one taken before another one?
pub fn is_before(one: u64, other: u64) -> bool {
    one != other && other.wrapping_sub(one) & COUNT_MASK <= COUNT_MASK / 2
}

/// Does this replica repeat the order of the stamps?
#[inline(always)]
pub fn are_followed() -> bool {
    private().stamps.get() != 0 && private().strict.load(Ordering::Relaxed) != strict::NOT
}
