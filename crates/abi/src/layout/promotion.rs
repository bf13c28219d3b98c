//! How far a follower is on its way to lead. No word beside it looks like one of these, and no bit or
//! two make one of the other.

/// Nobody has asked it to.
pub const NONE: u32 = 0;
/// The monitor: the former leader is gone, its log was replayed to the end.
pub const ASKED: u32 = 0xa11c_e5d3;
/// One of its threads prepares the process.
pub const UNDER_WAY: u32 = 0x57d2_9a6e;
/// It leads.
pub const DONE: u32 = 0xce6f_31b8;
