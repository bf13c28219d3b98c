//! What a test can make one replica do wrong, at a chosen logged call.

/// Nothing.
pub const NONE: u32 = 0;
/// Instead of a core: on any, at one call.
pub const ONCE: u32 = u32::MAX;
/// Instead of a core: on any, at each call from then on.
pub const ALWAYS: u32 = u32::MAX - 1;
/// Change a scalar argument.
pub const ARGUMENT: u32 = 1;
/// Change a byte of an in-buffer.
pub const CONTENT: u32 = 2;
/// Swap the call for another number.
pub const ORDER: u32 = 3;
/// Make one call too many.
pub const EXTRA: u32 = 4;
/// Crash.
pub const CRASH: u32 = 5;
/// Stop making progress.
pub const HANG: u32 = 6;
/// Flip a bit of the next output behind its confirmation, where nobody looks any more.
pub const UNCHECKED: u32 = 7;
