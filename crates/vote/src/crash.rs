//! The verdict on a fatal signal: all replicas got it, or one is broken. Who has come past the point
//! without the signal tells, as soon as a majority has; no time does.

use crate::ballot::NAMING;
use crate::charge::{Case, Charge};
use crate::is_majority;

/// How a group stands to its oldest crash.
#[derive(Clone, Copy, Debug)]
pub struct Votes {
    /// All that have a say.
    pub total: usize,
    /// Those that live.
    pub living: usize,
    /// Those that crashed alike.
    pub alike: usize,
    /// Those that live and went on past the point.
    pub passed: usize,
    /// Those that went on to the program's end.
    pub ended: usize,
    /// It happened where the agent waits: the program has no part in it.
    pub in_agent: bool,
}

/// Whose the crash is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// Others may still come to the point.
    Open,
    /// The program's.
    Program,
    /// The replica's own.
    Own,
    /// The program's, and who did not crash is wrong.
    Others,
}

impl Votes {
    /// `expired`: nobody gets on any more.
    fn whose(self, expired: bool) -> Whose {
        let Votes {
            total,
            living,
            alike,
            passed,
            ended,
            in_agent,
        } = self;
        let went_on = passed + ended;
        if in_agent && living > 1 {
            Whose::Own
        } else if alike == living {
            Whose::Program
        } else if total >= NAMING && is_majority(alike, total) {
            match alike + passed >= living || expired {
                true => Whose::Others,
                false => Whose::Open,
            }
        } else if expired || is_majority(went_on, total) || (total < NAMING && went_on > 0) {
            Whose::Own
        } else {
            Whose::Open
        }
    }
}

/// What is known when the oldest crash of a group is judged.
#[derive(Clone, Debug)]
pub struct Crash {
    /// How the replicas stand to it.
    pub votes: Votes,
    /// Nobody gets on any more who could still come to the point.
    pub expired: bool,
    /// How the process ends is agreed on already: all its followers have ended.
    pub is_at_end: bool,
    /// The agent's own code has come to its end.
    pub is_broken: bool,
    /// Those that have not crashed alike.
    pub others: Vec<usize>,
    /// Who leads.
    pub leader: usize,
    /// What is known of that one.
    pub case: Case,
}

/// What follows from a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crashed {
    /// Others may still come to the point.
    Wait,
    /// It ends as the others have.
    AtItsEnd,
    /// The run stops: nobody is left that could go on.
    InAgent,
    /// The program crashes.
    Program,
    /// The crash is the replica's own.
    Alone,
    /// The log is to be replayed first.
    AskReplay,
    /// The program crashes, and this one, which leads, did not: that may be a race, for which the run stops.
    Doubtful(usize),
    /// The program crashes, and these, which did not, are wrong: a leader comes last.
    Others(Vec<usize>),
}

impl Crash {
    /// Judge it.
    pub fn rule(&self) -> Crashed {
        if self.votes.total > 1 && self.is_at_end {
            return Crashed::AtItsEnd;
        }
        match self.votes.whose(self.expired) {
            Whose::Open => Crashed::Wait,
            Whose::Program if self.is_broken => Crashed::InAgent,
            Whose::Program => Crashed::Program,
            Whose::Own => Crashed::Alone,
            Whose::Others => {
                // Others that have gone on have gone on with the leader, if that has: it is its run that is in question.
                // All go at once: one of them that was left would be copied to the other ones' places.
                let mut others = self.others.clone();
                others.sort_by_key(|r| *r == self.leader);
                let charge = match others.last() == Some(&self.leader) {
                    true => self.case.charge(),
                    false => Charge::Proven,
                };
                match charge {
                    Charge::Proven if others.is_empty() => Crashed::Wait,
                    Charge::Proven => Crashed::Others(others),
                    Charge::Later => Crashed::AskReplay,
                    Charge::Doubtful => Crashed::Doubtful(self.leader),
                }
            }
        }
    }
}

/// Which replica has crashed in the agent, and where: thread group, position, name of the place.
pub type InAgent = (usize, (u32, u64, u64));

/// A follower has crashed in the agent (None: elsewhere, or a leader). What of that is to be remembered, and has another
/// replica crashed there last? Then it is what the leader has logged that makes them crash.
pub fn crashes_again(last: Option<InAgent>, now: Option<InAgent>) -> (Option<InAgent>, bool) {
    let is_again = match (last, now) {
        (Some((before, there)), Some((replica, here))) => before != replica && there == here,
        _ => false,
    };
    (now.or(last), is_again)
}

#[cfg(test)]
mod tests {
    use super::{Crash, Crashed, Votes, Whose, crashes_again};
    use crate::{Case, Found};

