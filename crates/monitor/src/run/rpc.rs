//! Requests: system calls that the filter did not let pass. Those of the program go on to the
//! agent; those that the agent addresses to the monitor are answered.

use crate::code::{self, Target};
use crate::layout;
use crate::maps::AddressSpace;
use crate::setup::filters::Filters;
use crate::state::Monitor;
use anyhow::{Result, bail};
use geryon_abi::layout::{MAX_THREADS, rpc, waited};
use geryon_tracee::{Pid, Regs, Stopped};

/// The page with three calls of old programs, which the kernel emulates.
const VSYSCALL: std::ops::Range<u64> = 0xffff_ffff_ff60_0000..0xffff_ffff_ff60_1000;

impl Monitor {
    /// A system call that the filter did not let pass.
    pub(super) fn on_call(&mut self, tid: Pid) -> Result<()> {
        let tracee = Stopped(tid);
        let mut regs = tracee.regs()?;
        let pid = self.threads[&tid].pid;
        if self
            .processes
            .get(&pid)
            .is_some_and(|p| p.group.is_none() && p.parent.is_none())
        {
            // Before the first exec: the launching child's own calls.
            return Ok(tracee.resume(0)?);
        }
        if tracee.is_foreign_call()? {
            self.refuse_foreign_call(pid, regs.rip, regs.orig_rax);
            answer(tracee, &mut regs, -i64::from(libc::ENOSYS))?;
            return Ok(tracee.resume(0)?);
        }
        if (rpc::BASE..rpc::END).contains(&regs.orig_rax) {
            return self.on_rpc(tid, pid, regs);
        }
        if self.kit.image.contains(regs.rip) {
            bail!(
                "the agent made an unexpected system call {} at {:#x}",
                regs.orig_rax,
                regs.rip
            );
        }
        let number = regs.orig_rax;
        if VSYSCALL.contains(&regs.rip) {
            // It goes on as if a `syscall` instruction lay right before the place that it returns to.
            tracee.return_from_vsyscall()?;
            regs = tracee.regs()?;
        }
        regs.rax = number;
        regs.orig_rax = u64::MAX;
        regs.rcx = regs.rip;
        regs.rip = self.kit.image.symbol("geryon_entry_trap");
        tracee.set_regs(&regs)?;
        tracee.resume(0)?;
        Ok(())
    }

