//! Two replicas differ, and both stand where they are: what differed has not left. The sleepers replay
//! the log up to there and vote. Three of four make a majority; the one that is alone is taken out, and
//! two of the others stay.

use super::{Pair, REPLICAS};
use crate::block_field;
use crate::journal::Event;
use crate::options::OnRace;
use crate::state::{GroupId, Monitor};
use crate::watch::Rest;
use anyhow::Result;
use geryon_abi::layout::{block_address, strict};
use geryon_tracee::Pid;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// After so many rounds of the watchdog in which the sleepers did nothing, nothing more is expected.
const RESTED_ROUNDS: u32 = 30;

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
    /// It is about one that hangs.
    accused: Option<Accused>,
    /// For how many rounds of the watchdog the sleepers have not got on, and where they stand.
    rest: (u32, u64),
    /// Who was outvoted, once that is known.
    outvoted: Option<usize>,
}

/// One that the watchdog says makes no progress.
#[derive(Clone, Debug)]
pub struct Accused {
    group: GroupId,
    replica: usize,
    /// What is said of it.
    what: String,
    /// How many records it had made or taken.
    events: u64,
    /// Where threads of it stand that wait for one another: the others get on meanwhile. None: all of them.
    places: Vec<(u32, u64)>,
}

impl Accused {
    /// Whose order of threads may have led it astray; None: nobody's.
    pub(super) fn astray(&self) -> Option<usize> {
        (!self.places.is_empty()).then_some(self.replica)
    }

    /// Who, and what is said of it.
    pub(super) fn charge(&self) -> (usize, &str) {
        (self.replica, &self.what)
    }
}

/// What sleepers can say of one that hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Testimony {
    /// There are none, or it is about something else.
    None,
    /// They have not come so far yet.
    Later,
    /// Both have come past the place.
    Guilty,
}

impl Monitor {
    /// A group whose two replicas differ, or one of which hangs, and that has sleepers.
    pub(super) fn in_dispute(&self) -> Option<GroupId> {
        let c = self.checkpoints.as_ref()?;
        let id = [&c.pair, &c.base.last, &c.base.older]
            .into_iter()
            .flatten()
            .next()?
            .group;
        let g = self.groups.get(&id)?;
        let is_open = g.takeover.is_none() && !g.ending;
        if !self.has_pairs() {
            return self.doubted().filter(|d| *d == id && is_open);
        }
        let accused = c.accused.as_ref().is_some_and(|a| a.group == id);
        let differ = (accused || !g.dispute.reports.is_empty()) && is_open;
        (differ && g.voters() == REPLICAS).then_some(id)
    }

    /// Could sleepers say who is right, or are they about to?
    pub(crate) fn is_arbitrable(&self, id: GroupId) -> bool {
        self.in_dispute() == Some(id)
    }

    /// What is being found out about a group.
    fn open_arbitration(&self, id: GroupId) -> Option<&Arbitration> {
        let a = self.checkpoints.as_ref()?.arbitration.as_ref()?;
        (a.group == id && a.outvoted.is_none()).then_some(a)
    }

    /// Is it being found out who is right?
    pub(crate) fn is_arbitrating(&self, id: GroupId) -> bool {
        self.open_arbitration(id).is_some() || self.is_replayed_again(id)
    }

    /// The replica of which it is being found out whether it hangs.
    pub(crate) fn accused(&self, id: GroupId) -> Option<(usize, String)> {
        let accused = self.open_arbitration(id)?.accused.as_ref()?;
        Some((accused.replica, accused.what.clone()))
    }

    /// One of two replicas makes no progress, says the watchdog. True: the sleepers are asked first. `places`: see [`Accused`].
    pub(crate) fn accuse(
        &mut self,
        id: GroupId,
        replica: usize,
        what: &str,
        places: &[(u32, u64)],
    ) -> bool {
        let two = self.groups.get(&id).is_some_and(|g| g.voters() == REPLICAS);
        let pid = self.groups.get(&id).and_then(|g| g.members[replica].pid);
        let (true, Some(pid)) = (two, pid) else {
            return false;
        };
        let events = self.views(pid).iter().map(|v| v.events).sum();
        let replays = !places.is_empty() && self.may_replay_accused(id, replica);
        let Some(c) = &mut self.checkpoints else {
            return false;
        };
        if c.pair.as_ref().is_none_or(|p| p.group != id) && !replays {
            return false;
        }
        c.accused = Some(Accused {
            group: id,
            replica,
            what: what.into(),
            events,
            places: places.to_vec(),
        });
        true
    }

    /// Can the log be replayed for a follower whose threads wait for one another?
    fn may_replay_accused(&self, id: GroupId, replica: usize) -> bool {
        let leader = self.groups.get(&id).map(|g| g.leader);
        let is_to_be =
            self.has_pairs() && self.runs_in_parallel() && self.options.on_race != OnRace::Stop;
        leader.is_some_and(|l| l != replica && is_to_be && self.has_base(id, l))
    }

