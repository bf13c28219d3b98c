//! Fatal signals: what is known of those that got one, and of those that did not; and what is done.

use super::loss::Loss;
use crate::block_field;
use crate::journal::Event;
use crate::report::words::signal_name;
use crate::state::{Crash, GroupId, Monitor};
use anyhow::Result;
use geryon_abi::layout::{MAX_THREADS, block_address, wait};
use geryon_tracee::{Pid, Stopped, core_of, kill, thread_ticks};
use geryon_vote::crash::{self, Crashed, Votes};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Monitor {
    /// A replica died of its own fault; perhaps the others will, too.
    pub(crate) fn on_crash(&mut self, id: GroupId, mut crash: Crash) -> Result<()> {
        if self.is_dropped(crash.replica) || self.ends(id) {
            return Ok(());
        }
        let pid = self.threads.get(&crash.tid).map_or(0, |t| t.pid);
        let at = self.position(pid, crash.slot);
        let pos = at.as_ref().map_or(u64::MAX, |p| p.pos);
        crash.in_agent = crash.broken || at.is_some_and(|p| p.waiting != wait::NONE);
        if let Some(g) = self.groups.get_mut(&id) {
            // What the leader has not published nobody can wait for.
            let head = g
                .segment
                .ring(crash.slot as usize)
                .head
                .load(Ordering::Acquire);
            crash.pos = if crash.replica == g.leader {
                head
            } else {
                pos.min(head)
            };
            if g.dispute.crashes.iter().any(|c| c.tid == crash.tid) {
                // It was let go meanwhile, and has come to the same again: that is no vote of another replica.
                return self.judge_crashes(id, false);
            }
            let at = (crash.slot, crash.pos, crash.pc_name);
            let follows = crash.in_agent && crash.replica != g.leader;
            let now = follows.then_some((crash.replica, at));
            let (last, is_again) = crash::crashes_again(g.dispute.agent_crash, now);
            g.dispute.agent_crash = last;
            g.dispute.crashes.push(crash);
            if is_again {
                // The leader's word cannot be trusted, and none of the others can go on.
                self.give_up("stopped: what the leader has logged makes the others crash");
                return Ok(());
            }
        }
        self.judge_crashes(id, false)
    }

    /// Decide the oldest crash of a group, if it can be decided.
    pub(crate) fn judge_crashes(&mut self, id: GroupId, expired: bool) -> Result<()> {
        let Some((first, crash)) = self.oldest_crash(id, expired) else {
            return Ok(());
        };
        match crash.rule() {
            Crashed::Wait => {}
            Crashed::AskReplay => self.have_replayed(id),
            Crashed::AtItsEnd => self.crashed_at_its_end(id, &first),
            Crashed::InAgent => {
                let what = self.signal_at(&first);
                self.give_up(&format!(
                    "stopped: {what} in the agent, and no other replica is left that could go on"
                ));
            }
            Crashed::Program => return self.end_alike(id),
            Crashed::Alone => self.crashed_alone(id, &first),
            Crashed::Doubtful(leader) => {
                let what = self.signal_at(&first);
                self.stop_in_doubt(leader, &did_not_get(&what));
            }
            Crashed::Others(others) => {
                let what = did_not_get(&self.signal_at(&first));
                eprint!("{}", self.whose_address(id, first.replica, first.address));
                for other in others {
                    if self.outcome.is_none() {
                        self.broken(id, other, &what);
                    }
                }
            }
        }
        Ok(())
    }

    /// Which signal, and where.
    fn signal_at(&mut self, crash: &Crash) -> String {
        let signal = signal_name(crash.signal);
        format!("{signal} at {}", self.place(crash.tid, crash.pc))
    }

    /// What is known of the oldest crash of a group; None: there is none, or it is not to be judged now.
    fn oldest_crash(&mut self, id: GroupId, expired: bool) -> Option<(Crash, crash::Crash)> {
        let g = self.groups.get(&id).filter(|g| !g.ending)?;
        if self.is_replayed_again(id) {
            return None;
        }
        let first = g.dispute.crashes.first().cloned()?;
        let what = |c: &Crash| (c.slot, c.signal, c.pc_name);
        let alike = g.dispute.crashes.iter().filter(|c| what(c) == what(&first));
        let alike: Vec<usize> = alike.map(|c| c.replica).collect();
        let (total, ended, leader) = (g.voters(), g.ended(), g.leader);
        let living: Vec<(usize, Pid)> = g.living().collect();
        let others = living.iter().filter(|(r, _)| !alike.contains(r));
        let others: Vec<(usize, Pid)> = others.copied().collect();
        let passed = others
            .iter()
            .filter(|(r, p)| self.has_gone_past(id, *r, *p, &first))
            .count();
        let crash = crash::Crash {
            votes: Votes {
                total,
                living: living.len(),
                alike: alike.len(),
                passed,
                ended,
                in_agent: first.in_agent,
            },
            expired,
            is_at_end: self.confirmed_exit(id).is_some(),
            is_broken: first.broken,
            others: others.into_iter().map(|o| o.0).collect(),
            leader,
            case: self.case(id, true)?,
        };
        Some((first, crash))
    }

    /// Has the replica come past the point at which another one crashed?
    fn has_gone_past(&mut self, id: GroupId, replica: usize, pid: Pid, crash: &Crash) -> bool {
        let Some(at) = self.position(pid, crash.slot) else {
            return false;
        };
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        if replica == g.leader {
            let head = g
                .segment
                .ring(crash.slot as usize)
                .head
                .load(Ordering::Acquire);
            head > crash.pos || at.is_at_next_call()
        } else {
            at.pos > crash.pos || (at.pos == crash.pos && at.waiting == wait::RECORD)
        }
    }

    /// Where a thread of a process is in its log.
    fn position(&mut self, pid: Pid, slot: u32) -> Option<Position> {
        if slot as usize >= MAX_THREADS {
            return None;
        }
        let block = block_address(slot as usize);
        let m = self.memory(pid).ok()?;
        let word = |field: u64| m.word(block + field).ok();
        (word(block_field!(this))? == block).then_some(())?;
        Some(Position {
            pos: word(block_field!(pos))?,
            waiting: word(block_field!(waiting))? as u32,
            waiting_for: word(block_field!(waiting_for))?,
            waiting_value: word(block_field!(waiting_value))?,
        })
    }

    fn crashed_alone(&mut self, id: GroupId, crash: &Crash) {
        // (In the agent it may be what the leader has logged that makes it crash.)
        if !self.leads(id, crash.replica) && !crash.in_agent {
            self.note_outvoted(crash.replica);
        }
        let what = format!(
            "replica {} got signal {} ({}) at {} (address {:#x}) and the others did not",
            crash.replica + 1,
            crash.signal,
            signal_name(crash.signal),
            self.place(crash.tid, crash.pc),
            crash.address
        );
        let backtrace = self.backtrace_of(crash.tid, None);
        let mut text = format!("geryon: divergence: {what}\n");
        text += &self.whose_address(id, crash.replica, crash.address);
        for f in &backtrace {
            let _ = writeln!(text, "geryon:       {f}");
        }
        self.settle_loss(Loss {
            group: id,
            replica: crash.replica,
            cause: what,
            text,
            backtrace,
            certain: true,
            cores: core_of(crash.tid).into_iter().collect(),
            own_fault: true,
        });
    }

    /// The leader crashes on its way out, when the others have ended already: it ends as they did.
    fn crashed_at_its_end(&mut self, id: GroupId, crash: &Crash) {
        let why = format!(
            "replica {} got {} at {} when its end was agreed on already",
            crash.replica + 1,
            signal_name(crash.signal),
            self.place(crash.tid, crash.pc),
        );
        self.say(&why);
        self.console.journal.tell(&Event::FaultSeen {
            replica: Some(crash.replica),
            cores: core_of(crash.tid).into_iter().collect(),
            why,
        });
        if let Some(g) = self.groups.get_mut(&id) {
            g.dispute.crashes.clear();
        }
        if let Some(t) = self.threads.get(&crash.tid) {
            kill(t.pid, libc::SIGKILL);
        }
    }

    /// Has nobody who could still come to the point of the oldest crash done anything since?
    pub(crate) fn crash_expired(&mut self, id: GroupId) -> bool {
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let has_crashed = |r: usize| g.dispute.crashes.iter().any(|c| c.replica == r);
        let others: Vec<Pid> = g
            .living()
            .filter(|(r, _)| !has_crashed(*r))
            .map(|(_, p)| p)
            .collect();
        let done = others
            .into_iter()
            .map(|p| self.done_by(p))
            .fold(0, u64::wrapping_add);
        let Some(g) = self.groups.get_mut(&id) else {
            return false;
        };
        let Some(first) = g.dispute.crashes.first_mut() else {
            return false;
        };
        if first.others_done != done {
            first.others_done = done;
            first.when = Instant::now();
        }
        first.when.elapsed() > crate::watch::STUCK
    }

    /// Changes whenever a process gets on: its records, and the processor time of threads that compute. (One that waits
    /// in the agent wakes up now and then, and looks again.)
    fn done_by(&mut self, pid: Pid) -> u64 {
        self.views(pid)
            .iter()
            .map(|v| {
                let computed = match v.waiting {
                    wait::NONE => thread_ticks(pid, v.tid),
                    _ => 0,
                };
                v.events.wrapping_add(v.pos).wrapping_add(computed)
            })
            .fold(0, u64::wrapping_add)
    }

    /// The leader takes its fatal signal, natively as the program would; the followers are over.
    fn end_alike(&mut self, id: GroupId) -> Result<()> {
        let leading = self.groups.get(&id).and_then(|g| {
            let crash = g.dispute.crashes.iter().find(|c| c.replica == g.leader)?;
            Some((g.leader_pid()?, crash.tid))
        });
        let guest = leading.filter(|(_, tid)| self.is_guest(*tid));
        if let Some((pid, tid)) = leading.filter(|_| guest.is_none()) {
            self.compare_at_crash(pid, tid);
            if self.outcome.is_some() {
                return Ok(());
            }
        }
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(());
        };
        if let Some((_, tid)) = guest
            && let Some(c) = g.dispute.crashes.iter().find(|c| c.tid == tid).cloned()
        {
            // The program's process goes on without its vfork's child. (At its end those of the others are ended.)
            g.dispute.crashes.retain(|other| other.slot != c.slot);
            return Ok(Stopped(tid).resume(c.signal)?);
        }
        g.ending = true;
        for (_, f) in g.followers() {
            kill(f, libc::SIGKILL);
        }
        if let Some(c) = g.dispute.crashes.iter().find(|c| c.replica == g.leader) {
            Stopped(c.tid).resume(c.signal)?;
        }
        Ok(())
    }
}

