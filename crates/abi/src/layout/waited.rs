//! What a signal is that a leader's thread has waited for.

/// The thread has made the call.
pub const MADE: u64 = 0;
/// A leader before it has, and may have asked already.
pub const GIVEN: u64 = 1;

/// The kernel has given it what it says.
pub const KNOWN: i64 = 0;
/// None of the program's: the thread waits on.
pub const NONE: i64 = 1;
/// What it says has been written anew, with the ids that the program knows.
pub const SHOWN: i64 = 2;
