//! Where a leader's thread waits that takes no part in the log meanwhile: in a futex call inside a hooked function's original,
//! or in one that clocks do not log. A copy that follows the leader's own log, and only says where it leads, can be made of a
//! process whose threads wait there: it waits on, in its own process, or it makes the call anew. When the
//! original returns, the agent finds that it follows, gives back what was acquired, and acquires as the log says
//! (`agent/hook/ordered.rs`). Nobody but the leader signals a condition, so such a wait is ended at once.

use crate::block_field;
use anyhow::Result;
use geryon_abi::frame::Frame;
use geryon_abi::hooks as id;
use geryon_abi::layout::carries;
use geryon_abi::record::{detail_of, kind, kind_of};
use geryon_tracee::{Regs, RemoteMemory};
use std::mem::offset_of;

const COMMAND: u64 = 0x7f;
const WAIT: u64 = libc::FUTEX_WAIT as u64;
const WAIT_BITSET: u64 = libc::FUTEX_WAIT_BITSET as u64;

/// What a thread in such a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// No hook is around it.
    Unlogged,
    /// It is in the original of a function that acquires, or of a barrier.
    Hooked,
    /// It is in that of a wait on a condition.
    OnCondition,
}

/// The wait of a halted thread that is in a futex call; None where that is another one, or somewhere else.
pub(super) fn of(regs: &Regs, block: u64, memory: &RemoteMemory) -> Result<Option<Wait>> {
    let interrupted = regs.orig_rax as i64 >= 0 && (-516..=-512).contains(&(regs.rax as i64));
    let frame = memory.word(block + block_field!(frame))?;
    let of_frame = |field: usize| memory.word(frame + field as u64);
    let is_futex = of_frame(offset_of!(Frame, rax))? == libc::SYS_futex as u64;
    let command = of_frame(offset_of!(Frame, rsi))? & COMMAND;
    let is_wait = matches!(command, WAIT | WAIT_BITSET);
    if !interrupted || !is_futex || !is_wait {
        return Ok(None);
    }
    let half = |field: u64| Ok::<u32, anyhow::Error>(memory.word(block + field)? as u32);
    if memory.word(block + block_field!(hook_rsp))? == 0 {
        return Ok(Some(Wait::Unlogged));
    }
    if half(block_field!(carries))? != carries::NOTHING {
        // It began as a follower's, and what comes behind it is not what a leader's copy does.
        return Ok(None);
    }
    let intent = memory.word(block + block_field!(intent))?;
    let is_it = memory.word(block + block_field!(intent_at))?
        == memory.word(block + block_field!(pos))?
        && kind_of(intent) == kind::LOCK
        && half(block_field!(suspend))? == 1;
    Ok(is_it.then(|| of_hook(detail_of(intent).into())).flatten())
}

fn of_hook(hook: u16) -> Option<Wait> {
    match hook {
        id::COND_WAIT | id::COND_TIMEDWAIT | id::COND_CLOCKWAIT => Some(Wait::OnCondition),
        id::MUTEX_LOCK | id::MUTEX_TIMEDLOCK | id::MUTEX_CLOCKLOCK => Some(Wait::Hooked),
        id::RW_RDLOCK | id::RW_WRLOCK | id::RW_TIMEDRDLOCK | id::RW_TIMEDWRLOCK => {
            Some(Wait::Hooked)
        }
        id::RW_CLOCKRDLOCK | id::RW_CLOCKWRLOCK | id::BARRIER_WAIT => Some(Wait::Hooked),
        id::SEM_WAIT | id::SEM_TIMEDWAIT | id::SEM_CLOCKWAIT => Some(Wait::Hooked),
        // A join, say, whose original is not suspended.
        _ => None,
    }
}

/// The call returns, as if its time were over.
pub(super) fn end(regs: &mut Regs, halted: &Regs) {
    *regs = *halted;
    regs.rax = -i64::from(libc::ETIMEDOUT) as u64;
    regs.orig_rax = u64::MAX;
}
