//! Serial order: what a process's threads know of the turn to run.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Of one process, in its private memory.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Turns {
    /// Leader: is it free? See [`turn`].
    pub state: AtomicU32,
    /// Leader: threads that wait for it.
    pub waiting: AtomicU32,
    /// Leader: how often it was lent since it was given away.
    pub lends: AtomicU32,
    /// Slot of the thread that has it.
    pub owner: AtomicU32,
    /// Number of the present turn.
    pub number: AtomicU32,
    /// Slot of the thread that had it last, and that thread's position then.
    pub last_slot: AtomicU64,
    /// See `last_slot`.
    pub last_pos: AtomicU64,
}

/// Values of `Turns::state`.
pub mod turn {
    /// Nobody has it.
    pub const FREE: u32 = 0;
    /// Somebody has it.
    pub const TAKEN: u32 = 1;
    /// Free, but not for who had it last: others were waiting.
    pub const OFFERED: u32 = 2;
    /// Who had it last makes a call that is over soon, and goes on then.
    pub const LENT: u32 = 3;
}
