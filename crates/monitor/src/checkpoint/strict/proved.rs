//! A replay has come to the end of the log, and agrees with every record: its copy takes the follower's place.

use super::{Replay, Try};
use crate::checkpoint::arbitration::Accused;
use crate::checkpoint::search::Stretch;
use crate::journal::Event;
use crate::state::{GroupId, Monitor, Reported};
use anyhow::Result;
use geryon_abi::layout::why;
use geryon_abi::record::{kind, kind_of};
use std::time::Instant;

impl Monitor {
    /// A copy of the follower that differed has replayed all that its leader has published.
    pub(super) fn race_is_replayed(&mut self, id: GroupId, t: &Try) -> Result<()> {
        let Some(r) = self.checkpoints.as_mut().and_then(|c| c.replay.take()) else {
            return Ok(());
        };
        // It stays strict, for a program that races does it again; and what it knows of where threads do what is so in
        // general.
        let late: Vec<Stretch> = t.late.iter().filter(|l| l.onwards).copied().collect();
        self.be_late(t.pid, &late);
        let took_us = r.since.elapsed().as_micros() as u64;
        let reports = self.groups.get(&id).map(|g| &g.dispute.reports);
        let first = reports.and_then(|r| r.first()).cloned();
        let accused = self.checkpoints.as_mut().and_then(|c| c.accused.take());
        let others = self.others_astray(id, &r, t.seat);
        // No single fault leads two followers astray.
        let is_certain = !others.is_empty();
        if let Some(first) = first {
            self.tell_race(&first, r.tries, took_us);
            if let Some(c) = &mut self.checkpoints {
                c.has_raced |= is_certain || is_about_order(&first);
            }
        } else if let Some(a) = accused {
            self.tell_circle(&a, r.tries, took_us);
        }
        self.drop_replica(r.astray);
        for replica in others {
            self.drop_replica(replica);
            self.lose(replica);
        }
        self.set_doubt(None);
        if let Some(c) = &mut self.checkpoints {
            c.due = c.due.map(|_| Instant::now());
        }
        // It is where it should be: never is there a better place to go back to.
        self.copy_follower(id, (t.seat, t.pid))?;
        self.release(&r.held);
        self.note_race(is_certain);
        Ok(())
    }

    /// A follower's threads waited for one another, and those of a copy that has replayed the log again do not.
    fn tell_circle(&mut self, accused: &Accused, tries: u32, took_us: u64) {
        let (replica, why) = accused.charge();
        eprintln!(
            "geryon: race or fault in replica {}: replayed in the leader's order it gets on (replays: {tries}, {:.1} ms)\ngeryon:   it {why}",
            replica + 1,
            took_us as f64 / 1e3,
        );
        self.console.journal.tell(&Event::RaceReplayed {
            replica,
            tries,
            took_us,
            sure: false,
            why: why.to_owned(),
        });
    }

    /// Where there are more than two: who else stood against the leader, or stands where it led. They are made anew.
    fn others_astray(&self, id: GroupId, r: &Replay, proof: usize) -> Vec<usize> {
        let Some(g) = self.groups.get(&id).filter(|_| !self.has_pairs()) else {
            return Vec::new();
        };
        let reports = g.dispute.reports.iter().map(|r| r.replica);
        let mut astray: Vec<usize> = reports
            .chain(g.dispute.crashes.iter().map(|c| c.replica))
            .collect();
        if astray.is_empty() {
            astray = g.followers().map(|f| f.0).collect();
        }
        astray.sort_unstable();
        astray.dedup();
        astray.retain(|a| ![r.leader, r.astray, proof].contains(a));
        astray
    }
}

/// Is it the order of what threads do with memory that they share in which a follower differed? Else it may
/// have been a fault, which its copy from before that does not have either.
pub(crate) fn is_about_order(reported: &Reported) -> bool {
    let report = &reported.report;
    let of_order = |word: u64| {
        matches!(
            kind_of(word),
            kind::LOCK | kind::OUTCOME | kind::ATOMIC | kind::LOAD
        )
    };
    matches!(report.why, why::KIND | why::SITE | why::OUTCOME)
        && (of_order(report.ours[0]) || of_order(report.theirs[0]))
}
