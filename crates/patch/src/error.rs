//! What can go wrong; a site that cannot be patched is not an error.

/// Why no plan, or no trampolines, could be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Not a little-endian 64-bit x86-64 executable or shared object.
    #[error("not an x86-64 ELF executable or shared object: {0}")]
    NotElf(String),
    /// Headers contradict each other or point outside the file.
    #[error("damaged ELF file: {0}")]
    Damaged(String),
    /// The trampoline area is too far from the code or from data that moved
    /// instructions refer to.
    #[error("trampoline at {from:#x} cannot reach {to:#x} with a 32-bit displacement")]
    OutOfReach {
        /// Address of the instruction's end in the trampoline area.
        from: u64,
        /// What it must reach.
        to: u64,
    },
    /// The trampoline area is not aligned to [`crate::AREA_ALIGN`].
    #[error("trampoline area {0:#x} is not page aligned")]
    Misaligned(u64),
    /// A plan (from a cache) holds bytes that do not decode as when it was made.
    #[error("plan does not fit its own bytes at {0:#x}")]
    BadPlan(u64),
}
