//! Do bytes of two replicas mean the same, although what lies where is another matter in each of them
//! (variants)? An address does when its name is the same.

use geryon_abi::layout::Layout;

/// Bytes of an address.
const WORD: usize = 8;
/// The layouts of two replicas differ in this byte of an address, and in no other one.
const BYTE: usize = 5;
/// Addresses are no larger.
const ADDRESS: u64 = (1 << 48) - 1;
/// glibc turns a guarded pointer by so many bits (x86-64).
const TURNED: u32 = 17;

/// Two replicas, and how they write addresses.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// Where their memory lies.
    pub layouts: [Layout; 2],
    /// What glibc has combined with the addresses that it guards (setjmp, atexit); both have the same.
    pub guard: Option<u64>,
}

impl Alike {
    /// Are the addresses that these two words hold, if any, those of the same place?
    fn words(&self, pair: [u64; 2]) -> bool {
        let [one, other] = self.layouts;
        let same = |[a, b]: [u64; 2]| one.name(a) == other.name(b);
        let unguarded = |guard: u64| pair.map(|w| w.rotate_right(TURNED) ^ guard);
        same(pair) || self.guard.is_some_and(|guard| same(unguarded(guard)))
    }

    /// Does the word at this offset of the two hold the same, whole addresses or parts of such as begin at any byte?
    pub fn at(&self, sides: [&[u8]; 2], offset: usize) -> bool {
        let word = |at: usize| {
            let bytes =
                |side: &[u8]| Some(u64::from_le_bytes(*side.get(at..)?.first_chunk::<WORD>()?));
            Some([bytes(sides[0])?, bytes(sides[1])?])
        };
        if word(offset).is_some_and(|pair| pair[0] == pair[1] || self.words(pair)) {
            return true;
        }
        if self.layouts[0] == self.layouts[1] {
            return false;
        }
        let end = (offset + WORD).min(sides[0].len());
        let differing = (offset..end).filter(|i| sides[0][*i] != sides[1][*i]);
        let [one, other] = self.layouts;
        let is_explained = |i: usize| {
            let pair = i.checked_sub(BYTE).and_then(word);
            // (What has been stored over its last bytes, which are zeros, is compared for itself.)
            pair.is_some_and(|[a, b]| one.name(a & ADDRESS) == other.name(b & ADDRESS))
        };
        differing.into_iter().all(is_explained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::layout::place::Moves;

    const GUARD: u64 = 0x1234_5678_9abc_def0;
    const CODE: u64 = 0x7f2a_4c07_a2f8;

    fn two() -> Alike {
        let [one, other] = [0, 2].map(|n| Layout::new(n, Moves::All));
        Alike {
            layouts: [one, other],
            guard: Some(GUARD),
        }
    }

    fn both(at: usize, write: impl Fn(u64) -> u64) -> [[u8; 24]; 2] {
        two().layouts.map(|layout| {
            let mut bytes = [7; 24];
            bytes[at..at + WORD].copy_from_slice(&write(layout.place(CODE)).to_le_bytes());
            bytes
        })
    }

    fn alike(bytes: &[[u8; 24]; 2]) -> bool {
        let sides = [&bytes[0][..], &bytes[1][..]];
        (0..24).step_by(WORD).all(|offset| two().at(sides, offset))
    }

    #[test]
    fn an_address_of_one_place_is_the_same_wherever_it_stands() {
        for at in 0..=16 {
            assert!(alike(&both(at, |address| address)), "at {at}");
        }
        assert!(alike(
            &both(8, |address| (address ^ GUARD).rotate_left(TURNED))
        ));
    }

    /// A function's frame lies where another one has left an address.
    #[test]
    fn the_rest_of_an_address_is_the_same_where_something_else_is_stored_over_its_zeros() {
        for at in 0..=16 {
            assert!(alike(&both(at, |address| address | 1 << 56)), "at {at}");
            assert!(alike(&both(at, |address| address | 7 << 48)), "at {at}");
        }
    }

    #[test]
    fn anything_else_that_differs_does() {
        for at in 0..=16 {
            for bit in 0..192 {
                let mut bytes = both(at, |address| address);
                bytes[0][bit / 8] ^= 1 << (bit % 8);
                // (One such bit makes the bytes the same.)
                assert_eq!(alike(&bytes), bytes[0] == bytes[1], "at {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn without_variants_all_differences_count() {
        let plain = Alike {
            layouts: [Layout::default(); 2],
            guard: None,
        };
        let bytes = both(8, |address| address);
        assert!(!plain.at([&bytes[0], &bytes[1]], 8));
        assert!(plain.at([&bytes[0], &bytes[0]], 8));
    }
}
