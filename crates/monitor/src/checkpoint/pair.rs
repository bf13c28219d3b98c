//! Pairs of sleepers: one of each replica, made at the same time, or as nearly as can be.

use super::{AGAIN, AGAIN_AT_MOST, REPLICAS};
use crate::recover::{Attempt, Made, Seat};
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_tracee::Pid;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// After so long without a pair that is due, the user is told.
const OVERDUE: Duration = Duration::from_secs(10);

/// Sleepers of one group.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) group: GroupId,
    pub(super) sleepers: Vec<Made>,
    /// When the first one was made.
    pub(super) since: Instant,
    /// How long the leader stood still for it.
    pub(super) pause: Duration,
    /// How much the follower had compared by then.
    pub(super) compared: u64,
    /// Where the rings ended then.
    pub(super) ends: Vec<u64>,
}

impl Monitor {
    /// Make the sleepers of the next pair if they are due.
    pub(super) fn make_pair(&mut self) -> Result<()> {
        let Some(c) = self.checkpoints.as_ref().filter(|_| self.has_pairs()) else {
            return Ok(());
        };
        let now = Instant::now();
        if c.due.is_none_or(|d| d > now) || c.tried.is_some_and(|(t, wait)| t.elapsed() < wait) {
            return Ok(());
        }
        let Some((id, sources)) = self.sources() else {
            self.put_off("the program has several processes, or is about to end");
            return Ok(());
        };
        let compared = self.compared(sources[1].1);
        let of = |p: &Option<Pair>| p.as_ref().map(|p| (p.group, p.compared));
        let pairs = self.checkpoints.as_ref();
        let (pair, coming) = pairs.map_or((None, None), |c| (of(&c.pair), of(&c.coming)));
        if coming.is_none() && pair == Some((id, compared)) {
            // Nothing has been compared since: a younger pair could only have caught a fault that nobody
            // has seen yet.
            self.look_again();
            return Ok(());
        }
        if pair.or(coming).is_some_and(|(group, _)| group != id) {
            self.end_sleepers();
        }
        loop {
            let coming = self.checkpoints.as_ref().and_then(|c| c.coming.as_ref());
            let made = coming.map_or(0, |p| p.sleepers.len());
            let Some(source) = sources.get(made) else {
                if self.is_confirmed_pair(sources[1].1) {
                    self.pair_is_made(id);
                } else {
                    self.put_off("the follower does not come to where the leader was");
                }
                return Ok(());
            };
            let Some(replica) = self.free_seat() else {
                self.put_off("those who slept before are not gone yet");
                return Ok(());
            };
            let seat = Seat {
                replica,
                sleeps: true,
                testifies: false,
            };
            let attempt = self.copy_of(id, seat, *source);
            // What goes wrong with a process of a replica is no failure of the run.
            match attempt.unwrap_or_else(|e| Err(Attempt::Later(format!("{e:#}")))) {
                Ok(sleeper) => self.add_sleeper(id, sleeper, made, compared),
                Err(Attempt::Never(why)) => {
                    self.no_more_checkpoints(&why);
                    return Ok(());
                }
                Err(Attempt::Later(why)) => {
                    self.put_off(&why);
                    return Ok(());
                }
                Err(Attempt::Done(_)) => return Ok(()),
            }
        }
    }

    /// One more, of a pair of which so many had been made when it was begun.
    fn add_sleeper(&mut self, id: GroupId, sleeper: Made, before: usize, compared: u64) {
        let pause = self.recovery.pause;
        let group = self.groups.get(&id);
        let ends = group.map_or_else(Vec::new, |g| g.segment.ends());
        let Some(c) = &mut self.checkpoints else {
            return;
        };
        let coming = c.coming.get_or_insert_with(|| Pair {
            group: id,
            sleepers: Vec::new(),
            since: Instant::now(),
            pause,
            compared,
            ends,
        });
        coming.sleepers.push(sleeper);
        if coming.sleepers.len() != before + 1 {
            // Its partner was ended meanwhile.
            self.end_sleepers();
        }
    }

    /// Has the follower come to where the log ended when its leader's copy was made? Until then the leader
    /// may have done what the follower will not agree to, and the pair before this one is needed.
    fn is_confirmed_pair(&mut self, follower: Pid) -> bool {
        let coming = self.checkpoints.as_ref().and_then(|c| c.coming.as_ref());
        let Some(ends) = coming.map(|p| p.ends.clone()) else {
            return false;
        };
        self.has_come_to(&ends, follower)
    }

    /// There is nothing to be done at the moment.
    fn look_again(&mut self) {
        if let Some(c) = &mut self.checkpoints {
            c.tried = Some((Instant::now(), AGAIN_AT_MOST));
        }
    }

    /// Both are there: those before them are not needed any more.
    pub(super) fn pair_is_made(&mut self, id: GroupId) {
        let Some(c) = &mut self.checkpoints else {
            return;
        };
        let old = std::mem::replace(&mut c.pair, c.coming.take());
        c.due = Some(Instant::now() + c.every);
        c.tried = None;
        let pause = c.pair.as_ref().map_or(Duration::ZERO, |p| p.pause);
        self.end_pair(old);
        if let Some(g) = self.groups.get(&id) {
            g.segment.header().open.crowded.store(0, Ordering::SeqCst);
        }
        self.tell_checkpoint(id, pause);
    }

    /// Not now; try again, less and less often.
    fn put_off(&mut self, why: &str) {
        let Some(c) = &mut self.checkpoints else {
            return;
        };
        let wait = c.tried.map_or(AGAIN, |(_, w)| (w * 2).min(AGAIN_AT_MOST));
        c.tried = Some((Instant::now(), wait));
        // (Where nobody has asked for any there are copies of followers, and what these cannot tell is told then.)
        let is_asked = self.options.checkpoint.is_some();
        if is_asked && c.due.is_some_and(|d| d.elapsed() > OVERDUE) {
            self.say(&format!(
                "no checkpoint could be made for {} s: {why}; until there is one, replicas that differ are stopped",
                OVERDUE.as_secs()
            ));
        }
    }

    /// The group of a younger pair that is there already, besides the old one.
    pub(super) fn coming_pair(&self) -> Option<GroupId> {
        let c = self.checkpoints.as_ref()?;
        let coming = c.coming.as_ref().filter(|_| c.pair.is_some())?;
        (coming.sleepers.len() == REPLICAS).then_some(coming.group)
    }

    /// Those of the next pair that are there already are of no use.
    pub(super) fn end_coming(&mut self) {
        let coming = self.checkpoints.as_mut().and_then(|c| c.coming.take());
        self.end_pair(coming);
    }
}
