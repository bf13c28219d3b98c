//! Why a thread waits inside the agent.

/// It does not.
pub const NONE: u32 = 0;
/// Follower: for the leader's next record.
pub const RECORD: u32 = 1;
/// Follower: for its turn on a clock.
pub const TURN: u32 = 2;
/// Leader: for confirmation.
pub const CONFIRM: u32 = 3;
/// Leader: for room in the ring.
pub const ROOM: u32 = 4;
/// Anyone: inside a real system call.
pub const KERNEL: u32 = 5;
/// For memory to show a value that another thread stores.
pub const VALUE: u32 = 6;
/// Leader: for followers to have mapped a file.
pub const MAPS: u32 = 7;
/// Stopped for good, by a divergence.
pub const DIVERGED: u32 = 8;
