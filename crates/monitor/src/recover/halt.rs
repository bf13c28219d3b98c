//! Stopping all threads of a process for a moment, wherever they are, and letting them go again.
//!
//! A process that a signal for job control has stopped says by such a stop, too, that it goes on. (The kernel reports an
//! interruption of one that is still stopped with that signal.)

use crate::block_field;
use crate::state::Monitor;
use anyhow::Result;
use geryon_tracee::{Event, Pid, Stop, Stopped, await_report, poll_for};
use std::time::{Duration, Instant};

/// No thread is kept stopped longer for another one that does not stop.
const PATIENCE: Duration = Duration::from_millis(20);
/// Who has a core to himself stops within that time; others may be waiting for ours.
const SPIN: Duration = Duration::from_micros(50);
/// Who has a core to himself but was asleep stops within that time; whoever is waiting for ours gets it.
const WAKEFUL: Duration = Duration::from_micros(300);
/// How often it is looked in any case.
const LOOK: Duration = Duration::from_millis(1);

impl Monitor {
    /// Stop every thread of the process. None when one did not stop in time, or something happened
    /// that has to be dealt with first; then all run again.
    pub(crate) fn halt(&mut self, pid: Pid) -> Result<Option<Vec<Pid>>> {
        let start = Instant::now();
        let mut halted: Vec<Pid> = Vec::new();
        loop {
            let running: Vec<Pid> = self
                .threads
                .iter()
                .filter(|(t, th)| th.pid == pid && !halted.contains(t))
                .map(|(t, _)| *t)
                .collect();
            if running.is_empty() {
                break;
            }
            for tid in &running {
                // One that is gone reports its end below.
                let _ = Stopped(*tid).interrupt();
            }
            for tid in running {
                loop {
                    match poll_for(tid) {
                        Ok(Some(Stop::Event(_, Event::Stop(libc::SIGTRAP)))) => {
                            self.is_halted(tid);
                            halted.push(tid);
                            break;
                        }
                        Ok(Some(other)) => {
                            // It came first and has used the interruption up.
                            self.on_stop(other)?;
                            break;
                        }
                        Ok(None) if start.elapsed() < SPIN => std::hint::spin_loop(),
                        // (Who sleeps is woken some 50 us after what has happened.)
                        Ok(None) if start.elapsed() < WAKEFUL => std::thread::yield_now(),
                        Ok(None) if start.elapsed() < PATIENCE => await_report(LOOK),
                        Ok(None) | Err(_) => {
                            self.note_halt(pid, &halted);
                            self.release(&halted);
                            return Ok(None);
                        }
                    }
                }
            }
            if self.outcome.is_some() {
                self.note_halt(pid, &halted);
                self.release(&halted);
                return Ok(None);
            }
        }
        self.note_halt(pid, &halted);
        Ok(Some(halted))
    }

    /// Stop a thread. False: it did not stop in time, or it is gone.
    pub(crate) fn hold(&mut self, tid: Pid) -> Result<bool> {
        let start = Instant::now();
        while self.threads.contains_key(&tid)
            && self.outcome.is_none()
            && Stopped(tid).interrupt().is_ok()
        {
            loop {
                match poll_for(tid) {
                    Ok(Some(Stop::Event(_, Event::Stop(libc::SIGTRAP)))) => {
                        self.is_halted(tid);
                        return Ok(true);
                    }
                    Ok(Some(other)) => {
                        // It came first and has used the interruption up.
                        self.on_stop(other)?;
                        break;
                    }
                    Ok(None) if start.elapsed() < SPIN => std::hint::spin_loop(),
                    Ok(None) if start.elapsed() < PATIENCE => await_report(LOOK),
                    Ok(None) | Err(_) => return Ok(false),
                }
            }
        }
        Ok(false)
    }

    /// A thread stands halted. If it was stopped by a signal before, it is not any more.
    fn is_halted(&mut self, tid: Pid) {
        if let Some(t) = self.threads.get_mut(&tid)
            && std::mem::take(&mut t.listens)
        {
            let pid = t.pid;
            self.job_changes(pid, None);
        }
    }

    /// A call of the leader's that is cut short by an interruption is completed by its agent.
    pub(crate) fn note_halt(&mut self, pid: Pid, halted: &[Pid]) {
        if !self
            .membership(pid)
            .is_some_and(|(id, r)| self.leads(id, r))
        {
            return;
        }
        let block = |t: &Pid| self.kit.image.block_of(&Stopped(*t).regs().ok()?);
        let blocks: Vec<u64> = halted.iter().filter_map(block).collect();
        let Ok(memory) = self.memory(pid) else {
            return;
        };
        for block in blocks {
            // One that is gone needs it no more.
            let _ = memory.write(block + block_field!(halted), &1u32.to_le_bytes());
        }
    }

    /// Let them go; the kernel restarts what it interrupted.
    pub(crate) fn release(&self, threads: &[Pid]) {
        for t in threads {
            let _ = Stopped(*t).resume(0);
        }
    }
}
