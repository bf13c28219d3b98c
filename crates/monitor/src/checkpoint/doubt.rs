//! Three replicas and more whose threads run in parallel: a majority stands against the leader. It may be a race which all of
//! them have replayed badly in the same way, for the same reason; then it is the leader that is right. So the log is replayed
//! first ([`strict`](super::strict)). Whoever comes to its end has proved the leader's run.
//!
//! Where all replays from copies of followers come to what the majority has found, they may have gone astray before they were
//! copied, as their sources had. So the leader's own copy is asked, which has not: if the log leads it, too, to
//! what the majority has found, with its threads placed now so, now otherwise, the leader has gone wrong since, and the majority is
//! believed; unless this program has raced before. If it comes to what the leader has found, they have differed since
//! before they were copied: either the followers lost a race, or the leader was hit. Then nobody knows, and the run is stopped,
//! as where replays come to different ends.

use crate::state::{GroupId, Monitor};
use crate::watch::View;
use geryon_abi::layout::wait;
use geryon_vote::{Case, Charge, Found};

/// A leader that the others stand against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    group: GroupId,
    leader: usize,
    /// What replays have said; None before there were any.
    found: Option<Found>,
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
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Who stands against the leader, then replays from copies of followers.
    witnesses: Vec<Witness>,
    /// Replays from the leader's own copy. (They contradict nobody: they may have inherited a fault.)
    of_leader: Vec<Witness>,
    /// One of those has come to what the leader has come to.
    leader_repeats: bool,
    /// There was no time for all that were to be made.
    is_cut_short: bool,
}

/// What the leader's own copy says, made before the difference: replayed by that, does its log lead to what the others have found?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// There was no copy of it.
    Unasked,
    /// Yes, each time: it is the leader that has gone wrong since.
    Alike(usize),
    /// No, to what the leader has found: the others may have gone astray before they were copied, and the leader may have been
    /// hit before it was.
    Repeats,
    /// To something else, or there was no time.
    Unlike,
}

/// One that does not agree with the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Witness {
    /// How it has gone astray.
    pub astray: Astray,
    /// Up to where in the log of each thread it agrees: slot and position.
    pub agrees: Vec<(u32, u64)>,
}

impl Witness {
    /// Do the two say different things of one record? Whoever replays a log that is wrong finds so where it is: no
    /// fault in the leader makes two of them contradict each other.
    fn contradicts(&self, other: &Witness) -> bool {
        let has_passed = |w: &Witness, slot: u32, pos: u64| {
            let mut at = w.agrees.iter();
            at.any(|(s, p)| *s == slot && *p > pos)
        };
        let has_passed_all = |w: &Witness, all: &[(u32, u64, u32)]| {
            !all.is_empty() && all.iter().all(|(s, p, _)| has_passed(w, *s, *p))
        };
        match (&self.astray, &other.astray) {
            (Astray::Differs(s, p, ours), Astray::Differs(t, q, theirs)) => {
                let is_there = (s, p) == (t, q);
                is_there && ours != theirs || has_passed(self, *t, *q) || has_passed(other, *s, *p)
            }
            (Astray::Differs(s, p, _), _) if has_passed(other, *s, *p) => true,
            (_, Astray::Differs(t, q, _)) if has_passed(self, *t, *q) => true,
            // (Who stands cannot agree with what is next in one of its threads: the other one has.)
            (Astray::Stands(at), _) if has_passed_all(other, at) => true,
            (_, Astray::Stands(at)) => has_passed_all(self, at),
            _ => false,
        }
    }
}

impl Findings {
    /// No replays yet; only what is said against the leader.
    pub(super) fn new(said: Witness) -> Findings {
        Findings {
            witnesses: vec![said],
            ..Findings::default()
        }
    }

    pub(super) fn add(&mut self, replay: Witness) {
        self.witnesses.push(replay);
    }

    /// A replay of the leader's own copy has not agreed with it.
    pub(super) fn add_of_leader(&mut self, replay: Witness) {
        self.of_leader.push(replay);
    }

    /// One has.
    pub(super) fn leader_repeats(&mut self) {
        self.leader_repeats = true;
    }

    pub(super) fn are_cut_short(&mut self) {
        self.is_cut_short = true;
    }

    /// Is there still a question for the leader's own copy?
    pub(super) fn are_open(&self) -> bool {
        self.alike().is_some() && matches!(self.own(), Own::Unasked | Own::Alike(_))
    }

    fn own(&self) -> Own {
        let said = self.witnesses.first();
        let is_said = |w: &Witness| said.is_some_and(|s| s.astray == w.astray);
        match self.of_leader.len() {
            _ if self.leader_repeats => Own::Repeats,
            0 => Own::Unasked,
            times if !self.is_cut_short && self.of_leader.iter().all(is_said) => Own::Alike(times),
            _ => Own::Unlike,
        }
    }

