//! How far a follower is on its way to lead.

/// Nobody has asked it to.
pub const NONE: u32 = 0;
/// The monitor: the former leader is gone, its log was replayed to the end.
pub const ASKED: u32 = 1;
/// One of its threads prepares the process.
pub const UNDER_WAY: u32 = 2;
/// It leads.
pub const DONE: u32 = 3;
