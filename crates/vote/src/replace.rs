//! What follows a loss: the replica is made anew, or it is done without, which is said.

use crate::budget::Budget;
use crate::policy::OnDivergence;
use std::time::{Duration, Instant};

/// A replica that is not replaced by then (its source was never in a state to be copied) is done without.
pub const GIVE_UP: Duration = Duration::from_secs(30);
/// Where a leader that is alone could not be copied by then, because its threads wait in hooked functions (with clocks), it
/// goes over to serial order, where it can be.
pub const DESCENDS: Duration = Duration::from_secs(5);
/// Between two attempts.
pub const AGAIN: Duration = Duration::from_millis(2);

/// A replica that was taken out.
#[derive(Clone, Copy, Debug)]
pub struct TakenOut {
    /// It is to be done without, and that was said.
    pub is_given_up: bool,
    /// The others run another program.
    pub is_alone_of_its_kind: bool,
    /// There are fewer replicas than were asked for, those that are about to be made anew counted.
    pub are_lacking: bool,
    /// `--on-divergence`.
    pub on_divergence: OnDivergence,
}

/// What becomes of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequel {
    /// Nothing: that was settled before, or there are enough.
    Nothing,
    /// It is done without, for this reason.
    Without(&'static str),
    /// A copy is to take it.
    Copy,
}

impl TakenOut {
    /// Decide it.
    pub fn sequel(self) -> Sequel {
        if self.is_given_up {
            Sequel::Nothing
        } else if self.is_alone_of_its_kind {
            Sequel::Without("the others run another program")
        } else if !self.on_divergence.replaces() {
            Sequel::Without("--on-divergence drop")
        } else if self.are_lacking {
            Sequel::Copy
        } else {
            Sequel::Nothing
        }
    }
}

/// Is it time to copy one?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// No: it was tried a moment ago.
    NotYet,
    /// Never: so many were made within the time of the bound.
    TooMany(usize),
    /// Yes.
    Now,
}

/// May a replica be copied that was `tried` last then?
pub fn due(tried: Option<Instant>, budget: &Budget, now: Instant) -> Due {
    if tried.is_some_and(|t| now.duration_since(t) < AGAIN) {
        return Due::NotYet;
    }
    budget.is_spent(now).map_or(Due::Now, Due::TooMany)
}

/// One could not be copied.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// It never can be.
    pub is_final: bool,
    /// For so long it was tried.
    pub since: Duration,
    /// Its source may be about to fail as well: the watchdog looks at who does not get on.
    pub is_unproven: bool,
    /// Only one replica is left.
    pub is_last: bool,
    /// The order of threads was to change for that before, and could not.
    pub stays: bool,
    /// It can change.
    pub may_descend: bool,
}

/// What follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is tried again.
    Again,
    /// All go on in serial order, where it can be copied.
    Descend,
    /// It is done without.
    GiveUp,
}

impl Failed {
    /// Decide it.
    pub fn then(self) -> Then {
        if self.is_final || (self.since >= GIVE_UP && !self.is_unproven) {
            Then::GiveUp
        } else if self.since > DESCENDS && self.is_last && !self.stays && self.may_descend {
            Then::Descend
        } else {
            Then::Again
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Replacements;

    const FAILED: Failed = Failed {
        is_final: false,
        since: Duration::ZERO,
        is_unproven: false,
        is_last: true,
        stays: false,
        may_descend: true,
    };

    #[test]
    fn it_is_tried_for_a_while_and_then_done_without() {
        let after = |s| Failed {
            since: Duration::from_secs(s),
            ..FAILED
        };
        assert_eq!(FAILED.then(), Then::Again);
        assert_eq!(after(6).then(), Then::Descend);
        let stays = |s| Failed {
            stays: true,
            ..after(s)
        };
        assert_eq!(stays(6).then(), Then::Again);
        assert_eq!(stays(30).then(), Then::GiveUp);
        let unproven = Failed {
            is_unproven: true,
            ..stays(30)
        };
        assert_eq!(unproven.then(), Then::Again);
        let is_final = Failed {
            is_final: true,
            ..FAILED
        };
        assert_eq!(is_final.then(), Then::GiveUp);
    }

    #[test]
    fn a_budget_that_is_spent_ends_it() {
        let bound = Replacements {
            most: 1,
            within_s: 10,
        };
        let (mut budget, now) = (Budget::new(bound), Instant::now());
        assert_eq!(due(None, &budget, now), Due::Now);
        assert_eq!(due(Some(now), &budget, now), Due::NotYet);
        budget.spend(now);
        assert_eq!(due(None, &budget, now), Due::TooMany(1));
    }

    #[test]
    fn whose_place_is_taken() {
        let lost = TakenOut {
            is_given_up: false,
            is_alone_of_its_kind: false,
            are_lacking: true,
            on_divergence: OnDivergence::Replace,
        };
        assert_eq!(lost.sequel(), Sequel::Copy);
        let with = |on_divergence| TakenOut {
            on_divergence,
            ..lost
        };
        assert_eq!(with(OnDivergence::Leader).sequel(), Sequel::Copy);
        assert!(matches!(
            with(OnDivergence::Drop).sequel(),
            Sequel::Without(_)
        ));
        let enough = TakenOut {
            are_lacking: false,
            ..lost
        };
        assert_eq!(enough.sequel(), Sequel::Nothing);
    }
}
