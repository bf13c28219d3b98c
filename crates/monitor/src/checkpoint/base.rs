//! Copies of followers from which a log can be replayed again ([`strict`](super::strict)).

use super::{AGAIN, AGAIN_AT_MOST, Pair};
use crate::recover::{Made, Seat};
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_tracee::Pid;
use std::time::Instant;

impl Monitor {
    /// Where threads run in parallel the leader's often stand where they cannot be copied. The follower's copy alone is
    /// enough to replay again what it has found otherwise. The first one is made at once: as long as there is one thread nothing
    /// has gone astray.
    pub(super) fn make_base(&mut self) -> Result<()> {
        let Some(c) = self.checkpoints.as_ref().filter(|c| c.due.is_some()) else {
            return Ok(());
        };
        let now = Instant::now();
        if !self.runs_in_parallel() || c.base_due.is_some_and(|(due, _)| due > now) {
            return Ok(());
        }
        let wait = c.base_due.map_or(AGAIN, |(_, wait)| wait);
        // (Of two followers not the same again: one may have gone astray, and not know it.)
        let last = c
            .base
            .as_ref()
            .and_then(|p| p.sleepers.first())
            .map(|s| s.source);
        let made = match self.sources() {
            Some((id, sources)) => {
                let others = sources[1..].iter().find(|s| Some(s.0) != last);
                self.copy_follower(id, *others.unwrap_or(&sources[1]))?
            }
            None => false,
        };
        if !made && let Some(c) = &mut self.checkpoints {
            c.base_due = Some((now + wait, (2 * wait).min(AGAIN_AT_MOST)));
        }
        Ok(())
    }

    /// Have a copy of a follower sleep. False: not now.
    pub(super) fn copy_follower(&mut self, id: GroupId, follower: (usize, Pid)) -> Result<bool> {
        let compared = self.compared(follower.1);
        let Some(replica) = self.free_seat() else {
            return Ok(false);
        };
        let seat = Seat {
            replica,
            sleeps: true,
        };
        let Ok(sleeper) = self.copy_of(id, seat, follower)? else {
            return Ok(false);
        };
        let pause = self.pause;
        let Some(c) = &mut self.checkpoints else {
            return Ok(false);
        };
        let mut old = c.base.replace(Pair {
            group: id,
            sleepers: vec![sleeper],
            since: Instant::now(),
            pause,
            compared,
            ends: Vec::new(),
        });
        // (Two that are nearly of the same age would have the same fault.)
        let counts = |p: &Pair| p.since.elapsed() >= c.every;
        if c.older.is_none() || old.as_ref().is_some_and(counts) {
            old = std::mem::replace(&mut c.older, old);
        }
        c.base_due = Some((Instant::now() + c.every, AGAIN));
        self.end_pair(old);
        Ok(true)
    }

    /// From where the log can be replayed: copies of followers of this leader, the youngest first, and since when they sleep.
    pub(super) fn bases(&self, leader: usize) -> Vec<(Instant, &Made)> {
        let all = self.checkpoints.iter();
        let all = all.flat_map(|c| [&c.base, &c.pair, &c.older].into_iter().flatten());
        let follower = |p: &'_ Pair| p.sleepers.iter().position(|s| s.source != leader);
        let copies = all.filter_map(|p| Some((p.since, &p.sleepers[follower(p)?])));
        let mut copies: Vec<(Instant, &Made)> = copies.collect();
        copies.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
        copies
    }

    /// Is there anything from where the log of this leader could be replayed?
    pub(super) fn has_base(&self, id: GroupId, leader: usize) -> bool {
        let all = self.checkpoints.iter().flat_map(|c| [&c.base, &c.older]);
        let is_of = |p: &Pair| p.group == id && p.sleepers.iter().any(|s| s.source != leader);
        all.flatten().any(is_of)
    }
}
