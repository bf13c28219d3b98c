//! Followers that get nowhere while they use processor time. One of their threads stands before a record that is there: when
//! the leader published that, each of its threads had done so much, and whatever brings the follower's thread to its record is
//! in that. What the leader's threads do afterwards is not, be it that one of them spins for ever.
//!
//! Any of the follower's threads may be the one that is to bring it on, by a plain store, say. So each of them that runs is given
//! several times what the same thread of the leader had used by then.

use super::barren::rests;
use super::course::{Course, Used};
use super::{ENDLESS, MISLED, Monitor, View};
use crate::state::GroupId;
use geryon_abi::layout::wait;
use geryon_abi::record::{kind, kind_of};
use geryon_tracee::{Pid, cpu_ticks, state, thread_ticks};
use std::collections::HashMap;

/// A thread may use so many times what the leader's did, and this much more (10 ms each),
const TIMES: u64 = 4;
const SPARE_TICKS: u64 = 100;
/// which for one of them is more: a second is soon gone.
const ENDLESS_TICKS: u64 = 1_000;
/// One that has just been woken may not be seen to run yet.
const ROUNDS: u32 = 8;
/// For so many rounds a follower that is found is waited for the others, none of whom has come past the place either.
const PATIENCE: u32 = 120;

/// What a follower's thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It runs, or could.
    Runs,
    /// It sleeps, or waits in the agent for another thread of its replica.
    Sleeps,
    /// It waits for a record that is not there, and has done all that the leader's has, up to there.
    Idles,
    /// It waits for one of a load that it makes again and again: how often the leader's does so meanwhile it has still to do.
    Polls,
    /// It sleeps until a child of its own has done something.
    Attends,
}

/// A follower's thread.
#[derive(Clone, Copy, Debug)]
struct Thread {
    tid: Pid,
    slot: u32,
    pos: u64,
    doing: Doing,
    /// Processor time.
    ticks: u64,
}

/// What was seen of a follower.
#[derive(Debug, Default)]
pub(super) struct Endless {
    /// The records before which its threads stand.
    places: HashMap<(u32, u64), Place>,
    /// Where each was idle last, and what the leader had used by then.
    idle: HashMap<u32, (u64, Used)>,
    /// For how many rounds the others, too, have not come past the place that was found.
    found: u32,
}

#[derive(Debug, Default)]
struct Place {
    /// What the threads had used when one of them was first seen there.
    before: HashMap<Pid, u64>,
    /// What the leader's had to do.
    work: HashMap<Pid, u64>,
    /// For so many rounds all have used more than they may.
    spent: u32,
}

impl Place {
    /// How much more than it may has a thread used, or how much less?
    fn excess(&mut self, t: &Thread, work: u64) -> i64 {
        let before = self.before.get(&t.tid).copied().unwrap_or(0);
        let most = self.work.entry(t.tid).or_insert(work);
        *most = work.max(*most);
        match t.doing {
            Doing::Runs => t.ticks.saturating_sub(before) as i64 - (TIMES * *most) as i64,
            _ => i64::MIN,
        }
    }
}

impl Endless {
    /// One more round: before which record it stands and will not come to, if so. `over`: the leader has ended, and
    /// who runs has to come to its own end.
    fn look(&mut self, course: &Course, threads: &[Thread], over: bool) -> Option<(u32, u64)> {
        let now = course.now()?;
        for t in threads.iter().filter(|t| t.doing == Doing::Idles) {
            self.idle.insert(t.slot, (t.pos, now.clone()));
        }
        let idle = &self.idle;
        let reached = |t: &Thread| {
            let idle = idle.get(&t.slot).filter(|(pos, _)| *pos == t.pos);
            idle.map(|i| &i.1).or(course.reached(t.slot, t.pos))
        };
        let mut known = std::mem::take(&mut self.places);
        let mut found = None;
        let waits = |t: &&Thread| matches!(t.doing, Doing::Idles | Doing::Polls);
        for t in threads.iter().filter(|t| !waits(t)) {
            let published = course.published(t.slot, t.pos);
            if published.is_none() && !over {
                continue;
            }
            let at = (t.slot, t.pos);
            let mut place = known.remove(&at).unwrap_or_else(|| Place {
                before: threads.iter().map(|t| (t.tid, t.ticks)).collect(),
                ..Place::default()
            });
            // Who has come to what the leader published later has done its part.
            let is_past = |t: &Thread| published.is_some_and(|s| t.pos > s.end(t.slot));
            let is_active = |t: &&Thread| matches!(t.doing, Doing::Runs | Doing::Attends);
            let end = published.map_or(now, |s| &s.first);
            let awaited = threads.iter().filter(is_active).filter(|t| !is_past(t));
            let excess = awaited.map(|t| place.excess(t, end.since(reached(t), t.slot)));
            let excess: Vec<i64> = excess.collect();
            let spent = excess.iter().all(|e| *e > SPARE_TICKS as i64)
                && excess.iter().any(|e| *e > ENDLESS_TICKS as i64);
            place.spent = if spent { place.spent + 1 } else { 0 };
            if place.spent >= ROUNDS {
                found = Some(at);
            }
            self.places.insert(at, place);
        }
        found
    }
}

