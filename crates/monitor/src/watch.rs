//! The watchdog: finds replicas that make no progress although there is something to do. Long
//! honest computation (processor time is used) and long blocking calls (the leader is in the
//! kernel) are never mistaken for it.

mod ahead;
mod asleep;
mod awaited;
mod barren;
mod calls;
mod circle;
mod course;
mod endless;
mod kin;
mod leader;
mod lines;
mod strays;
mod vain;
mod view;

use crate::state::{Group, GroupId, Monitor, Process};
use anyhow::Result;
pub(crate) use asleep::Rest;
use asleep::Rested;
use geryon_abi::layout::wait;
use geryon_tracee::{Pid, cpu_ticks};
use leader::BACK;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use strays::Stray;
pub use view::View;
pub(crate) use view::holder;

/// A leader that is found waiting so often for a follower that has ended will not exit by itself.
const MISSED_ROUNDS: u32 = 4;
/// How often the threads are looked at.
const ROUND: Duration = Duration::from_millis(500);
/// A replica whose threads all wait and do not get on for so long is stuck.
pub const STUCK: Duration = Duration::from_secs(4);
/// A report that no other replica has confirmed or refuted for so long is decided without it.
const UNDECIDED: Duration = Duration::from_secs(10);
/// Who has looked for so many rounds for what is there, with so much processor time (10 ms each), will
/// not see it.
const OVERLOOKED_ROUNDS: u32 = 4;
const OVERLOOKED_TICKS: u64 = 100;
/// What is said of it.
const BLIND: &str = "does not see what it waits for, which is there";
/// What is said of a replica whose thread has lost its place.
const BEYOND: &str = "waits behind the end of the log";
/// What is said of a replica that uses processor time and comes to nothing.
const ENDLESS: &str = "computes without end where the others went on";

/// What is said of one all of whose threads wait.
const NEVER_COMES: &str = "waits for an event that never comes in it";

/// What is said of a leader when all others wait at the same places.
const MISLED: &str = "has logged an order in which no other can go on";

/// A thread that is found asleep so often where nobody will wake it is there.
const ASTRAY_ROUNDS: u32 = 2;

/// The watchdog's memory.
#[derive(Default)]
pub struct Watch {
    /// What was seen of each process.
    seen: HashMap<Pid, Seen>,
    /// When it looked last.
    last: Option<Instant>,
    /// Who waits elsewhere than the others, by group, and for how many rounds.
    strays: HashMap<GroupId, (Stray, u32)>,
    /// How often a process's lines in the log had to be put right.
    lines: HashMap<Pid, u32>,
    /// For how many rounds a thread of a process has slept where nobody will wake it, whatever the others
    /// do meanwhile.
    astray: HashMap<Pid, u32>,
    /// Where threads of a process sleep before a record that is there, and since when.
    deaf: HashMap<Pid, HashMap<(u32, u64), Instant>>,
    /// What was seen of groups without a leader.
    barren: HashMap<GroupId, barren::Barren>,
    /// Leaders that compare in vain, by group.
    vain: HashMap<GroupId, vain::Vain>,
    /// Whom the leader waits for in vain, or the leader, by group, and for how many rounds.
    awaited: HashMap<GroupId, (usize, u32)>,
    /// What was seen of leaders' threads that others wait for.
    ahead: HashMap<Pid, ahead::Ahead>,
    /// How far the leaders had come with how much processor time.
    courses: HashMap<GroupId, course::Course>,
    /// Followers that use processor time before a record that is there.
    endless: HashMap<Pid, endless::Endless>,
    /// Where threads of followers wait for others.
    circles: HashMap<Pid, circle::Circle>,
}

/// What was seen of a process when it last got on.
struct Seen {
    /// Records of all its threads.
    events: u64,
    /// When there were first so many.
    since: Instant,
    /// For how long it has done nothing.
    rested: Rested,
    /// For how many rounds all its threads have waited for a turn that none of them has.
    starved: u32,
    /// For how many rounds what a thread waits for has been there, and the processor time used before.
    deaf: (u32, u64),
}

