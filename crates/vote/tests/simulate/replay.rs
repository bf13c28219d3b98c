//! Copies that sleep, and what they say when they replay the log: made up from what is true.

use crate::rules::Taken;
use crate::world::{Doubt, Mark, Replica, State, World};
use geryon_vote::{Found, OnRace, PAIR};
use std::time::{Duration, Instant};

/// A replay takes so long.
const TAKES: Duration = Duration::from_millis(400);
/// Copies that do nothing for so long name nobody.
const RESTED: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug)]
pub struct Sleeper {
    pub seat: usize,
    pub pos: u64,
    pub mark: Option<Mark>,
    pub guilty: bool,
}

/// One of a follower and one of the leader.
#[derive(Clone, Copy, Debug)]
pub struct Sleepers {
    pub follower: Sleeper,
    pub leader: Sleeper,
}

#[derive(Clone, Copy, Debug)]
pub struct Replay {
    pub astray: usize,
    pub since: Instant,
}

#[derive(Clone, Debug)]
pub struct Arbitration {
    /// Seat of each copy, and whose copy it is.
    pub woken: Vec<(usize, usize)>,
    pub accused: Option<(usize, u64)>,
    pub outvoted: Option<usize>,
    pub got_on: (Instant, u64),
}

impl Arbitration {
    pub fn is_open(&self) -> bool {
        self.outvoted.is_none()
    }
}

impl World {
    fn has_pairs(&self) -> bool {
        self.setup.replicas == PAIR
    }

    pub fn is_arbitrating(&self) -> bool {
        self.arbitration.as_ref().is_some_and(Arbitration::is_open) || self.replay.is_some()
    }

    pub fn accused_by_arbitration(&self) -> Option<usize> {
        let a = self.arbitration.as_ref().filter(|a| a.is_open())?;
        a.accused.map(|a| a.0)
    }

    pub fn end_replays(&mut self) {
        self.replay = None;
        self.doubt = None;
        self.sleepers = None;
        self.accused = None;
        self.arbitration = None;
    }

    pub fn end_replay_of_several(&mut self) {
        if geryon_vote::Case::may_doubt(self.setup.replicas, !self.serial) {
            self.replay = None;
            self.doubt = None;
        }
    }

    /// Copies of the leader and of a follower that has come to where it is.
    pub fn put_to_sleep(&mut self) {
        let is_calm = self.reports.is_empty()
            && self.crashes.is_empty()
            && self.wanted.is_empty()
            && self.takeover.is_none()
            && !self.is_arbitrating()
            && self.arbitration.is_none();
        let is_of_use = self.has_pairs() || !self.serial;
        if !self.setup.checkpoints || !is_calm || !is_of_use || !self.runs(self.leader) {
            return;
        }
        let head = self.head();
        let is_there = |r: &usize| self.runs(*r) && self.replicas[*r].pos == head;
        let Some(f) = self.followers().find(is_there) else {
            return;
        };
        let of = |w: &World, seat: usize| Sleeper {
            seat,
            pos: head,
            mark: w.replicas[seat].mark,
            guilty: w.replicas[seat].guilty,
        };
        self.sleepers = Some(Sleepers {
            follower: of(self, f),
            leader: of(self, self.leader),
        });
    }

    /// Is there a dispute that copies could settle?
    pub fn is_in_dispute(&self) -> bool {
        if self.sleepers.is_none() || self.takeover.is_some() {
            return false;
        }
        if !self.has_pairs() {
            return self.doubt.is_some_and(|d| d.found.is_none());
        }
        let voters = self.living().count();
        (self.accused.is_some() || !self.reports.is_empty()) && voters == PAIR
    }

    /// One makes no progress. True: copies are asked first.
    pub fn accuse(&mut self, r: usize) -> bool {
        if !self.has_pairs() || self.living().count() != PAIR {
            return self.arbitration.is_some() && !self.is_testified(r);
        }
        if self.sleepers.is_none() || self.replicas[r].state == State::Exited {
            return false;
        }
        self.accused = Some(r);
        true
    }

    /// Do copies bear out that one hangs?
    pub fn is_testified(&self, r: usize) -> bool {
        let Some(a) = self.arbitration.as_ref().filter(|a| a.is_open()) else {
            return false;
        };
        let Some((accused, pos)) = a.accused else {
            return false;
        };
        let is_past = |seat: usize| {
            let m = &self.replicas[seat];
            let place = if r == self.leader {
                self.head()
            } else {
                pos + 1
            };
            !m.dropped && m.state == State::Runs && m.pos >= place
        };
        accused == r && a.woken.iter().all(|w| is_past(w.0))
    }

    pub fn is_arbitrated(&mut self, outvoted: usize) {
        if let Some(a) = &mut self.arbitration {
            a.outvoted = Some(outvoted);
        }
    }

    pub fn checkpoint(&mut self) {
        if self.arbitration.is_some() {
            return self.arbitrate_on();
        }
        if let Some(r) = self.replay {
            if self.takeover.is_some() {
                self.replay = None;
            } else if self.now - r.since >= TAKES {
                self.is_replayed(r);
            }
            return;
        }
        if !self.is_in_dispute() {
            return;
        }
        let differs = self.reports.iter().map(|r| r.replica);
        let crashes = self.crashes.iter().map(|c| c.replica);
        let all = differs.chain(crashes).chain(self.followers());
        let astray = all.into_iter().find(|r| *r != self.leader);
        let first = self.reports.first();
        let stops = self.setup.on_race == OnRace::Stop && first.is_some_and(|r| r.of_order);
        let is_other = self.accused.is_some();
        match astray.filter(|_| !self.serial && !stops && !is_other) {
            Some(astray) => {
                self.replay = Some(Replay {
                    astray,
                    since: self.now,
                });
            }
            None => self.vote(),
        }
    }

