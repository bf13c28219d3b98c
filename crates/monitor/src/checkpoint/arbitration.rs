//! Two replicas differ, and both stand where they are: what differed has not left. The sleepers replay
//! the log up to there and vote. Three of four make a majority; the one that is alone is taken out, and
//! two of the others stay.

use super::{Pair, REPLICAS};
use crate::journal::Event;
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_tracee::Pid;
use std::time::{Duration, Instant};

/// Who has a vote.
pub(crate) const VOTERS: usize = 2 * REPLICAS;

/// An arbitration under way.
#[derive(Debug)]
pub struct Arbitration {
    group: GroupId,
    /// Who led.
    leader: usize,
    /// Since when.
    since: Instant,
    /// How old the sleepers were.
    age: Duration,
    /// Threads of the leader, which is to take no input that it could not give back.
    held: Vec<Pid>,
    /// The sleepers: seat, and whose copy.
    woken: Vec<(usize, usize)>,
    /// Who was outvoted, once that is known.
    outvoted: Option<usize>,
}

impl Monitor {
    /// A group whose two replicas differ, and that has sleepers.
    pub(super) fn in_dispute(&self) -> Option<GroupId> {
        let c = self.checkpoints.as_ref()?;
        let id = c.pair.as_ref()?.group;
        let g = self.groups.get(&id)?;
        let differ = !g.reports.is_empty() && g.takeover.is_none() && !g.ending;
        (differ && g.voters() == REPLICAS).then_some(id)
    }

    /// Could sleepers say who is right, or are they about to?
    pub(crate) fn is_arbitrable(&self, id: GroupId) -> bool {
        self.in_dispute() == Some(id)
    }

    /// Is it being found out who is right?
    pub(crate) fn is_arbitrating(&self, id: GroupId) -> bool {
        let arbitration = self
            .checkpoints
            .as_ref()
            .and_then(|c| c.arbitration.as_ref());
        arbitration.is_some_and(|a| a.group == id && a.outvoted.is_none())
    }

    /// Hold the leader and wake the sleepers.
    pub(super) fn arbitrate(&mut self, id: GroupId) -> Result<()> {
        let Some((leader, leader_pid)) = self.groups.get(&id).map(|g| (g.leader, g.leader_pid()))
        else {
            return Ok(());
        };
        // If it does not stop at once it goes on to its next output: that is held in any case.
        let held = match leader_pid {
            Some(pid) => self.halt(pid)?.unwrap_or_default(),
            None => Vec::new(),
        };
        if self.in_dispute() != Some(id) || self.outcome.is_some() {
            self.release(&held);
            return Ok(());
        }
        let Some(pair) = self.checkpoints.as_mut().and_then(|c| c.pair.take()) else {
            return Ok(());
        };
        let age = pair.since.elapsed();
        eprintln!(
            "geryon: two replicas differ: their copies of {:.1} s ago replay the log to tell who is right",
            age.as_secs_f64()
        );
        self.journal.tell(&Event::Rollback {
            age_ms: age.as_millis() as u64,
        });
        self.end_sleepers();
        let woken = self.wake(pair);
        if let Some(c) = &mut self.checkpoints {
            c.arbitration = Some(Arbitration {
                group: id,
                leader,
                since: Instant::now(),
                age,
                held,
                woken,
                outvoted: None,
            });
        }
        Ok(())
    }

    /// The sleepers follow from now on like any replica. Their seats: of whom each is a copy.
    fn wake(&mut self, pair: Pair) -> Vec<(usize, usize)> {
        for s in &pair.sleepers {
            self.replicas[s.replica].dropped = false;
            self.enrol(pair.group, s);
        }
        for s in &pair.sleepers {
            self.release(&s.threads);
        }
        pair.sleepers
            .iter()
            .map(|s| (s.replica, s.source))
            .collect()
    }

    /// There is a majority: `outvoted` is wrong.
    pub(crate) fn is_arbitrated(&mut self, outvoted: usize) {
        let Some(a) = self
            .checkpoints
            .as_mut()
            .and_then(|c| c.arbitration.as_mut())
        else {
            return;
        };
        a.outvoted = Some(outvoted);
        let mut held = std::mem::take(&mut a.held);
        if outvoted == a.leader {
            // It was killed: its threads stand at their ends, and are looked at there.
            held.clear();
        }
        let took_us = a.since.elapsed().as_micros() as u64;
        let age_ms = a.age.as_millis() as u64;
        self.journal.tell(&Event::Arbitrated {
            outvoted,
            took_us,
            age_ms,
        });
        self.release(&held);
    }

    /// Once somebody leads, two remain.
    pub(super) fn arbitrate_on(&mut self) {
        let arbitration = self
            .checkpoints
            .as_ref()
            .and_then(|c| c.arbitration.as_ref());
        let Some(a) = arbitration else {
            return;
        };
        if a.outvoted.is_none() || self.has_takeovers() {
            return;
        }
        let leader = self.groups.get(&a.group).map(|g| g.leader);
        // Who was there from the beginning stays, then the copy of the one that was right.
        let rank = |r: usize| {
            let source = a.woken.iter().find(|(seat, _)| *seat == r).map(|w| w.1);
            match source {
                _ if Some(r) == leader => 0,
                None => 1,
                Some(s) if Some(s) != a.outvoted => 2,
                Some(_) => 3,
            }
        };
        let mut left: Vec<usize> = (0..self.replicas.len())
            .filter(|r| !self.is_dropped(*r))
            .collect();
        left.sort_by_key(|r| rank(*r));
        let took = a.since.elapsed();
        for r in left.drain(..).skip(REPLICAS) {
            self.drop_replica(r);
        }
        eprintln!(
            "geryon: two replicas again, {:.1} ms after they differed",
            took.as_secs_f64() * 1e3
        );
        if let Some(c) = &mut self.checkpoints {
            c.arbitration = None;
            c.due = c.due.map(|_| Instant::now());
        }
    }
}
