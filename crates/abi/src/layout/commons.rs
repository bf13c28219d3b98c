//! What the processes of one replica have in common once they share memory: whose turn it is. One memory
//! for each replica, which each of its processes maps that shares any, at [`COMMONS_BASE`].

use super::MAX_THREADS;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Where it lies.
pub const COMMONS_BASE: u64 = 0x2fe5_6000_0000;
/// Process groups alive at one moment whose threads have a place of their own in it.
pub const ROWS: usize = 4096;
/// Its length.
pub const COMMONS_BYTES: u64 = (size_of::<Commons>() as u64 + 0xfff) & !0xfff;

/// Values of [`Turns::turn`].
pub mod turn {
    /// The turn is free.
    pub const FREE: u32 = 0;
    /// Somebody has it. (Of processes: and the bits above say who.)
    pub const TAKEN: u32 = 1;
    /// Free, but not for who had it last: others were waiting.
    pub const OFFERED: u32 = 2;
    /// The replica follows, or has not replayed all that its former leader has logged: nobody may take it.
    pub const SHUT: u32 = 3;

    /// This thread of a process has it.
    pub const fn taken_by(name: u32) -> u32 {
        name << 2 | TAKEN
    }

    /// Who has it, if anybody.
    pub const fn holder(turn: u32) -> Option<u32> {
        if turn & 3 == TAKEN {
            Some(turn >> 2)
        } else {
            None
        }
    }
}

/// No thread.
pub const NOBODY: u32 = u32::MAX;
/// Stands where the position of a thread stands whose process is gone.
pub const GONE: u64 = u64::MAX;

/// A place to wait.
#[repr(C)]
pub struct Place {
    /// Changes whenever something changes that is waited for here.
    pub events: AtomicU32,
    /// How many sleep there.
    pub sleepers: AtomicU32,
}

/// How many places there are.
pub const PLACES: usize = 64;

/// Turns of the threads of a process, or of all processes of a replica that share memory. Threads are named
/// by their slot, or by [`name`].
#[repr(C)]
pub struct Turns {
    /// Leader: the turn.
    pub turn: AtomicU32,
    /// Leader: threads that wait for it.
    pub waiting: AtomicU32,
    /// The thread that has the turn.
    pub owner: AtomicU32,
    /// Number of the present turn.
    pub number: AtomicU32,
    /// Who had it last, and that thread's position then (changed by the owner only).
    pub last: AtomicU64,
    /// See `last`.
    pub last_pos: AtomicU64,
    /// Follower: where the thread whose turn comes next waits, by the turn's number.
    pub next: [Place; PLACES],
}

/// One replica's.
#[repr(C)]
pub struct Commons {
    /// Its turns.
    pub turns: Turns,
    /// Follower: where each thread stands and holds nothing back, or [`GONE`].
    pub released: [[AtomicU64; MAX_THREADS]; ROWS],
}

/// A thread of a group that has this row.
pub const fn name(row: u32, slot: u32) -> u32 {
    row * MAX_THREADS as u32 + slot
}

/// Row and slot of a thread.
pub const fn place_of(name: u32) -> Option<(usize, usize)> {
    let (row, slot) = (name as usize / MAX_THREADS, name as usize % MAX_THREADS);
    if row < ROWS { Some((row, slot)) } else { None }
}

const _: () = assert!(COMMONS_BASE + COMMONS_BYTES <= super::SEGMENT_BASE);
