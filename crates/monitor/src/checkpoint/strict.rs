//! Two replicas differ whose threads run in parallel. Perhaps neither is wrong: what threads do by plain loads and stores no
//! clock orders, and a follower may have found something else than its leader. So the log is replayed again, from
//! the follower's sleeping copy on, by a copy of that, in the order of the leader's stamps (`agent/strict.rs`); and if it goes
//! astray again, by another one. One that comes to the end of the log, and agrees with every record, has proved the leader's
//! run, however often it was tried: a fault in the leader since then is agreed to by nobody. It takes the place
//! of the follower. Only what no replay agrees to is voted on.
//!
//! A copy of the leader would prove nothing: it may have inherited a fault. But where three and more stand against the leader it is
//! asked, too, before they are believed ([`doubt`](super::doubt)).

mod next;
mod proved;

use super::arbitration::Accused;
use super::doubt::Findings;
use super::search::{Search, Stretch};
use crate::journal::Event;
use crate::options::OnRace;
use crate::recover::{Made, Seat};
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_abi::layout::{strict, wait};
use geryon_tracee::Pid;
use next::From;
pub(crate) use proved::is_about_order;
use std::time::{Duration, Instant};

/// A copy that does nothing for so long has gone astray: all of its threads wait,
const STANDS: Duration = Duration::from_millis(500);
/// or one computes.
const COMPUTES: Duration = Duration::from_secs(10);
/// So long a free seat is waited for.
const SEATED: Duration = Duration::from_secs(2);

/// The log is being replayed again.
#[derive(Debug)]
pub struct Replay {
    group: GroupId,
    leader: usize,
    /// Who has gone another way.
    astray: usize,
    since: Instant,
    /// Threads of the leader, which is to take no input that it could not give back.
    held: Vec<Pid>,
    /// So many copies were made, of them of the present sleeper, and since when.
    tries: u32,
    of_base: (u32, Instant),
    /// Which of the sleepers that is.
    base: From,
    search: Search,
    /// How threads are placed from there on, when the search is over; None before.
    spread: Option<Vec<Vec<Stretch>>>,
    /// How they were placed where the leader's own copy came to what the leader has found.
    repeats: Option<Vec<Stretch>>,
    findings: Findings,
    /// The one that replays, and what it has done when it was last seen to get on.
    on_try: Option<Try>,
}

#[derive(Clone, Debug)]
struct Try {
    seat: usize,
    pid: Pid,
    late: Vec<Stretch>,
    events: u64,
    got_on: Instant,
    /// Since when all of its threads wait.
    stands: Instant,
}

/// What has come of a try.
enum Came {
    Proved,
    Astray,
    NotYet,
}

impl Monitor {
    /// Do the threads of a replica run in parallel?
    pub(super) fn runs_in_parallel(&self) -> bool {
        !self.is_serial()
    }

    /// Is there to be a copy that may want to know the order of all that the leader publishes?
    pub(crate) fn has_stamps(&self) -> bool {
        self.checkpoints.is_some() && self.runs_in_parallel()
    }

    /// Is the log of a group replayed, because a follower of it went another way?
    pub(crate) fn is_replayed_again(&self, id: GroupId) -> bool {
        let replay = self.checkpoints.as_ref().and_then(|c| c.replay.as_ref());
        replay.is_some_and(|r| r.group == id)
    }

    /// Is any log?
    pub(crate) fn replays_again(&self) -> bool {
        self.checkpoints
            .as_ref()
            .is_some_and(|c| c.replay.is_some())
    }

    /// Does this one only show whether the log can be replayed? That it is lost says that it has gone astray.
    pub(crate) fn is_on_try(&self, replica: usize) -> bool {
        let replay = self.checkpoints.as_ref().and_then(|c| c.replay.as_ref());
        let on_try = replay.and_then(|r| r.on_try.as_ref());
        on_try.is_some_and(|t| t.seat == replica)
    }

