//! What goes into a call: its digest.

use super::same;
use super::{EPOLL_DATA, IOVEC_MAX, bytes, fdset_bytes, read32, read64};
use crate::access::{readable, word32};
use crate::digest::Digest;
use crate::gate::guarded;
use crate::state::layout;
use geryon_abi::row::{Kind, Len, Row, SIGINFO_BYTES, futex_has_second, futex_has_third};
use geryon_abi::table::kind_of;

const PATH_MAX: usize = 4096;
/// Bytes of the longest address of a socket.
const NAME_MAX: u64 = 128;

/// # Safety
/// Only inside [`guarded`].
unsafe fn in_len(row: &Row, len: Len, args: &[u64; 6]) -> u64 {
    match len {
        Len::Word(i) if args[i as usize] == 0 => 0,
        // SAFETY: the caller's promise.
        Len::Word(i) => unsafe { read32(args[i as usize]) as u64 },
        Len::Fixed(_)
        | Len::Arg(_)
        | Len::Ret(_)
        | Len::ArgTimes(..)
        | Len::RetTimes(..)
        | Len::ArgPlus(..)
        | Len::RetPlus(..) => row.given(len, args),
    }
}

/// The digest of number and arguments; only what the row says the kernel looks at.
pub fn digest(row: &Row, args: &[u64; 6]) -> u64 {
    let mut d = Digest::new(row.nr as u64);
    let mut deep = false;
    let differs = same::are_there();
    for i in 0..row.args.len() {
        if differs && same::is_length(row, i) {
            continue;
        }
        let v = args[i];
        match kind_of(row, i, args) {
            Kind::Int | Kind::ByCommand => d.number(v),
            Kind::Addr | Kind::Special => d.number(layout().name(v)),
            Kind::Int32 | Kind::Fd | Kind::Id | Kind::IdIf(..) | Kind::Group => {
                d.number(v as u32 as u64)
            }
            Kind::FutexSecond(op) if !futex_has_second(args[op as usize] as u32) => {}
            Kind::FutexSecond(_) => d.number(layout().name(v)),
            Kind::FutexThird(op) if !futex_has_third(args[op as usize] as u32) => {}
            Kind::FutexThird(_) => d.number(v as u32 as u64),
            Kind::Unused => {}
            Kind::Out(_) | Kind::OutAlways(_) | Kind::IovecOut(_) | Kind::SockaddrOut(_) => {
                d.number((v != 0) as u64)
            }
            Kind::EpollEvents(_) | Kind::SiginfoOut => d.number((v != 0) as u64),
            _ => {
                d.number((v != 0) as u64);
                deep |= v != 0;
            }
        }
    }
    if deep {
        let shallow = d;
        let whole = guarded(|| {
            for i in 0..row.args.len() {
                if args[i] != 0 {
                    // SAFETY: inside `guarded`.
                    unsafe { digest_memory(&mut d, row, i, args) };
                }
            }
        });
        if !whole {
            d = shallow;
            digest_what_is_there(&mut d, row, args);
        }
    }
    d.finish()
}

/// Some of it is not there: the kernel will answer EFAULT, or take what comes before that.
#[cold]
fn digest_what_is_there(d: &mut Digest, row: &Row, args: &[u64; 6]) {
    d.number(0xfa17);
    for i in 0..row.args.len() {
        let p = args[i];
        if p == 0 {
            continue;
        }
        let (Kind::In(len) | Kind::InOut(len)) = kind_of(row, i, args) else {
            let mut of_this = *d;
            // SAFETY: inside `guarded`.
            match guarded(|| unsafe { digest_memory(&mut of_this, row, i, args) }) {
                true => *d = of_this,
                false => d.number(0xfa17),
            }
            continue;
        };
        let len = match len {
            Len::Word(k) => word32(args[k as usize]).unwrap_or(0) as u64,
            _ => row.given(len, args),
        };
        let there = readable(p, len);
        let mut of_this = *d;
        // SAFETY: inside `guarded`.
        match guarded(|| of_this.bytes(unsafe { bytes(p, there) })) {
            true => *d = of_this,
            false => d.number(0xfa17),
        }
    }
}

