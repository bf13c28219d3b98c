//! Addresses of Geryon's own that the program passes to a call. Natively nothing is there, so the kernel is told of a
//! place where nothing is: else it would show the program what lies there, or write over it.

use geryon_abi::frame::Frame;
use geryon_abi::layout::{AGENT_BASE, NOWHERE_BASE, RESERVED_END};
use geryon_abi::row::{Kind, Row};
use geryon_abi::table::kind_of;

const IN_PAGE: u64 = 0xfff;

#[inline(always)]
const fn is_reserved(address: u64) -> bool {
    address.wrapping_sub(AGENT_BASE) < RESERVED_END - AGENT_BASE
}

/// The call's frame with such addresses replaced; what was there, if anything was.
#[inline(always)]
pub fn hide(frame: &mut Frame, row: &Row) -> Option<[u64; 6]> {
    let args = frame.args();
    if !args.iter().any(|a| is_reserved(*a)) {
        return None;
    }
    replace(frame, row, &args);
    Some(args)
}

/// The call was made: the program keeps its registers.
pub fn show(frame: &mut Frame, args: [u64; 6]) {
    frame.set_args(args);
}

#[cold]
fn replace(frame: &mut Frame, row: &Row, args: &[u64; 6]) {
    let mut replaced = *args;
    for i in 0..row.args.len() {
        if is_reserved(args[i]) && is_address(kind_of(row, i, args)) {
            replaced[i] = NOWHERE_BASE | args[i] & IN_PAGE;
        }
    }
    frame.set_args(replaced);
}

fn is_address(kind: Kind) -> bool {
    match kind {
        Kind::Int | Kind::Int32 | Kind::Fd | Kind::Unused | Kind::ByCommand => false,
        Kind::Id | Kind::IdIf(..) | Kind::Group => false,
        Kind::Addr | Kind::Path | Kind::Strings | Kind::Special | Kind::FutexSecond(_) => true,
        Kind::In(_) | Kind::Out(_) | Kind::InOut(_) | Kind::OutAlways(_) | Kind::InId(..) => true,
        Kind::IovecIn(_) | Kind::IovecOut(_) | Kind::MsghdrIn | Kind::MsghdrOut => true,
        Kind::MmsghdrIn(_) | Kind::MmsghdrOut(_) | Kind::SockaddrIn(_) => true,
        Kind::SockaddrOut(_) | Kind::FdSet(_) | Kind::Sigmask | Kind::SigmaskPair => true,
        Kind::Sigevent | Kind::EpollEvent | Kind::EpollEvents(_) | Kind::CapHeader => true,
        Kind::Flock(_) | Kind::FlockBack(_) | Kind::Siginfo | Kind::SiginfoOut => true,
        Kind::Ifconf => true,
    }
}
