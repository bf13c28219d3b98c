//! Which way an id is translated.

/// From the program's to the process's that it names now.
pub const OWN: u64 = 0;
/// From a process's to the program's.
pub const SHOWN: u64 = 1;
/// The asking process's parent, as the program knows it; 0 when that is outside.
pub const PARENT: u64 = 2;
/// From the program's to the asking replica's own; 0 when it has none of that name.
pub const MINE: u64 = 3;
