//! What made-up replicas do by themselves, record by record.

use crate::event::{Race, Verify};
use crate::world::{BUG, Crash, LED_AWAY, Record, Report, World};
use std::time::Duration;

impl World {
    /// A replica does what comes next, if it can.
    pub fn step(&mut self, r: usize) {
        if !self.runs(r) || self.outcome.is_some() {
            return;
        }
        let is_held = self.arbitration.as_ref().is_some_and(|a| a.is_open())
            && self.accused_by_arbitration().is_none()
            || self.replay.is_some();
        match r == self.leader && self.takeover.is_none() {
            true if is_held => {}
            true => self.lead(r),
            false => self.follow(r),
        }
    }

    fn lead(&mut self, r: usize) {
        self.leave();
        if self.is_at_output() || self.is_full() || self.outcome.is_some() {
            return;
        }
        let pos = self.head();
        if self.bug_at == Some(pos) {
            return self.crashed(r, BUG, false);
        }
        let mark = self.replicas[r].mark;
        if mark.is_some_and(|m| !m.always) {
            self.replicas[r].mark = None;
        }
        let (astray, race) = self.next_race.take().unwrap_or((0, Race::Alike));
        self.log.push(Record {
            says: mark.map_or(0, |m| m.says),
            is_nonsense: std::mem::take(&mut self.next_nonsense),
            astray,
            race,
        });
        if !self.is_output(pos) {
            self.left = self.head();
        }
        self.replicas.iter_mut().for_each(|r| r.waits = false);
        self.leave();
    }

    /// What a follower finds at a record, by itself.
    fn finds(&self, r: usize, record: &Record) -> (u32, bool) {
        let m = &self.replicas[r];
        if let Some(mark) = m.mark {
            return (mark.says, true);
        }
        let is_astray = !self.serial && r < 8 && record.astray & (1 << r) != 0;
        match record.race {
            _ if !is_astray => (0, false),
            Race::Unlike => (101 + r as u32, false),
            Race::Alike | Race::Crash => (100, false),
        }
    }

    fn follow(&mut self, r: usize) {
        let pos = self.replicas[r].pos;
        // (What it has confirmed is to be made by the leader first.)
        let waits = self.is_at_output() && pos == self.head();
        if self.bug_at == Some(pos) && self.takeover.is_none() && !waits {
            return self.crashed(r, BUG, false);
        }
        let Some(record) = self.log.get(pos as usize).copied() else {
            self.replicas[r].waits = true;
            return;
        };
        let (ours, by_mark) = self.finds(r, &record);
        if by_mark && self.replicas[r].mark.is_some_and(|m| !m.always) {
            self.replicas[r].mark = None;
        }
        self.raced |= ours >= 100;
        self.replicas[r].waits = false;
        if ours == 100 && record.race == Race::Crash {
            return self.crashed(r, LED_AWAY, false);
        }
        if ours == record.says && !record.is_nonsense {
            self.replicas[r].pos += 1;
            return;
        }
        let of_order = self.is_of_order(pos) || (ours >= 100 && ours % 2 == 0);
        self.reports.push(Report {
            replica: r,
            pos,
            ours,
            of_order,
            when: self.now,
        });
        self.judge_reports(Duration::MAX);
    }

    pub fn crashed(&mut self, r: usize, place: u64, in_agent: bool) {
        let head = self.head();
        let pos = match r == self.leader {
            true => head,
            false => self.replicas[r].pos.min(head),
        };
        self.on_crash(Crash {
            replica: r,
            pos,
            place,
            in_agent,
            others_done: 0,
            when: self.now,
        });
    }

    /// What waits for a confirmation leaves if it has it.
    pub fn leave(&mut self) {
        if !self.is_at_output() || self.takeover.is_some() || self.outcome.is_some() {
            return;
        }
        if !self.runs(self.leader) && self.setup.verify != Verify::Async {
            return;
        }
        let pos = self.left;
        let others: Vec<usize> = (0..self.replicas.len())
            .filter(|r| *r != self.leader && !self.replicas[*r].dropped)
            .collect();
        let agreed = others.iter().filter(|r| self.replicas[**r].pos > pos);
        let agreed = agreed.count();
        let by_majority = self.setup.verify == Verify::Majority
            && self.setup.on_divergence != geryon_vote::OnDivergence::Stop
            && self.serial
            && self.setup.replicas > 2;
        let is_enough = match by_majority {
            true => geryon_vote::is_majority(1 + agreed, 1 + others.len()),
            false => agreed == others.len(),
        };
        if is_enough || self.setup.verify == Verify::Async {
            self.left = self.head();
            // There is something to read for all that have waited for it.
            self.replicas.iter_mut().for_each(|r| r.waits = false);
            self.has_left(pos, 1 + agreed, 1 + others.len());
        }
    }
}
