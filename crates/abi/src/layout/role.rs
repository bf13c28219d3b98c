//! The role of a process among its replicas.

/// Executes, records.
pub const LEADER: u32 = 1;
/// Replays.
pub const FOLLOWER: u32 = 2;
