//! Which of a process's forks have been made: those whose births have been heard of. (What its own memory says is
//! how many it has begun: between the two a copy of its child must not be made, which would be there twice.)

use std::collections::BTreeSet;

/// Forks by their numbers, which are nearly all without a gap.
#[derive(Clone, Debug, Default)]
pub struct Births {
    /// All below this one.
    below: u64,
    /// Others, above it.
    others: BTreeSet<u64>,
}

impl Births {
    /// The child of this fork is born.
    pub fn add(&mut self, fork: u64) {
        self.others.insert(fork);
        while self.others.remove(&self.below) {
            self.below += 1;
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        (0..self.below).chain(self.others.iter().copied())
    }

    /// Is it?
    pub fn has(&self, fork: u64) -> bool {
        fork < self.below || self.others.contains(&fork)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_born_is_known_in_any_order() {
        let mut births = Births::default();
        for fork in [1, 0, 3] {
            assert!(!births.has(fork));
            births.add(fork);
        }
        let born: Vec<u64> = (0..5).filter(|f| births.has(*f)).collect();
        assert_eq!(born, [0, 1, 3]);
        births.add(2);
        assert!(births.others.is_empty() && births.has(3) && !births.has(4));
    }
}
