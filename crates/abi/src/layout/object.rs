//! Files that a program maps to be shared and writable: the leader maps the file, and each follower an
//! object of its replica's own in its place.

/// In an object's number: it is opened to be read only, as the leader's descriptor was.
pub const READ_ONLY: u32 = 1 << 31;

/// What stands in [`super::Header::shared`] for an inode.
pub const fn bit(inode: u64) -> u64 {
    1 << (inode.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

/// Bits of the last argument of [`super::rpc::COMPARE`].
pub mod compare {
    /// No other thread of the process runs, in any replica.
    pub const ALONE: u64 = 1;
    /// The process ends.
    pub const LEAVES: u64 = 2;
    /// It does not ask again.
    pub const LAST: u64 = 4;
}
