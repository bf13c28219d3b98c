//! Kinds of divergence.

/// Another call, or another kind of operation.
pub const KIND: u32 = 1;
/// The same call with other arguments or content.
pub const DIGEST: u32 = 2;
/// Another lock, or another atomic instruction.
pub const SITE: u32 = 3;
/// The same operation gave another result.
pub const OUTCOME: u32 = 4;
/// A local operation failed here that succeeded in the leader.
pub const LOCAL: u32 = 5;
/// What the record says that a call wrote is not what the leader says that it wrote.
pub const DAMAGED: u32 = 6;
