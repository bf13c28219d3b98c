//! Seeded numbers: the same on every machine and with every version of a library.

/// A stream of splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// The constant by which splitmix64 steps.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The stream of one trial. Neighbouring seeds and trials have unrelated streams: both are
    /// mixed before they are put together.
    pub fn for_trial(seed: u64, trial: u64) -> Random {
        let seed = mix(seed.wrapping_add(STEP));
        Random(seed ^ mix(trial.wrapping_add(1).wrapping_mul(STEP)))
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number from 0 to `end` - 1; 0 when `end` is 0. (The remainder's bias is far below what
    /// any number of trials could show.)
    pub fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_splitmix64() {
        // The first numbers of the published generator, from state 0.
        let mut random = Random(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn streams_depend_on_seed_and_trial() {
        let first = |seed, trial| Random::for_trial(seed, trial).next();
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(2, 1));
        assert_ne!(first(1, 2), first(1, 3));
        assert_ne!(first(0, 0), first(0, 1));
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut random = Random::for_trial(7, 7);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
        }
        assert_eq!(random.below(0), 0);
    }
}
