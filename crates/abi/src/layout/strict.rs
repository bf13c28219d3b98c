//! How exactly a follower repeats the leader's order: `Private::strict`, written by the monitor.

/// Clocks alone: each object's operations in the leader's order.
pub const NOT: u32 = 0;
/// No record is passed before all that the leader has stamped earlier have been.
pub const IN_TIME: u32 = 1;
/// The same, and a record is passed only while every other thread stands at one of its own, or waits.
pub const ONE_AT_A_TIME: u32 = 2;

/// So many stretches of computation can be late.
pub const MOST_LATE: usize = 64;

/// The stretch of a thread that ends where this record starts; or that one and all that follow (`onwards`).
pub const fn late(slot: u32, pos: u64, onwards: bool) -> u64 {
    (onwards as u64) << ONWARDS | (slot as u64) << POS_BITS | (pos & POS_MASK)
}

/// Is a thread's stretch that ends at `pos` among those that `word` names?
pub const fn is_named(word: u64, slot: u32, pos: u64) -> bool {
    let from = word & POS_MASK;
    let named = (word & !(1 << ONWARDS)) >> POS_BITS;
    named == slot as u64 && (pos == from || (pos > from && word >> ONWARDS != 0))
}

const POS_BITS: u32 = 48;
const POS_MASK: u64 = (1 << POS_BITS) - 1;
const ONWARDS: u32 = 63;

/// In the low bits of a stamp's word: which round of the ring it is of.
pub const ROUND_BITS: u32 = 8;

/// The round of a position in a ring of so many words.
pub const fn round(pos: u64, words: u64) -> u64 {
    (pos / words + 1) & ((1 << ROUND_BITS) - 1)
}

/// The stamp that a word holds, if it is of this round.
pub const fn stamp_of(word: u64, round: u64) -> Option<u64> {
    if word != 0 && word & ((1 << ROUND_BITS) - 1) == round {
        Some(word >> ROUND_BITS)
    } else {
        None
    }
}
