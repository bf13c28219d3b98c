//! What comes out of a call: the walk over all that the kernel has written.

use super::transfer::Transfer;
use super::{IOVEC_MAX, fdset_bytes, read32, read64};
use crate::gate::guarded;
use geryon_abi::row::{Kind, Len, Row};
use geryon_abi::table::kind_of;

/// Bytes of the longest address of a socket.
const NAME_MAX: u32 = 128;

const EINVAL: i64 = -22;

/// What has to be remembered from before the call to know how much the kernel wrote.
#[derive(Clone, Copy, Default)]
pub struct Before {
    words: [u32; 2],
    control: u64,
    name: u32,
}

impl Before {
    /// Room for whatever the kernel wrote.
    pub const UNLIMITED: Before = Before {
        words: [u32::MAX; 2],
        control: u64::MAX,
        name: u32::MAX,
    };
}

/// Take down value-result lengths before the call (leader).
pub fn before(row: &Row, args: &[u64; 6]) -> Before {
    let mut b = Before::default();
    for i in 0..row.args.len() {
        let len = match kind_of(row, i, args) {
            Kind::SockaddrOut(n) | Kind::Out(Len::Word(n)) => args[n as usize],
            Kind::MsghdrOut => {
                guarded(|| {
                    // SAFETY: inside `guarded`.
                    unsafe {
                        b.name = read32(args[i] + 8);
                        b.control = read64(args[i] + 40);
                    }
                });
                0
            }
            _ => 0,
        };
        if len != 0 {
            guarded(|| {
                // SAFETY: inside `guarded`.
                b.words[0] = unsafe { read32(len) };
            });
        }
    }
    b
}

/// Move all that the call has written, argument by argument.
pub(super) fn walk<T: Transfer>(
    t: &mut T,
    row: &Row,
    args: &[u64; 6],
    result: i64,
    before: &Before,
) {
    let good = result >= 0;
    for i in 0..row.args.len() {
        let p = args[i];
        if p == 0 {
            continue;
        }
        match kind_of(row, i, args) {
            Kind::OutAlways(len) if result != -14 => {
                plain(t, p, out_len(len, args, result, before))
            }
            Kind::Out(len) | Kind::InOut(len) if good => {
                plain(t, p, out_len(len, args, result, before))
            }
            // The version that the kernel knows, where it does not know the program's.
            Kind::CapHeader if result == EINVAL || (good && args[1] == 0) => plain(t, p, 4),
            Kind::FdSet(n) if good => plain(t, p, fdset_bytes(args[n as usize])),
            Kind::SockaddrOut(n) if good => {
                let word = args[n as usize];
                // SAFETY: the call succeeded, so the kernel has used the word.
                let after = if word == 0 {
                    0
                } else {
                    // SAFETY: the call succeeded, so the kernel has used the word.
                    unsafe { read32(word) }
                };
                plain(t, p, after.min(before.words[0]) as u64);
            }
            Kind::Ifconf if good => {
                // SAFETY: the call succeeded, so the kernel has used the structure.
                let (len, buffer) = unsafe { (read32(p), read64(p + 8)) };
                plain(t, p, 4);
                if buffer != 0 {
                    plain(t, buffer, len as u64);
                }
            }
            Kind::IovecOut(n) if good => iovec(t, p, args[n as usize], result as u64),
            Kind::MsghdrOut if good => message(t, p, result as u64, before),
            Kind::MmsghdrOut(n) if good => {
                for k in 0..(result as u64).min(args[n as usize]) {
                    // SAFETY: the kernel has written msg_len of the first `result` entries.
                    let n = unsafe { read32(p + 64 * k + 56) } as u64;
                    let b = Before {
                        name: NAME_MAX,
                        control: 1 << 16,
                        ..*before
                    };
                    let n = t.received(n);
                    message(t, p + 64 * k, n, &b);
                    plain(t, p + 64 * k + 56, 4);
                }
            }
            Kind::MmsghdrIn(n) if good => {
                for k in 0..(result as u64).min(args[n as usize]) {
                    plain(t, p + 64 * k + 56, 4);
                }
            }
            _ => {}
        }
    }
}

fn plain<T: Transfer>(t: &mut T, p: u64, len: u64) {
    let len = t.checked_len(len);
    t.move_bytes(p, len);
}

fn out_len(len: Len, args: &[u64; 6], result: i64, before: &Before) -> u64 {
    match len {
        Len::Fixed(n) => n as u64,
        Len::Arg(i) => args[i as usize],
        Len::ArgTimes(i, n) => args[i as usize].saturating_mul(n as u64),
        Len::Ret(i) => (result.max(0) as u64).min(args[i as usize]),
        Len::RetTimes(i, n) => (result.max(0) as u64).min(args[i as usize]) * n as u64,
        Len::Word(i) => {
            let word = args[i as usize];
            // SAFETY: the call succeeded, so the kernel has used the word.
            let after = if word == 0 {
                0
            } else {
                // SAFETY: the call succeeded, so the kernel has used the word.
                unsafe { read32(word) }
            };
            after.min(before.words[0]) as u64
        }
    }
}

fn iovec<T: Transfer>(t: &mut T, p: u64, count: u64, mut left: u64) {
    for k in 0..count.min(IOVEC_MAX) {
        // SAFETY: the kernel has just read the array.
        let (base, len) = unsafe { (read64(p + 16 * k), read64(p + 16 * k + 8)) };
        let n = len.min(left);
        if n > 0 {
            plain(t, base, n);
        }
        left -= n;
    }
}

fn message<T: Transfer>(t: &mut T, p: u64, received: u64, before: &Before) {
    // SAFETY: the kernel has just read and written the header. Offsets of struct msghdr.
    let (name, iov, count, control) =
        unsafe { (read64(p), read64(p + 16), read64(p + 24), read64(p + 32)) };
    // Lengths as the kernel left them, before the header itself is copied.
    // SAFETY: as above.
    let (name_len, control_len) = unsafe { (read32(p + 8), read64(p + 40)) };
    if name != 0 {
        let len = name_len.min(before.name) as u64;
        // Of several messages nobody has noted how much room there was for each name.
        let len = if before.name == NAME_MAX {
            t.received(len).min(NAME_MAX as u64)
        } else {
            t.checked_len(len)
        };
        t.move_bytes(name, len);
    }
    iovec(t, iov, count, received);
    if control != 0 {
        plain(t, control, control_len.min(before.control));
    }
    plain(t, p + 8, 4);
    plain(t, p + 40, 12);
}
