//! How many replicas were made anew of late: beyond a bound, making more of them is no repair.

use crate::policy::Replacements;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// When replicas were made anew, as far back as the bound looks.
#[derive(Clone, Debug)]
pub struct Budget {
    bound: Replacements,
    made: VecDeque<Instant>,
}

impl Budget {
    /// Nothing was made yet.
    pub fn new(bound: Replacements) -> Budget {
        Budget {
            bound,
            made: VecDeque::new(),
        }
    }

    /// One was made.
    pub fn spend(&mut self, now: Instant) {
        self.made.push_back(now);
        // Older ones can decide nothing.
        while self.made.len() > self.bound.most as usize {
            self.made.pop_front();
        }
    }

    /// May no other be made? Then how many there were within the time that the bound looks back.
    pub fn is_spent(&self, now: Instant) -> Option<usize> {
        let within = Duration::from_secs(self.bound.within_s.into());
        let recent = |t: &&Instant| now.duration_since(**t) < within;
        let made = self.made.iter().filter(recent).count();
        (made >= self.bound.most as usize).then_some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(most: u32, within_s: u32) -> (Budget, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        let at = move |s| start + Duration::from_secs(s);
        (Budget::new(Replacements { most, within_s }), at)
    }

    #[test]
    fn so_many_within_the_time_and_no_more() {
        let (mut b, at) = budget(2, 10);
        assert_eq!(b.is_spent(at(0)), None);
        b.spend(at(0));
        assert_eq!(b.is_spent(at(1)), None);
        b.spend(at(5));
        assert_eq!(b.is_spent(at(9)), Some(2));
        // The first one is long ago.
        assert_eq!(b.is_spent(at(10)), None);
        b.spend(at(11));
        assert_eq!(b.is_spent(at(14)), Some(2));
        assert_eq!(b.is_spent(at(15)), None);
    }

    #[test]
    fn none_is_none() {
        let (b, at) = budget(0, 1);
        assert_eq!(b.is_spent(at(100)), Some(0));
    }

    #[test]
    fn a_steady_rate_below_the_bound_goes_on_for_ever() {
        let start = Instant::now();
        let mut b = Budget::new(Replacements::USUAL);
        for kill in 0..1200 {
            let now = start + Duration::from_millis(500 * kill);
            assert_eq!(b.is_spent(now), None, "kill {kill}");
            b.spend(now);
        }
    }
}
