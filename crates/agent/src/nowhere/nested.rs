//! Addresses in what a call is given: an iovec's buffers, what a message's header names, the strings of an exec. What
//! holds one of Geryon's is copied, with a place in its stead where nothing is.

use super::{is_reserved, kind_of, nowhere};
use crate::access::{word32, word64};
use crate::gate::guarded;
use geryon_abi::row::{Kind, Row};

/// The kernel takes no more buffers, and no more messages.
const IOVEC_MAX: u64 = 1024;
const IOVEC_BYTES: u64 = 16;
const MSGHDR_BYTES: u64 = 56;
const MMSGHDR_BYTES: u64 = 64;
/// In struct msghdr: the buffers and how many, the control data, and what the kernel tells.
const NAME: u64 = 0;
const NAME_LEN: u64 = 8;
const BUFFERS: u64 = 16;
const COUNT: u64 = 24;
const CONTROL: u64 = 32;
const CONTROL_LEN: u64 = 40;
const FLAGS: u64 = 48;
/// In struct mmsghdr.
const MSG_LEN: u64 = 56;
/// In struct ifconf.
const IFCONF_BUFFER: u64 = 8;
/// Words for copies: of the most buffers, and a message's header.
const ROOM: usize = 2 * IOVEC_MAX as usize + 8;

/// Does what the call is given name a place of Geryon's?
#[inline(never)]
pub fn names_reserved(row: &Row, args: &[u64; 6]) -> bool {
    let mut found = false;
    guarded(|| {
        for i in 0..row.args.len() {
            // SAFETY: inside `guarded`.
            if args[i] != 0 && unsafe { names(kind_of(row, i, args), args[i], args) } {
                // SAFETY: a local variable.
                unsafe { (&raw mut found).write_volatile(true) };
                return;
            }
        }
    });
    // SAFETY: a local variable: a fault has left it as it was.
    unsafe { (&raw const found).read_volatile() }
}

/// # Safety
/// Only inside [`guarded`].
#[inline(always)]
unsafe fn names(kind: Kind, p: u64, args: &[u64; 6]) -> bool {
    // SAFETY: the caller's promise.
    let at = |p: u64| unsafe { (p as *const u64).read_unaligned() };
    let buffers =
        |p: u64, n: u64| n <= IOVEC_MAX && (0..n).any(|k| is_reserved(at(p + IOVEC_BYTES * k)));
    let message = |p: u64| {
        let vector = at(p + BUFFERS);
        let inner = [at(p + NAME), vector, at(p + CONTROL)];
        inner.into_iter().any(is_reserved) || buffers(vector, at(p + COUNT))
    };
    match kind {
        Kind::IovecIn(n) | Kind::IovecOut(n) => buffers(p, args[n as usize]),
        Kind::MsghdrIn | Kind::MsghdrOut => message(p),
        Kind::MmsghdrIn(n) | Kind::MmsghdrOut(n) => {
            (0..messages(args[n as usize])).any(|k| message(p + MMSGHDR_BYTES * k))
        }
        Kind::Strings => (0..)
            .map(|k| at(p + 8 * k))
            .take_while(|s| *s != 0)
            .any(is_reserved),
        Kind::SigmaskPair => is_reserved(at(p)),
        Kind::Ifconf => is_reserved(at(p + IFCONF_BUFFER)),
        _ => false,
    }
}

fn messages(asked: u64) -> u64 {
    u64::from(asked as u32).min(IOVEC_MAX)
}

/// Copies for one call.
pub struct Copies {
    words: [u64; ROOM],
    used: usize,
}

impl Copies {
    pub const fn none() -> Copies {
        Copies {
            words: [0; ROOM],
            used: 0,
        }
    }

    /// Is this one of them?
    pub fn hold(&self, address: u64) -> bool {
        let start = self.words.as_ptr() as u64;
        (start..start + 8 * self.used as u64).contains(&address)
    }

