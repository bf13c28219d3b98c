//! Copies of followers, and of the leader, from which a log can be replayed again ([`strict`](super::strict)).

use super::pair::Pair;
use super::{AGAIN, AGAIN_AT_MOST};
use crate::recover::{Made, Seat};
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_tracee::Pid;
use std::time::{Duration, Instant};

/// Copies of followers that sleep.
#[derive(Debug, Default)]
pub(super) struct Base {
    pub(super) last: Option<Pair>,
    /// One from before that: the follower may have gone astray before it was copied.
    pub(super) older: Option<Pair>,
    /// When the next one is due, and how long to wait after an attempt in vain.
    pub(super) due: Option<(Instant, Duration)>,
}

/// Copies of the leader that sleep.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) last: Option<Pair>,
    /// A younger one that followers have not come to yet.
    pub(super) coming: Option<Pair>,
    /// When the next one is due, and how long to wait after an attempt in vain.
    pub(super) due: Option<(Instant, Duration)>,
}

impl Base {
    /// Its sleepers.
    pub(super) fn all(&self) -> [&Option<Pair>; 2] {
        [&self.last, &self.older]
    }
}

impl Monitor {
    /// Where threads run in parallel the leader's often stand where they cannot be copied. The follower's copy alone is
    /// enough to replay again what it has found otherwise. The first one is made at once: as long as there is one thread nothing
    /// has gone astray.
    pub(super) fn make_base(&mut self) -> Result<()> {
        let Some(c) = self.checkpoints.as_ref().filter(|c| c.due.is_some()) else {
            return Ok(());
        };
        let now = Instant::now();
        if !self.runs_in_parallel() || c.base.due.is_some_and(|(due, _)| due > now) {
            return Ok(());
        }
        let wait = c.base.due.map_or(AGAIN, |(_, wait)| wait);
        // (Of two followers not the same again: one may have gone astray, and not know it.)
        let last = c
            .base
            .last
            .as_ref()
            .and_then(|p| p.sleepers.first())
            .map(|s| s.source);
        let made = match self.sources() {
            // (A younger one would only have what the one before may have, too.)
            Some((id, _)) if !self.base_is_confirmed(id) => false,
            Some((id, sources)) => {
                let others = sources[1..].iter().find(|s| Some(s.0) != last);
                self.copy_follower(id, *others.unwrap_or(&sources[1]))?
            }
            None => false,
        };
        if !made && let Some(c) = &mut self.checkpoints {
            c.base.due = Some((now + wait, (2 * wait).min(AGAIN_AT_MOST)));
        }
        Ok(())
    }

