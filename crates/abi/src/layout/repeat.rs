//! What a copy of a leader's thread can do anew.

/// Nothing: the thread is in the midst of something.
pub const NOTHING: u32 = 0;
/// The call whose state is in the thread's frame.
pub const CALL: u32 = 1;
/// The rest of that call, behind its beginning, which all have confirmed, and behind what was logged since (a turn).
pub const END: u32 = 2;
/// The wait for its first turn.
pub const FIRST_TURN: u32 = 3;
/// The look at who waits for the turn, whose state is in the thread's frame.
pub const LOOK: u32 = 4;
