//! The verdict on a follower's report that it differs: what is known of it, and what follows.

use crate::ballot::{Ballot, Blame, NAMING};
use crate::charge::{Case, Charge, Found};
use crate::policy::{OnDivergence, OnRace};
use crate::sentence;
use std::time::Duration;

/// Replicas of a run that asks copies of both who is right.
pub const PAIR: usize = 2;
/// Who has a vote then.
pub const VOTERS: usize = 2 * PAIR;

/// What is known when the oldest report of a group is judged.
#[derive(Clone, Debug)]
pub struct Difference {
    /// How the replicas stand to it.
    pub ballot: Ballot,
    /// Who has reported it.
    pub reporter: usize,
    /// All that have reported something, in ascending order.
    pub against: Vec<usize>,
    /// Who leads.
    pub leader: usize,
    /// How long ago it was reported.
    pub age: Duration,
    /// For so long others are waited for.
    pub limit: Duration,
    /// Copies that slept are being asked who is right.
    pub is_arbitrating: bool,
    /// They could be.
    pub is_arbitrable: bool,
    /// What the log holds where followers differ from it is no record at all: whoever writes it is wrong.
    pub is_nonsense: bool,
    /// Followers contradict each other in what the order of threads decides.
    pub contradict: bool,
    /// A follower was found to go astray a short time ago.
    pub raced_lately: bool,
    /// Another follower was outvoted a short time ago, in what a fault may have done as well.
    pub other_outvoted: bool,
    /// All can go on from the leader's state in serial order.
    pub may_descend: bool,
    /// The run makes checkpoints.
    pub has_checkpoints: bool,
    /// What is known of the leader.
    pub case: Case,
    /// `--on-divergence`.
    pub on_divergence: OnDivergence,
    /// `--on-race`.
    pub on_race: OnRace,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Others may still say more.
    Wait,
    /// The log is to be replayed first.
    AskReplay,
    /// Copies that sleep are to be asked first.
    AskSleepers,
    /// The run stops, as the user wants it to for a race.
    StopForRace,
    /// No single fault is the cause, as this says: all go on from the leader's state in serial order.
    Descend(&'static str),
    /// The leader is believed, and these are taken out.
    Believe(String, Vec<usize>),
    /// Somebody is outvoted, or nobody can be.
    Verdict(Verdict),
}

/// A verdict that is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Who is wrong.
    pub blame: Blame,
    /// That in words.
    pub text: String,
    /// What follows, in words.
    pub consequence: String,
    /// It may as well have been a race, which counts.
    pub may_be_race: bool,
}

impl Difference {
    /// Judge it.
    pub fn rule(self) -> Ruling {
        let expired = self.age > self.limit && !self.is_arbitrating;
        let Some(blame) = self.ballot.blame(self.reporter, self.leader, expired) else {
            return Ruling::Wait;
        };
        let blame = match blame {
            // They have come upon it at different places, or one of them was taken for wrong before.
            Blame::Unnamed if self.is_nonsense => Blame::Leader(self.leader),
            blame => blame,
        };
        if self.stops_for_race() {
            return Ruling::StopForRace;
        }
        let charge = match blame {
            Blame::Follower(_) => Charge::Proven,
            _ if self.is_nonsense => Charge::Proven,
            _ => self.case.charge(),
        };
        if charge == Charge::Later {
            return Ruling::AskReplay;
        }
        if blame == Blame::Unnamed && self.is_arbitrable {
            return Ruling::AskSleepers;
        }
        let is_open = blame == Blame::Unnamed || charge == Charge::Doubtful;
        if is_open
            && self.may_descend
            && let Some(why) = self.race()
        {
            return Ruling::Descend(why);
        }
        self.speak(blame, charge)
    }

    /// Is the run to be stopped for what was reported?
    fn stops_for_race(&self) -> bool {
        self.on_race == OnRace::Stop && self.case.in_parallel && self.case.of_order
    }