    /// Has the follower come to where the log ended when it was copied? One whose threads stand never does, whatever else they do
    /// meanwhile: it may have been astray by then, and the copy before this one is needed.
    fn base_is_confirmed(&mut self, id: GroupId) -> bool {
        let base = self.checkpoints.as_ref().and_then(|c| c.base.last.as_ref());
        let known = base.and_then(|p| Some((p.sleepers.first()?.source, p.ends.clone())));
        let (Some((source, ends)), Some(g)) = (known, self.groups.get(&id)) else {
            return true;
        };
        let follower = g.followers().find(|f| f.0 == source);
        follower.is_none_or(|(_, pid)| self.has_come_to(&ends, pid))
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
            testifies: false,
        };
        let Ok(sleeper) = self.copy_of(id, seat, follower)? else {
            return Ok(false);
        };
        let pause = self.recovery.pause;
        let ends = self.groups.get(&id).map(|g| g.segment.ends());
        let Some(c) = &mut self.checkpoints else {
            return Ok(false);
        };
        let mut old = c.base.last.replace(Pair {
            group: id,
            sleepers: vec![sleeper],
            since: Instant::now(),
            pause,
            compared,
            ends: ends.unwrap_or_default(),
        });
        // (Two that are nearly of the same age would have the same fault.)
        let counts = |p: &Pair| p.since.elapsed() >= c.every;
        if c.base.older.is_none() || old.as_ref().is_some_and(counts) {
            old = std::mem::replace(&mut c.base.older, old);
        }
        c.base.due = Some((Instant::now() + c.every, AGAIN));
        self.end_pair(old);
        Ok(true)
    }

    /// With three and more replicas a copy of the leader sleeps besides. What a majority says of the leader it may say because it
    /// has gone astray before those were copied that replay the log; where the leader's own copy is led by the log to
    /// what they say, it has not. (It follows the log from where it is; but it never takes part.) The one before it stays until all
    /// followers have come to where the younger one was made: else that may have a fault which they are about to find.
    pub(super) fn make_own(&mut self) -> Result<()> {
        let Some(c) = self.checkpoints.as_ref().filter(|c| c.due.is_some()) else {
            return Ok(());
        };
        let now = Instant::now();
        let is_due = c.own.due.is_none_or(|(due, _)| due <= now);
        if self.has_pairs() || !self.runs_in_parallel() || !is_due {
            return Ok(());
        }
        let wait = c.own.due.map_or(AGAIN, |(_, wait)| wait);
        let later = Some((now + wait, (2 * wait).min(AGAIN_AT_MOST)));
        let ends = c.own.coming.as_ref().map(|p| p.ends.clone());
        let due = match (self.sources(), ends) {
            (Some((_, sources)), Some(ends)) => {
                let mut followers = sources[1..].iter();
                match followers.all(|(_, pid)| self.has_come_to(&ends, *pid)) {
                    true => self.own_is_confirmed(),
                    false => later,
                }
            }
            (Some((id, sources)), None) => match self.copy_leader(id, sources[0])? {
                // (Are they there yet?)
                true => Some((now + AGAIN, AGAIN)),
                false => later,
            },
            (None, _) => later,
        };
        if let Some(c) = &mut self.checkpoints {
            c.own.due = due;
        }
        Ok(())
    }

    /// The younger copy of the leader takes the place of the one before. When the next one is due.
    fn own_is_confirmed(&mut self) -> Option<(Instant, Duration)> {
        let c = self.checkpoints.as_mut()?;
        let old = std::mem::replace(&mut c.own.last, c.own.coming.take());
        let own = c.own.last.as_ref().map(|p| (p.group, p.pause, p.since));
        let every = c.every;
        self.end_pair(old);
        let (id, pause, since) = own?;
        self.tell_checkpoint(id, pause);
        let due = since + every;
        Some((due, AGAIN))
    }

    /// Have a copy of the leader sleep, until followers come to where it is. False: not now.
    fn copy_leader(&mut self, id: GroupId, leader: (usize, Pid)) -> Result<bool> {
        let Some(replica) = self.free_seat() else {
            return Ok(false);
        };
        let seat = Seat {
            replica,
            sleeps: true,
            testifies: true,
        };
        let Ok(sleeper) = self.copy_of(id, seat, leader)? else {
            return Ok(false);
        };
        let pause = self.recovery.pause;
        let group = self.groups.get(&id);
        // (It may have gone on a little since.)
        let ends = group.map_or_else(Vec::new, |g| g.segment.ends());
        if let Some(c) = &mut self.checkpoints {
            c.own.coming = Some(Pair {
                group: id,
                sleepers: vec![sleeper],
                since: Instant::now(),
                pause,
                compared: 0,
                ends,
            });
        }
        Ok(true)
    }

    /// The copy of this leader that sleeps, and since when.
    pub(super) fn own_of(&self, leader: usize) -> Option<(Instant, &Made)> {
        let own = self.checkpoints.as_ref()?.own.last.as_ref()?;
        let made = own.sleepers.first().filter(|s| s.source == leader)?;
        Some((own.since, made))
    }

    /// From where the log can be replayed: copies of followers of this leader, the youngest first, and since when they sleep.
    pub(super) fn bases(&self, leader: usize) -> Vec<(Instant, &Made)> {
        let all = self.checkpoints.iter();
        let all = all.flat_map(|c| [&c.base.last, &c.pair, &c.base.older].into_iter().flatten());
        let follower = |p: &'_ Pair| p.sleepers.iter().position(|s| s.source != leader);
        let copies = all.filter_map(|p| Some((p.since, &p.sleepers[follower(p)?])));
        let mut copies: Vec<(Instant, &Made)> = copies.collect();
        copies.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
        copies
    }

    /// Are there copies from before the program had its second thread?
    pub(crate) fn has_first_copies(&self) -> bool {
        let is_made = |c: &super::Checkpoints| {
            let has_leaders = match self.has_pairs() {
                true => c.pair.is_some(),
                false => c.own.last.is_some(),
            };
            c.base.last.is_some() && has_leaders
        };
        self.checkpoints.as_ref().is_none_or(is_made)
    }

    /// Is there anything from where the log of this leader could be replayed?
    pub(super) fn has_base(&self, id: GroupId, leader: usize) -> bool {
        let all = self.checkpoints.iter().flat_map(|c| c.base.all());
        let is_of = |p: &Pair| p.group == id && p.sleepers.iter().any(|s| s.source != leader);
        all.flatten().any(is_of)
    }
}
