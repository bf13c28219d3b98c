//! The watchdog: finds replicas that make no progress although there is something to do. Long
//! honest computation (processor time is used) and long blocking calls (the leader is in the
//! kernel) are never mistaken for it.

use crate::block_field;
use crate::run::Monitor;
use crate::state::GroupId;
use anyhow::Result;
use geryon_abi::layout::{BLOCK_BYTES, BLOCKS_BASE, wait};
use geryon_tracee::Pid;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A replica whose threads all wait and do not get on for so long is stuck.
const STUCK: Duration = Duration::from_secs(4);
/// A report that no other replica has confirmed or refuted for so long is decided without it.
const UNDECIDED: Duration = Duration::from_secs(10);
/// A thread may use this much more processor time than its leader did, before it counts as hung.
const SPARE_TICKS: u64 = 1_000;

/// What was seen last.
#[derive(Default)]
pub struct Watch {
    seen: HashMap<Pid, Seen>,
    ending: HashSet<GroupId>,
    last: Option<Instant>,
}

struct Seen {
    events: u64,
    since: Instant,
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

impl Watch {
    /// The group's leader is about to die of a signal: that is the program's end.
    pub fn expect_end(&mut self, group: GroupId) {
        self.ending.insert(group);
    }

    pub(crate) fn ends(&self, group: GroupId) -> bool {
        self.ending.contains(&group)
    }
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
        let slots = self.threads.values().filter(|t| t.pid == pid).count();
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
        self.decide_reports()?;
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
            self.watch_group(id)?;
        }
        Ok(())
    }

    /// The program is over: followers whose leader is gone, or was never born, have nothing to do.
    fn end_orphans(&mut self) {
        if self.outcome.is_none() {
            return;
        }
        for g in self
            .groups
            .values()
            .filter(|g| g.members[g.leader].is_none())
        {
            let settled = g.leader_gone.is_none_or(|t| t.elapsed() > STUCK);
            for p in g.members.iter().flatten().filter(|_| settled) {
                geryon_tracee::kill(*p, libc::SIGKILL);
            }
        }
    }

    fn watch_group(&mut self, id: GroupId) -> Result<()> {
        let Some(g) = self.groups.get(&id) else {
            return Ok(());
        };
        let leader = g.leader;
        let members: Vec<(usize, Pid)> = g
            .members
            .iter()
            .enumerate()
            .filter_map(|(r, p)| Some((r, (*p)?)))
            .collect();
        let gone = g.leader_gone;
        if self.leader_hangs(id, leader, &members) {
            return self.stuck(id, leader, "computes without end where the others went on");
        }
        for (replica, pid) in members {
            if replica == leader {
                continue;
            }
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
                return Ok(());
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
                self.stuck(id, replica, "waits for an event that never comes in it")?;
                return Ok(());
            }
            let budget = SPARE_TICKS + 4 * g.members[leader].map_or(0, cpu_ticks);
            if (behind || gone.is_some()) && !blocked && used > budget {
                self.stuck(id, replica, "computes without end where the others went on")?;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Does the leader's thread use processor time without an event while every follower's thread
    /// has come to the next one?
    fn leader_hangs(&mut self, id: GroupId, leader: usize, members: &[(usize, Pid)]) -> bool {
        let Some((_, leader_pid)) = members.iter().find(|(r, _)| *r == leader).copied() else {
            return false;
        };
        let lead = self.views(leader_pid);
        let ticks = cpu_ticks(leader_pid);
        let followers: Vec<Vec<View>> = members
            .iter()
            .filter(|(r, _)| *r != leader)
            .map(|(_, p)| self.views(*p))
            .collect();
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
        let seen = self.watch.seen.entry(leader_pid).or_insert(Seen {
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
    fn decide_reports(&mut self) -> Result<()> {
        let ready: Vec<GroupId> = self
            .groups
            .iter()
            .filter(|(_, g)| !g.reports.is_empty())
            .map(|(i, _)| *i)
            .collect();
        for id in ready {
            self.judge_reports(id, UNDECIDED)?;
        }
        Ok(())
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