    fn votes(total: usize, alike: usize, passed: usize) -> Votes {
        Votes {
            total,
            living: total,
            alike,
            passed,
            ended: 0,
            in_agent: false,
        }
    }

    fn whose(total: usize, alike: usize, passed: usize) -> Whose {
        votes(total, alike, passed).whose(false)
    }

    #[test]
    fn all_crash_and_the_program_does() {
        assert_eq!(whose(1, 1, 0), Whose::Program);
        assert_eq!(whose(3, 3, 0), Whose::Program);
    }

    #[test]
    fn one_crashes_and_a_majority_goes_on() {
        assert_eq!(whose(3, 1, 0), Whose::Open);
        assert_eq!(whose(3, 1, 1), Whose::Open);
        assert_eq!(whose(3, 1, 2), Whose::Own);
        assert_eq!(whose(5, 1, 3), Whose::Own);
        assert_eq!(whose(2, 1, 0), Whose::Open);
        assert_eq!(whose(2, 1, 1), Whose::Own);
    }

    #[test]
    fn a_majority_crashes_and_one_goes_on() {
        assert_eq!(whose(3, 2, 0), Whose::Open);
        assert_eq!(whose(3, 2, 1), Whose::Others);
    }

    #[test]
    fn who_has_ended_says_nothing_for_who_is_still_to_come() {
        // Of five one has ended by itself, three have crashed, and one is about to.
        let votes = Votes {
            living: 4,
            ended: 1,
            ..votes(5, 3, 0)
        };
        assert_eq!(votes.whose(false), Whose::Open);
        let all = Votes { alike: 4, ..votes };
        assert_eq!(all.whose(false), Whose::Program);
        let on = Votes { passed: 1, ..votes };
        assert_eq!(on.whose(false), Whose::Others);
    }

    #[test]
    fn what_the_agent_does_is_not_the_program() {
        let votes = Votes {
            in_agent: true,
            ..votes(3, 1, 0)
        };
        assert_eq!(votes.whose(false), Whose::Own);
        let alone = Votes {
            total: 1,
            living: 1,
            ..votes
        };
        assert_eq!(alone.whose(false), Whose::Program);
    }

    #[test]
    fn when_nobody_gets_on_it_is_decided() {
        let votes = votes(3, 1, 0);
        assert_eq!(votes.whose(true), Whose::Own);
        assert_eq!(Votes { alike: 2, ..votes }.whose(true), Whose::Others);
    }

    #[test]
    fn a_leader_that_did_not_crash_is_charged_first() {
        let case = Case {
            replicas: 3,
            in_parallel: true,
            of_order: true,
            found: None,
            has_raced: false,
            can_replay: true,
        };
        let crash = Crash {
            votes: votes(3, 2, 1),
            expired: false,
            is_at_end: false,
            is_broken: false,
            others: vec![0],
            leader: 0,
            case,
        };
        let with = |case| {
            let crash = crash.clone();
            Crash { case, ..crash }.rule()
        };
        assert_eq!(crash.rule(), Crashed::AskReplay);
        let alike = Case {
            found: Some(Found::Alike),
            ..case
        };
        assert_eq!(with(alike), Crashed::Others(vec![0]));
        let unlike = Case {
            found: Some(Found::Unlike),
            ..case
        };
        assert_eq!(with(unlike), Crashed::Doubtful(0));
        let led = Crash { leader: 1, ..crash };
        assert_eq!(led.rule(), Crashed::Others(vec![0]));
    }

    #[test]
    fn who_has_gone_on_with_the_leader_is_not_outvoted_before_it() {
        let case = Case {
            replicas: 5,
            in_parallel: true,
            of_order: true,
            found: None,
            has_raced: false,
            can_replay: true,
        };
        let crash = Crash {
            votes: votes(5, 3, 2),
            expired: false,
            is_at_end: false,
            is_broken: false,
            others: vec![1, 4],
            leader: 4,
            case,
        };
        assert_eq!(crash.rule(), Crashed::AskReplay);
        let in_turns = Case {
            in_parallel: false,
            ..case
        };
        let crash = Crash {
            case: in_turns,
            others: vec![4, 1],
            ..crash
        };
        assert_eq!(crash.rule(), Crashed::Others(vec![1, 4]));
    }

    #[test]
    fn two_that_crash_at_one_place_in_the_agent_were_led_there() {
        let (one, two) = ((1, (0, 7, 3)), (2, (0, 7, 3)));
        assert_eq!(crashes_again(None, Some(one)), (Some(one), false));
        assert_eq!(crashes_again(Some(one), Some(one)), (Some(one), false));
        assert_eq!(crashes_again(Some(one), Some(two)), (Some(two), true));
        assert_eq!(crashes_again(Some(one), None), (Some(one), false));
    }
}
