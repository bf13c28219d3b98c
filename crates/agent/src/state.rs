//! The two structures that every function of the agent starts from.

use core::arch::asm;
use geryon_abi::layout::{Block, Header, PRIVATE_BASE, Private, SEGMENT_BASE, role};

/// This thread's block.
#[inline(always)]
pub fn block() -> &'static mut Block {
    let this: *mut Block;
    // SAFETY: GS points to the thread's block from its first instruction on (the monitor or
    // `geryon_clone` set it), and only this thread uses it, but for atomics and the monitor.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) this, options(nostack, preserves_flags, readonly, pure));
        &mut *this
    }
}

/// This process's private control structure.
#[inline(always)]
pub fn private() -> &'static mut Private {
    // SAFETY: the monitor maps it at this address before any agent code runs. Fields that
    // several threads write are atomic or guarded by the process-wide sections.
    unsafe { &mut *(PRIVATE_BASE as *mut Private) }
}

/// The head of the group's shared segment.
#[inline(always)]
pub fn header() -> &'static Header {
    // SAFETY: mapped by the monitor before any agent code runs; all that changes is atomic.
    unsafe { &*(SEGMENT_BASE as *const Header) }
}

/// True in the leader.
#[inline(always)]
pub fn leads() -> bool {
    private().role == role::LEADER
}