impl Monitor {
    /// One more look at where the leader's log ends.
    pub(super) fn sample_course(&mut self, id: GroupId) {
        let Some(pid) = self.groups.get(&id).and_then(|g| g.leader_pid()) else {
            return;
        };
        let mut threads = Vec::new();
        for v in self.views(pid) {
            let slot = v.slot as usize;
            threads.resize(threads.len().max(slot + 1), (0, 0));
            threads[slot] = (v.tid, thread_ticks(pid, v.tid));
        }
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let mut ends = g.segment.ends();
        let used = ends.iter().rposition(|end| *end != 0).map_or(0, |i| i + 1);
        ends.truncate(used);
        let course = self.watch.courses.entry(id).or_default();
        course.sample(pid, cpu_ticks(pid), threads, ends);
    }

    /// The followers of a group begin anew.
    pub(super) fn forget_endless(&mut self, id: GroupId) {
        for (_, pid) in self.groups.get(&id).into_iter().flat_map(|g| g.followers()) {
            self.watch.endless.remove(&pid);
            self.watch.circles.remove(&pid);
        }
    }

    /// Does one of the followers get nowhere while it computes? It is taken out; or the leader is charged, if none of
    /// them, two at least, gets on.
    pub(super) fn watch_endless(&mut self, id: GroupId, followers: &[(usize, Pid)]) -> bool {
        let mut found = Vec::new();
        for (replica, pid) in followers {
            if let Some((place, rounds)) = self.is_endless(id, *replica, *pid) {
                found.push((*replica, place, rounds));
            }
        }
        let all = found.len() == followers.len() && found.len() > 1;
        for (replica, place, rounds) in found {
            let mut others = followers.iter().filter(|f| f.0 != replica).peekable();
            let is_alone = others.peek().is_none() || self.is_arbitrating(id);
            if is_alone || rounds > PATIENCE || others.any(|(_, p)| self.is_beyond(*p, &[place])) {
                self.stuck(id, replica, ENDLESS);
                return true;
            }
        }
        let leader = self.groups.get(&id).map(|g| g.leader);
        if let Some(leader) = leader.filter(|_| all) {
            self.leader_misled(id, leader, MISLED);
        }
        all
    }

    /// Where does a follower's thread stand that will not come on, and for how many rounds was that known?
    fn is_endless(&mut self, id: GroupId, replica: usize, pid: Pid) -> Option<((u32, u64), u32)> {
        let views = self.views(pid);
        let has_children = self.has_children(id, replica);
        let g = self.groups.get(&id)?;
        let judged = g.dispute.reports.iter().any(|r| r.replica == replica)
            || g.dispute.crashes.iter().any(|c| c.replica == replica);
        let over = g.leader_gone.is_some();
        // (Who waits for another process of its replica waits for what is in no log of its own.)
        if judged || views.iter().any(|v| v.waiting == wait::KIN) {
            self.watch.endless.remove(&pid);
            return None;
        }
        let course = self.watch.courses.get(&id)?;
        let threads: Vec<Thread> = views
            .iter()
            .map(|v| Thread {
                tid: v.tid,
                slot: v.slot,
                pos: v.pos,
                doing: doing(v, course.end(v.slot), has_children),
                ticks: thread_ticks(pid, v.tid),
            })
            .collect();
        let seen = self.watch.endless.entry(pid).or_default();
        let found = seen.look(course, &threads, over);
        seen.found = if found.is_some() { seen.found + 1 } else { 0 };
        found.map(|place| (place, seen.found))
    }
}

