//! Three replicas and more whose threads run in parallel: a majority stands against the leader. It may be a race which all of
//! them have replayed badly in the same way, for the same reason; then it is the leader that is right. So the log is replayed
//! first ([`strict`](super::strict)). Whoever comes to its end has proved the leader's run. Where all replays, with what
//! threads do between two records placed now so, now otherwise, come to what the majority has found, no race can be the cause, and
//! the majority is believed; unless this program has raced before, for then whoever is replayed may have gone astray
//! before it was copied. Else nobody knows, and the run is stopped.

use crate::state::{GroupId, Monitor};
use geryon_abi::layout::wait;

/// With fewer the sleepers of both are asked.
const REPLICAS: usize = super::REPLICAS + 1;

/// A leader that the others stand against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    group: GroupId,
    leader: usize,
    /// What replays have said; None before there were any.
    found: Option<Found>,
}

/// What became of replays none of which agreed with the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All came to the same difference.
    Alike,
    /// They came to different ones, or there were none.
    Unlike,
}

/// May a verdict against the leader be spoken?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// Yes.
    Proven,
    /// Not before the log was replayed.
    Later,
    /// No: it may be a race.
    Doubtful,
}

/// Where a replay has gone astray, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Astray {
    /// It has reported this: slot, position, and its own record.
    Differs(u32, u64, [u64; 8]),
    /// A thread has crashed: slot, position, signal and the name of the place.
    Crashes(u32, u64, i32, u64),
    /// It got no further: where its threads stood.
    Stands(Vec<(u32, u64, u32)>),
    /// It was lost.
    Lost,
}

/// What replays have come to.
#[derive(Debug)]
pub(super) struct Findings {
    /// What those say that stand against the leader.
    said: Astray,
    /// Replays that have come to the same, and to something else.
    alike: u32,
    unlike: u32,
}

impl Findings {
    /// None yet; `said` is what is said against the leader.
    pub(super) fn new(said: Astray) -> Findings {
        Findings {
            said,
            alike: 0,
            unlike: 0,
        }
    }

    pub(super) fn add(&mut self, astray: &Astray) {
        match *astray == self.said {
            true => self.alike += 1,
            false => self.unlike += 1,
        }
    }

    /// (What a single one comes to may be how it was made.)
    fn found(&self) -> Found {
        match self.alike > 1 && self.unlike == 0 {
            true => Found::Alike,
            false => Found::Unlike,
        }
    }
}

impl Monitor {
    /// Is one replica alone against all others no proof here, since threads run in parallel?
    fn may_doubt(&self) -> bool {
        self.options.replicas as usize >= REPLICAS && self.runs_in_parallel()
    }

    /// All others, or nobody knows how many of them, say that the leader is wrong. `of_order`: in what the order of threads
    /// decides.
    pub(crate) fn charge_against_leader(&mut self, id: GroupId, of_order: bool) -> Charge {
        let Some(leader) = self.groups.get(&id).map(|g| g.leader) else {
            return Charge::Later;
        };
        if !self.may_doubt() {
            return Charge::Proven;
        }
        let known = self.doubt().filter(|d| d.group == id && d.leader == leader);
        let found = known.and_then(|d| d.found);
        let has_raced = self.checkpoints.as_ref().is_some_and(|c| c.has_raced);
        match found {
            Some(Found::Alike) if !has_raced => Charge::Proven,
            Some(_) => Charge::Doubtful,
            None if self.has_base(id, leader) => {
                self.set_doubt(Some(Doubt {
                    group: id,
                    leader,
                    found: None,
                }));
                Charge::Later
            }
            None if of_order => Charge::Doubtful,
            None => Charge::Proven,
        }
    }

    /// The group whose log is to be replayed because its leader is in doubt.
    pub(super) fn doubted(&self) -> Option<GroupId> {
        self.doubt().filter(|d| d.found.is_none()).map(|d| d.group)
    }

    fn doubt(&self) -> Option<Doubt> {
        self.checkpoints.as_ref()?.doubt
    }

    pub(super) fn set_doubt(&mut self, doubt: Option<Doubt>) {
        if let Some(c) = &mut self.checkpoints {
            c.doubt = doubt;
        }
    }

    /// No replay has agreed with the leader: have the verdict spoken.
    pub(super) fn judge_doubted(&mut self, id: GroupId, findings: &Findings) -> anyhow::Result<()> {
        let Some(leader) = self.groups.get(&id).map(|g| g.leader) else {
            return Ok(());
        };
        if findings.found() == Found::Alike {
            self.say(&format!(
                "the log was replayed {} times, and each time came to what the majority has found",
                findings.alike
            ));
        }
        self.set_doubt(Some(Doubt {
            group: id,
            leader,
            found: Some(findings.found()),
        }));
        self.judge_reports(id, std::time::Duration::MAX);
        self.judge_crashes(id, false)
    }

    /// One of three and more was lost while the log was replayed for the others: they are asked anew.
    pub(crate) fn end_replay_of_several(&mut self) {
        if self.may_doubt() {
            self.end_replay();
            self.set_doubt(None);
        }
    }

    /// How a replay has gone astray.
    pub(super) fn astray(&mut self, id: GroupId, seat: usize) -> Astray {
        let pid = self.groups.get(&id).and_then(|g| g.members[seat].pid);
        let views = pid.map_or_else(Vec::new, |p| self.views(p));
        let Some(g) = self.groups.get(&id) else {
            return Astray::Lost;
        };
        if let Some(r) = g.reports.iter().find(|r| r.replica == seat) {
            return Astray::Differs(r.report.slot, r.report.pos, r.report.ours);
        }
        if let Some(c) = g.crashes.iter().find(|c| c.replica == seat) {
            return Astray::Crashes(c.slot, c.pos, c.signal, c.pc_name);
        }
        if pid.is_none() {
            return Astray::Lost;
        }
        // (One waits for another one's record in this way or that.)
        let how = |w| {
            if w == wait::NONE {
                wait::NONE
            } else {
                wait::RECORD
            }
        };
        let mut stands: Vec<_> = views
            .iter()
            .map(|v| (v.slot, v.pos, how(v.waiting)))
            .collect();
        stands.sort_unstable();
        Astray::Stands(stands)
    }
}

#[cfg(test)]
mod tests {
    use super::{Astray, Findings, Found};

    fn found(came_to: &[u64]) -> Found {
        let at = |pos| Astray::Differs(1, pos, [7; 8]);
        let mut f = Findings::new(at(5));
        came_to.iter().for_each(|pos| f.add(&at(*pos)));
        f.found()
    }

    #[test]
    fn what_all_replays_come_to_is_no_race() {
        assert_eq!(found(&[]), Found::Unlike);
        assert_eq!(found(&[5]), Found::Unlike);
        assert_eq!(found(&[5, 5]), Found::Alike);
        assert_eq!(found(&[5, 5, 6, 5]), Found::Unlike);
    }

    #[test]
    fn what_nobody_else_has_found_says_nothing() {
        assert_eq!(found(&[6, 6, 6]), Found::Unlike);
    }
}