impl Watch {
    /// Somebody was taken out: for how long others have waited until now may have been for that one.
    pub(crate) fn begin_anew(&mut self) {
        self.seen.clear();
        self.strays.clear();
        self.astray.clear();
        self.deaf.clear();
        self.vain.clear();
        self.awaited.clear();
        self.barren.clear();
        self.ahead.clear();
        self.circles.clear();
    }

    /// Of processes and groups that are gone nothing has to be known.
    fn forget_gone(&mut self, processes: &HashMap<Pid, Process>, groups: &HashMap<GroupId, Group>) {
        let lives = |pid: &Pid| processes.contains_key(pid);
        self.seen.retain(|pid, _| lives(pid));
        self.astray.retain(|pid, _| lives(pid));
        self.deaf.retain(|pid, _| lives(pid));
        self.lines.retain(|pid, _| lives(pid));
        self.ahead.retain(|pid, _| lives(pid));
        self.endless.retain(|pid, _| lives(pid));
        self.circles.retain(|pid, _| lives(pid));
        let is_there = |id: &GroupId| groups.contains_key(id);
        self.courses.retain(|id, _| is_there(id));
        self.strays.retain(|id, _| is_there(id));
        self.vain.retain(|id, _| is_there(id));
        self.awaited.retain(|id, _| is_there(id));
        self.barren.retain(|id, _| is_there(id));
    }

    /// One more round. Does it sleep there indeed?
    fn is_astray(&mut self, pid: Pid, found: bool) -> bool {
        let rounds = self.astray.entry(pid).or_insert(0);
        *rounds = if found { *rounds + 1 } else { 0 };
        *rounds >= ASTRAY_ROUNDS
    }
}

impl Watch {
    /// Has one of the process's threads slept in the same place, before a record that is there, for long? (Its other
    /// threads may get on meanwhile: one that waits with a limit of time, say.)
    fn stays_deaf(&mut self, pid: Pid, now: HashSet<(u32, u64)>) -> bool {
        let known = self.deaf.entry(pid).or_default();
        known.retain(|place, _| now.contains(place));
        for place in now {
            known.entry(place).or_insert_with(Instant::now);
        }
        known.values().any(|since| since.elapsed() >= STUCK)
    }
}

impl Seen {
    fn now(events: u64, ticks: u64) -> Seen {
        Seen {
            events,
            since: Instant::now(),
            rested: Rested::default(),
            starved: 0,
            deaf: (0, ticks),
        }
    }

    /// One more round. Does it look for what is there, again and again, without seeing it? (It may sleep
    /// instead, see [`Rested`].)
    fn overlooks(&mut self, deaf: bool, ticks: u64) -> bool {
        let (rounds, since) = self.deaf;
        self.deaf = if deaf {
            (rounds + 1, since)
        } else {
            (0, ticks)
        };
        rounds >= OVERLOOKED_ROUNDS && ticks.saturating_sub(since) >= OVERLOOKED_TICKS
    }
}

impl Monitor {
    /// One round.
    pub(crate) fn watch(&mut self) -> Result<()> {
        for id in self.with_crashes() {
            let expired = self.crash_expired(id);
            self.judge_crashes(id, expired)?;
        }
        if self.watch.last.is_some_and(|l| l.elapsed() < ROUND) {
            return Ok(());
        }
        self.watch.last = Some(Instant::now());
        self.end_orphans();
        self.family.end_foundlings();
        self.watch.forget_gone(&self.processes, &self.groups);
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in groups {
            self.watch_takeover(id);
            self.watch_group(id);
        }
        Ok(())
    }

