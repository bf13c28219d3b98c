//! The role of a process among its replicas. No bit or two make one of the other, and no other word
//! looks like one: a follower whose register names the word beside its role must not make the leader's
//! calls.

/// Executes, records.
pub const LEADER: u32 = 0x4c65_6164;
/// Replays.
pub const FOLLOWER: u32 = !LEADER;
