//! What a program says to Geryon about the order of its threads (`include/geryon.h`): commands of prctl(2) that Linux does not have.

/// The number, in the place of a prctl's option.
pub const NUMBER: u32 = 0x4765_5279;
/// Second argument: does the program run under Geryon? 1 if it does.
pub const IS_HERE: u64 = 0;
/// Second argument: the mutex at the third one is taken out of order from now on.
pub const RELAX: u64 = 1;
