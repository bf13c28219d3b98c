//! One walk over a call's arguments, as its row describes them: digest of what goes in
//! (`ingoing`), copy of what comes out (`outgoing`), and between whom it is copied (`transfer`).

pub mod events;
mod ingoing;
mod outgoing;
pub mod same;
mod transfer;

pub use ingoing::digest;
pub use outgoing::{Before, before};
pub use transfer::{Received, inherit, noted, receive, send, send_again, words, written};

use geryon_abi::row::{Kind, Row};
use geryon_abi::table::kind_of;

const IOVEC_MAX: u64 = 1024;
/// Bytes of struct epoll_event, and where its data stands.
const EPOLL_EVENT: u32 = 12;
const EPOLL_DATA: u64 = 4;

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

/// Does anything come out of this call but its result?
pub fn comes_out(row: &Row, args: &[u64; 6]) -> bool {
    (0..row.args.len()).any(|i| match kind_of(row, i, args) {
        Kind::Out(_) | Kind::InOut(_) | Kind::OutAlways(_) | Kind::Special => true,
        Kind::FutexSecond(_) | Kind::SiginfoOut | Kind::FlockBack(_) => true,
        Kind::IovecOut(_) | Kind::MsghdrOut | Kind::MmsghdrOut(_) | Kind::MmsghdrIn(_) => true,
        Kind::SockaddrOut(_) | Kind::FdSet(_) | Kind::Ifconf | Kind::CapHeader => true,
        Kind::EpollEvents(_) => true,
        Kind::Int | Kind::Int32 | Kind::Fd | Kind::Addr | Kind::Unused | Kind::ByCommand => false,
        Kind::Id | Kind::IdIf(..) | Kind::Group | Kind::InId(..) | Kind::FutexThird(_) => false,
        Kind::Path | Kind::Strings | Kind::In(_) | Kind::IovecIn(_) | Kind::MsghdrIn => false,
        Kind::SockaddrIn(_) | Kind::Siginfo | Kind::Flock(_) => false,
        Kind::Sigmask | Kind::SigmaskPair | Kind::Sigevent | Kind::EpollEvent => false,
    })
}

fn fdset_bytes(bits: u64) -> u64 {
    bits.min(1 << 20).div_ceil(64) * 8
}
