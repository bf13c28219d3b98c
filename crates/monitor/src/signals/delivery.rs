//! A signal from the log comes to a replica's thread: at the state that the agent has noted, with the siginfo that
//! all replicas see.

use crate::block_field;
use crate::state::Monitor;
use anyhow::{Result, bail};
use geryon_abi::frame::{FRAME_BYTES, Frame};
use geryon_tracee::{Pid, RemoteMemory, Stopped, signal_thread};
use std::mem::offset_of;

/// Where the mask is in the kernel's `struct ucontext`.
pub(super) const UC_SIGMASK: u64 = 296;

/// The mask of the call that a signal has ended, if it had its own.
fn call_mask(m: &RemoteMemory, block: Option<u64>) -> Result<Option<u64>> {
    let Some(block) = block else {
        return Ok(None);
    };
    let at = block + block_field!(call_mask);
    let [is_there, mask] = m.words(at)?;
    m.set_word(at, 0)?;
    Ok((is_there == 1).then_some(mask))
}

fn signal_in(info: &[u64; 16]) -> Result<i32> {
    let signal = info[0] as i32;
    if !(1..=64).contains(&signal) {
        bail!("there is no signal {signal}");
    }
    Ok(signal)
}

impl Monitor {
    /// Load the application's state from the agent's frame, then deliver. `exact`: as it was in the midst of
    /// computation, not behind a call.
    pub(crate) fn deliver(
        &mut self,
        tid: Pid,
        pid: Pid,
        frame_at: u64,
        info_at: u64,
        exact: bool,
    ) -> Result<()> {
        let tracee = Stopped(tid);
        let mut regs = tracee.regs()?;
        let block = self.kit.image.block_of(&regs);
        let m = self.memory(pid)?;
        let info = m.words::<16>(info_at)?;
        let within = call_mask(m, block)?;
        let mut bytes = [0u8; FRAME_BYTES];
        m.read(frame_at, &mut bytes)?;
        let word = |o: usize| u64::from_le_bytes(bytes[o..o + 8].try_into().expect("8 bytes"));
        regs.r15 = word(offset_of!(Frame, r15));
        regs.r14 = word(offset_of!(Frame, r14));
        regs.r13 = word(offset_of!(Frame, r13));
        regs.r12 = word(offset_of!(Frame, r12));
        regs.rbp = word(offset_of!(Frame, rbp));
        regs.rbx = word(offset_of!(Frame, rbx));
        regs.r9 = word(offset_of!(Frame, r9));
        regs.r8 = word(offset_of!(Frame, r8));
        regs.r10 = word(offset_of!(Frame, r10));
        regs.rdx = word(offset_of!(Frame, rdx));
        regs.rsi = word(offset_of!(Frame, rsi));
        regs.rdi = word(offset_of!(Frame, rdi));
        regs.rax = word(offset_of!(Frame, rax));
        regs.rsp = word(offset_of!(Frame, rsp));
        regs.rip = word(offset_of!(Frame, resume));
        regs.rcx = word(offset_of!(Frame, rcx));
        regs.r11 = word(offset_of!(Frame, pad));
        regs.eflags = match exact {
            true => word(offset_of!(Frame, flags)),
            // As the kernel leaves them behind a call.
            false => regs.r11,
        };
        regs.orig_rax = u64::MAX;
        tracee.set_regs(&regs)?;
        self.inject(tid, pid, info, within)
    }

    /// Send the thread a signal that it will take at once, with the given siginfo; its handler runs under
    /// the thread's mask, or under the one of the call that it has ended (`within`).
    pub(crate) fn inject(
        &mut self,
        tid: Pid,
        pid: Pid,
        info: [u64; 16],
        within: Option<u64>,
    ) -> Result<()> {
        let tracee = Stopped(tid);
        let signal = signal_in(&info)?;
        let now = tracee.mask()?;
        let bit = 1u64 << (signal - 1);
        let t = self.threads.entry(tid).or_default();
        t.pid = pid;
        t.inject = Some(info);
        let mask = t.held_mask.take().unwrap_or(now);
        let within = within.unwrap_or(mask) & !bit;
        // The handler's frame shows the mask that will be in force behind it.
        t.frame_mask = (within != mask).then_some(mask);
        tracee.set_mask(within)?;
        signal_thread(pid, tid, signal)?;
        Ok(tracee.resume(0)?)
    }

    /// The thread is about to return from a handler: the kernel's signal frame lies at `frame`. Send it
    /// a signal that it will take as soon as it has.
    pub(crate) fn deliver_beyond(
        &mut self,
        tid: Pid,
        pid: Pid,
        frame: u64,
        info_at: u64,
    ) -> Result<()> {
        let tracee = Stopped(tid);
        let m = self.memory(pid)?;
        let info = m.words::<16>(info_at)?;
        let signal = signal_in(&info)?;
        let bit = 1u64 << (signal - 1);
        let at = frame.wrapping_add(UC_SIGMASK);
        let restored = m.word(at)?;
        let shut_out = restored & bit != 0;
        if shut_out {
            m.set_word(at, restored & !bit)?;
        }
        let t = self.threads.entry(tid).or_default();
        t.pid = pid;
        t.inject = Some(info);
        t.held_mask = None;
        t.frame_mask = shut_out.then_some(restored);
        tracee.set_mask(u64::MAX)?;
        signal_thread(pid, tid, signal)?;
        Ok(tracee.resume(0)?)
    }

    /// Of these signals each that is sent comes. Where another one stands in for one that the monitor has sent, which
    /// is still to come, what it says is shown then.
    pub(super) fn keep_queued(&mut self, tid: Pid, signal: i32) {
        const FIRST_QUEUED: i32 = 32;
        if signal < FIRST_QUEUED {
            return;
        }
        let sender = |info: &[u64; 16]| (info[1] as i32, info[2] as u32);
        let ours = (libc::SI_TKILL, std::process::id());
        if let Ok(info) = Stopped(tid).siginfo()
            && info[0] as i32 == signal
            && sender(&info) != ours
        {
            let info = self.as_inherited(tid, info);
            if let Some(t) = self.threads.get_mut(&tid) {
                t.resent.push(info);
            }
        }
    }

    pub(super) fn finish_injection(
        &mut self,
        tid: Pid,
        signal: i32,
        info: &[u64; 16],
    ) -> Result<()> {
        let tracee = Stopped(tid);
        tracee.set_siginfo(info)?;
        let t = self.threads.entry(tid).or_default();
        t.inject = None;
        let overtaken = std::mem::take(&mut t.overtaken);
        t.resent.extend(&overtaken);
        for info in overtaken {
            signal_thread(t.pid, tid, info[0] as i32)?;
        }
        if t.frame_mask.is_some() || !t.on_top.is_empty() {
            t.enters_handler = true;
            return Ok(tracee.step(signal)?);
        }
        Ok(tracee.resume(signal)?)
    }
}
