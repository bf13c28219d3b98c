//! Which signals the program has sent itself and not been given, as its leader notes them.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A set of signals from 1 to 31, which threads change at once. Its upper half is the lower one's complement: what a
/// fault has made of it is no set.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Sent(AtomicU64);

impl Sent {
    /// Signals from `bits` are sent.
    pub fn add(&self, bits: u32) {
        self.change(|old| old | bits);
    }

    /// They have come, or never will.
    pub fn remove(&self, bits: u32) {
        self.change(|old| old & !bits);
    }

    /// Nothing is sent.
    pub fn clear(&self) {
        self.0.store(0, SeqCst);
    }

    /// Those that are sent.
    pub fn bits(&self) -> u32 {
        bits_of(self.0.load(SeqCst))
    }

    fn change(&self, new: impl Fn(u32) -> u32) {
        // (It never says no.)
        let _ = self
            .0
            .fetch_update(SeqCst, SeqCst, |word| Some(word_of(new(bits_of(word)))));
    }
}

/// The set in a word of memory: none, where it is damaged.
pub fn bits_of(word: u64) -> u32 {
    let bits = word as u32;
    match (word >> 32) as u32 == !bits {
        true => bits,
        false => 0,
    }
}

/// The word that says so.
pub fn word_of(bits: u32) -> u64 {
    u64::from(!bits) << 32 | u64::from(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_added_and_not_removed() {
        let sent = Sent::default();
        assert_eq!(sent.bits(), 0);
        sent.add(0b1010);
        sent.add(0b0110);
        assert_eq!(sent.bits(), 0b1110);
        sent.remove(0b0011);
        assert_eq!(sent.bits(), 0b1100);
        sent.clear();
        assert_eq!(sent.bits(), 0);
    }

    #[test]
    fn one_bit_that_has_flipped_makes_it_none() {
        for bit in 0..64 {
            assert_eq!(bits_of(word_of(0b1100) ^ 1 << bit), 0, "{bit}");
            assert_eq!(bits_of(1 << bit), 0, "{bit}");
        }
        assert_eq!(bits_of(word_of(0b1100)), 0b1100);
    }
}
