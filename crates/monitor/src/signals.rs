//! Signals of the replicas: what comes to a leader waits for its next safe point and is logged there; followers have it from the log.

use crate::block_field;
use crate::state::{Crash, GroupId, Monitor};
use crate::takeover::bare;
use anyhow::Result;
use geryon_abi::layout::{BLOCK_BYTES, BLOCKS_BASE, MAX_PENDING, MAX_THREADS};
use geryon_tracee::{Pid, Regs, Stopped};
use std::time::Instant;

mod delivery;
mod disposition;
mod info;
mod own;
mod together;

use disposition::{Disposition, Dispositions, RAISED, disposition};
pub(crate) use disposition::{
    are_read_from, bit, blocked, caught, ends, ignores, is_raised, is_stop, keeps, stops,
};
pub(crate) use info::{is_fault, is_sent, is_trap, with_sender};
pub use own::Signals;

impl Monitor {
    /// A signal is about to reach a replica's thread.
    pub(crate) fn on_signal(&mut self, tid: Pid, signal: i32) -> Result<()> {
        let tracee = Stopped(tid);
        let thread = self.threads[&tid].clone();
        let pid = thread.pid;
        if signal == libc::SIGTRAP && self.on_point(tid, pid)? {
            return Ok(());
        }
        if signal == libc::SIGTRAP && thread.enters_handler {
            return self.on_handler_entered(tid, pid);
        }
        if let Some(info) = thread.inject
            && info[0] as i32 == signal
        {
            self.keep_queued(tid, signal);
            return self.finish_injection(tid, signal, &info);
        }
        let info = self.siginfo(tid, signal);
        let Some((group, replica)) = self.membership(pid) else {
            if self.is_held_for_newborn(pid, signal, &info) {
                return Ok(tracee.resume(0)?);
            }
            // Not replicated yet: as it would be natively.
            return Ok(tracee.resume(signal)?);
        };
        let leads = self.leads(group, replica);
        if let Some(g) = self.groups.get_mut(&group).filter(|_| leads)
            && is_stop(signal)
        {
            g.job.stops_later(signal);
        }
        if leads && signal == libc::SIGCONT {
            self.job_is_let_go_on(group);
        }
        let info = match info {
            Ok(info) if info[0] as i32 == signal => info,
            // It was killed meanwhile, and is gone, or stands at its end.
            other => {
                if leads {
                    self.untold(tid, &bare(signal));
                }
                return other.map(drop);
            }
        };
        if thread.trap_left && is_trap(&info) {
            if let Some(t) = self.threads.get_mut(&tid) {
                t.trap_left = false;
            }
            return Ok(tracee.resume(0)?);
        }
        if signal == libc::SIGTRAP && self.on_converging_breakpoint(tid, &info)? {
            return Ok(());
        }
        if tracee.is_breakpoint(&info) {
            if !self.on_breakpoint(tid, pid)? {
                // One that was left over.
                tracee.set_breakpoint(None)?;
            }
            return Ok(tracee.resume(0)?);
        }
        if is_fault(signal, &info) {
            if self.stores_into_inherited(pid, signal, &info) {
                return Ok(());
            }
            return self.on_fault(tid, pid, group, replica, signal, &info);
        }
        if !leads {
            // A follower's signals come from the log.
            return Ok(tracee.resume(0)?);
        }
        if self.has_come(group, signal) {
            return Ok(tracee.resume(0)?);
        }
        if thread.inject.is_some()
            && let Some(t) = self.threads.get_mut(&tid)
        {
            // The kernel takes the lowest number first; the log has another one as the next.
            t.overtaken.push(info);
            return Ok(tracee.resume(0)?);
        }
        let adopted = self
            .groups
            .get(&group)
            .is_some_and(|g| g.parenthood.adopted);
        let info = if adopted && signal == libc::SIGCHLD {
            match self.child_signal(tid, pid, &info) {
                Some(info) => info,
                None => return Ok(tracee.resume(0)?),
            }
        } else {
            self.as_known(info)
        };
        let disposition = disposition(pid, signal);
        if matches!(disposition, Disposition::Caught | Disposition::Ignored) {
            self.child_signal_came(group, &info);
        }
        match disposition {
            Disposition::Ignored => tracee.resume(0)?,
            Disposition::Stops => tracee.resume(signal)?,
            Disposition::Ends => {
                self.leave_out_at_signal(pid);
                // (With a vfork's child the program's process, in whose memory it is, does not end.)
                if !self.is_guest(pid) {
                    self.expect_end(group);
                }
                // (It may be killed before it comes to that end.)
                self.untold(tid, &info);
                tracee.resume(signal)?;
            }
            // Nobody has to repeat it.
            Disposition::Caught if self.options.replicas == 1 && !self.in_agent(tid)? => {
                tracee.set_siginfo(&info)?;
                tracee.resume(signal)?;
            }
            Disposition::Caught => self.queue(tid, pid, &info)?,
        }
        Ok(())
    }

