//! Calls that are over soon. While others wait for the turn a thread only lends it for the time of such a call, and
//! goes on with it: to hand it over costs each replica two switches between threads, of which a server's request
//! would need one for each of its calls. (Nothing depends on that a call really is over soon: a turn that is lent
//! for long is taken.)

use crate::gate::real;

const NR_POLL: u64 = 7;
const POLLIN: u16 = 1;
const POLLOUT: u16 = 4;
/// A blocking socket or pipe with room has room for as much.
const ROOM: u64 = 4096;

/// Will the call be over soon?
pub fn is(nr: u16, args: &[u64; 6]) -> bool {
    match nr {
        // read, readv, accept, recvfrom, recvmsg, accept4
        0 | 19 | 43 | 45 | 47 | 288 => is_ready(args[0], POLLIN),
        // write, sendto
        1 | 44 => args[2] <= ROOM && is_ready(args[0], POLLOUT),
        // writev, sendfile, sendmsg
        20 | 40 | 46 => is_ready(args[0], POLLOUT),
        // poll, epoll_wait, epoll_pwait that only look
        7 => args[2] as i32 == 0,
        232 | 281 => args[3] as i32 == 0,
        // flock: LOCK_NB, LOCK_UN; fcntl: not F_SETLKW, F_OFD_SETLKW
        73 => args[1] & 12 != 0,
        72 => !matches!(args[1], 7 | 38),
        // Descriptors, files and their names: open, close, pread64, pwrite64, ioctl, dup and its kin, rename and its
        // kin, ftruncate, getdents64, the calls with *at, preadv, pwritev
        2 | 3 | 16..=18 | 32 | 33 | 76..=78 | 80..=95 | 217 | 257..=269 | 292 | 295 | 296 => true,
        302 | 316 | 332 | 436 | 437 | 439 => true,
        // Sockets, without their data: socket, shutdown, bind, listen, socketpair, setsockopt, getsockopt
        41 | 48..=50 | 53..=55 => true,
        // epoll_create, epoll_ctl, signalfd, timerfd, eventfd, pipe2
        213 | 233 | 282..=284 | 286 | 287 | 289..=291 | 293 => true,
        // Ids, limits, signals to others
        62 | 97 | 99 | 105..=106 | 111..=124 | 200 | 234 => true,
        _ => false,
    }
}

/// Can it be read from, or written to, at once? (Files can.)
fn is_ready(fd: u64, events: u16) -> bool {
    #[repr(C)]
    struct PollFd {
        fd: u32,
        events: u16,
        revents: u16,
    }
    let mut one = PollFd {
        fd: fd as u32,
        events,
        revents: 0,
    };
    real(NR_POLL, [&raw mut one as u64, 1, 0, 0, 0, 0]) == 1
}
