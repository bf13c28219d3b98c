//! Checkpoints of a run of two replicas: a copy of each sleeps, stopped, at its place in the log. When
//! the two differ nobody knows who is right; then the sleepers wake up, replay what has happened
//! since, and have a vote at the point of difference ([`arbitration`]).
//!
//! A sleeper holds a seat like a replica that is being made: the leader overwrites nothing that it has
//! still to read, and nobody waits for its confirmation. Every so many seconds, and before a ring is
//! full of what the sleepers have not read, a younger pair takes the place of the old one.
//!
//! Always two, one of each replica: a copy has the fault that its source had by then, and would be its
//! accomplice. Against one accomplice on each side no majority comes about.

mod arbitration;
mod base;
mod doubt;
mod outdated;
mod pair;
mod search;
mod strict;
mod strictness;

use crate::journal::Event;
use crate::state::{GroupId, Monitor, Replica};
use crate::watch::View;
use anyhow::Result;
pub(crate) use arbitration::Testimony;
use arbitration::{Accused, Arbitration};
use base::{Base, Own};
use doubt::Doubt;
use geryon_abi::layout::{MAX_REPLICAS, wait};
use geryon_tracee::{Pid, kill};
use pair::Pair;
use std::time::{Duration, Instant};
use strict::Replay;
pub(crate) use strict::is_about_order;

/// Replicas of a run with checkpoints.
pub const REPLICAS: usize = geryon_vote::PAIR;
/// Seats: for the two, for a pair that sleeps, for two copies of the follower that do, for a pair that is being made or
/// that is on its way out, and for a copy that replays the log again.
pub const SEATS: usize = 5 * REPLICAS;
/// With more replicas: for two copies of a follower that sleep and two of the leader, three that are on their way out, one that is
/// being made in the place of another replica, and one that replays. (Where there are fewer, those on their way out are waited for.)
const MORE_SEATS: usize = 9;
/// Between two attempts, at first and at most.
const AGAIN: Duration = Duration::from_millis(2);
const AGAIN_AT_MOST: Duration = Duration::from_millis(100);

/// What is known of the checkpoints of a run.
#[derive(Debug)]
pub struct Checkpoints {
    every: Duration,
    /// When the next pair is due; None before the program has begun, and when there will be none.
    due: Option<Instant>,
    /// Never again.
    over: bool,
    /// The sleepers.
    pair: Option<Pair>,
    /// Where threads run in parallel: copies of the follower alone.
    base: Base,
    /// With more than two replicas: copies of the leader.
    own: Own,
    /// Those of the next pair that are there already, the leader's copy first.
    coming: Option<Pair>,
    /// When it was tried last, and how long to wait from then.
    tried: Option<(Instant, Duration)>,
    /// One that the watchdog complains of, until the sleepers are woken.
    accused: Option<Accused>,
    arbitration: Option<Arbitration>,
    /// A follower that differs is replayed again.
    replay: Option<Replay>,
    /// A leader that more than two replicas stand against.
    doubt: Option<Doubt>,
    /// A replay has shown that the program races.
    has_raced: bool,
    /// None are made at present.
    paused: bool,
}

impl Checkpoints {
    /// None made yet.
    pub fn new(every: Duration) -> Checkpoints {
        Checkpoints {
            every,
            due: None,
            over: false,
            pair: None,
            base: Base::default(),
            own: Own::default(),
            coming: None,
            tried: None,
            accused: None,
            arbitration: None,
            replay: None,
            doubt: None,
            has_raced: false,
            paused: false,
        }
    }
}

impl Checkpoints {
    /// The first ones are due at once.
    pub fn at_once(self) -> Checkpoints {
        Checkpoints {
            due: Some(Instant::now()),
            ..self
        }
    }
}

