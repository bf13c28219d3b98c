//! Values of [`super::Block::vforked`].

/// A thread of the process.
pub const NOT: u32 = 0;
/// A vfork's child with the descriptors of the program's child.
pub const YES: u32 = 1;
/// One that was born to follow, and has none: should it lead, it fetches its predecessor's.
pub const NAKED: u32 = 2;