    /// Begin to, if it can be. False: the replicas are to vote.
    pub(super) fn replay_again(&mut self, id: GroupId) -> Result<bool> {
        let (Some(c), Some(g)) = (&self.checkpoints, self.groups.get(&id)) else {
            return Ok(false);
        };
        let leader = g.leader;
        let differs = g.dispute.reports.iter().map(|r| r.replica);
        let crashes = g.dispute.crashes.iter().map(|c| c.replica);
        let stands = g.followers().map(|f| f.0);
        let accused = c.accused.as_ref();
        // (Who computes without end, is stopped or crashes is no race.)
        let is_other = accused.is_some_and(|a| a.astray().is_none());
        let circle = accused.and_then(Accused::astray);
        let all = differs.chain(crashes).chain(circle).chain(stands);
        let astray = all.into_iter().find(|r| *r != leader);
        let (Some(astray), Some(leader_pid)) = (astray, g.leader_pid()) else {
            return Ok(false);
        };
        let leads = g.dispute.reports.iter().any(|r| r.replica == leader);
        let stops = circle.is_some() && self.options.on_race == OnRace::Stop;
        let is_to_stop = stops
            || g.dispute
                .reports
                .first()
                .is_some_and(|r| self.stops_for_race(r));
        if !self.runs_in_parallel() || leads || is_to_stop || is_other {
            return Ok(false);
        }
        let Some(age) = self.bases(leader).first().map(|b| b.0.elapsed()) else {
            return Ok(false);
        };
        let held = self.halt(leader_pid)?.unwrap_or_default();
        if self.in_dispute() != Some(id) || self.outcome.is_some() {
            self.release(&held);
            return Ok(true);
        }
        self.console.journal.tell(&Event::Rollback {
            age_ms: age.as_millis() as u64,
        });
        let said = self.witness(id, astray);
        if let Some(c) = &mut self.checkpoints {
            c.replay = Some(Replay {
                group: id,
                leader,
                astray,
                since: Instant::now(),
                held,
                tries: 0,
                of_base: (0, Instant::now()),
                base: From::Follower(0),
                search: Search::default(),
                spread: None,
                repeats: None,
                findings: Findings::new(said),
                on_try: None,
            });
        }
        self.replay_on()?;
        Ok(true)
    }

    /// Get on with it.
    pub(super) fn replay_on(&mut self) -> Result<()> {
        let Some(r) = self.checkpoints.as_ref().and_then(|c| c.replay.as_ref()) else {
            return Ok(());
        };
        let (id, leader, on_try) = (r.group, r.leader, r.on_try.clone());
        let is_held = !r.held.is_empty();
        let is_open = self.groups.get(&id).is_some_and(|g| {
            g.leader == leader && g.takeover.is_none() && !g.ending && g.leader_pid().is_some()
        });
        if !is_open || self.acquits_accused() {
            self.end_replay();
            return Ok(());
        }
        if !is_held && let Some(pid) = self.groups.get(&id).and_then(|g| g.leader_pid()) {
            let held = self.halt(pid)?.unwrap_or_default();
            match self.replay_mut() {
                Some(r) => r.held = held,
                None => self.release(&held),
            }
        }
        let Some(on_try) = on_try else {
            return self.try_again(id, leader);
        };
        match self.came_of(id, &on_try) {
            Came::NotYet => {}
            Came::Astray => {
                let witness = self.witness(id, on_try.seat);
                self.learn(id, &on_try);
                if let Some(r) = self.replay_mut() {
                    match r.base {
                        From::Leader => r.findings.add_of_leader(witness),
                        _ => r.findings.add(witness),
                    }
                }
                self.end_try(&on_try);
            }
            Came::Proved if self.is_of_leader() => {
                if let Some(r) = self.replay_mut() {
                    r.findings.leader_repeats();
                    r.repeats = Some(on_try.late.clone());
                }
                self.end_try(&on_try);
            }
            Came::Proved => self.race_is_replayed(id, &on_try)?,
        }
        Ok(())
    }

    fn end_try(&mut self, t: &Try) {
        self.drop_replica(t.seat);
        if let Some(r) = self.replay_mut() {
            r.on_try = None;
        }
    }

    fn replay_mut(&mut self) -> Option<&mut Replay> {
        self.checkpoints.as_mut()?.replay.as_mut()
    }

    /// Have another copy replay the log; if there have been enough, the replicas vote.
    fn try_again(&mut self, id: GroupId, leader: usize) -> Result<()> {
        let Some(r) = self.replay_mut() else {
            return Ok(());
        };
        let waits = r.since.elapsed();
        let late = self.next_placement(id, leader);
        let Some(late) = late.filter(|l| l.len() <= strict::MOST_LATE) else {
            let next = self.next_base(leader);
            if let Some(r) = self.replay_mut() {
                r.base = next;
                r.of_base = (0, Instant::now());
                r.search = Search::default();
                r.spread = None;
            }
            return match self.base(leader) {
                Some(_) => Ok(()),
                None => self.vote(id),
            };
        };
        let Some(base) = self.base(leader) else {
            return self.vote(id);
        };
        let Some(seat) = self.free_seat() else {
            // (A pair that was about to be made is on its way out.)
            self.end_coming();
            return if waits > SEATED {
                self.vote(id)
            } else {
                Ok(())
            };
        };
        let made = self.copy_of_sleeper(id, &base, seat);
        let made = match made {
            Ok(made) => made,
            Err(e) => {
                self.say(&format!("the log cannot be replayed again: {e:#}"));
                return self.vote(id);
            }
        };
        self.be_strict(made.pid, strict::ONE_AT_A_TIME);
        self.be_late(made.pid, &late);
        self.replicas[made.replica].dropped = false;
        self.enrol(id, &made);
        self.release(&made.threads);
        if let Some(r) = self.replay_mut() {
            r.tries += 1;
            r.of_base.0 += 1;
            r.on_try = Some(Try {
                late,
                seat: made.replica,
                pid: made.pid,
                events: 0,
                got_on: Instant::now(),
                stands: Instant::now(),
            });
        }
        Ok(())
    }

