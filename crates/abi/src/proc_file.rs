//! Files below /proc/PID that change the process or thread when they are written.

/// Names, by index: what a record says of them.
pub const NAMES: [&str; 6] = [
    "comm",
    "oom_score_adj",
    "oom_adj",
    "timerslack_ns",
    "coredump_filter",
    "mem",
];

/// Index of the name of a thread, which only threads of its process may change.
pub const COMM: u8 = 0;
/// Index of the memory.
pub const MEM: u8 = 5;
/// So much of what is written to any file but the memory counts.
pub const MAX_VALUE: usize = 64;

/// What an agent tells the monitor about such a write, see [`crate::layout::rpc::WRITES`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Writing {
    /// The process or thread in the asking replica.
    pub id: u64,
    /// Index of the file.
    pub file: u64,
    /// Where what is written lies.
    pub address: u64,
    /// How much it is.
    pub len: u64,
    /// And where it goes.
    pub offset: u64,
}
