//! Interrupting a thread that computes: its replicas are brought to the same state, wherever that is, and led
//! into their agents from there (`converged.rs` in the agent), where a signal is delivered or the turn is given
//! away. A thread that comes to a call or to a lock needs none of that: it takes its signals there.
//!
//! There is no counter of branches to tell how far a thread has come (virtual machines have none). But threads of
//! one course are where their states are equal, and a state that comes again and again is as good at any
//! time. So one replica's thread stands, and names the point; the others run to the instruction where it stands,
//! again and again by a breakpoint of the processor's, until registers and memory agree. Who is beyond
//! names another point. What their states count tells for how long to run without a breakpoint
//! (`course.rs`).

mod enter;
mod learn;
mod meet;
mod sentry;

use crate::block_field;
use crate::meeting::{Aim, CALLS_SOON, Convergence, Key, LOOK, Meeting, Part, Writing};
use crate::secrets;
use crate::state::{Group, Monitor};
use anyhow::Result;
use geryon_abi::layout::{block_address, wait};
use geryon_tracee::{Pid, Stopped};
use meet::Step;
use std::time::Instant;

/// Why a thread is to be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// A signal waits for it.
    Signal,
    /// Another thread waits for its turn.
    Turn,
}

/// What was found of a thread group.
enum Found {
    /// There is no reason any more.
    Nothing,
    /// Some of its threads are in their agents, or not there yet.
    Busy,
    /// All compute, and stand.
    Computing(Box<Meeting>),
}

/// What a replica's thread does.
#[derive(Debug, PartialEq, Eq)]
enum Doing {
    /// It runs the program's code.
    Computes,
    /// It is in its agent, or has lost the turn.
    Else,
}

impl Monitor {
    /// The leader's thread has something to do that cannot wait for its next call, should that be long in
    /// coming: a signal to take, or else its turn to give away.
    pub(crate) fn interrupt_computation(&mut self, pid: Pid, slot: u32, has_signal: bool) {
        let Some((id, _)) = self.membership(pid) else {
            return;
        };
        if self.kit.programs.is_some() {
            // Threads of different programs are never in the same state.
            return;
        }
        let at = self.running.convergences.0.entry((id, slot));
        let c = at.or_insert_with(|| Convergence {
            since: Instant::now(),
            pos: None,
            due: Instant::now() + CALLS_SOON,
            rests: false,
            failed: 0,
            meeting: None,
        });
        if has_signal {
            c.hurry();
        }
    }

    /// Go on with what is due.
    ///
    /// # Errors
    /// Geryon's own failures.
    pub(crate) fn converge(&mut self) -> Result<()> {
        let keys: Vec<Key> = self.running.convergences.0.keys().copied().collect();
        for key in keys {
            let Some(mut c) = self.running.convergences.0.remove(&key) else {
                continue;
            };
            if self.go_on_converging(key, &mut c)? {
                self.running.convergences.0.insert(key, c);
            }
        }
        Ok(())
    }

    /// A thread stands at a breakpoint: one of the processor's, or an instruction. True: it was set here, and
    /// is dealt with.
    ///
    /// # Errors
    /// ESRCH when it is gone.
    pub(crate) fn on_converging_breakpoint(&mut self, tid: Pid, info: &[u64; 16]) -> Result<bool> {
        let at_sentry = match Stopped(tid).is_breakpoint(info) {
            true => None,
            false => Some(Stopped(tid).regs()?.rip),
        };
        let meetings = self.running.convergences.0.values_mut();
        let mut meetings = meetings.filter_map(|c| c.meeting.as_mut());
        if meetings.any(|m| m.stands_at_breakpoint(tid, at_sentry)) {
            return Ok(true);
        }
        // One that was left behind: nobody waits there.
        let id = self.threads.get(&tid).and_then(|t| self.membership(t.pid));
        let group = id.and_then(|(id, _)| self.groups.get(&id));
        let left_over = at_sentry.is_some_and(|at| group.is_some_and(|g| g.areas.has_sentry(at)));
        if left_over {
            Stopped(tid).resume(0)?;
        }
        Ok(left_over)
    }

