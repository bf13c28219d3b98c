//! Values of [`super::Private::children`]: who says which children of a process have ended.

/// The kernel, unless the process has taken over.
pub const BY_KERNEL: u32 = 0;
/// It is about to be the monitor.
pub const CHANGING: u32 = 1;
/// The monitor.
pub const BY_MONITOR: u32 = 2;
