//! Writes that are made in several parts: those that were cut short by what no signal of the program has
//! done, and those to a pipe that is full. The kernel copies what it has no room for when there is some,
//! much later than all have agreed on it, and memory that is hit meanwhile would go out. So a thread waits
//! for room first, and looks at what it is about to write after each wait.

use super::is_unchanged;
use crate::gate::{real, real_blocking};
use crate::raise;
use crate::state::{Here, private};
use crate::stop::broken;
use core::sync::atomic::{Ordering, compiler_fence};
use geryon_abi::layout::flight;
use geryon_abi::outcome::{self, NOTHING};
use geryon_abi::row::Row;

const WRITE: u64 = 1;
const POLL: u64 = 7;
const IOCTL: u64 = 16;
const SENDTO: u64 = 44;
const FCNTL: u64 = 72;

/// What a pipe with room for anything takes without sleeping, and all or nothing of it (pipe(7)).
const PIPE_BUF: u64 = 4096;

/// Before a call that all have agreed on: what of it is to be made now, and whether that is a write to a
/// pipe, which [`complete`] goes on with.
pub fn begin(b: Here, row: &Row, args: &[u64; 6]) -> ([u64; 6], bool) {
    if row.nr as u64 != WRITE || private().replicas == 1 {
        return (*args, false);
    }
    let Some(pipe) = Pipe::of(args[0]) else {
        return (*args, false);
    };
    let mut now = *args;
    if pipe.await_room(b, 0) {
        super::take_off(b, row.nr, super::CONFIRMED);
    }
    now[2] = now[2].min(pipe.room());
    (now, true)
}

/// Has the monitor halted this thread since its call began? That may have cut a write short.
pub fn was_halted(b: Here) -> bool {
    b.halted.swap(0, Ordering::Relaxed) != 0
}

/// Write the rest of a write of which `done` bytes are out. How much is written by now.
pub fn complete(b: Here, row: &Row, args: &[u64; 6], checked: bool, mut done: i64) -> i64 {
    let nr = row.nr as u64;
    // A handler that waits has a short count to see.
    while is_cut_short(nr, args, done) && !raise::pending(b) {
        let mut most = u64::MAX;
        if nr == WRITE
            && !checked
            && let Some(pipe) = Pipe::of(args[0])
        {
            pipe.await_room(b, done as u64);
            most = pipe.room();
        }
        if !checked && !is_unchanged(row, args) {
            broken();
        }
        let more = write_part(b, nr, args, checked, done, most);
        if more > 0 {
            done += more;
        } else if !(more == -4 || outcome::is_interrupted(more)) {
            break;
        }
    }
    done
}

/// Is this the result of a write of which something is left?
pub fn is_cut_short(nr: u64, args: &[u64; 6], done: i64) -> bool {
    matches!(nr, WRITE | SENDTO) && done > 0 && (done as u64) < args[2]
}

/// Write what is left of a write of which `done` bytes are out, `most` bytes at most: the result of that.
/// One step after the other, so that a successor finds a sum that is right at each.
fn write_part(mut b: Here, nr: u64, args: &[u64; 6], checked: bool, done: i64, most: u64) -> i64 {
    let by_now = done as u64;
    let mut rest = *args;
    rest[1] += by_now;
    rest[2] = (rest[2] - by_now).min(most);
    b.flight_done = by_now;
    b.flight_entered = 0;
    b.flight.store(flight::FINISHING, Ordering::Release);
    compiler_fence(Ordering::SeqCst);
    b.flight_result = [NOTHING; 2];
    point!(RestBegun);
    let more = real_blocking(nr, &rest, checked);
    let sum = (done + more.max(0)) as u64;
    b.flight_total = sum;
    b.flight.store(flight::SUMMED, Ordering::Release);
    point!(RestSummed);
    compiler_fence(Ordering::SeqCst);
    b.flight_result = [sum; 2];
    b.flight.store(flight::RETURNED, Ordering::Release);
    more
}

/// A pipe in which a writer sleeps until there is room.
struct Pipe {
    fd: u64,
    bytes: u64,
}

impl Pipe {
    /// None where `fd` is something else.
    fn of(fd: u64) -> Option<Pipe> {
        const F_GETFL: u64 = 3;
        const F_GETPIPE_SZ: u64 = 1032;
        const O_NONBLOCK: i64 = 0o4000;
        let bytes = real(FCNTL, [fd, F_GETPIPE_SZ, 0, 0, 0, 0]);
        let sleeps = bytes > 0 && real(FCNTL, [fd, F_GETFL, 0, 0, 0, 0]) & O_NONBLOCK == 0;
        sleeps.then_some(Pipe {
            fd,
            bytes: bytes as u64,
        })
    }

    /// How many bytes it takes now, once there is room at all.
    fn room(&self) -> u64 {
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

    /// Wait until there is room, nobody is left who reads, or a signal wants its handler; `done`: bytes of
    /// the write that are out. True if it had to sleep for that.
    fn await_room(&self, mut b: Here, done: u64) -> bool {
        const POLLOUT: u64 = 4;
        let mut asked = self.fd as u32 as u64 | POLLOUT << 32;
        let at = &raw mut asked as u64;
        let mut slept = false;
        while real(POLL, [at, 1, 0, 0, 0, 0]) == 0 && !raise::pending(b) {
            b.flight_done = done;
            b.flight_entered = 0;
            b.flight.store(flight::AWAITING_ROOM, Ordering::Release);
            compiler_fence(Ordering::SeqCst);
            b.flight_result = [NOTHING; 2];
            point!(RoomAwaited);
            real_blocking(POLL, &[at, 1, u64::MAX, 0, 0, 0], false);
            b = crate::state::block_anew();
            slept = true;
        }
        slept
    }
}