    /// False: that is over.
    fn go_on_converging(&mut self, key: Key, c: &mut Convergence) -> Result<bool> {
        let Some(mut m) = c.meeting.take() else {
            if c.due > Instant::now() {
                return Ok(true);
            }
            match self.gather(key, c)? {
                Found::Nothing => return Ok(false),
                Found::Busy => c.due = Instant::now() + LOOK,
                Found::Computing(m) => c.meeting = Some(*m),
            }
            c.rests = false;
            return Ok(true);
        };
        let (aim, leader) = (m.purpose.aim, m.parts[0].pid);
        let step = match self.is_as_gathered(key, &m) {
            // Who is gone is heard of next.
            true => self.meet(&mut m).unwrap_or(Step::Disturbed),
            false => Step::Disturbed,
        };
        let took = m.purpose.began.elapsed();
        let rest = match step {
            Step::Waits => {
                c.meeting = Some(m);
                return Ok(true);
            }
            Step::Met => {
                // Those who sleep would have to be stopped at the same point when they replay.
                self.end_sleepers();
                if aim.is_only_spinning() {
                    // (Who is gone is heard of next.)
                    let _ = self.learn_place(&m);
                }
                self.lead_in(&m);
                c.failed = 0;
                c.since = Instant::now();
                aim.rest_when_met(took)
            }
            Step::Disturbed => {
                self.part(&mut m);
                aim.rest_when_disturbed(took)
            }
            Step::Failed => {
                self.part(&mut m);
                c.failed = c.failed.saturating_add(1);
                if aim.is_worth_a_word(c.since.elapsed()) {
                    self.say("a thread that makes no call has to be interrupted, and its replicas could not be brought to the same state\n  it goes on; the signal, or whoever waits for its turn, waits for its next call");
                }
                aim.rest_when_failed(took, c.failed)
            }
        };
        c.due = Instant::now() + rest;
        // One may have come while they were held.
        c.rests = !aim.is_signal();
        if self.reason(leader, key.1) == Some(Reason::Signal) {
            c.hurry();
        }
        Ok(true)
    }

    /// Look at the thread group, and hold it if all of its threads compute.
    fn gather(&mut self, key: Key, c: &mut Convergence) -> Result<Found> {
        let (id, slot) = key;
        let Some(g) = self.groups.get(&id) else {
            return Ok(Found::Nothing);
        };
        let Some(leader) = g.leader_pid() else {
            return Ok(Found::Nothing);
        };
        if !is_quiet(g) || self.recovers() {
            return Ok(Found::Busy);
        }
        let mut members = vec![(g.leader, leader)];
        members.extend(g.followers());
        let Some(reason) = self.reason(leader, slot) else {
            return Ok(Found::Nothing);
        };
        let mut parts = Vec::new();
        for (replica, pid) in members {
            let Some((tid, pos, doing)) = self.looked_at(pid, slot) else {
                return Ok(Found::Busy);
            };
            let first = parts.first().map_or(pos, |p: &Part| p.pos);
            if doing != Doing::Computes || pos != first {
                return Ok(Found::Busy);
            }
            parts.push(Part {
                replica,
                pid,
                tid,
                pos,
                writing: self.writing(pid),
            });
        }
        let mut held = Vec::new();
        if !self
            .hold_computing(&parts, slot, &mut held)
            .unwrap_or(false)
        {
            // The leader's may have come to a call, which is cut short.
            self.note_halt(leader, &held[..held.len().min(1)]);
            self.release(&held);
            return Ok(Found::Busy);
        }
        let alone = self.threads_of(leader) == 1;
        let in_parallel = !alone && !self.is_serial();
        let aim = match reason {
            Reason::Signal => Aim::Signal,
            Reason::Turn => Aim::turn(c.failed),
        };
        c.is_found_at(parts[0].pos);
        let meeting = Meeting::new(parts, alone, in_parallel, aim, c.since.elapsed());
        Ok(Found::Computing(Box::new(meeting)))
    }

