//! How much the sleeping replicas (a checkpoint) are in the way.

/// There should be younger ones soon: the log fills up.
pub const SOON: u64 = 0;
/// Nothing can go on before they are gone.
pub const NOW: u64 = 1;
/// They would have to map a file whose descriptor is about to be closed.
pub const FILE: u64 = 2;