    /// The follower got on after all, for which the log is replayed: nothing has happened.
    pub(super) fn acquits_accused(&mut self) -> bool {
        let accused = self.checkpoints.as_ref().and_then(|c| c.accused.clone());
        let is_acquitted = accused.is_some_and(|a| self.gets_on(&a));
        if is_acquitted && let Some(c) = &mut self.checkpoints {
            c.accused = None;
        }
        is_acquitted
    }

    /// Nobody can tell whether the accused is wrong but the watchdog.
    pub(super) fn judge_accused(&mut self, id: GroupId) {
        let accused = self.checkpoints.as_mut().and_then(|c| c.accused.take());
        let Some(a) = accused.filter(|a| a.group == id) else {
            return;
        };
        if a.astray().is_none() || !self.races_again(id, a.replica, &a.what) {
            self.stuck_at(id, a.replica, &a.what, &a.places);
        }
    }

    /// Do the sleepers bear out that a replica hangs?
    pub(crate) fn testimony(&mut self, id: GroupId, replica: usize) -> Testimony {
        let Some(a) = self.open_arbitration(id) else {
            return Testimony::None;
        };
        if a.accused.as_ref().is_none_or(|x| x.replica != replica) {
            return Testimony::None;
        }
        let seats: Vec<usize> = a.woken.iter().map(|w| w.0).collect();
        let leads = self.leads(id, replica);
        let Some(g) = self.groups.get(&id) else {
            return Testimony::None;
        };
        let Some(pid) = g.members[replica].pid else {
            return Testimony::None;
        };
        let woken: Vec<Pid> = seats.iter().filter_map(|s| g.members[*s].pid).collect();
        if woken.len() != REPLICAS {
            return Testimony::None;
        }
        let behind = self.behind(id, pid);
        let past = if leads || behind.is_empty() {
            woken.iter().all(|p| self.has_replayed(id, *p))
        } else {
            woken.iter().all(|p| self.is_beyond(*p, &behind))
        };
        if past {
            Testimony::Guilty
        } else {
            Testimony::Later
        }
    }

    /// Has a process come past these places? (Threads may have ended since.)
    pub(crate) fn is_beyond(&mut self, pid: Pid, places: &[(u32, u64)]) -> bool {
        self.memory(pid).is_ok_and(|m| {
            places.iter().all(|(slot, place)| {
                let at = block_address(*slot as usize) + block_field!(pos);
                m.word(at).is_ok_and(|pos| pos > *place)
            })
        })
    }

    /// Where a process stands in the rings that hold something which it has not read.
    pub(crate) fn behind(&mut self, id: GroupId, pid: Pid) -> Vec<(u32, u64)> {
        let views = self.views(pid);
        let Some(g) = self.groups.get(&id) else {
            return Vec::new();
        };
        let head = |slot: u32| g.segment.ring(slot as usize).head.load(Ordering::Acquire);
        let behind = views.iter().filter(|v| head(v.slot) > v.pos);
        behind.map(|v| (v.slot, v.pos)).collect()
    }

    /// Hold the leader and wake the sleepers.
    pub(super) fn arbitrate(&mut self, id: GroupId) -> Result<()> {
        let Some((leader, leader_pid)) = self.groups.get(&id).map(|g| (g.leader, g.leader_pid()))
        else {
            return Ok(());
        };
        let accused = self.checkpoints.as_mut().and_then(|c| c.accused.take());
        // If it does not stop at once it goes on to its next output: that is held in any case. Of one
        // that hangs it is still to be seen whether it does.
        let held = match leader_pid.filter(|_| accused.is_none()) {
            Some(pid) => self.halt(pid)?.unwrap_or_default(),
            None => Vec::new(),
        };
        if let Some(c) = &mut self.checkpoints {
            c.accused = accused.clone();
        }
        if self.in_dispute() != Some(id) || self.outcome.is_some() {
            self.release(&held);
            return Ok(());
        }
        let Some(pair) = self.checkpoints.as_mut().and_then(|c| c.pair.take()) else {
            return Ok(());
        };
        let age = pair.since.elapsed();
        let what = match &accused {
            None => "two replicas differ".to_owned(),
            Some(a) => format!("replica {} {}", a.replica + 1, a.what),
        };
        eprintln!(
            "geryon: {what}: copies of both from {:.1} s ago replay the log to tell who is right",
            age.as_secs_f64()
        );
        self.console.journal.tell(&Event::Rollback {
            age_ms: age.as_millis() as u64,
        });
        self.end_sleepers();
        let woken = self.wake(pair);
        if let Some(c) = &mut self.checkpoints {
            c.accused = None;
            c.arbitration = Some(Arbitration {
                group: id,
                leader,
                since: Instant::now(),
                age,
                held,
                woken,
                accused,
                rest: (0, 0),
                outvoted: None,
            });
        }
        Ok(())
    }