/// What is said of one that has come past a signal.
fn did_not_get(signal_at: &str) -> String {
    format!("did not get {signal_at} where the others did")
}

/// Where a thread is in its log.
struct Position {
    pos: u64,
    waiting: u32,
    waiting_for: u64,
    waiting_value: u64,
}

impl Position {
    /// Is the leader's thread at a call that it will log when it is over?
    fn is_at_next_call(&self) -> bool {
        // How often a lock's futex is waited for is not logged: such a wait names its word.
        let is_unlogged = self.waiting_for == libc::SYS_futex as u64 && self.waiting_value != 0;
        matches!(self.waiting, wait::CONFIRM | wait::ROOM)
            || (self.waiting == wait::KERNEL && !is_unlogged)
    }
}

#[cfg(test)]
mod tests {
    use super::Position;
    use geryon_abi::layout::wait;

    #[test]
    fn who_waits_in_a_call_that_is_logged_has_come_to_it() {
        let is_at_next = |waiting, nr: i64, value| {
            let at = Position {
                pos: 20,
                waiting,
                waiting_for: nr as u64,
                waiting_value: value,
            };
            at.is_at_next_call()
        };
        assert!(is_at_next(wait::KERNEL, libc::SYS_read, 0));
        assert!(is_at_next(wait::KERNEL, libc::SYS_futex, 0));
        assert!(is_at_next(wait::CONFIRM, 0, 0));
        // A lock's word.
        assert!(!is_at_next(wait::KERNEL, libc::SYS_futex, 0x1000));
        assert!(!is_at_next(wait::NONE, 0, 0));
    }
}
