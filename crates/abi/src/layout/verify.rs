//! What has to be confirmed before it happens (`--verify`).

/// Outputs are confirmed by all before they happen.
pub const OUTPUT: u32 = 0;
/// Every logged call is a rendezvous.
pub const ALL: u32 = 1;
/// Nothing waits; divergence is found after the fact.
pub const ASYNC: u32 = 2;
/// As [`OUTPUT`]; but for what leaves a program of one process a majority is enough (`call/whose.rs`).
pub const MAJORITY: u32 = 3;