    /// The sleepers follow from now on like any replica. Their seats: of whom each is a copy.
    fn wake(&mut self, pair: Pair) -> Vec<(usize, usize)> {
        for s in &pair.sleepers {
            self.replicas[s.replica].dropped = false;
            if self.has_stamps() {
                self.be_strict(s.pid, strict::IN_TIME);
            }
            self.enrol(pair.group, s);
        }
        for s in &pair.sleepers {
            if self.options.eager_copy {
                self.begin_unsharing(s.replica, s.pid);
            }
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
        self.console.journal.tell(&Event::Arbitrated {
            outvoted,
            took_us,
            age_ms,
        });
        self.release(&held);
    }

    /// Nobody will be named: the leader goes on.
    pub(super) fn end_arbitration(&mut self) {
        let Some(c) = &mut self.checkpoints else {
            return;
        };
        c.accused = None;
        if let Some(a) = c.arbitration.take() {
            self.release(&a.held);
        }
    }

    /// One round of the watchdog: if the sleepers do nothing any more, and nobody could be named, nobody
    /// will be.
    pub(crate) fn watch_arbitration(&mut self, id: GroupId) {
        let Some(a) = self.open_arbitration(id) else {
            return;
        };
        let (rounds, stood) = a.rest;
        let seats: Vec<usize> = a.woken.iter().map(|w| w.0).collect();
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let woken: Vec<Pid> = seats.iter().filter_map(|s| g.members[*s].pid).collect();
        let rests = woken.iter().all(|p| self.rest(*p) != Rest::Busy);
        let stands = woken
            .iter()
            .map(|p| self.views(*p).iter().map(|v| v.events).sum::<u64>())
            .sum();
        let rounds = if rests && stands == stood {
            rounds + 1
        } else {
            0
        };
        if rounds > RESTED_ROUNDS {
            self.settle_nothing(id);
            return;
        }
        let checkpoints = self.checkpoints.as_mut();
        if let Some(a) = checkpoints.and_then(|c| c.arbitration.as_mut()) {
            a.rest = (rounds, stands);
        }
    }

    /// The sleepers will name nobody. If they stand where the accused does, whose threads wait for one another, it is the
    /// order of threads that leads nowhere. False: nothing is being found out.
    pub(crate) fn settle_nothing(&mut self, id: GroupId) -> bool {
        let Some(a) = self.open_arbitration(id) else {
            return false;
        };
        let astray = a.accused.clone().filter(|a| a.astray().is_some());
        if !astray.is_some_and(|a| self.races_again(id, a.replica, &a.what)) {
            self.give_up(
                "stopped: it could not be found out who is right: the copies that were asked came to no difference",
            );
        }
        true
    }

    /// Has one that seemed to hang got on?
    fn is_acquitted(&mut self) -> bool {
        let arbitration = self
            .checkpoints
            .as_ref()
            .and_then(|c| c.arbitration.as_ref());
        let Some(a) = arbitration.filter(|a| a.outvoted.is_none()) else {
            return false;
        };
        a.accused.clone().is_some_and(|a| self.gets_on(&a))
    }

    fn gets_on(&mut self, accused: &Accused) -> bool {
        let g = self.groups.get(&accused.group);
        let Some(pid) = g.and_then(|g| g.members[accused.replica].pid) else {
            return false;
        };
        if !accused.places.is_empty() {
            let mut places = accused.places.iter();
            return places.any(|place| self.is_beyond(pid, &[*place]));
        }
        let events: u64 = self.views(pid).iter().map(|v| v.events).sum();
        events > accused.events
    }

    /// Once it is known who is wrong, and somebody leads, two remain.
    pub(super) fn arbitrate_on(&mut self) {
        let acquitted = self.is_acquitted();
        let arbitration = self
            .checkpoints
            .as_ref()
            .and_then(|c| c.arbitration.as_ref());
        let Some(a) = arbitration else {
            return;
        };
        if (a.outvoted.is_none() && !acquitted) || self.has_takeovers() {
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
        let members = self.groups.get(&a.group).map(|g| &g.members);
        let process = |seat: usize| members.and_then(|m| m[seat].pid);
        let woken: Vec<Pid> = a.woken.iter().filter_map(|w| process(w.0)).collect();
        if self.has_stamps() {
            woken
                .into_iter()
                .for_each(|p| self.be_strict(p, strict::NOT));
        }
        for r in left.drain(..).skip(REPLICAS) {
            self.drop_replica(r);
        }
        eprintln!(
            "geryon: two replicas again after {:.1} ms",
            took.as_secs_f64() * 1e3
        );
        if let Some(c) = &mut self.checkpoints {
            c.arbitration = None;
            c.due = c.due.map(|_| Instant::now());
        }
    }
}