/// # Safety
/// Only inside [`guarded`].
unsafe fn digest_memory(d: &mut Digest, row: &Row, i: usize, args: &[u64; 6]) {
    let p = args[i];
    // SAFETY: the caller's promise.
    unsafe {
        match kind_of(row, i, args) {
            Kind::Path => {
                let mut n = 0;
                while n < PATH_MAX && *((p + n as u64) as *const u8) != 0 {
                    n += 1;
                }
                d.bytes(bytes(p, n as u64));
            }
            Kind::Strings => {
                let mut at = p;
                loop {
                    let s = read64(at);
                    if s == 0 {
                        break;
                    }
                    let mut n = 0;
                    while *((s + n) as *const u8) != 0 {
                        n += 1;
                    }
                    d.bytes(bytes(s, n));
                    at += 8;
                }
            }
            Kind::In(len) if same::are_there() => {
                same::digest(d, bytes(p, in_len(row, len, args)));
            }
            Kind::In(len) | Kind::InOut(len) => d.bytes(bytes(p, in_len(row, len, args))),
            Kind::SockaddrIn(n) => digest_name(d, p, args[n as usize] as u32 as u64),
            Kind::InId(len, _) => d.bytes(bytes(p, len as u64)),
            Kind::CapHeader => d.bytes(bytes(p, 8)),
            Kind::FdSet(n) => d.bytes(bytes(p, fdset_bytes(args[n as usize]))),
            Kind::IovecIn(n) => digest_iovec(d, p, args[n as usize]),
            Kind::MsghdrIn => digest_message(d, p),
            Kind::MmsghdrIn(n) => {
                for k in 0..args[n as usize].min(IOVEC_MAX) {
                    digest_message(d, p + 64 * k);
                }
            }
            Kind::MsghdrOut | Kind::MmsghdrOut(_) => d.number(read32(p + 8) as u64),
            Kind::Sigmask => d.bytes(bytes(p, 8)),
            Kind::SigmaskPair => {
                let set = read64(p);
                if set != 0 {
                    d.bytes(bytes(set, 8));
                }
            }
            Kind::Ifconf => d.number(read32(p) as u64),
            Kind::EpollEvent => {
                d.number(read32(p) as u64);
                d.number(layout().opaque(read64(p + EPOLL_DATA)));
            }
            Kind::Flock(with_id) | Kind::FlockBack(with_id) => {
                d.number(read32(p) as u64);
                d.number(read64(p + 8));
                d.number(read64(p + 16));
                if with_id {
                    d.number(read32(p + 24) as u64);
                }
            }
            Kind::Siginfo => {
                for at in (p..p + u64::from(SIGINFO_BYTES)).step_by(8) {
                    d.number(layout().opaque(read64(at)));
                }
            }
            // sigev_value is opaque; signal number and way of notification are not.
            Kind::Sigevent => d.number(read64(p + 8)),
            _ => {}
        }
    }
}

unsafe fn digest_iovec(d: &mut Digest, p: u64, count: u64) {
    for k in 0..count.min(IOVEC_MAX) {
        // SAFETY: inside `guarded`, as the caller is.
        let bytes = unsafe { bytes(read64(p + 16 * k), read64(p + 16 * k + 8)) };
        match same::are_there() {
            true => same::digest(d, bytes),
            false => d.bytes(bytes),
        }
    }
}

/// What the kernel looks at of an address of a socket: what lies behind that may be whatever the stack held.
unsafe fn digest_name(d: &mut Digest, p: u64, len: u64) {
    const UNIX: u16 = 1;
    const INET: u16 = 2;
    /// Bytes of struct sockaddr_in before its padding.
    const INET_BYTES: usize = 8;
    const FAMILY_BYTES: usize = 2;
    // SAFETY: inside `guarded`, as the caller is.
    let name = unsafe { bytes(p, len.min(NAME_MAX)) };
    let family = name.first_chunk().map(|f| u16::from_ne_bytes(*f));
    let seen = match family {
        Some(INET) => INET_BYTES,
        // A path; abstract names begin with a zero, and others are part of them.
        Some(UNIX) => match name[FAMILY_BYTES..].iter().position(|b| *b == 0) {
            Some(end @ 1..) => FAMILY_BYTES + end,
            _ => name.len(),
        },
        _ => name.len(),
    };
    d.bytes(&name[..seen.min(name.len())]);
}

unsafe fn digest_message(d: &mut Digest, p: u64) {
    // SAFETY: inside `guarded`, as the caller is. Offsets are those of struct msghdr.
    unsafe {
        let (name, name_len) = (read64(p), read32(p + 8) as u64);
        if name != 0 {
            digest_name(d, name, name_len);
        }
        digest_iovec(d, read64(p + 16), read64(p + 24));
        let (control, control_len) = (read64(p + 32), read64(p + 40));
        if control != 0 {
            d.bytes(bytes(control, control_len));
        }
    }
}