/// The replicas of a run: with checkpoints there are seats that nobody sits in at first.
pub fn seats(replicas: usize, checkpoints: bool) -> Vec<Replica> {
    let mut seats = vec![Replica::default(); replicas];
    if checkpoints {
        let free = Replica {
            dropped: true,
            ..Replica::default()
        };
        let all = SEATS.max(replicas + MORE_SEATS).min(MAX_REPLICAS);
        seats.resize(all, free);
    }
    seats
}

impl Monitor {
    /// Get on with the checkpoints: end what is of no use any more, arbitrate, make a new pair.
    ///
    /// # Errors
    /// Geryon's own failures.
    pub(crate) fn checkpoint(&mut self) -> Result<()> {
        let Some(c) = &mut self.checkpoints else {
            return Ok(());
        };
        if self.outcome.is_some() {
            self.end_sleepers();
            return Ok(());
        }
        if c.arbitration.is_some() {
            self.arbitrate_on();
            return Ok(());
        }
        if c.replay.is_some() {
            return self.replay_on();
        }
        let begun = self.console.journal.elapsed().is_some();
        if c.due.is_none() && begun && !c.over {
            c.due = Some(Instant::now() + c.every);
        }
        if let Some(id) = self.in_dispute() {
            return match self.replay_again(id)? {
                true => Ok(()),
                false => self.vote(id),
            };
        }
        let paused = self.checkpoints.as_ref().is_some_and(|c| c.paused);
        if paused || self.recovers() || self.has_takeovers() || self.has_open_verdicts() {
            return Ok(());
        }
        self.make_base()?;
        self.make_own()?;
        self.make_pair()
    }

    /// How long nothing has to be done for checkpoints; None: for ever.
    pub(crate) fn checkpoint_patience(&self) -> Option<Duration> {
        let c = self.checkpoints.as_ref()?;
        if c.arbitration.is_some() || c.replay.is_some() {
            return Some(AGAIN);
        }
        if c.paused {
            return None;
        }
        let left = match self.has_pairs() {
            true => c.due?.saturating_duration_since(Instant::now()),
            false => Duration::MAX,
        };
        let pause = c
            .tried
            .map_or(Duration::ZERO, |(t, wait)| wait.saturating_sub(t.elapsed()));
        let until = |due: Option<(Instant, Duration)>| {
            due.map_or(Duration::MAX, |(t, _)| {
                t.saturating_duration_since(Instant::now())
            })
        };
        let copies = until(c.base.due).min(until(c.own.due));
        Some(left.max(pause).min(copies))
    }

    /// Two replicas cannot tell who is right: copies of both are asked.
    fn has_pairs(&self) -> bool {
        self.options.replicas as usize == REPLICAS
    }

    /// Whom to copy: the group of the program's only process, its leader and its follower.
    fn sources(&self) -> Option<(GroupId, Vec<(usize, Pid)>)> {
        let mut groups = self.groups.iter();
        let (id, g) = groups.next().filter(|_| groups.next().is_none())?;
        let alone = |p: &crate::state::Process| p.group == Some(*id) && p.guest.is_none();
        if g.ending || g.leader_gone.is_some() || !self.processes.values().all(alone) {
            return None;
        }
        let mut sources = vec![(g.leader, g.leader_pid()?)];
        sources.extend(g.followers());
        (sources.len() >= REPLICAS).then_some((*id, sources))
    }

    /// A seat that nobody sits in, or did until a moment ago.
    fn free_seat(&self) -> Option<usize> {
        let taken = |r: usize| self.processes.values().any(|p| p.replica == r);
        (0..self.replicas.len()).find(|r| self.is_dropped(*r) && !taken(*r))
    }

    /// How much a follower has compared with its leader so far.
    fn compared(&mut self, pid: Pid) -> u64 {
        self.views(pid).iter().map(|v| v.verified).sum()
    }

