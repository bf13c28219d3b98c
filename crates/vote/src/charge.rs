//! A majority stands against the leader. Where threads run in parallel it may be a race that all of them have replayed
//! badly in the same way: then what the majority says is not believed before the log was replayed.

use crate::ballot::NAMING;

/// What became of replays of the log none of which agreed with the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// All came to the same difference.
    Alike,
    /// They came to different ones, or there were none.
    Unlike,
}

/// May a verdict against the leader be spoken?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Yes.
    Proven,
    /// Not before the log was replayed.
    Later,
    /// No: it may be a race.
    Doubtful,
}

/// What is known of a leader that others stand against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Replicas of the run, as it was asked for.
    pub replicas: usize,
    /// Their threads run in parallel.
    pub in_parallel: bool,
    /// It is about what the order of threads decides.
    pub of_order: bool,
    /// Replays for this case have come to that; None before there were any.
    pub found: Option<Found>,
    /// A replay has shown that the program races.
    pub has_raced: bool,
    /// A copy of a follower sleeps that could replay the log.
    pub can_replay: bool,
}

impl Case {
    /// Is one replica alone against all others no proof, with so many replicas?
    pub fn may_doubt(replicas: usize, in_parallel: bool) -> bool {
        replicas >= NAMING && in_parallel
    }

    /// May it be said that the leader is wrong?
    pub fn charge(self) -> Charge {
        if !Case::may_doubt(self.replicas, self.in_parallel) {
            return Charge::Proven;
        }
        match self.found {
            Some(Found::Alike) if !self.has_raced => Charge::Proven,
            Some(_) => Charge::Doubtful,
            None if self.can_replay => Charge::Later,
            None if self.of_order => Charge::Doubtful,
            None => Charge::Proven,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Charge, Found};

    const CASE: Case = Case {
        replicas: 3,
        in_parallel: true,
        of_order: false,
        found: None,
        has_raced: false,
        can_replay: true,
    };

    #[test]
    fn the_log_is_replayed_before_a_leader_is_charged() {
        assert_eq!(CASE.charge(), Charge::Later);
        let alike = Case {
            found: Some(Found::Alike),
            ..CASE
        };
        assert_eq!(alike.charge(), Charge::Proven);
        let raced = Case {
            has_raced: true,
            ..alike
        };
        assert_eq!(raced.charge(), Charge::Doubtful);
        let unlike = Case {
            found: Some(Found::Unlike),
            ..CASE
        };
        assert_eq!(unlike.charge(), Charge::Doubtful);
    }

    #[test]
    fn where_nobody_sleeps_what_differs_decides() {
        let alone = Case {
            can_replay: false,
            ..CASE
        };
        assert_eq!(alone.charge(), Charge::Proven);
        let of_order = Case {
            of_order: true,
            ..alone
        };
        assert_eq!(of_order.charge(), Charge::Doubtful);
        let in_turns = Case {
            in_parallel: false,
            ..of_order
        };
        assert_eq!(in_turns.charge(), Charge::Proven);
    }
}
