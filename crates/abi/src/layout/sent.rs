//! Which signals the program has sent itself and not been given, as its leader notes them.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A set of signals, which threads change at once: in two words, 32 of them in each. The upper half of a word is the lower
/// one's complement: what a fault has made of it is no set.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Sent([AtomicU64; 2]);

impl Sent {
    /// Signals from `bits` are sent.
    pub fn add(&self, bits: u64) {
        self.change(bits, |old, bits| old | bits);
    }

    /// They have come, or never will.
    pub fn remove(&self, bits: u64) {
        self.change(bits, |old, bits| old & !bits);
    }

    /// Nothing is sent.
    pub fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, SeqCst));
    }

    /// Those that are sent.
    pub fn bits(&self) -> u64 {
        let [low, high] = &self.0;
        bits_of([low.load(SeqCst), high.load(SeqCst)])
    }

    fn change(&self, bits: u64, new: impl Fn(u32, u32) -> u32) {
        for (word, bits) in self.0.iter().zip([bits as u32, (bits >> 32) as u32]) {
            if bits != 0 {
                let changed = |word| Some(sealed(new(half(word), bits)));
                // (It never says no.)
                let _ = word.fetch_update(SeqCst, SeqCst, changed);
            }
        }
    }
}

/// The set in these words of memory: none from one that is damaged.
pub fn bits_of([low, high]: [u64; 2]) -> u64 {
    u64::from(half(high)) << 32 | u64::from(half(low))
}

/// The words that say so.
pub fn words_of(bits: u64) -> [u64; 2] {
    [sealed(bits as u32), sealed((bits >> 32) as u32)]
}

fn half(word: u64) -> u32 {
    let bits = word as u32;
    match (word >> 32) as u32 == !bits {
        true => bits,
        false => 0,
    }
}

fn sealed(bits: u32) -> u64 {
    u64::from(!bits) << 32 | u64::from(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_added_and_not_removed() {
        let sent = Sent::default();
        assert_eq!(sent.bits(), 0);
        sent.add(1 << 40 | 0b1010);
        sent.add(1 << 63 | 0b0110);
        assert_eq!(sent.bits(), 1 << 63 | 1 << 40 | 0b1110);
        sent.remove(1 << 40 | 0b0011);
        assert_eq!(sent.bits(), 1 << 63 | 0b1100);
        sent.clear();
        assert_eq!(sent.bits(), 0);
    }

    #[test]
    fn one_bit_that_has_flipped_makes_it_none() {
        let words = words_of(1 << 33 | 0b1100);
        assert_eq!(bits_of(words), 1 << 33 | 0b1100);
        for bit in 0..64 {
            assert_eq!(bits_of([words[0] ^ 1 << bit, words[1]]), 1 << 33, "{bit}");
            assert_eq!(bits_of([words[0], words[1] ^ 1 << bit]), 0b1100, "{bit}");
            assert_eq!(bits_of([1 << bit, 0]), 0, "{bit}");
        }
    }
}
