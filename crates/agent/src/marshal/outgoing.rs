//! What comes out of a call: the walk over all that the kernel has written.

use super::transfer::Transfer;
use super::{EPOLL_DATA, EPOLL_EVENT, IOVEC_MAX, fdset_bytes};
use crate::access::{LARGEST, is_writable_behind, word32, word64, written_beyond};
use crate::state::have_own_programs;
use geryon_abi::row::{Arg, FLOCK_BYTES, Kind, Len, Row, SIGINFO_BYTES};
use geryon_abi::table::kind_of;

/// Bytes of the longest address of a socket.
const NAME_MAX: u32 = 128;
const E2BIG: i64 = -7;
const EFAULT: i64 = -14;
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
        match kind_of(row, i, args) {
            Kind::SockaddrOut(n) | Kind::Out(Len::Word(n)) => {
                b.words[0] = word_at(args[n as usize]);
            }
            Kind::MsghdrOut => {
                b.name = word_at(args[i].wrapping_add(8));
                b.control = word64(args[i].wrapping_add(40)).unwrap_or(0);
            }
            _ => {}
        }
    }
    b
}

/// Move all that the call has written, argument by argument. Where it says EFAULT it has come to memory that
/// it could not write, and nobody knows how much it had written until then: all that it was allowed to is
/// moved, whether it has changed or not.
pub(super) fn walk<T: Transfer>(
    t: &mut T,
    row: &Row,
    args: &[u64; 6],
    result: i64,
    before: &Before,
) {
    let good = result >= 0;
    // (A peer's address of a negative length is found when a packet has been written.)
    let has_name = |row: &Row| {
        let is_name = |a: &Arg| matches!(a.kind, Kind::SockaddrOut(_));
        row.args.iter().any(is_name)
    };
    let faulted = result == EFAULT || (result == EINVAL && has_name(row));
    for i in 0..row.args.len() {
        let p = args[i];
        if p == 0 {
            continue;
        }
        match kind_of(row, i, args) {
            Kind::OutAlways(len) | Kind::Out(len) | Kind::InOut(len) if faulted => {
                whole(t, p, room(row, len, args, before))
            }
            Kind::FlockBack(_) if good || faulted => {
                let bytes = u64::from(FLOCK_BYTES);
                plain(t, p, bytes, bytes);
            }
            Kind::SiginfoOut if good || faulted => {
                let bytes = u64::from(SIGINFO_BYTES);
                plain(t, p, bytes, bytes);
            }
            Kind::EpollEvent if good && have_own_programs() => {
                let own = word64(p + EPOLL_DATA).unwrap_or(0);
                super::events::note(args, own, t.number(own));
            }
            Kind::EpollEvents(n) if faulted => {
                whole(t, p, room(row, Len::ArgTimes(n, EPOLL_EVENT), args, before))
            }
            Kind::EpollEvents(n) if good => {
                let len = Len::RetTimes(n, EPOLL_EVENT);
                written(t, p, row, len, args, result, before);
            }
            // Of so many it looks at none.
            Kind::OutAlways(Len::ArgTimes(..)) if result == EINVAL => {}
            Kind::OutAlways(len) => written(t, p, row, len, args, result, before),
            Kind::Out(len) | Kind::InOut(len) if good => {
                written(t, p, row, len, args, result, before)
            }
            Kind::FdSet(n) if good || faulted => {
                let bytes = fdset_bytes(args[n as usize]);
                plain(t, p, bytes, bytes);
            }
            // The size that the kernel knows, where it does not know the program's.
            Kind::In(Len::Word(_)) if result == E2BIG => plain(t, p, 4, 4),
            // The version that the kernel knows, where it does not know the program's.
            Kind::CapHeader if result == EINVAL || (good && args[1] == 0) => plain(t, p, 4, 4),
            Kind::SockaddrOut(n) if good => {
                let after = word_at(args[n as usize]);
                plain(t, p, after.min(before.words[0]) as u64, after as u64);
            }
            Kind::SockaddrOut(_) if faulted => whole(t, p, before.words[0].min(NAME_MAX) as u64),
            Kind::Ifconf if good || faulted => {
                // (As long as it was before the call, where that has failed.)
                let (len, buffer) = (word_at(p), word64(p + 8).unwrap_or(0));
                plain(t, p, 4, 4);
                if buffer != 0 {
                    plain(t, buffer, len as u64, len as u64);
                }
            }
            Kind::IovecOut(n) if good => iovec(t, p, args[n as usize], result as u64),
            Kind::IovecOut(n) if faulted => iovec(t, p, args[n as usize], u64::MAX),
            Kind::MsghdrOut if good => message(t, p, result as u64, before),
            Kind::MsghdrOut if faulted => message(t, p, u64::MAX, before),
            Kind::MmsghdrOut(n) if good || faulted => {
                let vlen = args[n as usize] as u32 as u64;
                let count = if good { vlen.min(result as u64) } else { vlen };
                // (The kernel knows a name's length, and that of its control data, for each.)
                let room = Before {
                    name: NAME_MAX,
                    control: 1 << 16,
                    ..*before
                };
                for k in 0..count.min(IOVEC_MAX) {
                    // The kernel has written msg_len of the first `result` entries.
                    let n = if good {
                        word_at(p + 64 * k + 56) as u64
                    } else {
                        u64::MAX
                    };
                    let n = t.number(n);
                    message(t, p + 64 * k, n, &room);
                    plain(t, p + 64 * k + 56, 4, 4);
                }
                // One more may have been taken, and come to memory that cannot be written.
                if good && count < vlen.min(IOVEC_MAX) {
                    let next = p + 64 * count;
                    let is_torn = T::LOOKS && !is_all_writable(next);
                    let is_torn = t.number(is_torn as u64) != 0;
                    if is_torn {
                        message(t, next, u64::MAX, &room);
                    }
                    if is_torn || is_refused(next) {
                        crate::stored::note();
                    }
                }
            }
            Kind::MmsghdrIn(n) if good => {
                for k in 0..(result as u64).min(args[n as usize]) {
                    plain(t, p + 64 * k + 56, 4, 4);
                }
            }
            _ => {}
        }
    }
}