    fn copy_of_sleeper(&mut self, id: GroupId, base: &Made, replica: usize) -> Result<Made> {
        let seat = Seat {
            replica,
            sleeps: true,
            testifies: false,
        };
        let made = self.copy_of_halted(id, seat, (base.replica, base.pid), &base.threads)?;
        // The base has never taken part: nothing says so of its threads, but that it was copied from those that slept.
        Ok(Made {
            asleep: base.asleep.clone(),
            ..made
        })
    }

    /// No replay has agreed with the leader, or none can be made.
    pub(super) fn vote(&mut self, id: GroupId) -> Result<()> {
        let findings = self.end_replay();
        if self.in_dispute() != Some(id) {
            return Ok(());
        }
        const VERDICT: &str =
            "the program races: replicas, or replays of the log, contradict each other";
        if findings.contradict() && self.goes_on_from_race(id, VERDICT) {
            return Ok(());
        }
        if !self.has_pairs() {
            return self.judge_doubted(id, &findings);
        }
        let pair = self.checkpoints.as_ref().and_then(|c| c.pair.as_ref());
        if pair.is_some_and(|p| p.sleepers.len() == super::REPLICAS) {
            return self.arbitrate(id);
        }
        self.end_sleepers();
        self.judge_accused(id);
        self.judge_reports(id, Duration::MAX);
        Ok(())
    }

    /// What a replay that went astray says of where threads do what.
    fn learn(&mut self, id: GroupId, t: &Try) {
        let views = self.views(t.pid);
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let of_try = g.dispute.reports.iter().find(|r| r.replica == t.seat);
        let place = of_try.map(|r| Stretch::new(r.report.slot, r.report.pos));
        let stamp = place.and_then(|p| g.segment.stamp(p.slot as usize, p.pos));
        let Some(r) = self.replay_mut() else {
            return;
        };
        let (Some(place), Some(stamp)) = (place, stamp) else {
            return r.search.is_over();
        };
        let others = views.iter().filter(|v| v.slot != place.slot);
        let others: Vec<Stretch> = others.map(|v| Stretch::new(v.slot, v.pos)).collect();
        r.search.has_failed(&t.late, stamp, place, &others);
    }

    pub(super) fn end_replay(&mut self) -> Findings {
        let replay = self.checkpoints.as_mut().and_then(|c| c.replay.take());
        let Some(r) = replay else {
            return Findings::default();
        };
        if let Some(t) = r.on_try {
            self.drop_replica(t.seat);
        }
        self.release(&r.held);
        r.findings
    }

    fn came_of(&mut self, id: GroupId, t: &Try) -> Came {
        let Some(g) = self.groups.get(&id) else {
            return Came::Astray;
        };
        let differs = g.dispute.reports.iter().any(|r| r.replica == t.seat);
        let crashes = g.dispute.crashes.iter().any(|c| c.replica == t.seat);
        if differs || crashes || g.members[t.seat].pid != Some(t.pid) {
            return Came::Astray;
        }
        if self.has_replayed(id, t.pid) {
            return Came::Proved;
        }
        let views = self.views(t.pid);
        let events = views.iter().map(|v| v.events).sum();
        let waits = views.iter().all(|v| v.waiting != wait::NONE);
        let Some(now) = self.replay_mut().and_then(|r| r.on_try.as_mut()) else {
            return Came::NotYet;
        };
        // (Who has computed until a moment ago stands since then.)
        if now.events != events || !waits {
            now.stands = Instant::now();
        }
        if now.events != events {
            now.events = events;
            now.got_on = Instant::now();
        }
        match now.stands.elapsed() > STANDS || now.got_on.elapsed() > COMPUTES {
            true => Came::Astray,
            false => Came::NotYet,
        }
    }
}