    /// What a copy finds at the records behind it: does it agree with all of them? And does it come to the leader's where
    /// that is wrong?
    fn agrees(&self, s: &Sleeper) -> bool {
        let mut mark = s.mark;
        let records = self.log.iter().skip(s.pos as usize);
        records.clone().all(|record| {
            let says = mark.map_or(0, |m| m.says);
            if mark.is_some_and(|m| !m.always) {
                mark = None;
            }
            says == record.says && !record.is_nonsense
        })
    }

    fn is_replayed(&mut self, r: Replay) {
        let Some(s) = self.sleepers else {
            self.replay = None;
            return;
        };
        // (A race is not repeated each time.)
        let is_lucky = !self.raced || !self.log.len().is_multiple_of(5);
        if s.follower.seat == self.leader || !self.agrees(&s.follower) || !is_lucky {
            return self.vote();
        }
        // It has proved the leader's run, and takes the place of who went astray.
        self.replay = None;
        let mut others: Vec<usize> = self.reports.iter().map(|x| x.replica).collect();
        others.extend(self.crashes.iter().map(|c| c.replica));
        others.sort_unstable();
        others.dedup();
        others.retain(|o| *o != r.astray && *o != self.leader && !self.has_pairs());
        let is_certain = !others.is_empty();
        let of_order = self.reports.first().is_some_and(|x| x.of_order);
        self.has_raced |= is_certain || of_order;
        self.take_out(r.astray, Taken::Refuted);
        for o in others {
            self.take_out(o, Taken::Refuted);
            self.lose(o);
        }
        self.doubt = None;
        self.accused = None;
        self.replicas[r.astray] = Replica {
            dropped: false,
            state: State::Runs,
            pos: self.head(),
            mark: None,
            guilty: s.follower.guilty,
            ..self.replicas[r.astray]
        };
        self.note_race(is_certain);
    }

    /// No replay has agreed with the leader, or none can be made.
    fn vote(&mut self) {
        self.replay = None;
        if !self.is_in_dispute() {
            return;
        }
        let Some(s) = self.sleepers else {
            return;
        };
        if self.has_pairs() {
            return self.arbitrate(s);
        }
        // (One that has raced once need not do so each time.)
        let is_repeated = !self.raced || !self.log.len().is_multiple_of(3);
        let is_alike = is_repeated && s.follower.seat != self.leader && !self.agrees(&s.leader);
        let leader = self.leader;
        self.doubt = Some(Doubt {
            leader,
            found: Some(match is_alike {
                true => Found::Alike,
                false => Found::Unlike,
            }),
        });
        self.judge_reports(Duration::MAX);
        self.judge_crashes(false);
    }

    /// Both sleepers wake up.
    fn arbitrate(&mut self, s: Sleepers) {
        self.sleepers = None;
        let accused = self.accused.take();
        let mut woken = Vec::new();
        let free = (0..self.replicas.len()).filter(|r| self.replicas[*r].dropped);
        let free: Vec<usize> = free.collect();
        for (seat, s) in free.into_iter().zip([s.leader, s.follower]) {
            self.replicas[seat] = Replica {
                dropped: false,
                given_up: false,
                asked_out: false,
                state: State::Runs,
                pos: s.pos,
                waits: false,
                mark: s.mark,
                guilty: s.guilty,
                still: self.now,
                failed_at: None,
            };
            woken.push((seat, s.seat));
        }
        self.count_guilty();
        self.arbitration = Some(Arbitration {
            woken,
            accused: accused.map(|r| (r, self.replicas[r].pos)),
            outvoted: None,
            got_on: (self.now, 0),
        });
    }

    /// Once it is known who is wrong, and somebody leads, two remain.
    fn arbitrate_on(&mut self) {
        let Some(a) = self.arbitration.clone() else {
            return;
        };
        let gets_on = |(r, pos): (usize, u64)| self.replicas[r].pos > pos;
        let is_acquitted = a.is_open() && a.accused.is_some_and(gets_on);
        if (a.is_open() && !is_acquitted) || self.takeover.is_some() {
            return;
        }
        let rank = |r: &usize| {
            let source = a.woken.iter().find(|(seat, _)| seat == r).map(|w| w.1);
            match source {
                _ if *r == self.leader => 0,
                None => 1,
                Some(s) if Some(s) != a.outvoted => 2,
                Some(_) => 3,
            }
        };
        let mut left: Vec<usize> = (0..self.replicas.len())
            .filter(|r| !self.replicas[*r].dropped)
            .collect();
        left.sort_by_key(rank);
        for r in left.into_iter().skip(PAIR) {
            self.take_out(r, Taken::Surplus);
        }
        self.arbitration = None;
    }

    /// Copies that are asked, and come to nothing.
    pub fn rest(&mut self) {
        let now = self.now;
        let Some(a) = self.arbitration.as_ref().filter(|a| a.is_open()) else {
            return;
        };
        let done = a.woken.iter().map(|w| self.replicas[w.0].pos).sum::<u64>();
        let (accused, before) = (a.accused, a.got_on.1);
        if let Some((r, _)) = accused
            && self.is_testified(r)
        {
            return self.lost(r, false, true);
        }
        let Some(a) = &mut self.arbitration else {
            return;
        };
        if done != before {
            a.got_on = (now, done);
        } else if now - a.got_on.0 > RESTED {
            self.stop("it could not be found out who is right");
        }
    }
}
