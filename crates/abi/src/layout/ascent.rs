//! Whether a process goes over from serial order to clocks when it gets its second thread (`--order auto`).

use crate::table::nr;

/// It stays in the order in which it is.
pub const NEVER: u32 = 0;
/// It does, unless it makes a call before that clocks do not repeat.
pub const OPEN: u32 = 1;
/// It has: its threads run in parallel until it is about to make such a call.
pub const DONE: u32 = 2;

/// Such a call: it makes code, in which nobody sees the loads that decide.
pub const CODE: u64 = 1;
/// It maps a file, or attaches a segment, that others may store to.
pub const SHARES: u64 = 2;
/// It makes another process.
pub const PROCESS: u64 = 3;
/// It gives a seccomp filter to all threads at once.
pub const FILTERS: u64 = 4;
/// It changes user or group in all threads.
pub const IDS: u64 = 5;
/// It cancels a thread: where that one can be cancelled shows only in functions that a follower does not call.
pub const CANCELS: u64 = 6;

/// times(2), which takes one argument: with this one behind it the agent makes it, before the program cancels a thread.
pub const NR_TIMES: u64 = nr::times;
/// See there.
pub const ABOUT_TO_CANCEL: u64 = 0x6361_6e63;
