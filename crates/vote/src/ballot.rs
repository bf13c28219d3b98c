//! How replicas stand to what a follower has reported, and who is to blame.

use crate::is_majority;

/// With fewer replicas no majority can name the one that is wrong.
pub const NAMING: usize = 3;

/// Who is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// This follower.
    Follower(usize),
    /// This one, which leads.
    Leader(usize),
    /// Somebody, and no majority says who.
    Unnamed,
}

impl Blame {
    /// Which replica is to go.
    pub fn outvoted(self) -> Option<usize> {
        match self {
            Blame::Follower(r) | Blame::Leader(r) => Some(r),
            Blame::Unnamed => None,
        }
    }
}

/// How the replicas of a group stand to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ballot {
    /// All that have a say.
    pub total: usize,
    /// The leader and those that have passed the position with it.
    pub with_leader: usize,
    /// Those that reported the same.
    pub against_leader: usize,
    /// Those followers that have reported nothing, and have not come past it.
    pub silent: usize,
}

impl Ballot {
    /// Who is to blame for what `replica` reported; None as long as others may still say more.
    pub fn blame(self, replica: usize, leader: usize, expired: bool) -> Option<Blame> {
        if self.total >= NAMING && is_majority(self.with_leader, self.total) {
            Some(Blame::Follower(replica))
        } else if self.total >= NAMING && is_majority(self.against_leader, self.total) {
            Some(Blame::Leader(leader))
        } else if self.total < NAMING || self.silent == 0 || expired {
            Some(Blame::Unnamed)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ballot, Blame};

    fn blame(total: usize, with_leader: usize, against_leader: usize) -> Option<Blame> {
        let silent = total - with_leader - against_leader;
        let ballot = Ballot {
            total,
            with_leader,
            against_leader,
            silent,
        };
        ballot.blame(7, 0, false)
    }

    #[test]
    fn a_majority_names_the_one_that_is_wrong() {
        assert_eq!(blame(3, 2, 1), Some(Blame::Follower(7)));
        assert_eq!(blame(3, 1, 2), Some(Blame::Leader(0)));
        assert_eq!(blame(5, 3, 1), Some(Blame::Follower(7)));
        assert_eq!(blame(5, 2, 2), None);
    }

    #[test]
    fn two_name_nobody() {
        assert_eq!(blame(2, 1, 1), Some(Blame::Unnamed));
    }

    #[test]
    fn without_a_majority_there_is_a_limit() {
        assert_eq!(blame(3, 1, 1), None);
        let ballot = Ballot {
            total: 3,
            with_leader: 1,
            against_leader: 1,
            silent: 1,
        };
        assert_eq!(ballot.blame(7, 0, true), Some(Blame::Unnamed));
        let all_spoke = Ballot {
            silent: 0,
            ..ballot
        };
        assert_eq!(all_spoke.blame(7, 0, false), Some(Blame::Unnamed));
        let two_and_two = Ballot {
            total: 4,
            with_leader: 2,
            against_leader: 2,
            silent: 0,
        };
        assert_eq!(two_and_two.blame(7, 0, false), Some(Blame::Unnamed));
    }
}
