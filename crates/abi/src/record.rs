//! Records of the log: the first word of each says what it is.
//!
//! ```text
//! 63      56 55      48 47              32 31                               0
//! +---------+----------+------------------+---------------------------------+
//! |  kind   |  detail  |      short       |              low                |
//! +---------+----------+------------------+---------------------------------+
//! ```

/// Words of the record of a call's beginning: itself, the digest, six arguments.
pub const BEGIN_WORDS: u64 = 8;
/// Detail of an atomic's record: the compare failed, nothing was written, no tick.
pub const FAILED: u8 = 1;
/// Or: memory stays as it was, which is what the last atomic instruction on that word has left there.
pub const KEPT: u8 = 2;
/// Or: memory stays as it was, as another thread has stored it plainly. In the place of what it expected lies the number of a
/// load, for it was one.
pub const KEPT_PLAIN: u8 = 3;
/// Detail of a load's record: what was found is what the last atomic instruction on that word has left there.
pub const CLOCKED: u8 = 1;
/// Detail of a load's record, too: how often such loads had found the same again since the record before follows as the
/// last word.
pub const POLLED: u8 = 2;

/// And: there was nothing at the address.
pub const FAULTED: u8 = 4;

/// Kinds of records.
pub mod kind {
    /// A call of class input: digest, result, payload follow. short = number.
    pub const CALL: u8 = 1;
    /// A call that has to be confirmed: digest and six arguments follow. short = number.
    pub const BEGIN: u8 = 2;
    /// Its end: result, payload follow.
    pub const END: u8 = 3;
    /// Lock operation: detail = hook, short = hash of the object, low = tick.
    pub const LOCK: u8 = 4;
    /// Lock operation that did not acquire: detail = hook, short = hash, low = errno or outcome.
    pub const OUTCOME: u8 = 5;
    /// Atomic: low = tick, short = hash of the site; two words follow: expected, observed.
    pub const ATOMIC: u8 = 6;
    /// Memory call: low = tick; digest, result follow.
    pub const MEMORY: u8 = 7;
    /// A thread is born: low = tick; slot, shown tid follow.
    pub const BIRTH: u8 = 8;
    /// The thread ends: low = tick.
    pub const DEATH: u8 = 9;
    /// First record of a thread or process: low = shown tid.
    pub const HELLO: u8 = 10;
    /// A signal is delivered here: siginfo (16 words) follows.
    pub const SIGNAL: u8 = 11;
    /// rdtsc and the like: value follows.
    pub const VALUE: u8 = 12;
    /// Start of pthread_create: low = tick.
    pub const CREATE: u8 = 13;
    /// The thread's turn comes (serial order): low = number; slot and position of the thread that
    /// had the turn before follow.
    pub const TURN: u8 = 14;
    /// A look at who waits for the turn (serial order): low = how many atomics and polls are the program's until
    /// the next one.
    pub const LOOK: u8 = 15;

    /// The turn of processes that share memory comes (serial order): low = number; who had the turn before, and the
    /// place at which it was given away, follow.
    pub const KIN: u8 = 16;

    /// A load that decides about order: low = what the clock of its word showed, short = hash of the site; the value
    /// follows.
    pub const LOAD: u8 = 17;

    /// Is there such a kind?
    pub const fn exists(kind: u8) -> bool {
        matches!(kind, CALL..=LOAD)
    }
}

/// Put together the first word of a record.
#[inline(always)]
pub const fn word(kind: u8, detail: u8, short: u16, low: u32) -> u64 {
    (kind as u64) << 56 | (detail as u64) << 48 | (short as u64) << 32 | low as u64
}

/// Kind of a first word.
#[inline(always)]
pub const fn kind_of(word: u64) -> u8 {
    (word >> 56) as u8
}

/// Detail of a first word.
#[inline(always)]
pub const fn detail_of(word: u64) -> u8 {
    (word >> 48) as u8
}

/// Short of a first word.
#[inline(always)]
pub const fn short_of(word: u64) -> u16 {
    (word >> 32) as u16
}

/// Low half of a first word.
#[inline(always)]
pub const fn low_of(word: u64) -> u32 {
    word as u32
}

/// The second word of a record that names a thread group: the group, and a check over all of the
/// record (its first word, the group, the third word). Nothing else would notice that one of them was
/// damaged before it has done harm.
pub const fn seal(first: u64, slot: u32, third: u64) -> u64 {
    let mixed =
        (first ^ third.rotate_left(29) ^ (slot as u64) << 7).wrapping_mul(0xa076_1d64_78bd_642f);
    let check = (mixed ^ mixed >> 29).wrapping_mul(0xe703_7ed1_a0b4_28db);
    check >> 32 << 32 | slot as u64
}

/// The thread group in a word that [`seal`] made; None when the record is damaged.
pub const fn unseal(first: u64, second: u64, third: u64) -> Option<u32> {
    let slot = second as u32;
    if seal(first, slot, third) == second {
        Some(slot)
    } else {
        None
    }
}

/// Name of a kind, for reports.
pub const fn name(kind: u8) -> &'static str {
    match kind {
        kind::CALL => "call",
        kind::BEGIN => "output call",
        kind::END => "end of output call",
        kind::LOCK => "lock",
        kind::OUTCOME => "failed or timed lock",
        kind::ATOMIC => "atomic instruction",
        kind::MEMORY => "memory call",
        kind::BIRTH => "thread birth",
        kind::DEATH => "thread exit",
        kind::HELLO => "thread start",
        kind::SIGNAL => "signal",
        kind::VALUE => "time stamp or random instruction",
        kind::CREATE => "pthread_create",
        kind::TURN => "hand-over of the turn",
        kind::KIN => "hand-over of the turn among processes",
        kind::LOAD => "load that decides about order",
        kind::LOOK => "look at who waits for the turn",
        _ => "unknown record",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_breaks_the_seal() {
        for (slot, third) in [(0, 0), (3, 171), (511, u64::MAX), (u32::MAX, 7)] {
            let first = word(kind::TURN, 0, 0, 46);
            let second = seal(first, slot, third);
            assert_eq!(unseal(first, second, third), Some(slot));
            for bit in 0..64 {
                let flip = 1 << bit;
                assert_eq!(unseal(first ^ flip, second, third), None, "first {bit}");
                assert_eq!(unseal(first, second ^ flip, third), None, "second {bit}");
                assert_eq!(unseal(first, second, third ^ flip), None, "third {bit}");
            }
        }
    }
}
