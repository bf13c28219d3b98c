//! A pipe in which a writer sleeps until there is room.

use crate::gate::{real, real_blocking};
use geryon_abi::table::nr;

const POLL: u64 = nr::poll;
const IOCTL: u64 = nr::ioctl;
const FCNTL: u64 = nr::fcntl;

/// What a pipe with room for anything takes without sleeping, and all or nothing of it (pipe(7)).
pub(super) const PIPE_BUF: u64 = 4096;

pub(super) struct Pipe {
    fd: u64,
    bytes: u64,
}

impl Pipe {
    /// None where `fd` is something else, or does not sleep.
    pub(super) fn of(fd: u64) -> Option<Pipe> {
        const F_GETFL: u64 = 3;
        const F_GETPIPE_SZ: u64 = 1032;
        const O_NONBLOCK: i64 = 0o4000;
        const O_ACCMODE: i64 = 3;
        let bytes = real(FCNTL, [fd, F_GETPIPE_SZ, 0, 0, 0, 0]);
        // (Who writes to the end that is read from does not sleep either.)
        let sleeps = bytes > 0
            && matches!(real(FCNTL, [fd, F_GETFL, 0, 0, 0, 0]), flags
                if flags & O_NONBLOCK == 0 && flags & O_ACCMODE != 0);
        sleeps.then_some(Pipe {
            fd,
            bytes: bytes as u64,
        })
    }

    /// How many bytes it takes now, once there is room at all.
    pub(super) fn room(&self) -> u64 {
        const FIONREAD: u64 = 0x541b;
        let mut unread = 0u32;
        let asked = real(IOCTL, [self.fd, FIONREAD, &raw mut unread as u64, 0, 0, 0]);
        // SAFETY: a local variable, which the kernel has written.
        match asked == 0 && unsafe { (&raw const unread).read_volatile() } == 0 {
            true => self.bytes,
            // (How its pages are filled nobody tells.)
            false => PIPE_BUF,
        }
    }

    /// Is there room, or nobody who reads?
    pub(super) fn has_room(&self) -> bool {
        is_ready(self.fd)
    }

    /// Sleep until there is, or a signal comes.
    pub(super) fn sleep(&self) {
        let mut asked = asked_of(self.fd);
        let args = [&raw mut asked as u64, 1, u64::MAX, 0, 0, 0];
        real_blocking(POLL, &args, false);
    }
}

/// Is there room to write to this, or nothing to wait for?
pub(super) fn is_ready(fd: u64) -> bool {
    let mut asked = asked_of(fd);
    real(POLL, [&raw mut asked as u64, 1, 0, 0, 0, 0]) != 0
}

/// A struct pollfd.
fn asked_of(fd: u64) -> u64 {
    const POLLOUT: u64 = 4;
    fd as u32 as u64 | POLLOUT << 32
}
