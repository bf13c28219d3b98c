//! Followers some of whose threads wait for one another, for ever, while the others get on: one that wakes up every 50 ms and
//! goes to sleep again is enough for the process as a whole never to stand still.
//!
//! What brings a thread to its turn was done in the leader before that thread's record was published. Whoever has come past all
//! that was published by then has done its part, and so only those can bring it on that have not; if they all stand, nobody will.

use super::course::{Course, Sample};
use super::{MISLED, Monitor, ROUND, STUCK, View};
use crate::block_field;
use crate::state::{Group, GroupId};
use geryon_abi::layout::{block_address, wait};
use geryon_tracee::{Pid, RemoteMemory, state};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// For so many rounds they have stood.
const ROUNDS: u32 = (STUCK.as_millis() / ROUND.as_millis()) as u32;

/// What is said of it.
const CIRCLE: &str =
    "waits for an event that never comes in it: threads of it wait for one another";

/// What a follower's thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It waits for its turn, which has not come, or for what others did before that.
    Awaits,
    /// It sleeps until another thread of its replica wakes it, or shows it a value.
    Sleeps,
    /// It has done all that its leader's has, as far as the log says.
    Idles,
    /// It may do anything.
    Runs,
}

/// A follower's thread.
#[derive(Clone, Copy, Debug)]
struct Thread {
    slot: u32,
    /// Its position in the ring, and where the record begins that it is at. (Who waits for its turn may have taken a part.)
    pos: u64,
    at: u64,
    events: u64,
    doing: Doing,
}

/// What was seen of a follower's threads: where each stands, and for how many rounds.
#[derive(Debug, Default)]
pub(super) struct Circle {
    places: HashMap<u32, ((u64, u64), u32)>,
}

impl Circle {
    /// One more round: which threads stand, none of which will be brought on by another one? None if there are none.
    fn look(&mut self, course: &Course, threads: &[Thread]) -> Vec<(u32, u64)> {
        let before = std::mem::take(&mut self.places);
        let stands = |t: &&Thread| matches!(t.doing, Doing::Awaits | Doing::Sleeps);
        for t in threads.iter().filter(stands) {
            let place = (t.pos, t.events);
            let seen = before.get(&t.slot).filter(|(at, _)| *at == place);
            let rounds = seen.map_or(0, |(_, rounds)| rounds + 1);
            self.places.insert(t.slot, (place, rounds));
        }
        let has_stood = |t: &Thread| self.places.get(&t.slot).is_some_and(|p| p.1 >= ROUNDS);
        let mut awaiting = threads.iter().filter(|t| t.doing == Doing::Awaits);
        let found = awaiting.find_map(|t| {
            let by_then = course.told(t.slot, t.at).filter(|_| has_stood(t))?;
            let owes = |x: &&Thread| !has_done_its_part(x, by_then);
            let all_stand = threads.iter().filter(owes).all(has_stood);
            all_stand.then_some(by_then)
        });
        let Some(by_then) = found else {
            return Vec::new();
        };
        let owe = threads.iter().filter(|t| !has_done_its_part(t, by_then));
        owe.map(|t| (t.slot, t.pos)).collect()
    }
}

/// Has it come past all that had been published by then?
fn has_done_its_part(t: &Thread, by_then: &Sample) -> bool {
    let end = by_then.end(t.slot);
    t.at > end || (t.at == end && matches!(t.doing, Doing::Idles | Doing::Awaits))
}

impl Monitor {
    /// Do threads of one of the followers wait for one another? It is taken out; or the leader is charged, if those of all
    /// others, two at least, stand in the same places. (Copies that were asked who is right stand there because they replay
    /// the same log: they charge nobody.)
    pub(super) fn watch_circles(&mut self, id: GroupId, followers: &[(usize, Pid)]) -> bool {
        if self.is_serial() {
            return false;
        }
        for (replica, pid) in followers {
            let places = self.circle(id, *replica, *pid);
            if places.is_empty() {
                continue;
            }
            if !self.stand_alike(followers, &places) {
                self.stuck_at(id, *replica, CIRCLE, &places);
            } else if !self.settle_nothing(id)
                && let Some(leader) = self.groups.get(&id).map(|g| g.leader)
            {
                self.leader_misled(id, leader, MISLED);
            }
            return true;
        }
        false
    }