/// A word that the call has used; 0 where there is none.
fn word_at(address: u64) -> u32 {
    if address == 0 {
        return 0;
    }
    word32(address).unwrap_or(0)
}

/// So many bytes, and no more than `most`.
fn plain<T: Transfer>(t: &mut T, p: u64, len: u64, most: u64) {
    let len = t.extent(p, len, most);
    t.move_bytes(p, len);
}

/// All that a call may have written to which was given so much room.
fn whole<T: Transfer>(t: &mut T, p: u64, len: u64) {
    // (A size that no memory has is no mistake to all calls: getcwd looks at what it has to tell.)
    plain(t, p, len, len);
}

/// What a call that was not refused has written there.
fn written<T: Transfer>(
    t: &mut T,
    p: u64,
    row: &Row,
    len: Len,
    args: &[u64; 6],
    result: i64,
    before: &Before,
) {
    let most = room(row, len, args, before);
    let len = match len {
        Len::Ret(_) => {
            let len = (result.max(0) as u64).min(most);
            if T::LOOKS {
                len + written_beyond(p, len, most)
            } else {
                len
            }
        }
        Len::RetTimes(_, n) => (result.max(0) as u64).saturating_mul(n as u64).min(most),
        Len::RetPlus(_, n) => (result.max(0) as u64).saturating_add(n as u64).min(most),
        // (Where this replica follows, the word is still what it was before the call.)
        Len::Word(i) => word_at(args[i as usize]).min(before.words[0]) as u64,
        Len::Fixed(_) | Len::Arg(_) | Len::ArgTimes(..) | Len::ArgPlus(..) => most,
    };
    plain(t, p, len, most);
}

/// The room that a call was given.
fn room(row: &Row, len: Len, args: &[u64; 6], before: &Before) -> u64 {
    match len {
        Len::Word(_) => before.words[0] as u64,
        Len::Fixed(_)
        | Len::Arg(_)
        | Len::Ret(_)
        | Len::ArgTimes(..)
        | Len::RetTimes(..)
        | Len::ArgPlus(..)
        | Len::RetPlus(..) => row.given(len, args),
    }
}

