//! Which signals the program has sent itself and not been given, as its leader notes them.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The last signal.
pub const LAST: u64 = 64;
/// Up to here one waits at most, however often it is sent; beyond, as many as were sent.
const LAST_ALONE: u64 = 31;

/// How many of each signal, from 1 on, which threads change at once. The upper half of a word is the lower one's complement:
/// what a fault has made of it is none.
#[repr(transparent)]
#[derive(Debug)]
pub struct Sent([AtomicU64; LAST as usize]);

impl Default for Sent {
    fn default() -> Sent {
        Sent([const { AtomicU64::new(0) }; LAST as usize])
    }
}

impl Sent {
    /// The signal is sent.
    pub fn add(&self, signal: u64) {
        let most = if signal <= LAST_ALONE { 1 } else { u32::MAX };
        self.change(signal, |count| count.saturating_add(1).min(most));
    }

    /// It has come, or was not sent.
    pub fn take(&self, signal: u64) {
        self.change(signal, |count| count.saturating_sub(1));
    }

    /// All of that number have come, or never will.
    pub fn forget(&self, signal: u64) {
        self.change(signal, |_| 0);
    }

    /// Nothing is sent.
    pub fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, SeqCst));
    }

    /// How many of it are sent.
    pub fn count(&self, signal: u64) -> u32 {
        self.word(signal).map_or(0, |w| count_of(w.load(SeqCst)))
    }

    fn word(&self, signal: u64) -> Option<&AtomicU64> {
        self.0.get(signal.checked_sub(1)? as usize)
    }

    fn change(&self, signal: u64, new: impl Fn(u32) -> u32) {
        let Some(word) = self.word(signal) else {
            return;
        };
        let changed = |word| {
            let old = count_of(word);
            let new = new(old);
            (new != old).then(|| word_of(new))
        };
        // (It says no where nothing changes.)
        let _ = word.fetch_update(SeqCst, SeqCst, changed);
    }
}

/// The count in this word of memory: none in one that is damaged.
pub fn count_of(word: u64) -> u32 {
    let count = word as u32;
    match (word >> 32) as u32 == !count {
        true => count,
        false => 0,
    }
}

/// The word that says so.
pub fn word_of(count: u32) -> u64 {
    u64::from(!count) << 32 | u64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_those_that_wait_one_behind_the_other() {
        let sent = Sent::default();
        for signal in [10, 10, 64, 64, 64] {
            sent.add(signal);
        }
        assert_eq!((sent.count(10), sent.count(64), sent.count(32)), (1, 3, 0));
        sent.take(10);
        sent.take(64);
        sent.take(32);
        assert_eq!((sent.count(10), sent.count(64), sent.count(32)), (0, 2, 0));
        sent.forget(64);
        assert_eq!(sent.count(64), 0);
        sent.add(33);
        sent.clear();
        assert_eq!(sent.count(33), 0);
    }

    #[test]
    fn what_is_no_signal_is_not_sent() {
        let sent = Sent::default();
        for signal in [0, 65, u64::MAX] {
            sent.add(signal);
            assert_eq!(sent.count(signal), 0);
        }
    }

    #[test]
    fn one_bit_that_has_flipped_makes_it_none() {
        assert_eq!(count_of(word_of(6)), 6);
        assert_eq!(count_of(0), 0);
        for bit in 0..64 {
            assert_eq!(count_of(word_of(6) ^ 1 << bit), 0, "{bit}");
            assert_eq!(count_of(1 << bit), 0, "{bit}");
        }
    }
}
