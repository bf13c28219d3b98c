//! How a replica writes words that mean the same in all of them: addresses, by where its memory lies, and what its C library
//! makes of words that it has by chance (variants).

use geryon_abi::layout::Layout;
use geryon_abi::layout::secrets::Words;

/// glibc turns an address that it keeps by so many bits (x86-64), when it has combined it with the pointer guard.
pub(super) const TURNED: u32 = 17;
/// Addresses are smaller.
const END_OF_ADDRESSES: u64 = 1 << 47;
/// What remains of the first word in a canary: in glibc, in musl.
const CANARIES: [u64; 2] = [!0xff, !0xff00];

/// Of one replica's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    /// Where its memory lies.
    pub layout: Layout,
    /// What all replicas' programs find at AT_RANDOM.
    pub shown: Words,
    /// What this one's C library has found there.
    pub own: Words,
}

impl Writing {
    /// What a word of this replica's is in all of them: the name of an address; the same, with the pointer guard that all have
    /// been shown; their canary. (A word that is the same in all, as what they have been shown is, is its own name.)
    pub fn name(&self, word: u64) -> u64 {
        self.turned(word, [self.own, self.shown], Layout::name)
    }

    /// What a word that all have is in this replica.
    pub fn place(&self, name: u64) -> u64 {
        self.turned(name, [self.shown, self.own], Layout::place)
    }

    fn turned(
        &self,
        word: u64,
        [from, to]: [Words; 2],
        address: impl Fn(Layout, u64) -> u64,
    ) -> u64 {
        let of_canary = |bits: &u64| word == from[0] & bits;
        if from != to {
            if let Some(bits) = CANARIES.into_iter().find(of_canary) {
                return to[0] & bits;
            } else if word == from[1] {
                return to[1];
            }
        }
        let kept = word.rotate_right(TURNED) ^ from[1];
        if word >= END_OF_ADDRESSES && kept < END_OF_ADDRESSES && !self.layout.is_unrelated() {
            (address(self.layout, kept) ^ to[1]).rotate_left(TURNED)
        } else {
            address(self.layout, word)
        }
    }

    /// The name of what glibc has kept there, if it is that.
    pub(super) fn kept(&self, word: u64) -> u64 {
        self.layout.name(word.rotate_right(TURNED) ^ self.own[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::layout::place::Moves;

    const SHOWN: Words = [0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3210];
    const CODE: u64 = 0x7f2a_4c07_a2f8;

    fn all() -> [Writing; 3] {
        [0, 1, 2].map(|n| Writing {
            layout: Layout::new(n, Moves::All),
            shown: SHOWN,
            own: SHOWN.map(|w| w ^ (0x0303_0303_0303_0303 * u64::from(n))),
        })
    }

    #[test]
    fn words_of_one_meaning_have_one_name() {
        let keep = |w: &Writing, at: u64| (at ^ w.own[1]).rotate_left(TURNED);
        let meanings: [&dyn Fn(&Writing) -> u64; 8] = [
            &|w| w.layout.place(CODE),
            &|w| w.own[0] & !0xff,
            &|w| w.own[0] & !0xff00,
            &|w| w.own[1],
            &|w| keep(w, w.layout.place(CODE)),
            &|w| keep(w, 0x40_1000),
            &|w| keep(w, 0),
            &|_| 7,
        ];
        for meaning in meanings {
            let [leader, others @ ..] = all();
            let name = meaning(&leader);
            assert_eq!(leader.name(name), name);
            for other in others {
                assert_eq!(other.name(meaning(&other)), name, "{name:#x}");
                assert_eq!(other.place(name), meaning(&other), "{name:#x}");
            }
        }
    }

    #[test]
    fn anothers_secrets_are_numbers() {
        let [leader, one, two] = all();
        for word in [two.own[0] & !0xff, two.own[1]] {
            assert_eq!(one.name(word), word);
            assert_eq!(leader.name(word), word);
        }
        assert_ne!(one.name(two.own[0] & !0xff), two.name(two.own[0] & !0xff));
    }
}
