//! The two structures that every function of the agent starts from.

use core::arch::asm;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::layout::{
    Block, Header, Layout, MAX_THREADS, PRIVATE_BASE, Private, SEGMENT_BASE, block_address, role,
};

/// This thread's block. A handle, not a reference: signal handlers and nested entries change the
/// block while a function that holds the handle is running.
#[derive(Clone, Copy)]
pub struct Here(*mut Block);

impl Deref for Here {
    type Target = Block;
    #[inline(always)]
    fn deref(&self) -> &Block {
        // SAFETY: `block` and `at` made it from an address in the mapped region of blocks.
        unsafe { &*self.0 }
    }
}

impl DerefMut for Here {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Block {
        // SAFETY: as above; the borrow ends with the expression that uses it.
        unsafe { &mut *self.0 }
    }
}

impl Here {
    /// Are this thread's atomics and lock operations recorded or replayed from now on?
    #[inline(always)]
    pub fn set_ordered(mut self, ordered: bool) {
        self.ordered = u32::from(ordered);
        self.plain = if ordered { 0 } else { u32::MAX };
    }
}

/// This thread's block.
#[inline(always)]
pub fn block() -> Here {
    let this: *mut Block;
    // SAFETY: GS points to the thread's block from its first instruction on (the monitor or
    // `geryon_clone` set it), and only this thread uses it, but for atomics and the monitor.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) this, options(nostack, preserves_flags, readonly, pure));
    }
    Here(this)
}

/// The same, asked of the processor each time: the compiler keeps what [`block`] said in a register.
#[inline(always)]
pub fn block_anew() -> Here {
    let this: *mut Block;
    // SAFETY: as in `block`.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) this, options(nostack, preserves_flags));
    }
    Here(this)
}

/// Is this the block of the thread that asks? (What was kept in a register while it slept may not be.)
#[inline(always)]
pub fn is_own(b: Here) -> bool {
    b.0 == block_anew().0
}

/// The block of a thread slot.
pub fn block_at(slot: usize) -> Here {
    assert!(slot < MAX_THREADS);
    Here(block_address(slot) as *mut Block)
}

/// One past the highest slot used so far.
static HIGH: AtomicU32 = AtomicU32::new(1);

/// One past the highest slot that any thread of this process has had.
pub fn slots() -> usize {
    HIGH.load(Ordering::Acquire) as usize
}

/// A thread is to have this slot.
pub fn reach(slot: usize) {
    HIGH.fetch_max(slot as u32 + 1, Ordering::Relaxed);
}

/// This process's private control structure.
#[inline(always)]
pub fn private() -> &'static Private {
    // SAFETY: the monitor maps it at this address before any agent code runs; all that changes is atomic.
    unsafe { &*(PRIVATE_BASE as *const Private) }
}

/// Where this replica's memory lies.
#[inline(always)]
pub fn layout() -> Layout {
    private().layout
}

/// Do replicas run different programs, each with memory of its own?
#[inline(always)]
pub fn have_own_programs() -> bool {
    layout().is_unrelated()
}

/// The head of the group's shared segment.
#[inline(always)]
pub fn header() -> &'static Header {
    // SAFETY: mapped by the monitor before any agent code runs; all that changes is atomic.
    unsafe { &*(SEGMENT_BASE as *const Header) }
}

/// Does the monitor say that this replica leads the group? (It alone can write that word.)
#[inline(never)]
pub fn is_to_lead() -> bool {
    header().leader.load(Ordering::SeqCst) == private().replica.get()
}

/// What is logged of this process from here on has turns of the kin in it: whoever takes over is not to go on before they are
/// replayed, by a process that need not be one of them yet.
pub fn tell_kin() {
    if private().serial.get() != 0 {
        header().open.kin.store(1, Ordering::SeqCst);
    }
}

/// Is this process one of the kin, which take turns?
#[inline(always)]
pub fn is_kin() -> bool {
    private().kin.get() == geryon_abi::layout::kin::JOINED
}

/// True in the leader. (Read anew each time: a follower may be promoted while it waits.)
#[inline(always)]
pub fn leads() -> bool {
    private().role.get() == role::LEADER
}
