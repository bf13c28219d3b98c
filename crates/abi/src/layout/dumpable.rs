//! Values of [`super::Private::dumpable`].

/// The kernel keeps the flag.
pub const KERNELS: u32 = 0;
/// It is kept here, since the monitor needs a dumpable process: the program is not dumpable.
pub const NO: u32 = 1;
/// It is.
pub const YES: u32 = 2;
