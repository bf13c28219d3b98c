//! Secrets: what the kernel gives each program by chance (AT_RANDOM), and what the C library makes of it: the value that
//! guards return addresses (the canary), and what addresses are combined with that it keeps (the pointer guard).
//! Replicas that differ on purpose may have each their own (`--variants full`).

use super::Word64;

/// From the thread pointer on: where the canary lies (of the System V ABI for x86-64, in each C library).
pub const CANARY_AT: u64 = 0x28;
/// And glibc's pointer guard.
pub const POINTER_GUARD_AT: u64 = 0x30;
/// Bits of the first word that every C library has in its canary: of the rest it makes a zero that ends strings (glibc of
/// the first byte, musl of the second).
pub const CANARY_BITS: u64 = !0xffff;

/// Words at AT_RANDOM.
pub type Words = [u64; 2];

/// Those of one process. The monitor writes all of it before the first instruction.
#[repr(C)]
#[derive(Default)]
pub struct Secrets {
    /// Where the program finds its own words, until the C library has taken them: from then on all replicas find the same
    /// there. 0: there is nothing more to be done.
    pub at: Word64,
    /// The thread pointer, once it is set.
    pub thread: Word64,
    /// 1: the C library takes both words.
    pub takes_both: u64,
    /// What all replicas find.
    pub shown: Words,
    /// What this replica's C library has taken. (Zeros where replicas do not differ on purpose.)
    pub own: Words,
}