    /// Do two of them contradict each other?
    pub(super) fn contradict(&self) -> bool {
        let all = &self.witnesses;
        let mut pairs = all.iter().enumerate();
        pairs.any(|(n, a)| all[n + 1..].iter().any(|b| a.contradicts(b)))
    }

    /// How many replays have come to what is said against the leader, if all have. (What a single one comes to may be how it
    /// was made.)
    fn alike(&self) -> Option<usize> {
        let (said, replays) = self.witnesses.split_first()?;
        let is_said = |w: &Witness| w.astray == said.astray;
        (replays.len() > 1 && replays.iter().all(is_said)).then_some(replays.len())
    }
}

impl Monitor {
    /// Is one replica alone against all others no proof here, since threads run in parallel?
    fn may_doubt(&self) -> bool {
        Case::may_doubt(self.options.replicas as usize, self.runs_in_parallel())
    }

    /// What is known of a group's leader, if others stand against it. `of_order`: in what the order of threads decides.
    pub(crate) fn case(&self, id: GroupId, of_order: bool) -> Option<Case> {
        let leader = self.groups.get(&id)?.leader;
        let known = self.doubt().filter(|d| d.group == id && d.leader == leader);
        Some(Case {
            replicas: self.options.replicas as usize,
            in_parallel: self.runs_in_parallel(),
            of_order,
            found: known.and_then(|d| d.found),
            has_raced: self.checkpoints.as_ref().is_some_and(|c| c.has_raced),
            can_replay: self.has_base(id, leader),
        })
    }

    /// All others say that the leader is wrong. May that be believed? If not before the log was replayed, have it replayed.
    pub(crate) fn charge_against_leader(&mut self, id: GroupId, of_order: bool) -> Charge {
        let charge = self.case(id, of_order).map_or(Charge::Later, Case::charge);
        if charge == Charge::Later {
            self.have_replayed(id);
        }
        charge
    }

