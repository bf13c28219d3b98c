//! Faults in one thread: stopping it wherever it is, and changing its registers or memory.

use crate::block_field;
use crate::state::Monitor;
use anyhow::{Context, Result};
use geryon_abi::layout::{AGENT_BASE, RESERVED_END, touches_reserved};
use geryon_fault::place::Maps;
use geryon_fault::{Gpr, Target, registers, vector};
use geryon_patch::{INSTRUCTION_MAX, instruction_len};
use geryon_tracee::{Pid, Regs, Stopped, restartable, resumable, xsave_offset};

/// What may come of a fault that was tried: why it cannot be made.
type Struck = Result<Result<(), String>>;

/// Is it the register in which the kernel gives its results?
fn is_rax(target: &Target) -> bool {
    matches!(
        target,
        Target::Gpr {
            register: Gpr::Rax,
            ..
        } | Target::Stuck {
            register: Gpr::Rax,
            ..
        }
    )
}

/// Is it the memory to which the kernel writes what a call has read?
fn is_memory(target: &Target) -> bool {
    matches!(
        target,
        Target::Data { .. } | Target::Heap { .. } | Target::Stack { .. }
    )
}

impl Monitor {
    /// Is what is to be hit the kernel's at this moment? What a thread's rax holds while it is in a call
    /// is overwritten with the result, and until it has made a step behind it that is what the kernel
    /// says: outside of what replicas can check. So is what the call has written to memory. And a stop takes
    /// a thread out of its call, to where no other ever stands that has begun it: it is about to go back.
    pub(super) fn is_kernels(&mut self, tid: Pid, pid: Pid, target: &Target) -> Result<bool> {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let goes_on = matches!(target, Target::Ip { .. } | Target::Skip);
        let is_result = is_rax(target) || is_memory(target);
        if !is_result && !goes_on {
            return Ok(false);
        }
        let regs = Stopped(tid).regs()?;
        let memory = self.memory(pid)?;
        let is_call = |at: u64| {
            let mut code = [0; SYSCALL.len()];
            memory.read(at, &mut code).is_ok() && code == SYSCALL
        };
        let again = restartable(regs).rip;
        let behind = regs.orig_rax as i64 >= 0 && is_call(again.wrapping_sub(SYSCALL.len() as u64));
        // Some calls that a stop has ended are not issued again by the kernel, but say so.
        let was_ended = regs.rax as i64 == -i64::from(libc::EINTR);
        Ok(match target {
            _ if is_memory(target) => behind && !was_ended,
            _ => is_call(again) || (behind && (is_result || was_ended)),
        })
    }

    /// Hit the stopped thread.
    pub(super) fn strike(&mut self, tid: Pid, pid: Pid, target: &Target) -> Struck {
        let thread = Stopped(tid);
        // A call that the stop has interrupted goes on; the kernel's mark would hide it.
        let mut regs = resumable(thread.regs()?);
        if registers::strike(&mut regs, target) {
            thread.set_regs(&regs)?;
            return Ok(Ok(()));
        }
        match target {
            Target::Vector(v) => {
                let mut area = thread.xstate()?;
                if !vector::strike(&mut area, *v, xsave_offset) {
                    return Ok(Err("this processor has no such register".into()));
                }
                thread.set_xstate(&area)?;
                Ok(Ok(()))
            }
            Target::Skip => self.skip(thread, pid, regs),
            _ => self.strike_memory(pid, target, regs),
        }
    }

    fn skip(&mut self, thread: Stopped, pid: Pid, mut regs: Regs) -> Struck {
        let memory = self.memory(pid)?;
        let mut code = [0; INSTRUCTION_MAX];
        // The last instruction of a mapping may be shorter.
        let readable = (1..=INSTRUCTION_MAX)
            .rev()
            .find(|n| memory.read(regs.rip, &mut code[..*n]).is_ok());
        let Some(len) = readable.and_then(|n| instruction_len(&code[..n])) else {
            return Ok(Err("the thread stands at no instruction".into()));
        };
        regs.rip += len as u64;
        thread.set_regs(&regs)?;
        Ok(Ok(()))
    }

    fn strike_memory(&mut self, pid: Pid, target: &Target, regs: Regs) -> Struck {
        let proc = |file: &str| format!("/proc/{pid}/{file}");
        let maps = geryon_tracee::text(proc("maps")).context("cannot read the mappings")?;
        let exe = std::fs::read_link(proc("exe")).context("cannot read the program's name")?;
        let memory = self.memory(pid)?;
        let sp = if touches_reserved(regs.rsp, 1) {
            // On the agent's stack: the program's is meant.
            memory.word(regs.gs_base + block_field!(user_rsp))?
        } else {
            regs.rsp
        };
        let place = Maps::parse(&maps).place(
            target,
            &exe.to_string_lossy(),
            sp,
            std::slice::from_ref(&(AGENT_BASE..RESERVED_END)),
        );
        let Some((address, bit)) = place else {
            return Ok(Err("the program has no memory of that kind".into()));
        };
        let mut byte = [0];
        memory.read(address, &mut byte)?;
        memory.write(address, &[byte[0] ^ (1 << bit)])?;
        Ok(Ok(()))
    }
}