    /// The program is over: followers whose leader is gone, or was never born, have nothing to do.
    fn end_orphans(&mut self) {
        if self.outcome.is_none() {
            return;
        }
        for g in self.groups.values().filter(|g| g.leader_pid().is_none()) {
            let settled = g.leader_gone.is_none_or(|t| t.elapsed() > STUCK);
            for (_, p) in g.living().filter(|_| settled) {
                geryon_tracee::kill(p, libc::SIGKILL);
            }
        }
    }

    fn watch_group(&mut self, id: GroupId) {
        self.sample_course(id);
        if self.running.convergences.holds(id) || self.is_replayed_again(id) {
            // Who is stopped, and let go on, again and again uses processor time for that.
            self.forget_endless(id);
            return;
        }
        let Some(g) = self.groups.get(&id).filter(|g| g.takeover.is_none()) else {
            return;
        };
        let leader = g.leader;
        let leader_pid = g.leader_pid();
        let followers: Vec<(usize, Pid)> = g.followers().collect();
        let gone = g.leader_gone;
        let lead = leader_pid.map_or_else(Vec::new, |l| self.views(l));
        // It is held until it is known who is right.
        let accused = self.accused(id);
        let suspect = accused.as_ref().map(|a| a.0);
        let judged = leader_pid.filter(|_| !self.is_arbitrating(id) || suspect == Some(leader));
        if let Some(what) = judged.and_then(|l| self.leader_hangs(id, l, &lead, &followers)) {
            if what == BACK {
                self.leader_misled(id, leader, what);
            } else {
                self.stuck(id, leader, what);
            }
            if suspect.is_none() {
                return;
            }
        }
        if suspect.is_none()
            && (self.watch_strays(id, &lead, &followers)
                || self.watch_vain(id, &lead, &followers)
                || self.watch_awaited(id, leader, &lead, &followers))
        {
            return;
        }
        if let Some((r, what)) = accused.filter(|a| a.0 != leader) {
            // Nobody but the sleepers can tell any more.
            self.stuck(id, r, &what);
        }
        self.watch_arbitration(id);
        if self.outcome.is_some() || (suspect.is_some() && !self.is_arbitrating(id)) {
            return;
        }
        let unsuspected = |f: &(usize, Pid)| Some(f.0) != suspect;
        let followers: Vec<(usize, Pid)> = followers.into_iter().filter(unsuspected).collect();
        if self.watch_endless(id, &followers) || self.watch_circles(id, &followers) {
            return;
        }
        let missing = self.ended_too_early(id, &lead);
        if let Some(g) = self.groups.get_mut(&id) {
            for (replica, m) in g.members.iter_mut().enumerate() {
                let is_missing = missing.as_ref().is_some_and(|(r, _)| *r == replica);
                m.missed = if is_missing { m.missed + 1 } else { 0 };
            }
            if let Some((replica, end)) = missing
                // A leader that exits may have threads that were waiting.
                && g.members[replica].missed >= MISSED_ROUNDS
            {
                self.lost(id, replica, end);
                return;
            }
        }
        for (replica, pid) in followers {
            let views = self.views(pid);
            let ticks = cpu_ticks(pid);
            let events = views.iter().map(|v| v.events).sum();
            if self.says_wrong(id, replica, pid, &views, &lead) && self.lines_are_hopeless(pid) {
                self.broken(
                    id,
                    replica,
                    "says of itself what is not so (its line in the log is damaged)",
                );
                return;
            }
            let rest = self.rest(pid);
            let waits = self.has_children(id, replica);
            let kin_goes_on = self.kin_goes_on(replica, &views);
            let Some(g) = self.groups.get(&id) else {
                return;
            };
            let head = |v: &View| g.segment.ring(v.slot as usize).head.load(Ordering::Acquire);
            let is_deaf = |v: &View| v.waiting == wait::RECORD && head(v) > v.waiting_for;
            let deaf = views.iter().any(is_deaf);
            let beyond = views.iter().any(|v| is_beyond(g, v));
            let judged = g.dispute.reports.iter().any(|r| r.replica == replica)
                || g.dispute.crashes.iter().any(|c| c.replica == replica);
            if self.watch.is_astray(pid, beyond) && !judged {
                self.stuck(id, replica, BEYOND);
                return;
            }
            let asleep = views.iter().filter(|v| is_deaf(v) && is_asleep(v.tid));
            let deaf_at = asleep.map(|v| (v.slot, v.waiting_for)).collect();
            if self.watch.stays_deaf(pid, deaf_at) && !judged {
                self.stuck(id, replica, BLIND);
                return;
            }
            let seen = self
                .watch
                .seen
                .entry(pid)
                .or_insert(Seen::now(events, ticks));
            if seen.events != events {
                *seen = Seen::now(events, ticks);
                continue;
            }
            if kin_goes_on {
                // Another process has the turn, and has something to do.
                *seen = Seen::now(events, ticks);
                continue;
            }
            let overlooks = seen.overlooks(deaf, ticks);
            let rested = seen.rested.add(rest, deaf).filter(|_| !waits);
            let rested = rested.or(overlooks.then_some(BLIND));
            let since = seen.since;
            let has_record = |v: &View| head(v) > v.pos;
            let blocked = views
                .iter()
                .all(|v| v.stands(head(v)) || v.waiting == wait::KERNEL);
            let due = views.iter().any(View::awaits_another);
            let behind = views.iter().any(&has_record);
            let places = views.iter().map(|v| (v.slot, v.pos)).collect::<Vec<_>>();
            if let Some(what) = rested
                && (behind || gone.is_some())
                && !judged
            {
                self.stuck(id, replica, what);
                return;
            }
            if since.elapsed() < STUCK {
                continue;
            }
            if blocked && (due || behind) && !judged {
                if self.all_wait_alike(id, &views) {
                    self.leader_misled(id, leader, MISLED);
                } else {
                    self.stuck_at(id, replica, NEVER_COMES, &places);
                }
                return;
            }
        }
    }

