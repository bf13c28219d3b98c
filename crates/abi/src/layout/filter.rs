//! Seccomp filters of the program, which the agent evaluates: where they lie, and what one looks like there.
//!
//! They are only added. A filter names the one that was installed before it by the same thread, or by who has made that
//! thread; so threads that have the same ones in common share them.

use super::{Word32, Word64};
use core::sync::atomic::AtomicU32;

/// Where they lie, private memory, mapped with the first one.
pub const FILTERS_BASE: u64 = 0x2fe5_1100_0000;
/// Bytes of it.
pub const FILTERS_BYTES: u64 = 0x100_0000;
/// Instructions of one filter, at most.
pub const MAX_INSTRUCTIONS: usize = 4096;
/// The same of all that a thread has, where each counts [`PENALTY`] more.
pub const MAX_WEIGHT: u32 = 1 << 15;
/// See there.
pub const PENALTY: u32 = 4;

/// [`super::Block::filter`]: the thread may make all calls. Else one of these, or the newest filter's address.
pub const NONE: u64 = 0;
/// It may read, write, end, and return from a handler.
pub const STRICT: u64 = 1;
/// It has made a call for which its process is to end by SIGSYS.
pub const ENDS_PROCESS: u64 = 2;
/// The same, or if there are other threads, this one alone.
pub const ENDS_THREAD: u64 = 3;
/// The same by SIGKILL.
pub const KILLS_THREAD: u64 = 4;
/// One past the last of them.
pub const FIRST_ADDRESS: u64 = 5;

/// One filter; its instructions follow.
#[repr(C)]
#[derive(Debug)]
pub struct Filter {
    /// Address of the one before it, or [`NONE`].
    pub before: Word64,
    /// Instructions of this one and all before it, and the penalties.
    pub weight: Word32,
    /// How many are its own; 0 as long as it is not complete.
    pub count: AtomicU32,
}

/// An instruction of a classic BPF program, as struct sock_filter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// Instructions to skip if a test holds.
    pub yes: u8,
    /// And if not.
    pub no: u8,
    /// Its number.
    pub k: u32,
}

/// Bytes of a [`Filter`] without its instructions.
pub const HEAD_BYTES: u64 = size_of::<Filter>() as u64;
/// Bytes of an [`Instruction`].
pub const INSTRUCTION_BYTES: u64 = size_of::<Instruction>() as u64;

/// Bytes of a whole filter.
pub const fn bytes_of(count: u32) -> u64 {
    HEAD_BYTES + count as u64 * INSTRUCTION_BYTES
}

/// May a filter of so many instructions lie there?
pub const fn is_place(address: u64, count: u32) -> bool {
    address >= FILTERS_BASE
        && address.is_multiple_of(8)
        && count as usize <= MAX_INSTRUCTIONS
        && address
            .saturating_add(bytes_of(count))
            .saturating_sub(FILTERS_BASE)
            <= FILTERS_BYTES
}

const _: () = {
    assert!(HEAD_BYTES == 16 && INSTRUCTION_BYTES == 8);
    assert!(FILTERS_BASE >= super::PRIVATE_BASE + super::PRIVATE_BYTES);
    assert!(FILTERS_BASE + FILTERS_BYTES <= super::kin::KIN_BASE);
};
