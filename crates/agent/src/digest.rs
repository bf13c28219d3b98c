//! A 64-bit digest of arguments and buffers. Not cryptographic: it has to tell honest
//! replicas apart from faulty ones, not to resist an attacker who chooses both inputs.

use xxhash_rust::xxh3::xxh3_64;

const K0: u64 = 0xa076_1d64_78bd_642f;
const K1: u64 = 0xe703_7ed1_a0b4_28db;

/// (With the product alone, one factor of 0 would wipe out the other one and all that came before: data in
/// which K0 or K1 happens to stand at the right place, as in Geryon's own image.)
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let r = (a as u128) * (b as u128);
    (r as u64) ^ (r >> 64) as u64 ^ a ^ b
}

/// Stands for the digest of a call that was agreed on beforehand.
pub const CONFIRMED: u64 = 0;

/// A digest in the making.
#[derive(Clone, Copy)]
pub struct Digest(u64);

impl Digest {
    /// Start with a number that names what is digested.
    #[inline(always)]
    pub fn new(seed: u64) -> Digest {
        Digest(seed ^ K0)
    }

    /// Add a number.
    #[inline(always)]
    pub fn number(&mut self, value: u64) {
        self.0 = fold(self.0 ^ value, K1 ^ value.rotate_left(32));
    }

    /// Add bytes, length included: XXH3 of them, which reads 64 bytes at a time in vector registers.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(xxh3_64(bytes));
        self.number(bytes.len() as u64);
    }

    /// The digest.
    #[inline(always)]
    pub fn finish(self) -> u64 {
        fold(self.0 ^ K0, K1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, K0, K1};

    fn of(bytes: &[u8]) -> u64 {
        let mut d = Digest::new(1);
        d.bytes(bytes);
        d.finish()
    }

    #[test]
    fn every_single_bit_matters() {
        // XXH3 has a way of its own for each of these lengths.
        let lengths = [3, 8, 16, 101, 201, 1200];
        // (An interpreter takes minutes for the long ones.)
        let lengths = &lengths[..if cfg!(miri) { 3 } else { 6 }];
        for len in lengths.iter().copied() {
            let mut bytes = [0x5au8; 1200];
            let data = &mut bytes[..len];
            let clean = of(data);
            for bit in 0..data.len() * 8 {
                data[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(of(data), clean, "{len} bytes, bit {bit}");
                data[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn no_data_makes_it_forget_what_came_before() {
        for place in (0..64).step_by(8) {
            for constant in [K0, K1] {
                let mut data = [0x5au8; 96];
                data[32 + place..][..8].copy_from_slice(&constant.to_le_bytes());
                let clean = of(&data);
                for byte in 0..32 {
                    data[byte] ^= 4;
                    assert_ne!(of(&data), clean, "byte {byte}, {constant:#x} at {place}");
                    data[byte] ^= 4;
                }
            }
        }
    }

    #[test]
    fn numbers_are_not_forgotten_either() {
        for next in [K0, K1, 0, K1.rotate_left(32)] {
            let of = |first| {
                let mut d = Digest::new(1);
                d.number(first);
                d.number(next);
                d.finish()
            };
            assert_ne!(of(7), of(8), "before {next:#x}");
        }
    }

    #[test]
    fn length_and_order_matter() {
        assert_ne!(of(&[0; 31]), of(&[0; 32]));
        assert_ne!(of(&[]), of(&[0]));
        let (mut a, mut b) = (Digest::new(1), Digest::new(1));
        a.number(1);
        a.number(2);
        b.number(2);
        b.number(1);
        assert_ne!(a.finish(), b.finish());
    }
}
