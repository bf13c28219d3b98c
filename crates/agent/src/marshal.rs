//! One walk over a call's arguments, as its row describes them: digest of what goes in
//! (`ingoing`), copy of what comes out (`outgoing`), and between whom it is copied (`transfer`).

mod ingoing;
mod outgoing;
mod transfer;

pub use ingoing::digest;
pub use outgoing::{Before, before};
pub use transfer::{Received, inherit, noted, receive, send, send_again, written};

const IOVEC_MAX: u64 = 1024;

/// Read a word of application memory.
///
/// # Safety
/// Only inside [`guarded`], or when the kernel has just accepted the address.
#[inline(always)]
unsafe fn read64(address: u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (address as *const u64).read_unaligned() }
}

#[inline(always)]
unsafe fn read32(address: u64) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { (address as *const u32).read_unaligned() }
}

unsafe fn bytes(address: u64, len: u64) -> &'static [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise, for all `len` bytes; the slice is not kept.
    unsafe { core::slice::from_raw_parts(address as *const u8, len as usize) }
}

fn fdset_bytes(bits: u64) -> u64 {
    bits.min(1 << 20).div_ceil(64) * 8
}
