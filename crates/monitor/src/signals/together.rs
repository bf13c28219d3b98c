//! Signals that are let in at one moment: which ones they are, and how each handler's frame comes on top of the one
//! before. A thread is stopped at a handler's first instruction where something is to be done there.

use super::delivery::UC_SIGMASK;
use super::disposition::{Dispositions, RAISED, bit, sets};
use crate::block_field;
use crate::state::Monitor;
use anyhow::{Context, Result};
use geryon_abi::layout::MAX_TOGETHER;
use geryon_tracee::{Pid, Stopped};

/// Where the flags are in the kernel's `struct ucontext`.
const UC_FLAGS: u64 = 176;
/// Of these: the processor stops behind each instruction.
const TRAP_FLAG: u64 = 1 << 8;

impl Monitor {
    /// A leader's thread has `count` signals in its block that come together, whose handlers shut out `shut`. Does
    /// the next one come with them? See `rpc::LETS_IN`.
    pub(crate) fn lets_in(&mut self, tid: Pid, pid: Pid, shut: u64, count: u64) -> Result<i64> {
        let tracee = Stopped(tid);
        let block = self.kit.image.block_of(&tracee.regs()?);
        let block = block.context("it is no thread of the program's")?;
        let m = self.memory(pid)?;
        let [is_there, within] = m.words(block + block_field!(call_mask))?;
        let waiting = u64::from(m.word(block + block_field!(pending_count))? as u32);
        let next = m.word(block + block_field!(pending) + 128 * count)? as i32;
        let now = tracee.mask()?;
        let thread = self.threads.entry(tid).or_default();
        let held = thread.held_mask.unwrap_or(now);
        let mask = if is_there == 1 { within } else { held } | shut;
        let caught = Dispositions::of(pid).caught;
        if shut == u64::MAX {
            tracee.set_mask(held | caught & !RAISED)?;
            return Ok(0);
        }
        if waiting > count {
            // The kernel has given that one already.
            return Ok(((1..=64).contains(&next) && mask & bit(next) == 0).into());
        }
        let [own, shared] = sets(tid, ["SigPnd:", "ShdPnd:"]);
        if (own | shared) & caught & !mask == 0 {
            return Ok(0);
        }
        thread.held_mask = Some(held);
        tracee.set_mask(mask)?;
        Ok(2)
    }

    /// Signals are about to be delivered to the thread: so many come on top of the first one.
    pub(crate) fn comes_on_top(&mut self, tid: Pid, pid: Pid, at: u64, more: u64) -> Result<()> {
        let m = self.memory(pid)?;
        let mut on_top = Vec::new();
        for k in 1..=more.min(MAX_TOGETHER as u64 - 1) {
            on_top.push(m.words::<16>(at + 128 * k)?);
        }
        let t = self.threads.entry(tid).or_default();
        t.on_top = on_top;
        Ok(())
    }

    /// The thread stands at a handler's first instruction: correct the mask in its frame. And the flags, which may hold
    /// the step that led here: the program would be ended by a SIGTRAP behind its handler. Then the next one comes.
    pub(super) fn on_handler_entered(&mut self, tid: Pid, pid: Pid) -> Result<()> {
        let tracee = Stopped(tid);
        let context = tracee.regs()?.rsp.wrapping_add(8);
        let thread = self.threads.entry(tid).or_default();
        thread.enters_handler = false;
        let shown = thread.frame_mask.take();
        let next = (!thread.on_top.is_empty()).then(|| thread.on_top.remove(0));
        let memory = self.memory(pid)?;
        if let Some(mask) = shown {
            memory.set_word(context.wrapping_add(UC_SIGMASK), mask)?;
        }
        let flags = context.wrapping_add(UC_FLAGS);
        let saved = memory.word(flags)?;
        if saved & TRAP_FLAG != 0 {
            memory.set_word(flags, saved & !TRAP_FLAG)?;
        }
        let Some(info) = next else {
            return Ok(tracee.resume(0)?);
        };
        self.inject(tid, pid, info, None)
    }
}