    /// The log of a group whose leader is in doubt is to be replayed.
    pub(crate) fn have_replayed(&mut self, id: GroupId) {
        if let Some(leader) = self.groups.get(&id).map(|g| g.leader) {
            self.set_doubt(Some(Doubt {
                group: id,
                leader,
                found: None,
            }));
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
        let found = match (findings.alike(), findings.own()) {
            (Some(of_others), Own::Alike(own)) => {
                self.say(&format!(
                    "the log was replayed {} times, {own} of them by copies of the leader, and each time came to what the majority has found",
                    of_others + own
                ));
                Found::Alike
            }
            (Some(_), Own::Repeats) => {
                self.say("copies of the leader come to what it has found when they replay its log, and copies of the others to what those have: it may be a race from before they were copied");
                Found::Unlike
            }
            (Some(_), Own::Unasked) => {
                self.say("no copy of the leader could be made before: it may be a race that all others have lost before they were copied");
                Found::Unlike
            }
            (alike, _) => {
                let replays = findings.witnesses.len().saturating_sub(1);
                let what = match alike {
                    _ if findings.is_cut_short => "there was no time for more",
                    Some(_) => "copies of the leader did not come to one end",
                    None => "copies of the others did not come to one end",
                };
                self.say(&format!(
                    "the log was replayed {} times, and {what}",
                    replays + findings.of_leader.len()
                ));
                Found::Unlike
            }
        };
        self.set_doubt(Some(Doubt {
            group: id,
            leader,
            found: Some(found),
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

    /// Do followers of a group that differ from the leader contradict each other? (One that agrees with it says nothing: it
    /// may be a copy that has inherited the leader's fault.)
    pub(crate) fn reports_contradict(&mut self, id: GroupId) -> bool {
        let reports: Vec<usize> = match self.groups.get(&id) {
            Some(g) => g.dispute.reports.iter().map(|r| r.replica).collect(),
            None => return false,
        };
        let mut found = Findings::default();
        for seat in reports {
            let witness = self.witness(id, seat);
            found.add(witness);
        }
        found.contradict()
    }

    /// What one says that does not agree with the leader.
    pub(super) fn witness(&mut self, id: GroupId, seat: usize) -> Witness {
        let pid = self.groups.get(&id).and_then(|g| g.members[seat].pid);
        let views = pid.map_or_else(Vec::new, |p| self.views(p));
        Witness {
            astray: self.astray(id, seat, &views),
            agrees: views.iter().map(|v| (v.slot, v.verified)).collect(),
        }
    }

    /// How it has gone astray.
    fn astray(&self, id: GroupId, seat: usize, views: &[View]) -> Astray {
        let Some(g) = self.groups.get(&id) else {
            return Astray::Lost;
        };
        if let Some(r) = g.dispute.reports.iter().find(|r| r.replica == seat) {
            return Astray::Differs(r.report.slot, r.report.pos, r.report.ours);
        }
        if let Some(c) = g.dispute.crashes.iter().find(|c| c.replica == seat) {
            return Astray::Crashes(c.slot, c.pos, c.signal, c.pc_name);
        }
        if g.members[seat].pid.is_none() {
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
    use super::{Astray, Findings, Own, Witness};

    fn differs(slot: u32, pos: u64, ours: u64, agrees: &[(u32, u64)]) -> Witness {
        Witness {
            astray: Astray::Differs(slot, pos, [ours; 8]),
            agrees: agrees.to_vec(),
        }
    }

    fn findings(came_to: &[Witness]) -> Findings {
        let mut f = Findings::new(differs(1, 5, 7, &[(1, 5), (2, 4)]));
        came_to.iter().cloned().for_each(|w| f.add(w));
        f
    }

    #[test]
    fn what_all_replays_come_to_is_no_race() {
        let (same, later) = (differs(1, 5, 7, &[]), differs(1, 6, 7, &[]));
        assert_eq!(findings(&[]).alike(), None);
        assert_eq!(findings(std::slice::from_ref(&same)).alike(), None);
        assert_eq!(findings(&[same.clone(), same.clone()]).alike(), Some(2));
        assert_eq!(findings(&[same.clone(), later, same]).alike(), None);
    }

    #[test]
    fn what_nobody_else_has_found_says_nothing() {
        let other = differs(1, 6, 7, &[]);
        assert_eq!(findings(&[other.clone(), other]).alike(), None);
    }

    #[test]
    fn against_the_leader_its_own_copy_is_asked_too() {
        let same = differs(1, 5, 7, &[]);
        let of_two = || findings(&[same.clone(), same.clone()]);
        let mut f = of_two();
        assert!(f.are_open() && f.own() == Own::Unasked);
        f.add_of_leader(same.clone());
        f.add_of_leader(same.clone());
        assert!(f.are_open() && f.own() == Own::Alike(2));
        f.leader_repeats();
        assert!(!f.are_open() && f.own() == Own::Repeats);
        let mut f = of_two();
        f.add_of_leader(same.clone());
        f.add_of_leader(differs(1, 6, 7, &[(1, 6)]));
        assert!(!f.are_open() && f.own() == Own::Unlike);
        // It may have inherited a fault, and what it says of others is none of their contradictions.
        assert!(!f.contradict());
        let mut f = of_two();
        f.add_of_leader(same);
        f.are_cut_short();
        assert_eq!(f.own(), Own::Unlike);
    }

    #[test]
    fn a_record_that_one_agrees_with_and_another_does_not_is_a_contradiction() {
        assert!(findings(&[differs(1, 9, 7, &[(1, 9)])]).contradict());
        assert!(findings(&[differs(1, 5, 8, &[(1, 5)])]).contradict());
        let stands = Witness {
            astray: Astray::Stands(vec![]),
            agrees: vec![(1, 6)],
        };
        assert!(findings(&[stands]).contradict());
    }

    #[test]
    fn where_one_stands_and_another_has_got_on_is_a_contradiction() {
        let stands = |at: &[(u32, u64)]| Witness {
            astray: Astray::Stands(at.iter().map(|(s, p)| (*s, *p, 1)).collect()),
            agrees: at.to_vec(),
        };
        let said = differs(1, 9, 7, &[(1, 9), (2, 6)]);
        let all = |other: Witness| Findings {
            witnesses: vec![said.clone(), other],
            ..Findings::default()
        };
        assert!(all(stands(&[(1, 5), (2, 5)])).contradict());
        assert!(
            !all(stands(&[(1, 5), (2, 6)])).contradict(),
            "in the same record"
        );
        assert!(!all(stands(&[])).contradict(), "nothing is known of it");
    }

    #[test]
    fn a_leader_that_is_wrong_in_two_threads_makes_nobody_contradict_another() {
        // One comes upon the first place, another one upon the second.
        assert!(!findings(&[differs(2, 4, 7, &[(1, 5), (2, 4)])]).contradict());
        assert!(!findings(&[differs(1, 5, 7, &[(1, 5), (2, 3)])]).contradict());
        let lost = Witness {
            astray: Astray::Lost,
            agrees: vec![],
        };
        assert!(!findings(&[lost.clone(), lost]).contradict());
    }
}
