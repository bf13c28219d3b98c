//! Values of [`super::Private::owes`]: what a process lacks that leads since its vfork's child has come to the
//! end of the log. Its own thread stands in the kernel until that child is gone.

/// Nothing.
pub const NOTHING: u32 = 0;
/// Descriptors, unless they are shared, and its timer.
pub const REST: u32 = 1;
/// They are being fetched.
pub const UNDER_WAY: u32 = 2;