    /// Stop these threads. True: all stand, and compute.
    fn hold_computing(&mut self, parts: &[Part], slot: u32, held: &mut Vec<Pid>) -> Result<bool> {
        for part in parts {
            if !self.hold(part.tid)? {
                return Ok(false);
            }
            held.push(part.tid);
            if !self.leave_trampoline(part)? || !self.is_computing(part, slot)? {
                return Ok(false);
            }
        }
        // Other stops were served meanwhile.
        Ok(self.all_compute(parts, slot)? && self.reason(parts[0].pid, slot).is_some())
    }

    fn all_compute(&mut self, parts: &[Part], slot: u32) -> Result<bool> {
        for part in parts {
            if !self.is_computing(part, slot)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does a signal wait for the leader's thread, or another thread for its turn?
    fn reason(&mut self, leader: Pid, slot: u32) -> Option<Reason> {
        let at = block_address(slot as usize);
        let m = self.memory(leader).ok()?;
        let is_set = |field| m.word(at + field).is_ok_and(|w| w as u32 != 0);
        if is_set(block_field!(pending_count)) {
            Some(Reason::Signal)
        } else {
            is_set(block_field!(starves)).then_some(Reason::Turn)
        }
    }

    /// The thread in this slot: its id, where it is in the log, and what it does.
    fn looked_at(&mut self, pid: Pid, slot: u32) -> Option<(Pid, u64, Doing)> {
        let at = block_address(slot as usize);
        let m = self.memory(pid).ok()?;
        let word = |field| m.word(at + field).ok();
        let pos = word(block_field!(pos))?;
        let tid = word(block_field!(own_tid))? as u32 as Pid;
        let is_idle = word(block_field!(frame))? == 0
            && word(block_field!(hook_rsp))? == 0
            && word(block_field!(suspend))? as u32 == 0
            && word(block_field!(waiting))? as u32 == wait::NONE
            && word(block_field!(robbed))? as u32 == 0
            && word(block_field!(vforked))? as u32 == 0;
        let doing = match is_idle {
            true => Doing::Computes,
            false => Doing::Else,
        };
        self.threads.get(&tid).filter(|t| t.pid == pid && !t.ends)?;
        Some((tid, pos, doing))
    }

    /// How a process writes what all replicas mean.
    fn writing(&self, pid: Pid) -> Writing {
        let memory = self.processes.get(&pid).and_then(|p| p.memory.as_ref());
        let [shown, own] = memory.map(secrets::of).unwrap_or_default();
        Writing {
            layout: self.layout(pid),
            shown,
            own,
        }
    }

    /// Does a thread that stands still run the program's own code, where it was in the log?
    fn is_computing(&mut self, part: &Part, slot: u32) -> Result<bool> {
        let regs = Stopped(part.tid).regs()?;
        let id = self.membership(part.pid).map(|(id, _)| id);
        let in_trampoline = id
            .and_then(|id| self.groups.get(&id))
            .is_none_or(|g| g.areas.contain(regs.rip));
        // Its handler is about to run, and what it stands at is where that returns to.
        let takes_signal = self.threads.get(&part.tid).is_none_or(|t| t.takes_signal());
        let there = (part.tid, part.pos, Doing::Computes);
        Ok(!self.in_agent(part.tid)?
            && !in_trampoline
            && !takes_signal
            && self.looked_at(part.pid, slot) == Some(there))
    }

    /// Is nobody gone, and nothing to be decided first?
    fn is_as_gathered(&self, (id, _): Key, m: &Meeting) -> bool {
        let Some(g) = self.groups.get(&id).filter(|g| is_quiet(g)) else {
            return false;
        };
        if self.recovers() {
            return false;
        }
        let parts = &m.parts;
        g.living().count() == parts.len()
            && g.leader == parts[0].replica
            && parts.iter().all(|p| {
                let lives = self.threads.get(&p.tid).is_some_and(|t| !t.ends);
                lives && g.members[p.replica].pid == Some(p.pid)
            })
    }
}

/// Is nobody lost, and no verdict open?
fn is_quiet(g: &Group) -> bool {
    g.takeover.is_none() && !g.dispute.is_open() && !g.ending
}