    /// Where a follower's threads stand that wait for one another.
    fn circle(&mut self, id: GroupId, replica: usize, pid: Pid) -> Vec<(u32, u64)> {
        let views = self.views(pid);
        let has_children = self.has_children(id, replica);
        let memory = self.processes.get(&pid).and_then(|p| p.memory.as_ref());
        let (Some(g), Some(memory)) = (self.groups.get(&id), memory) else {
            return Vec::new();
        };
        let judged = g.dispute.reports.iter().any(|r| r.replica == replica)
            || g.dispute.crashes.iter().any(|c| c.replica == replica);
        // (Who waits for another process of its replica waits for what is in no log of its own.)
        let asks_others = has_children || views.iter().any(|v| v.waiting == wait::KIN);
        let (false, Some(course)) = (judged || asks_others, self.watch.courses.get(&id)) else {
            self.watch.circles.remove(&pid);
            return Vec::new();
        };
        let threads: Vec<Thread> = views
            .iter()
            .map(|v| Thread {
                slot: v.slot,
                pos: v.pos,
                at: begins(memory, v),
                events: v.events,
                doing: doing(g, memory, v),
            })
            .collect();
        let seen = self.watch.circles.entry(pid).or_default();
        seen.look(course, &threads)
    }

    /// Do threads of all followers, two at least, stand in these places?
    fn stand_alike(&mut self, followers: &[(usize, Pid)], places: &[(u32, u64)]) -> bool {
        let at = |views: &[View], place: &(u32, u64)| {
            let mut of_slot = views.iter().filter(|v| (v.slot, v.pos) == *place);
            of_slot.any(|v| !matches!(v.waiting, wait::NONE | wait::RECORD))
        };
        followers.len() > 1
            && followers.iter().all(|(_, pid)| {
                let views = self.views(*pid);
                places.iter().all(|place| at(&views, place))
            })
    }
}

/// What a thread does.
fn doing(g: &Group, memory: &RemoteMemory, v: &View) -> Doing {
    let state = state(v.tid);
    let is_stopped = !matches!(state, Some('S' | 'R'));
    let sleeps = state == Some('S');
    let end = g.segment.ring(v.slot as usize).head.load(Ordering::Acquire);
    match v.waiting {
        _ if is_stopped => Doing::Runs,
        wait::TURN if turn_has_come(memory, v) => Doing::Runs,
        wait::TURN | wait::ORDER => Doing::Awaits,
        wait::VALUE | wait::WORD => Doing::Sleeps,
        wait::KERNEL if sleeps && v.waiting_for == libc::SYS_futex as u64 => Doing::Sleeps,
        wait::RECORD if v.pos >= end => Doing::Idles,
        _ => Doing::Runs,
    }
}

/// Where the record begins that a thread is at.
fn begins(memory: &RemoteMemory, v: &View) -> u64 {
    let standing = block_address(v.slot as usize) + block_field!(standing);
    match v.waiting {
        wait::TURN => memory.word(standing).unwrap_or(v.pos).min(v.pos),
        _ => v.pos,
    }
}