fn iovec<T: Transfer>(t: &mut T, p: u64, count: u64, mut left: u64) {
    let faulted = left == u64::MAX;
    if !faulted && left < room_of(p, count) {
        let beyond = if T::LOOKS {
            written_behind(p, count, left)
        } else {
            0
        };
        left += t.number(beyond).min(LARGEST);
    }
    for k in 0..count.min(IOVEC_MAX) {
        let (Some(base), Some(len)) = (word64(p + 16 * k), word64(p + 16 * k + 8)) else {
            return;
        };
        let n = len.min(left);
        if n > 0 && faulted {
            whole(t, base, len);
            continue;
        }
        if n > 0 {
            plain(t, base, n, len);
        }
        left -= n;
    }
}

/// How much room there is.
fn room_of(p: u64, count: u64) -> u64 {
    let mut room = 0u64;
    each_behind(p, count, 0, |_, n, len| room = room.saturating_add(len - n));
    room
}

/// A call has put `done` bytes there, and says so. How many bytes behind them may it have written, too? Some where it
/// came to memory that it could not write, as in [`written_beyond`].
fn written_behind(p: u64, count: u64, done: u64) -> u64 {
    let (mut is_writable, mut room) = (true, 0u64);
    each_behind(p, count, done, |base, n, len| {
        is_writable = is_writable && is_writable_behind(base, n, len);
        room = room.saturating_add(len - n);
    });
    if is_writable { 0 } else { room.min(LARGEST) }
}

/// Is there a message that the kernel does not take, for the length of its name is negative, or its buffers are not named?
fn is_refused(header: u64) -> bool {
    let at = |n: u64| word64(header.wrapping_add(n)).unwrap_or(0);
    let (vector, count) = (at(16), at(24).min(IOVEC_MAX));
    let last = vector.wrapping_add(16 * count);
    let is_named =
        count == 0 || (word64(vector).is_some() && word64(last.wrapping_sub(8)).is_some());
    (word_at(header.wrapping_add(8)) as i32) < 0 || !is_named
}

/// Can all be written that a message's header names, and the header?
fn is_all_writable(header: u64) -> bool {
    let at = |n: u64| word64(header + n).unwrap_or(0);
    let (name, iov, count, control) = (at(0), at(16), at(24), at(32));
    let writable = |p: u64, len: u64| p == 0 || is_writable_behind(p, 0, len);
    writable(header, 64)
        && writable(name, word_at(header + 8).min(NAME_MAX).into())
        && writable(control, at(40))
        && written_behind(iov, count, 0) == 0
}

/// Call `each` with the buffers that so many bytes do not fill: address, how many of these are in it, its length.
fn each_behind(p: u64, count: u64, mut done: u64, mut each: impl FnMut(u64, u64, u64)) {
    for k in 0..count.min(IOVEC_MAX) {
        let (Some(base), Some(len)) = (word64(p + 16 * k), word64(p + 16 * k + 8)) else {
            return;
        };
        let n = len.min(done);
        done -= n;
        if n < len {
            each(base, n, len);
        }
    }
}

fn message<T: Transfer>(t: &mut T, p: u64, received: u64, before: &Before) {
    // Offsets of struct msghdr. Lengths as the kernel left them, before the header itself is copied.
    let at = |n: u64| word64(p + n).unwrap_or(0);
    let (name, iov, count, control) = (at(0), at(16), at(24), at(32));
    let (name_len, control_len) = (word_at(p + 8), at(40));
    if name != 0 {
        let most = before.name.min(NAME_MAX) as u64;
        plain(t, name, (name_len as u64).min(most), most);
    }
    iovec(t, iov, count, received);
    if control != 0 {
        plain(t, control, control_len.min(before.control), before.control);
    }
    plain(t, p + 8, 4, 4);
    plain(t, p + 40, 12, 12);
}
