//! Do bytes of two replicas mean the same, although what lies where, and what guards addresses, is another matter in each
//! of them (variants)? Words do when their names are the same.

use super::Writing;

/// Bytes of an address.
const WORD: usize = 8;
/// The layouts of two replicas differ in this byte of an address, and in no other one.
const BYTE: usize = 5;
/// Addresses are no larger.
const ADDRESS: u64 = (1 << 48) - 1;
/// So many bytes of a canary are known as what something else that is stored over it has left.
const LEFT: usize = 2;

/// Two replicas, and how they write what they mean.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// Each one's.
    pub sides: [Writing; 2],
}

impl Alike {
    /// Do these two words mean the same?
    fn words(&self, [a, b]: [u64; 2]) -> bool {
        let [one, other] = &self.sides;
        one.name(a) == other.name(b) || one.kept(a) == other.kept(b)
    }

    /// Does the word at this offset of the two hold the same, whole words or parts of addresses such as begin at any byte, or
    /// of canaries?
    pub fn at(&self, sides: [&[u8]; 2], offset: usize) -> bool {
        let word = |at: usize| {
            let bytes =
                |side: &[u8]| Some(u64::from_le_bytes(*side.get(at..)?.first_chunk::<WORD>()?));
            Some([bytes(sides[0])?, bytes(sides[1])?])
        };
        if word(offset).is_some_and(|pair| pair[0] == pair[1] || self.words(pair)) {
            return true;
        }
        let [one, other] = self.sides;
        if one == other {
            return false;
        }
        let end = (offset + WORD).min(sides[0].len());
        let differing = (offset..end).filter(|i| sides[0][*i] != sides[1][*i]);
        let is_of_address = |i: usize| {
            let pair = i.checked_sub(BYTE).and_then(word);
            let names =
                |[a, b]: [u64; 2]| [(one, a), (other, b)].map(|(s, w)| s.layout.name(w & ADDRESS));
            // (What has been stored over its last bytes, which are zeros, is compared for itself.)
            pair.map(names).is_some_and(|[a, b]| a == b)
        };
        let canaries = [one, other].map(|side| side.own[0].to_le_bytes());
        let is_of_canary = |i: usize| (0..2).all(|s| sides[s][i] == canaries[s][i - offset]);
        let left = differing.clone().count();
        differing.clone().all(is_of_address)
            || (left >= LEFT && differing.clone().all(is_of_canary))
    }
}

#[cfg(test)]
mod tests {
    use super::super::writing::TURNED;
    use super::*;
    use geryon_abi::layout::Layout;
    use geryon_abi::layout::place::Moves;
    use geryon_abi::layout::secrets::Words;

    const SHOWN: Words = [0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321];
    const OTHERS: Words = [0x6789_abcd_ef01_2345, 0x5432_10fe_dcba_9876];
    const CODE: u64 = 0x7f2a_4c07_a2f8;

    fn two() -> Alike {
        let writing = |(n, own)| Writing {
            layout: Layout::new(n, Moves::All),
            shown: SHOWN,
            own,
        };
        Alike {
            sides: [(0, SHOWN), (2, OTHERS)].map(writing),
        }
    }

    fn both(at: usize, write: impl Fn(u64) -> u64) -> [[u8; 24]; 2] {
        written(at, |side| write(side.layout.place(CODE)))
    }

    fn written(at: usize, write: impl Fn(&Writing) -> u64) -> [[u8; 24]; 2] {
        two().sides.map(|side| {
            let mut bytes = [7; 24];
            bytes[at..at + WORD].copy_from_slice(&write(&side).to_le_bytes());
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
    }

    #[test]
    fn what_the_c_library_keeps_is_the_same_with_each_ones_secrets() {
        let kept = |w: &Writing, word: u64| (word ^ w.own[1]).rotate_left(TURNED);
        assert!(alike(&written(8, |w| kept(w, w.layout.place(CODE)))));
        // (What is no address, as a frame pointer may be, too.)
        assert!(alike(&written(8, |w| kept(w, u64::MAX / 3))));
        for word in [
            |w: &Writing| w.own[0] & !0xff,
            |w: &Writing| w.own[0],
            |w: &Writing| w.own[1],
        ] {
            assert!(alike(&written(8, word)));
            // The other one's is not.
            let [one, other] = two().sides;
            let mut bytes = written(8, word);
            bytes[1][8..16].copy_from_slice(&word(&one).to_le_bytes());
            bytes[0][8..16].copy_from_slice(&word(&other).to_le_bytes());
            assert!(!alike(&bytes));
        }
    }

    #[test]
    fn the_rest_of_a_canary_is_the_same_where_something_else_is_stored_over_it() {
        for stored in 1..WORD {
            let mut bytes = written(8, |w| w.own[0] & !0xff);
            for side in &mut bytes {
                side[8..8 + stored].fill(9);
            }
            assert_eq!(alike(&bytes), WORD - stored >= LEFT, "{stored}");
            bytes[1][15] ^= 1;
            assert!(!alike(&bytes), "{stored}");
        }
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
            sides: [Writing::default(); 2],
        };
        let bytes = both(8, |address| address);
        assert!(!plain.at([&bytes[0], &bytes[1]], 8));
        assert!(plain.at([&bytes[0], &bytes[0]], 8));
    }
}
