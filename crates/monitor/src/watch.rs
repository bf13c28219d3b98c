//! The watchdog: finds replicas that make no progress although there is something to do. Long
//! honest computation (processor time is used) and long blocking calls (the leader is in the
//! kernel) are never mistaken for it.

use crate::block_field;
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_abi::layout::{BLOCK_BYTES, BLOCKS_BASE, wait};
use geryon_tracee::Pid;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A replica whose threads all wait and do not get on for so long is stuck.
const STUCK: Duration = Duration::from_secs(4);
/// A report that no other replica has confirmed or refuted for so long is decided without it.
const UNDECIDED: Duration = Duration::from_secs(10);
/// A thread may use this much more processor time than its leader did, before it counts as hung.
const SPARE_TICKS: u64 = 1_000;
/// What is said of a replica that uses processor time and comes to nothing.
const ENDLESS: &str = "computes without end where the others went on";

/// The watchdog's memory.
#[derive(Default)]
pub struct Watch {
    /// What was seen of each process.
    seen: HashMap<Pid, Seen>,
    /// When it looked last.
    last: Option<Instant>,
}

/// What was seen of a process when it last got on.
struct Seen {
    /// Records of all its threads.
    events: u64,
    /// When there were first so many.
    since: Instant,
    /// Processor time it had used by then.
    ticks: u64,
}

/// A thread of a replica, as its block shows it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Thread group.
    pub slot: u32,
    /// See `geryon_abi::layout::wait`.
    pub waiting: u32,
    /// What for.
    pub waiting_for: u64,
    /// Which value.
    pub waiting_value: u64,
    /// Position in the ring.
    pub pos: u64,
    /// Records so far.
    pub events: u64,
    /// The last records.
    pub last: [u64; 16],
    /// Host thread id.
    pub tid: Pid,
}

/// Processor time of a process in clock ticks.
pub fn cpu_ticks(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit_once(')').map_or("", |r| r.1);
    let f: Vec<&str> = rest.split_whitespace().collect();
    let get = |i: usize| f.get(i).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
    get(11) + get(12)
}

impl Monitor {
    /// The living threads of a process, from its blocks.
    pub(crate) fn views(&mut self, pid: Pid) -> Vec<View> {
        let slots = self.threads_of(pid);
        let mut out = Vec::new();
        let Ok(m) = self.memory(pid) else { return out };
        // Slots are dense; look a little beyond the number of threads.
        for slot in 0..(slots * 2 + 8).min(geryon_abi::layout::MAX_THREADS) {
            let b = BLOCKS_BASE + BLOCK_BYTES * slot as u64;
            let word = |o: u64| m.word(b + o).unwrap_or(0);
            if word(block_field!(this)) == 0 || word(block_field!(free)) as u32 != 0 {
                continue;
            }
            out.push(View {
                slot: slot as u32,
                waiting: word(block_field!(waiting)) as u32,
                waiting_for: word(block_field!(waiting_for)),
                waiting_value: word(block_field!(waiting_value)),
                pos: word(block_field!(pos)),
                events: word(block_field!(events)),
                last: m.words(b + block_field!(last)).unwrap_or([0; 16]),
                tid: word(block_field!(own_tid)) as Pid,
            });
        }
        out
    }

    /// One round.
    pub(crate) fn watch(&mut self) -> Result<()> {
        self.decide_reports();
        self.decide_crashes()?;
        if self
            .watch
            .last
            .is_some_and(|l| l.elapsed() < Duration::from_millis(500))
        {
            return Ok(());
        }
        self.watch.last = Some(Instant::now());
        self.end_orphans();
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in groups {
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
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let leader = g.leader;
        let leader_pid = g.leader_pid();
        let followers: Vec<(usize, Pid)> = g.followers().collect();
        let gone = g.leader_gone;
        if leader_pid.is_some_and(|l| self.leader_hangs(id, l, &followers)) {
            self.stuck(id, leader, ENDLESS);
            return;
        }
        for (replica, pid) in followers {
            let views = self.views(pid);
            let ticks = cpu_ticks(pid);
            let events = views.iter().map(|v| v.events).sum();
            let now = Instant::now();
            let seen = self.watch.seen.entry(pid).or_insert(Seen {
                events,
                since: now,
                ticks,
            });
            if seen.events != events {
                *seen = Seen {
                    events,
                    since: now,
                    ticks,
                };
                continue;
            }
            let (since, used) = (seen.since, ticks.saturating_sub(seen.ticks));
            if since.elapsed() < STUCK {
                continue;
            }
            let Some(g) = self.groups.get(&id) else {
                return;
            };
            let has_record =
                |v: &View| g.segment.ring(v.slot as usize).head.load(Ordering::Acquire) > v.pos;
            let in_agent = |v: &View| {
                matches!(v.waiting, wait::TURN | wait::VALUE | wait::DIVERGED)
                    || (v.waiting == wait::RECORD && !has_record(v))
            };
            let blocked = views
                .iter()
                .all(|v| in_agent(v) || v.waiting == wait::KERNEL);
            let due = views
                .iter()
                .any(|v| matches!(v.waiting, wait::TURN | wait::VALUE));
            let behind = views.iter().any(&has_record);
            if blocked && (due || behind) && g.reports.iter().all(|r| r.replica != replica) {
                self.stuck(id, replica, "waits for an event that never comes in it");
                return;
            }
            let budget = SPARE_TICKS + 4 * leader_pid.map_or(0, cpu_ticks);
            if (behind || gone.is_some()) && !blocked && used > budget {
                self.stuck(id, replica, ENDLESS);
                return;
            }
        }
    }

    /// Does the leader's thread use processor time without an event while every follower's thread
    /// has come to the next one?
    fn leader_hangs(&mut self, id: GroupId, leader: Pid, followers: &[(usize, Pid)]) -> bool {
        let lead = self.views(leader);
        let ticks = cpu_ticks(leader);
        let followers: Vec<Vec<View>> = followers.iter().map(|(_, p)| self.views(*p)).collect();
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let ahead = |v: &View| {
            let head = g.segment.ring(v.slot as usize).head.load(Ordering::Acquire);
            !followers.is_empty()
                && followers.iter().all(|f| {
                    f.iter()
                        .any(|x| x.slot == v.slot && x.waiting == wait::RECORD && x.pos >= head)
                })
        };
        let waited_for = lead.iter().any(|v| v.waiting == wait::NONE && ahead(v));
        let events = lead.iter().map(|v| v.events).sum();
        let now = Instant::now();
        let seen = self.watch.seen.entry(leader).or_insert(Seen {
            events,
            since: now,
            ticks,
        });
        if !waited_for || seen.events != events {
            *seen = Seen {
                events,
                since: now,
                ticks,
            };
        }
        ticks.saturating_sub(seen.ticks) > SPARE_TICKS
    }

    /// Reports whose verdict is possible by now.
    fn decide_reports(&mut self) {
        let ready: Vec<GroupId> = self
            .groups
            .iter()
            .filter(|(_, g)| !g.reports.is_empty())
            .map(|(i, _)| *i)
            .collect();
        for id in ready {
            self.judge_reports(id, UNDECIDED);
        }
    }

    fn decide_crashes(&mut self) -> Result<()> {
        let ready: Vec<GroupId> = self
            .groups
            .iter()
            .filter(|(_, g)| !g.crashes.is_empty())
            .map(|(i, _)| *i)
            .collect();
        for id in ready {
            self.judge_crashes(id, STUCK)?;
        }
        Ok(())
    }
}
