//! Cores that cannot be trusted: a replica that fails again and again on one of them is kept away
//! from it.
//!
//! What counts are failures of the replica itself (it differs, crashes, hangs). That it was killed
//! from outside says nothing of the core it ran on.

use std::collections::BTreeSet;

/// Numbers of cores, as the kernel counts them.
pub type CoreSet = BTreeSet<usize>;

/// So many failures in a row are no accident.
const IN_A_ROW: usize = 3;

/// Where replicas have failed.
#[derive(Debug)]
pub struct Cores {
    /// Replica and cores, the last failure last.
    failures: Vec<(usize, CoreSet)>,
    /// Where each replica is not to run.
    avoided: Vec<CoreSet>,
}

/// What follows from a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lesson {
    /// Nothing.
    None,
    /// The replica is to keep away from these cores.
    Avoid(CoreSet),
    /// It has failed again and again on these, and there is no other.
    NoOther(CoreSet),
}

impl Cores {
    /// Of so many replicas.
    pub fn new(replicas: usize) -> Cores {
        Cores {
            failures: Vec::new(),
            avoided: vec![CoreSet::new(); replicas],
        }
    }

    /// Where the replica is not to run.
    pub fn avoided(&self, replica: usize) -> &CoreSet {
        &self.avoided[replica]
    }

    /// The replica failed while it ran on these cores of those that it might run on.
    pub fn failed(&mut self, replica: usize, on: CoreSet, allowed: &CoreSet) -> Lesson {
        self.failures.push((replica, on));
        let own = self.failures.iter().filter(|f| f.0 == replica);
        let mut suspects = in_common(own.map(|f| &f.1));
        suspects.extend(in_common(self.failures.iter().map(|f| &f.1)));
        if suspects.is_subset(&self.avoided[replica]) {
            return Lesson::None;
        }
        let all = &self.avoided[replica] | &suspects;
        if allowed.is_subset(&all) {
            // What speaks against all of them speaks against none.
            self.failures.clear();
            self.avoided[replica].clear();
            return Lesson::NoOther(all);
        }
        self.avoided[replica] = all;
        Lesson::Avoid(suspects)
    }
}

/// The cores of all of the last failures.
fn in_common<'a>(failures: impl DoubleEndedIterator<Item = &'a CoreSet>) -> CoreSet {
    let last: Vec<&CoreSet> = failures.rev().take(IN_A_ROW).collect();
    match last.split_first() {
        Some((first, rest)) if last.len() == IN_A_ROW => {
            rest.iter().fold((*first).clone(), |all, on| &all & *on)
        }
        _ => CoreSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<const N: usize>(cores: [usize; N]) -> CoreSet {
        CoreSet::from(cores)
    }

    fn lessons(failures: &[(usize, &[usize])], allowed: &CoreSet) -> Vec<Lesson> {
        let mut cores = Cores::new(3);
        let failed =
            |(r, on): &(usize, &[usize])| cores.failed(*r, on.iter().copied().collect(), allowed);
        failures.iter().map(failed).collect()
    }

    #[test]
    fn thrice_on_one_core_is_enough() {
        let seen = lessons(&[(1, &[0]), (1, &[0]), (1, &[0])], &set([0, 1]));
        assert_eq!(seen, [Lesson::None, Lesson::None, Lesson::Avoid(set([0]))]);
    }

    #[test]
    fn now_here_now_there_is_no_core_s_fault() {
        let seen = lessons(
            &[(1, &[0]), (1, &[1]), (1, &[0]), (1, &[0]), (1, &[1])],
            &set([0, 1]),
        );
        assert!(seen.iter().all(|l| *l == Lesson::None), "{seen:?}");
    }

    #[test]
    fn a_core_on_which_anybody_fails_is_avoided() {
        let seen = lessons(&[(0, &[2]), (1, &[2]), (2, &[2]), (0, &[2])], &set([1, 2]));
        assert_eq!(seen[2], Lesson::Avoid(set([2])));
        assert_eq!(seen[3], Lesson::Avoid(set([2])), "by each that fails there");
    }

    #[test]
    fn a_replica_s_own_failures_count_among_others() {
        let seen = lessons(
            &[(1, &[0]), (2, &[1]), (1, &[0]), (2, &[3]), (1, &[0])],
            &set([0, 1, 2, 3]),
        );
        assert_eq!(seen[4], Lesson::Avoid(set([0])));
    }

    #[test]
    fn of_several_cores_the_one_in_common_is_meant() {
        let seen = lessons(
            &[(1, &[0, 1]), (1, &[1, 2]), (1, &[1, 3])],
            &set([0, 1, 2, 3]),
        );
        assert_eq!(seen[2], Lesson::Avoid(set([1])));
    }

    #[test]
    fn the_last_core_is_not_taken_away() {
        let seen = lessons(&[(1, &[0]), (1, &[0]), (1, &[0])], &set([0]));
        assert_eq!(seen[2], Lesson::NoOther(set([0])));
        let mut cores = Cores::new(2);
        for on in [0, 0, 0, 1, 1] {
            cores.failed(1, set([on]), &set([0, 1]));
        }
        assert_eq!(*cores.avoided(1), set([0]));
        let lesson = cores.failed(1, set([1]), &set([0, 1]));
        assert_eq!(lesson, Lesson::NoOther(set([0, 1])));
        assert_eq!(*cores.avoided(1), set([]), "it may run anywhere again");
    }

    #[test]
    fn who_was_moved_has_to_fail_anew() {
        let mut cores = Cores::new(2);
        for _ in 0..3 {
            cores.failed(1, set([0]), &set([0, 1]));
        }
        let once = cores.failed(1, set([1]), &set([0, 1]));
        assert_eq!(once, Lesson::None);
    }
}