    fn on_rpc(&mut self, tid: Pid, pid: Pid, mut regs: Regs) -> Result<()> {
        let tracee = Stopped(tid);
        let value = match regs.orig_rax {
            rpc::MAPPED => {
                // Calls are to be injected: this one has to be over first.
                answer(tracee, &mut regs, 0)?;
                tracee.finish_syscall()?;
                self.on_mapped(tid, pid, regs.rdi, regs.rsi)?;
                return Ok(tracee.resume(0)?);
            }
            rpc::VFORKED => {
                self.on_vforked(pid, regs.rdi);
                0
            }
            rpc::EXEC => {
                self.guest_leaves(pid, regs.rdi as u32 as Pid);
                0
            }
            rpc::FILTERS => {
                let filters = Filters::read(self.memory(pid)?, regs.rdi)?;
                if let Some(p) = self.processes.get_mut(&pid) {
                    p.filters = Some(filters);
                }
                0
            }
            rpc::AT_PARENTS_END => {
                if let Some(p) = self.processes.get_mut(&pid) {
                    p.at_parents_end = regs.rdi as u32;
                }
                0
            }
            rpc::REAPS_ORPHANS => {
                self.wants_orphans(pid, regs.rdi != 0);
                0
            }
            rpc::ORPHAN_REAPED => {
                self.orphan_reaped(pid, regs.rdi as u32 as Pid);
                0
            }
            rpc::PIDFD => {
                let named = crate::whom::pid_of_descriptor(pid, regs.rdi as u32 as Pid);
                named.map_or(-i64::from(libc::EBADF), |pid| i64::from(pid.max(0)))
            }
            rpc::INHERIT => {
                let slot = self.kit.image.slot_of(&regs).map(|s| s as u32);
                self.inherit(pid, slot, regs.rdi, regs.rsi)?
            }
            rpc::DESCRIPTORS => self.descriptors(pid, regs.rdi, regs.rsi, regs.rdx)?,
            rpc::KILLS => {
                self.announce_kill(pid, regs.rdi, regs.rsi);
                0
            }
            rpc::SENDS => {
                if let Some(slot) = self.kit.image.slot_of(&regs) {
                    self.sends(pid, slot as u32, regs.rdi, regs.rsi, regs.rdx);
                }
                0
            }
            rpc::CAME => {
                let is_read = |fd: u64| crate::signals::are_read_from(pid, fd);
                if let Some((id, _)) = self.membership(pid)
                    && regs.rsi.checked_sub(1).is_none_or(is_read)
                {
                    self.came(id, regs.rdi as u32 as i32);
                }
                0
            }
            rpc::WAITED_FOR => {
                let is_given = regs.rdx == waited::GIVEN;
                self.show_waited_for((tid, pid), regs.rdi, regs.rsi as i32, is_given)?
            }
            rpc::WHO => i64::from(self.who(pid, regs.rdi as u32 as Pid, regs.rsi)),
            rpc::WRITES => {
                self.write_proc_file(pid, regs.rdi)?;
                0
            }
            rpc::REAP => self.reap_for(pid, regs.rdi, regs.rsi)?,
            rpc::UNREAPED => {
                self.is_unreaped(pid, regs.rdi as u32 as Pid);
                0
            }
            rpc::CHILD => {
                let answer = self.on_child(pid, regs.rdi, regs.rsi)?;
                // (Its parent's was asked for the child's name.)
                self.forget_retired();
                match answer {
                    Some(answer) => answer,
                    None => return Ok(()),
                }
            }
            rpc::NAMED => match self.name_of_fork(tid, pid, regs.rdi) {
                Some(name) => i64::from(name),
                None => return answer(tracee, &mut regs, 0),
            },
            rpc::UNMADE => {
                if let Some(member) = self.membership(pid) {
                    self.forget_lost_newborn(member, regs.rdi);
                }
                0
            }
            rpc::FETCH => self.hand(pid, regs.rdi as u32, regs.rsi, regs.rdx),
            rpc::FAILED => {
                self.on_failed(pid, regs.rdi, regs.rsi);
                0
            }
            rpc::BEGUN => {
                self.on_begun(pid);
                0
            }
            rpc::OUTDATED => {
                self.sleepers_are_outdated(regs.rdi);
                0
            }
            rpc::SHARE => self.share(pid, regs.rdi, regs.rsi, regs.rdx),
            rpc::ASCENT => {
                self.on_ascent();
                0
            }
            rpc::DESCENT => self.on_descent(regs.rdi),
            rpc::WATCHES => self.watches(pid, regs.rdi, regs.rsi, regs.rdx)?,
            rpc::ATTACH => self.attach(pid, regs.rdi as i32, regs.rsi as i32),
            rpc::SETTLED => {
                self.settled(regs.rdi);
                0
            }
            rpc::WROTE => {
                self.wrote(pid, regs.rdi, regs.rsi, regs.rdx);
                0
            }
            rpc::COMPARE => {
                let range = regs.rdi..regs.rdi.saturating_add(regs.rsi);
                self.compare_shared(pid, tid, range, regs.rdx)
            }
            rpc::ENDS => self.may_end(pid),
            rpc::LET_GO => self.have_let_go(pid),
            rpc::FAULTED => {
                self.faulted(pid);
                0
            }
            rpc::UNMAPPED => {
                self.sweep(pid);
                0
            }
            rpc::INHERITED => self.inherited(pid, regs.rdi, regs.rsi)?,
            rpc::MAY_WRITE => self.may_write(pid, regs.rdi, regs.rsi),
            rpc::MESSAGE => {
                self.on_message(pid, &regs);
                0
            }
            rpc::DELIVER => {
                let exact = regs.rdx & 1 != 0;
                self.comes_on_top(tid, pid, regs.rsi, regs.rdx / 2)?;
                return self.deliver(tid, pid, regs.rdi, regs.rsi, exact);
            }
            rpc::DELIVER_BEYOND => {
                regs.rip = self.kit.image.symbol("geryon_sigreturn");
                answer(tracee, &mut regs, 0)?;
                self.comes_on_top(tid, pid, regs.rsi, regs.rdx)?;
                return self.deliver_beyond(tid, pid, regs.rdi, regs.rsi);
            }
            rpc::DELIVER_HERE => {
                let info = self.memory(pid)?.words::<16>(regs.rsi)?;
                self.comes_on_top(tid, pid, regs.rsi, regs.rdi)?;
                answer(tracee, &mut regs, 0)?;
                return self.inject(tid, pid, info, None);
            }
            rpc::LETS_IN => self.lets_in(tid, pid, regs.rdi, regs.rsi)?,
            rpc::STARVES => {
                self.interrupt_computation(pid, (regs.rdi as usize % MAX_THREADS) as u32, false);
                0
            }
            // Only a fault leads there: it dies of what is behind.
            rpc::INJECTED => 0,
            // No answer: the thread stays where it is.
            rpc::DIVERGENCE => return self.on_divergence(tid, pid, regs.rdi),
            other => bail!("the agent asked something unknown: {other:#x}"),
        };
        answer(tracee, &mut regs, value)?;
        tracee.resume(0)?;
        Ok(())
    }

    /// Code was mapped: rewrite it before the mapping call returns.
    fn on_mapped(&mut self, tid: Pid, pid: Pid, address: u64, len: u64) -> Result<()> {
        if !self.options.patch {
            return Ok(());
        }
        self.memory(pid)?;
        let p = &self.processes[&pid];
        let memory = p.memory.as_ref().expect("opened above");
        let Some(g) = p.group.and_then(|g| self.groups.get_mut(&g)) else {
            return Ok(());
        };
        let target = Target {
            tracee: Stopped(tid),
            memory,
            space: &AddressSpace::open(pid)?,
            replica: p.replica,
            layout: layout::of(memory)?,
        };
        code::rewrite(
            &target,
            &self.kit.image,
            &mut self.kit.plans,
            &mut g.areas,
            (address, len),
        )
    }
}

/// The call is not executed, and returns this.
pub(super) fn answer(tracee: Stopped, regs: &mut Regs, value: i64) -> Result<()> {
    regs.rax = value as u64;
    regs.orig_rax = u64::MAX;
    Ok(tracee.set_regs(regs)?)
}
