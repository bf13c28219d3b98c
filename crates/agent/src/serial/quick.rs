//! Calls that are over soon. While others wait for the turn a thread only lends it for the time of such a call, and
//! goes on with it: to hand it over costs each replica two switches between threads, of which a server's request
//! would need one for each of its calls. (Nothing depends on that a call really is over soon: a turn that is lent
//! for long is taken.)

use crate::gate::real;
use geryon_abi::row::{Property, Row};
use geryon_abi::table::nr;

const POLLIN: u16 = 1;
const POLLOUT: u16 = 4;
/// A blocking socket or pipe with room has room for as much.
const ROOM: u64 = 4096;
const LOCK_NB: u64 = 4;
const LOCK_UN: u64 = 8;
const F_SETLKW: u64 = 7;
const F_OFD_SETLKW: u64 = 38;

/// Will the call be over soon?
pub fn is(row: &Row, args: &[u64; 6]) -> bool {
    match row.nr as u64 {
        nr::write | nr::sendto if args[2] > ROOM => false,
        // Those that only look.
        nr::poll => args[2] as i32 == 0,
        nr::epoll_wait | nr::epoll_pwait => args[3] as i32 == 0,
        nr::flock => args[1] & (LOCK_NB | LOCK_UN) != 0,
        nr::fcntl => !matches!(args[1], F_SETLKW | F_OFD_SETLKW),
        _ => {
            row.is(Property::Soon)
                || row.is(Property::SoonIfReadable) && is_ready(args[0], POLLIN)
                || row.is(Property::SoonIfRoom) && is_ready(args[0], POLLOUT)
        }
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
    real(nr::poll, [&raw mut one as u64, 1, 0, 0, 0, 0]) == 1
}
