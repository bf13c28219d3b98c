//! Addresses of Geryon's own that the program passes to a call, or that stand in what it passes (buffers of an iovec, of
//! a message). Natively nothing is there, so the kernel is told of a place where nothing is: else it would show the
//! program what lies there, or write over it. What holds such an address is copied for as long as the call takes.

mod nested;

use crate::state::block;
use core::sync::atomic::{AtomicPtr, Ordering};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{AGENT_BASE, MAX_THREADS, NOWHERE_BASE, RESERVED_END};
use geryon_abi::row::{Kind, Row};
use geryon_abi::table;
use geryon_abi::table::nr;
use nested::Copies;

const IN_PAGE: u64 = 0xfff;

#[inline(always)]
const fn is_reserved(address: u64) -> bool {
    address.wrapping_sub(AGENT_BASE) < RESERVED_END - AGENT_BASE
}

/// A place where nothing is, as far from a page's end.
const fn nowhere(address: u64) -> u64 {
    NOWHERE_BASE | address & IN_PAGE
}

/// Of a call under way: what it was given, and what in place of that. On its thread's stack.
struct Hidden {
    row: &'static Row,
    given: [u64; 6],
    hidden: [u64; 6],
    copies: Copies,
}

/// What the threads' calls have hidden.
static HIDDEN: [AtomicPtr<Hidden>; MAX_THREADS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_THREADS];

fn of_this_thread() -> &'static AtomicPtr<Hidden> {
    &HIDDEN[block().slot as usize % MAX_THREADS]
}

/// Make the call, with such addresses replaced.
#[inline(always)]
pub fn hide(frame: &mut Frame, row: &'static Row, make: fn(&mut Frame, &'static Row)) {
    let args = frame.args();
    let is_named = args.iter().any(|a| is_reserved(*a));
    if is_named || (row.nests && nested::names_reserved(row, &args)) {
        make_hidden(frame, row, make);
    } else {
        make(frame, row);
    }
}

/// Where the kernel would look for what the program says is there.
pub fn seen(address: u64) -> u64 {
    if is_reserved(address) {
        nowhere(address)
    } else {
        address
    }
}

const SETSOCKOPT: u16 = nr::setsockopt as u16;

/// Is a socket given a filter? (Number of instructions, and their address.)
fn sets_filter(args: &[u64; 6]) -> bool {
    const SOL_SOCKET: u32 = 1;
    const SO_ATTACH_FILTER: u32 = 26;
    const SO_ATTACH_REUSEPORT_CBPF: u32 = 51;
    let filters = [SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF];
    args[1] as u32 == SOL_SOCKET && filters.contains(&(args[2] as u32))
}

/// An argument's kind.
fn kind_of(row: &Row, i: usize, args: &[u64; 6]) -> Kind {
    match i {
        // (A number and an address, as an ifconf.)
        3 if row.nr == SETSOCKOPT && sets_filter(args) => Kind::Ifconf,
        _ => table::kind_of(row, i, args),
    }
}

#[cold]
#[inline(never)]
fn make_hidden(frame: &mut Frame, row: &'static Row, make: fn(&mut Frame, &'static Row)) {
    let given = frame.args();
    let mut all = Hidden {
        row,
        given,
        hidden: given,
        copies: Copies::none(),
    };
    for (i, to) in all.hidden.iter_mut().enumerate().take(row.args.len()) {
        let kind = kind_of(row, i, &given);
        if !is_reserved(given[i]) {
            *to = all.copies.of(kind, given[i], &given);
        } else if is_address(kind) {
            *to = nowhere(given[i]);
        }
    }
    if all.hidden == given {
        // (A register that is no argument.)
        return make(frame, row);
    }
    frame.set_args(all.hidden);
    of_this_thread().store(&raw mut all, Ordering::Relaxed);
    make(frame, row);
    show(frame);
}

/// The call was made, or its thread goes to a handler: the program has its registers, and what the kernel has told it
/// where a copy was.
#[inline(always)]
pub fn show(frame: &mut Frame) {
    let all = of_this_thread();
    if !all.load(Ordering::Relaxed).is_null() {
        give_back(frame, all.swap(core::ptr::null_mut(), Ordering::Relaxed));
    }
}

#[cold]
fn give_back(frame: &mut Frame, all: *const Hidden) {
    // SAFETY: it lies on this thread's stack, in the frame of `make_hidden`, which has not returned: it takes the
    // pointer out before it does, and so does whoever leaves the call for good.
    let all = unsafe { &*all };
    for i in 0..all.row.args.len() {
        let (from, to) = (all.hidden[i], all.given[i]);
        if from != to && !is_reserved(to) && all.copies.hold(from) {
            nested::tell(kind_of(all.row, i, &all.given), from, to, &all.given);
        }
    }
    frame.set_args(all.given);
}

/// A new thread: the last one on its slot may have left in the midst of a call.
pub fn forget(slot: usize) {
    HIDDEN[slot % MAX_THREADS].store(core::ptr::null_mut(), Ordering::Relaxed);
}

fn is_address(kind: Kind) -> bool {
    match kind {
        Kind::Int
        | Kind::Int32
        | Kind::FutexThird(_)
        | Kind::Fd
        | Kind::Unused
        | Kind::ByCommand => false,
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