    /// Nobody can be named. If it is certain that this is no fault, the verdict: one follower contradicts another one in what the order of
    /// threads decides, or one was found to go astray a short time ago, or, where two are left, another one was outvoted: a single fault
    /// does none of these. (What two replicas have
    /// in memory may have gone astray before. Where a majority stands against the leader in what it writes, say, it may be
    /// right.)
    fn race(&self) -> Option<&'static str> {
        let of_order = self.case.of_order;
        let is_even = self.case.replicas == PAIR;
        if !self.case.in_parallel {
            None
        } else if self.raced_lately {
            (of_order || is_even).then_some("replicas differ again, as when the program races")
        } else if of_order && self.other_outvoted && !self.may_be_the_leader() {
            Some("the program races: one replica after the other differs")
        } else {
            (of_order && self.contradict)
                .then_some("the program races: replicas contradict each other")
        }
    }

    /// Is there more against the leader than one who differs from it: a majority, or what replays have come to?
    fn may_be_the_leader(&self) -> bool {
        self.ballot.total >= NAMING || self.case.found == Some(Found::Alike)
    }

    fn speak(self, blame: Blame, charge: Charge) -> Ruling {
        let total = self.ballot.total;
        let is_alone = matches!(blame, Blame::Leader(_));
        let blame = match blame {
            Blame::Leader(_) if charge == Charge::Doubtful => Blame::Unnamed,
            // Who is left may be the accomplices of who is wrong.
            _ if self.is_arbitrating && total < VOTERS => Blame::Unnamed,
            blame => blame,
        };
        let left = if self.is_arbitrating {
            PAIR
        } else {
            total.saturating_sub(1)
        };
        let differ = sentence::differ(total, charge, is_alone);
        let (text, consequence) = match blame {
            Blame::Follower(r) => (
                format!("replica {} of {total} is outvoted", r + 1),
                format!("going on with {}", sentence::replicas(left)),
            ),
            Blame::Leader(r) => (
                format!("replica {} (the leader) of {total} is outvoted", r + 1),
                "another one takes over".to_owned(),
            ),
            Blame::Unnamed if self.on_divergence == OnDivergence::Leader => {
                return Ruling::Believe(differ, self.against);
            }
            Blame::Unnamed => {
                let advice = match charge {
                    Charge::Doubtful => sentence::on_race(self.has_checkpoints),
                    _ => sentence::advice(
                        self.is_arbitrating,
                        self.case.replicas,
                        self.case.in_parallel,
                        self.has_checkpoints,
                    ),
                };
                (
                    differ,
                    format!("stopped before the unconfirmed output left; {advice}"),
                )
            }
        };
        Ruling::Verdict(Verdict {
            may_be_race: matches!(blame, Blame::Follower(_)) && self.case.of_order,
            blame,
            text,
            consequence,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, Found, Ruling};
    use crate::{Ballot, Blame, Case, OnDivergence, OnRace};
    use std::time::Duration;

    /// Of three in serial order one follower differs, and the other one has said nothing yet.
    fn difference() -> Difference {
        Difference {
            ballot: Ballot {
                total: 3,
                with_leader: 1,
                against_leader: 1,
                silent: 1,
            },
            reporter: 1,
            against: vec![1],
            leader: 0,
            age: Duration::ZERO,
            limit: Duration::from_secs(10),
            is_arbitrating: false,
            is_arbitrable: false,
            is_nonsense: false,
            contradict: false,
            raced_lately: false,
            other_outvoted: false,
            may_descend: false,
            has_checkpoints: false,
            case: Case {
                replicas: 3,
                in_parallel: false,
                of_order: false,
                found: None,
                has_raced: false,
                can_replay: false,
            },
            on_divergence: OnDivergence::Replace,
            on_race: OnRace::Serial,
        }
    }

    fn spoken(d: Difference) -> (Blame, String, String) {
        match d.rule() {
            Ruling::Verdict(s) => (s.blame, s.text, s.consequence),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn others_are_waited_for_and_not_for_ever() {
        assert_eq!(difference().rule(), Ruling::Wait);
        let late = Difference {
            age: Duration::from_secs(11),
            ..difference()
        };
        let (blame, text, then) = spoken(late);
        assert_eq!(blame, Blame::Unnamed);
        assert_eq!(text, "3 replicas differ, and no majority says who is wrong");
        assert!(then.ends_with("with --on-divergence leader to go on all the same"));
    }

    #[test]
    fn of_four_that_were_asked_all_must_be_there() {
        let ballot = Ballot {
            total: 4,
            with_leader: 1,
            against_leader: 3,
            silent: 0,
        };
        let asked = Difference {
            ballot,
            is_arbitrating: true,
            ..difference()
        };
        let fewer = Difference {
            ballot: Ballot {
                total: 3,
                against_leader: 2,
                ..ballot
            },
            ..asked.clone()
        };
        assert_eq!(spoken(asked).0, Blame::Leader(0));
        assert_eq!(spoken(fewer).0, Blame::Unnamed);
    }

    #[test]
    fn what_is_no_record_is_the_leaders() {
        let nonsense = Difference {
            ballot: Ballot {
                silent: 0,
                ..difference().ballot
            },
            is_nonsense: true,
            ..difference()
        };
        assert_eq!(spoken(nonsense).0, Blame::Leader(0));
    }

    #[test]
    fn a_leader_alone_in_what_may_be_a_race_is_not_outvoted() {
        let d = difference();
        let alone = Difference {
            ballot: Ballot {
                against_leader: 2,
                silent: 0,
                ..d.ballot
            },
            case: Case {
                in_parallel: true,
                of_order: true,
                ..d.case
            },
            against: vec![1, 2],
            ..d
        };
        let believed = Difference {
            on_divergence: OnDivergence::Leader,
            ..alone.clone()
        };
        let again = Difference {
            raced_lately: true,
            may_descend: true,
            ..alone.clone()
        };
        let after_another = Difference {
            other_outvoted: true,
            may_descend: true,
            ..alone.clone()
        };
        let of_two = Difference {
            ballot: Ballot {
                total: 2,
                against_leader: 1,
                ..alone.ballot
            },
            ..after_another.clone()
        };
        let (blame, text, _) = spoken(alone);
        assert_eq!(blame, Blame::Unnamed);
        assert_eq!(
            text,
            "of 3 replicas the leader stands alone, which may be a race"
        );
        assert_eq!(believed.rule(), Ruling::Believe(text, vec![1, 2]));
        assert!(matches!(again.rule(), Ruling::Descend(_)));
        assert!(matches!(of_two.clone().rule(), Ruling::Descend(_)));
        assert!(!matches!(after_another.rule(), Ruling::Descend(_)));
        let refuted = Difference {
            case: Case {
                found: Some(Found::Alike),
                ..of_two.case
            },
            ..of_two.clone()
        };
        assert!(!matches!(refuted.rule(), Ruling::Descend(_)));
    }
}