    /// What stands for an argument: itself where it names nothing of Geryon's. Where there is no room, or it is not
    /// there itself, nothing is.
    pub fn of(&mut self, kind: Kind, p: u64, args: &[u64; 6]) -> u64 {
        let mut is_named = false;
        // SAFETY: inside `guarded`.
        let there = guarded(|| is_named = unsafe { p != 0 && names(kind, p, args) });
        if !there || !is_named {
            return p;
        }
        let copy = match kind {
            Kind::IovecIn(n) | Kind::IovecOut(n) => self.buffers(p, args[n as usize]),
            Kind::MsghdrIn | Kind::MsghdrOut => self.messages(p, 1, MSGHDR_BYTES),
            Kind::MmsghdrIn(n) | Kind::MmsghdrOut(n) => {
                self.messages(p, messages(args[n as usize]), MMSGHDR_BYTES)
            }
            Kind::SigmaskPair => self.copy(p, 2).inspect(|to| hide_at(*to)),
            Kind::Ifconf => self.copy(p, 2).inspect(|to| hide_at(to + IFCONF_BUFFER)),
            // One that is not there is as good as none.
            _ => None,
        };
        copy.unwrap_or(nowhere(p))
    }

    /// So many words; None where there is no room, or they are not there.
    fn copy(&mut self, p: u64, words: u64) -> Option<u64> {
        let to = self.words.get_mut(self.used..)?.get_mut(..words as usize)?;
        for (at, word) in (p..).step_by(8).zip(to.iter_mut()) {
            *word = word64(at)?;
        }
        let copy = to.as_ptr() as u64;
        self.used += words as usize;
        Some(copy)
    }

    fn buffers(&mut self, p: u64, count: u64) -> Option<u64> {
        let to = self.copy(p, 2 * count.min(IOVEC_MAX))?;
        (0..count.min(IOVEC_MAX)).for_each(|k| hide_at(to + IOVEC_BYTES * k));
        Some(to)
    }

    /// Headers of messages, each of so many bytes, and of their buffers those that need it.
    fn messages(&mut self, p: u64, count: u64, bytes: u64) -> Option<u64> {
        let to = self.copy(p, count * bytes / 8)?;
        for header in (0..count).map(|k| to + bytes * k) {
            let (vector, n) = (word64(header + BUFFERS)?, word64(header + COUNT)?);
            let named = |k| word64(vector.wrapping_add(IOVEC_BYTES * k)).is_some_and(is_reserved);
            if !is_reserved(vector) && n <= IOVEC_MAX && (0..n).any(named) {
                // (Where it is not all there the kernel takes none of it.)
                let copy = self.buffers(vector, n).unwrap_or(nowhere(vector));
                set64(header + BUFFERS, copy);
            }
            for at in [NAME, BUFFERS, CONTROL] {
                self.hide_in(header + at);
            }
        }
        Some(to)
    }

    /// The same as [`hide_at`], but for copies.
    fn hide_in(&self, at: u64) {
        if !word64(at).is_some_and(|a| self.hold(a)) {
            hide_at(at);
        }
    }
}

/// The address in this word of a copy, if it is one of Geryon's.
fn hide_at(at: u64) {
    if let Some(address) = word64(at).filter(|a| is_reserved(*a)) {
        set64(at, nowhere(address));
    }
}

fn set64(at: u64, to: u64) {
    // SAFETY: `at` lies in a copy.
    unsafe { (at as *mut u64).write_unaligned(to) }
}

/// What the kernel has told in a copy, where the program looks for it.
pub fn tell(kind: Kind, from: u64, to: u64, args: &[u64; 6]) {
    let message = |from: u64, to: u64| {
        for at in [NAME_LEN, CONTROL_LEN, CONTROL_LEN + 4, FLAGS] {
            tell_at(from + at, to + at);
        }
    };
    match kind {
        Kind::MsghdrOut => message(from, to),
        Kind::MmsghdrOut(n) => {
            for at in (0..messages(args[n as usize])).map(|k| MMSGHDR_BYTES * k) {
                message(from + at, to + at);
                tell_at(from + at + MSG_LEN, to + at + MSG_LEN);
            }
        }
        Kind::MmsghdrIn(n) => {
            for at in (0..messages(args[n as usize])).map(|k| MMSGHDR_BYTES * k) {
                tell_at(from + at + MSG_LEN, to + at + MSG_LEN);
            }
        }
        Kind::Ifconf => tell_at(from, to),
        _ => {}
    }
}

fn tell_at(from: u64, to: u64) {
    let (told, was) = (word32(from), word32(to));
    if let Some(told) = told.filter(|_| told != was) {
        // SAFETY: inside `guarded`.
        guarded(|| unsafe { (to as *mut u32).write_unaligned(told) });
    }
}