    /// Has a follower come to where the rings ended, and agreed with what was there?
    fn has_come_to(&mut self, ends: &[u64], follower: Pid) -> bool {
        // A record that was read may still be found to differ.
        let waits = |v: &View| matches!(v.waiting, wait::RECORD | wait::ASCENT);
        let agrees = |v: &View, end| v.verified >= end || (waits(v) && v.pos >= end);
        let reached = |v: &View| ends.get(v.slot as usize).is_some_and(|e| agrees(v, *e));
        self.views(follower).iter().all(reached)
    }

    /// Copies sleep from now on that say who is wrong. The leader stood still for so long.
    fn tell_checkpoint(&mut self, id: GroupId, pause: Duration) {
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let position = g.segment.ends().iter().sum();
        self.console.journal.tell(&Event::Checkpoint {
            position,
            pause_us: pause.as_micros() as u64,
        });
    }

    /// The program has several processes from now on: the sleepers know of one only.
    pub(crate) fn sleepers_lack_a_process(&mut self) {
        let Some(c) = &self.checkpoints else {
            return;
        };
        if c.over || c.arbitration.is_some() {
            return;
        }
        self.end_sleepers();
        if let Some(c) = &mut self.checkpoints {
            c.due = Some(Instant::now() + c.every);
        }
        self.say(
            "the program has forked: there are no checkpoints while it has several processes, and replicas that differ are stopped",
        );
    }

    fn no_more_checkpoints(&mut self, why: &str) {
        self.end_sleepers();
        if let Some(c) = &mut self.checkpoints {
            c.over = true;
            c.due = None;
        }
        self.say(&format!(
            "no checkpoints from now on: {why}; replicas that differ are stopped"
        ));
    }

    /// Make none from now on, or do so again.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn pause_checkpoints(
        &mut self,
        paused: bool,
    ) -> std::result::Result<String, String> {
        let Some(c) = &mut self.checkpoints else {
            return Err("the run makes no checkpoints (--checkpoint)".into());
        };
        c.paused = paused;
        if paused {
            self.end_sleepers();
            Ok("no checkpoints are made".into())
        } else {
            Ok("checkpoints are made".into())
        }
    }

    /// Nobody sleeps any more. A new pair is due at once.
    pub(crate) fn end_sleepers(&mut self) {
        let Some(c) = &mut self.checkpoints else {
            return;
        };
        let all = [
            &mut c.pair,
            &mut c.base.last,
            &mut c.base.older,
            &mut c.own.last,
            &mut c.own.coming,
            &mut c.coming,
        ];
        let ended = all.map(Option::take);
        if ended.iter().all(Option::is_none) {
            return;
        }
        c.tried = None;
        c.due = c.due.map(|_| Instant::now());
        c.base.due = None;
        c.own.due = None;
        for pair in ended {
            self.end_pair(pair);
        }
    }

    /// What happened until now is replayed by nobody any more.
    pub(crate) fn end_all_replays(&mut self) {
        self.end_replay();
        self.set_doubt(None);
        self.end_sleepers();
        self.end_arbitration();
    }

    fn end_pair(&mut self, pair: Option<Pair>) {
        let Some(pair) = pair else {
            return;
        };
        for s in &pair.sleepers {
            if let Some(g) = self.groups.get(&pair.group) {
                g.segment.leave_seat(s.replica);
            }
            if self.processes.contains_key(&s.pid) {
                kill(s.pid, libc::SIGKILL);
            }
        }
    }

    /// A process has ended: if it slept, its partner is of no use either.
    pub(crate) fn sleeper_ended(&mut self, pid: Pid) {
        let Some(c) = &self.checkpoints else {
            return;
        };
        let all = [
            &c.pair,
            &c.base.last,
            &c.base.older,
            &c.own.last,
            &c.own.coming,
            &c.coming,
        ];
        let is_it = |p: &Pair| p.sleepers.iter().any(|s| s.pid == pid);
        if all.into_iter().flatten().any(is_it) {
            self.end_sleepers();
        }
    }
}