/// What a thread does; `end`: where its log ended when it was last looked at.
fn doing(v: &View, end: u64, has_children: bool) -> Doing {
    let polls = kind_of(v.intent[0]) == kind::LOAD && v.intent_at == v.pos;
    match v.waiting {
        wait::RECORD if v.waiting_for >= end && polls => Doing::Polls,
        wait::RECORD if v.waiting_for >= end => Doing::Idles,
        _ if !rests(state(v.tid), Some(v), false) => Doing::Runs,
        wait::KERNEL if has_children && v.pos < end => Doing::Attends,
        _ => Doing::Sleeps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: Pid = 100;
    const W: u32 = 1;
    const Y: u32 = 2;

    fn thread(slot: u32, pos: u64, doing: Doing, ticks: u64) -> Thread {
        let tid = 200 + slot as Pid;
        Thread {
            tid,
            slot,
            pos,
            doing,
            ticks,
        }
    }

    fn sample(c: &mut Course, (w, y): (u64, u64), (w_ticks, y_ticks): (u64, u64)) {
        let threads = vec![(0, 0), (101, w_ticks), (102, y_ticks)];
        c.sample(LEADER, w_ticks + y_ticks, threads, vec![0, w, y]);
    }

    /// A log in which thread groups W and Y end so, and what the leader's threads had used.
    fn course(samples: &[[(u64, u64); 2]]) -> Course {
        let mut c = Course::default();
        samples
            .iter()
            .for_each(|[ends, ticks]| sample(&mut c, *ends, *ticks));
        c
    }

    /// After how many rounds is a follower found, with these threads in each?
    fn found(c: &Course, threads: impl Fn(u64) -> Vec<Thread>) -> Option<u64> {
        let mut e = Endless::default();
        (0..20_000).find(|k| e.look(c, &threads(*k), false).is_some())
    }

    fn w(k: u64) -> Thread {
        thread(W, 10, Doing::Runs, 50 * k)
    }

    #[test]
    fn a_leader_that_spins_afterwards_gives_nobody_more_time() {
        let mut c = course(&[[(9, 5), (0, 90)], [(10, 6), (0, 100)], [(11, 6), (50, 150)]]);
        let mut e = Endless::default();
        let spins = (0..1_000).find(|k| {
            // Y yields all the time, and so hardly gets a core.
            sample(&mut c, (11, 6), (50, 200 + 100 * k));
            let y = thread(Y, 6, Doing::Runs, 30 * k);
            e.look(&c, &[w(*k), y], false).is_some()
        });
        // Ten seconds and four times 50 ticks, which is known when it was so for some rounds.
        assert_eq!(spins, Some(32));
    }

    #[test]
    fn who_is_at_the_end_of_the_log_may_compute() {
        let c = course(&[[(9, 5), (0, 0)], [(10, 5), (50, 0)]]);
        assert_eq!(found(&c, |k| vec![w(k)]), None);
    }

    #[test]
    fn what_the_leader_computed_there_may_be_computed() {
        // It took an hour for one record.
        let c = course(&[
            [(9, 5), (99, 0)],
            [(10, 5), (100, 0)],
            [(11, 5), (360_099, 0)],
        ]);
        assert_eq!(found(&c, |k| vec![w(k)]), None);
        let c = course(&[
            [(9, 5), (99, 0)],
            [(10, 5), (100, 0)],
            [(11, 5), (100_099, 0)],
        ]);
        assert_eq!(found(&c, |k| vec![w(k)]), Some(8_028));
    }

    #[test]
    fn another_thread_may_have_as_much_to_do_as_it_did_in_the_leader() {
        // Y computes for long, and stores what W waits for; in the leader W came late and found it.
        let c = course(&[
            [(9, 4), (90, 90)],
            [(10, 5), (100, 100)],
            [(10, 6), (100, 8_100)],
            [(11, 6), (101, 8_101)],
        ]);
        let y = |pos, k| thread(Y, pos, Doing::Runs, 50 * k);
        assert_eq!(found(&c, |k| vec![w(k), y(5, k)]), Some(650));
        // It has done so.
        assert_eq!(found(&c, |k| vec![w(k), y(7, k)]), Some(28));
    }

    #[test]
    fn each_thread_that_runs_has_to_have_had_its_time() {
        let c = course(&[[(9, 4), (0, 0)], [(10, 5), (0, 0)], [(11, 5), (0, 0)]]);
        let with = |doing, ticks| found(&c, move |k| vec![w(k), thread(Y, 5, doing, ticks)]);
        // It gets no core; it waits for its child; it sleeps.
        assert_eq!(with(Doing::Runs, 0), None);
        assert_eq!(with(Doing::Attends, 9_999), None);
        assert_eq!(with(Doing::Sleeps, 0), Some(28));
        assert_eq!(with(Doing::Idles, 0), Some(28));
    }

    #[test]
    fn who_sleeps_until_another_one_has_done_something_is_waited_for_as_well() {
        let c = course(&[[(9, 5), (0, 0)], [(10, 5), (0, 0)], [(11, 5), (0, 0)]]);
        let y = |k| thread(Y, 5, Doing::Runs, 50 * k);
        let asleep = thread(W, 10, Doing::Sleeps, 0);
        assert_eq!(found(&c, |k| vec![asleep, y(k)]), Some(28));
    }

    #[test]
    fn others_may_go_on_meanwhile() {
        let mut c = course(&[[(9, 4), (0, 0)], [(10, 5), (0, 0)], [(11, 5), (0, 0)]]);
        let mut e = Endless::default();
        let k = (0..1_000).find(|k| {
            sample(&mut c, (11, 6 + k), (0, *k));
            let y = thread(Y, 6 + k, Doing::Runs, *k);
            e.look(&c, &[w(*k), y], false).is_some()
        });
        assert_eq!(k, Some(28));
    }

    #[test]
    fn what_the_leader_polled_while_it_was_waited_for_is_to_be_polled_as_often() {
        // Twenty seconds at one load, until another thread stored what was waited for.
        let after = |doing| {
            let mut c = course(&[[(9, 5), (0, 0)], [(10, 5), (0, 0)]]);
            let mut e = Endless::default();
            for k in 0..20 {
                sample(&mut c, (10, 5), (100 * k, 0));
                e.look(&c, &[thread(W, 10, doing, 0)], false);
            }
            sample(&mut c, (11, 5), (2_000, 0));
            (0..1_000).find(|k| e.look(&c, &[w(*k)], false).is_some())
        };
        assert_eq!(after(Doing::Polls), Some(188));
        assert_eq!(after(Doing::Idles), Some(36));
    }
}