    /// Do all followers, two at least, wait at the same places as this one?
    fn all_wait_alike(&mut self, id: GroupId, views: &[View]) -> bool {
        let followers: Vec<Pid> = match self.groups.get(&id) {
            Some(g) => g.followers().map(|(_, p)| p).collect(),
            None => return false,
        };
        let place = |v: &View| (v.slot, v.waiting, v.pos, v.waiting_value);
        let own: Vec<_> = views.iter().map(place).collect();
        followers.len() > 1
            && followers.iter().all(|p| {
                let theirs = self.views(*p);
                theirs.len() == own.len() && theirs.iter().map(place).eq(own.iter().copied())
            })
    }

    /// Is there something that a verdict is due on?
    pub(crate) fn has_open_verdicts(&self) -> bool {
        let open = |g: &Group| !g.ending && g.dispute.is_open();
        self.groups.values().any(open)
    }

    /// Reports and crashes whose verdict is possible by now.
    pub(crate) fn judge_open(&mut self) -> Result<()> {
        let reports = |g: &Group| !g.dispute.reports.is_empty();
        for id in self.groups_with(reports) {
            self.judge_reports(id, UNDECIDED);
        }
        for id in self.with_crashes() {
            self.judge_crashes(id, false)?;
        }
        Ok(())
    }

    fn with_crashes(&self) -> Vec<GroupId> {
        self.groups_with(|g| !g.dispute.crashes.is_empty())
    }

    fn groups_with(&self, what: impl Fn(&Group) -> bool) -> Vec<GroupId> {
        let found = self.groups.iter().filter(|(_, g)| what(g));
        found.map(|(id, _)| *id).collect()
    }
}

fn is_asleep(tid: Pid) -> bool {
    geryon_tracee::state(tid) == Some('S')
}

/// Does a follower's thread wait behind the end of its ring? No follower has read what is not written.
fn is_beyond(g: &Group, v: &View) -> bool {
    let head = &g.segment.ring(v.slot as usize).head;
    v.waiting == wait::RECORD && v.pos > head.load(Ordering::Acquire)
}