/// May the thread go on, and has not had a core yet? (Or it was not there any more when it was looked at.)
fn turn_has_come(memory: &RemoteMemory, v: &View) -> bool {
    let block = block_address(v.slot as usize);
    let still = memory.word(block + block_field!(waiting_for));
    let clock = memory.word(v.waiting_for);
    let (Ok(still), Ok(clock)) = (still, clock) else {
        return true;
    };
    // (Half of all values are behind it: a clock wraps.)
    let is_past = (clock as u32).wrapping_sub(v.waiting_value as u32) <= u32::MAX / 2;
    is_past || still != v.waiting_for
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: Pid = 100;

    /// A log whose ends were seen so, one after the other.
    fn course(ends: &[&[u64]]) -> Course {
        let mut c = Course::default();
        for (k, ends) in (0..).zip(ends) {
            c.sample(LEADER, k, Vec::new(), ends.to_vec());
        }
        c
    }

    fn thread(slot: u32, pos: u64, doing: Doing) -> Thread {
        Thread {
            slot,
            pos,
            at: pos,
            events: pos,
            doing,
        }
    }

    /// After how many rounds is a follower found, with these threads in each?
    fn found(c: &Course, threads: impl Fn(u64) -> Vec<Thread>) -> Option<(u64, Vec<(u32, u64)>)> {
        let mut circle = Circle::default();
        let mut rounds = (0..1_000).map(|k| (k, circle.look(c, &threads(k))));
        rounds.find(|(_, places)| !places.is_empty())
    }

    /// The leader has published what 1 and 2 stand before, then 3 has gone on.
    fn ticking() -> Course {
        course(&[
            &[0, 9, 9, 9],
            &[0, 20, 20, 20],
            &[0, 30, 30, 30],
            &[0, 30, 30, 9_000],
        ])
    }

    #[test]
    fn who_ticks_does_not_hide_a_circle() {
        let stand = |k| {
            let ticks = thread(3, 31 + k, Doing::Runs);
            vec![
                thread(1, 12, Doing::Awaits),
                thread(2, 14, Doing::Awaits),
                ticks,
            ]
        };
        let places = vec![(1, 12), (2, 14)];
        assert_eq!(found(&ticking(), stand), Some((8, places)));
        // It holds a lock in its own memory that one of them is to have.
        let sleeps = |k| {
            let ticks = thread(3, 31 + k, Doing::Runs);
            vec![
                thread(1, 12, Doing::Awaits),
                thread(2, 14, Doing::Sleeps),
                ticks,
            ]
        };
        assert!(found(&ticking(), sleeps).is_some());
    }

    #[test]
    fn who_has_not_come_to_what_was_published_by_then_may_bring_them_on() {
        let with = |doing, pos| {
            found(&ticking(), move |k| {
                let third = thread(3, pos + k % 2, doing);
                vec![thread(1, 12, Doing::Awaits), third]
            })
        };
        assert_eq!(with(Doing::Runs, 25), None);
        assert_eq!(with(Doing::Runs, 29), None);
        assert_eq!(with(Doing::Awaits, 25), None);
        assert!(with(Doing::Runs, 31).is_some());
    }

    #[test]
    fn who_computes_behind_the_last_record_has_still_to_unlock() {
        let at_end = |doing| {
            found(&ticking(), move |_| {
                vec![thread(1, 12, Doing::Awaits), thread(3, 30, doing)]
            })
        };
        assert_eq!(at_end(Doing::Runs), None);
        assert!(at_end(Doing::Idles).is_some());
    }

    #[test]
    fn ends_that_were_read_one_after_the_other_are_not_believed() {
        // 3 published 10 when its end had been read, before 1 published 12.
        let c = course(&[&[0, 9, 0, 9], &[0, 20, 0, 9], &[0, 20, 0, 30]]);
        let third = |pos| {
            found(&c, move |_| {
                vec![thread(1, 12, Doing::Awaits), thread(3, pos, Doing::Runs)]
            })
        };
        assert_eq!(third(11), None);
        assert!(third(31).is_some());
    }

    #[test]
    fn who_gets_on_stands_in_no_circle() {
        let c = ticking();
        assert_eq!(
            found(&c, |k| vec![
                thread(1, 10 + k / 6 % 9, Doing::Awaits),
                thread(2, 14, Doing::Sleeps)
            ]),
            None
        );
        // Nobody waits for a turn.
        assert_eq!(
            found(&c, |_| vec![
                thread(1, 12, Doing::Sleeps),
                thread(2, 14, Doing::Sleeps)
            ]),
            None
        );
        // There is no record yet.
        assert_eq!(found(&c, |_| vec![thread(1, 30, Doing::Awaits)]), None);
    }
}
