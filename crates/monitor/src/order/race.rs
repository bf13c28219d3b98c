//! The program is found to race where its threads run in parallel: how often that was put right, and what follows
//! (`--on-race`).

use crate::checkpoint::is_about_order;
use crate::options::OnRace;
use crate::state::{GroupId, Monitor, Otherwise, Reported};
use geryon_vote::race;
use std::time::Instant;

impl Monitor {
    /// A follower has gone another way than its leader, with which a majority or a replay agrees: perhaps in a race.
    /// `is_certain`: it was no fault.
    pub(crate) fn note_race(&mut self, is_certain: bool) {
        if self.is_serial() || self.outcome.is_some() {
            return;
        }
        let is_enough = self.running.races.add(Instant::now());
        let why = race::descends(is_certain, is_enough, self.may_descend());
        if let Some(why) = why {
            self.descend(&why, Otherwise::Stops);
        }
    }

    /// A follower is outvoted in what no order of threads need have brought about.
    pub(crate) fn note_outvoted(&mut self, replica: usize) {
        if !self.is_serial() {
            self.running.races.is_outvoted(replica, Instant::now());
        }
    }

    /// Is that what is to follow, and can it be done?
    pub(crate) fn may_descend(&self) -> bool {
        self.options.on_race == OnRace::Serial && self.hinders_descent().is_none()
    }

    /// No single fault is the cause, as `verdict` says. Do all go on from the leader's state?
    pub(crate) fn goes_on_from_race(&mut self, id: GroupId, verdict: &str) -> bool {
        if !self.may_descend() {
            return false;
        }
        let reports = self.groups.get(&id).map(|g| g.dispute.reports.clone());
        if let Some(first) = reports.unwrap_or_default().first() {
            let text = self.describe(id, first, verdict, None);
            eprint!("{text}");
        }
        self.descend(verdict, Otherwise::Stops);
        true
    }

    /// The threads of a follower wait for one another, and nobody can say who is wrong. If replicas were found to go astray a short time
    /// ago, do all go on from the leader's state?
    pub(crate) fn races_again(&mut self, id: GroupId, replica: usize, what: &str) -> bool {
        let is_race = !self.is_serial() && self.running.races.is_any(Instant::now());
        if !is_race || !self.may_descend() {
            return false;
        }
        if let Some(text) = self.describe_stuck(id, replica, what) {
            eprint!("{text}");
        }
        self.descend(
            "a follower's threads wait for one another, and replicas differed before, as when the program races",
            Otherwise::Stops,
        );
        true
    }

    /// Is the run to be stopped for what a follower has reported?
    pub(crate) fn stops_for_race(&self, first: &Reported) -> bool {
        self.options.on_race == OnRace::Stop && !self.is_serial() && is_about_order(first)
    }
}