    /// What a signal that has come to a thread is to show.
    fn siginfo(&mut self, tid: Pid, signal: i32) -> Result<[u64; 16]> {
        let resent = self.threads.get_mut(&tid).map(|t| &mut t.resent);
        if let Some(resent) = resent
            && let Some(i) = resent.iter().position(|info| info[0] as i32 == signal)
        {
            let info = resent.remove(i);
            self.keep_queued(tid, signal);
            return Ok(info);
        }
        let info = Stopped(tid).siginfo()?;
        Ok(self.as_inherited(tid, info))
    }

    /// What a thread's signal showed before it was sent on to a new leader, if it was.
    fn as_inherited(&mut self, tid: Pid, info: [u64; 16]) -> [u64; 16] {
        let pid = self.threads.get(&tid).map(|t| t.pid);
        let process = pid.and_then(|pid| self.processes.get_mut(&pid));
        let was = process.and_then(|p| crate::takeover::as_it_was(&mut p.pending.inherited, &info));
        was.unwrap_or(info)
    }

    /// The sender as the program knows it, where another replica has taken its place.
    pub(crate) fn as_known(&self, info: [u64; 16]) -> [u64; 16] {
        let group = self.membership(info[2] as Pid).map(|(id, _)| id);
        match group.and_then(|id| self.groups.get(&id)) {
            Some(g) if is_sent(&info) => with_sender(info, g.name.shown),
            _ => info,
        }
    }

    pub(crate) fn in_agent(&self, tid: Pid) -> Result<bool> {
        let regs = Stopped(tid).regs()?;
        let end = BLOCKS_BASE + BLOCK_BYTES * MAX_THREADS as u64;
        Ok(self.kit.image.contains(regs.rip) || (BLOCKS_BASE..end).contains(&regs.rsp))
    }

    /// Put a caught signal where the leader's thread finds it at its next safe point.
    fn queue(&mut self, tid: Pid, pid: Pid, info: &[u64; 16]) -> Result<()> {
        let tracee = Stopped(tid);
        let noted = self.note_pending(tid, pid, info);
        if noted.is_err() {
            self.untold(tid, info);
        }
        let Some((mut regs, block)) = noted? else {
            return Ok(tracee.resume(info[0] as i32)?);
        };
        let check = self.kit.image.symbol("geryon_blocking_check");
        let call = self.kit.image.symbol("geryon_blocking_syscall");
        let end = self.kit.image.symbol("geryon_blocking_end");
        let eintr = self.kit.image.symbol("geryon_eintr");
        let mask = tracee.mask()?;
        // Those that are caught wait, too: the kernel knows their order, and the masks of handlers. What ends
        // the program ends it, and what an instruction raises comes at once (where it is blocked, the kernel
        // takes its handler away).
        tracee.set_mask(mask | Dispositions::of(pid).caught & !RAISED)?;
        if let Some(t) = self.threads.get_mut(&tid) {
            t.held_mask.get_or_insert(mask);
        }
        self.interrupt_computation(pid, ((block - BLOCKS_BASE) / BLOCK_BYTES) as u32, true);
        if regs.rip == call && regs.rax == libc::SYS_restart_syscall as u64 {
            // It was stopped in a sleep, which would go on: it ends, with its rest told already.
            const ERESTART_RESTARTBLOCK: i64 = -516;
            regs.rip = end;
            regs.rax = ERESTART_RESTARTBLOCK as u64;
            regs.orig_rax = u64::MAX;
            tracee.set_regs(&regs)?;
        } else if (check..=call).contains(&regs.rip) {
            regs.rip = eintr;
            tracee.set_regs(&regs)?;
        } else if regs.rip == end && (-516..=-512).contains(&(regs.rax as i64)) {
            // The kernel would restart the call; the agent shall see that it was interrupted.
            regs.orig_rax = u64::MAX;
            tracee.set_regs(&regs)?;
        }
        Ok(tracee.resume(0)?)
    }

    /// Write it into the thread's block. The count, which is written last and at once, says that it is there: an
    /// error says that it is not. None: it is no thread of the program's.
    fn note_pending(
        &mut self,
        tid: Pid,
        pid: Pid,
        info: &[u64; 16],
    ) -> Result<Option<(Regs, u64)>> {
        let regs = Stopped(tid).regs()?;
        let Some(block) = self.kit.image.block_of(&regs) else {
            return Ok(None);
        };
        let m = self.memory(pid)?;
        let at = block + block_field!(pending_count);
        let count = m.word(at)? as u32;
        if (count as usize) < MAX_PENDING {
            let to = block + block_field!(pending) + 128 * u64::from(count);
            for (i, w) in info.iter().enumerate() {
                m.set_word(to + 8 * i as u64, *w)?;
            }
            m.write(at, &(count + 1).to_le_bytes())?;
        } else {
            self.say(&format!(
                "more than {MAX_PENDING} signals wait for a thread that is in the midst of something; the next ones are lost"
            ));
        }
        Ok(Some((regs, block)))
    }

    fn on_fault(
        &mut self,
        tid: Pid,
        pid: Pid,
        group: GroupId,
        replica: usize,
        signal: i32,
        info: &[u64; 16],
    ) -> Result<()> {
        let tracee = Stopped(tid);
        let mut regs = tracee.regs()?;
        let block = self.kit.image.block_of(&regs);
        let mut broken = false;
        if self.kit.image.contains(regs.rip) {
            let m = self.memory(pid)?;
            // The agent's own code has no illegal instruction but where it says that something is broken, and
            // in a call of the program it has no faults that are the program's.
            broken = signal == libc::SIGILL;
            if let Some(b) = block {
                broken |= m.word(b + block_field!(frame))? != 0;
                let to = m.word(b + block_field!(fault_rip))?;
                if to != 0 {
                    regs.rip = to;
                    regs.rsp = m.word(b + block_field!(fault_rsp))?;
                    tracee.set_regs(&regs)?;
                    return Ok(tracee.resume(0)?);
                }
            }
        } else if signal == libc::SIGSEGV {
            let m = self.memory(pid)?;
            let mut code = [0u8; 3];
            if m.read(regs.rip, &mut code).is_ok() {
                let stub = match code {
                    [0x0f, 0x31, _] => Some(("geryon_rdtsc_trap", 2)),
                    [0x0f, 0x01, 0xf9] => Some(("geryon_rdtscp_trap", 3)),
                    _ => None,
                };
                if let Some((name, len)) = stub {
                    regs.rsp = regs.rsp.wrapping_sub(136);
                    m.set_word(regs.rsp, regs.rip + len)?;
                    regs.rip = self.kit.image.symbol(name);
                    tracee.set_regs(&regs)?;
                    return Ok(tracee.resume(0)?);
                }
            }
        }
        if !broken && disposition(pid, signal) == Disposition::Caught {
            return Ok(tracee.resume(signal)?);
        }
        // Fatal: the others decide whether the program or this replica is at fault.
        let slot = block.map_or(0, |b| ((b - BLOCKS_BASE) / BLOCK_BYTES) as u32);
        let crash = Crash {
            replica,
            tid,
            slot,
            signal,
            pc: regs.rip,
            pc_name: self.layout(pid).name(regs.rip),
            address: info[2],
            pos: 0,
            in_agent: false,
            broken,
            others_done: 0,
            when: Instant::now(),
        };
        self.on_crash(group, crash)
    }

    pub(crate) fn on_group_stop(&mut self, tid: Pid, signal: i32) -> Result<()> {
        let tracee = Stopped(tid);
        if is_stop(signal) {
            if let Some(t) = self.threads.get_mut(&tid) {
                t.listens = true;
            }
            if let Some(pid) = self.threads.get(&tid).map(|t| t.pid) {
                self.job_changes(pid, Some(signal));
            }
            return Ok(tracee.listen()?);
        }
        // It may stop only now for a halt that was given up.
        if let Some(pid) = self.threads.get(&tid).map(|t| t.pid) {
            self.job_changes(pid, None);
            self.note_halt(pid, &[tid]);
        }
        Ok(tracee.resume(0)?)
    }
}
