//! Writes that are made in several parts: those that were cut short by what no signal of the program has
//! done, and those to a pipe that is full. The kernel copies what it has no room for when there is some,
//! much later than all have agreed on it, and memory that is hit meanwhile would go out. So a thread waits
//! for room first, and behind each wait it looks at what it is about to write.

mod pieces;
mod pipe;

use super::is_unchanged;
use crate::digest::CONFIRMED;
use crate::gate::real_blocking;
use crate::raise;
use crate::state::{Here, block_anew, private};
use crate::stop::broken;
use core::sync::atomic::{Ordering, compiler_fence};
use geryon_abi::layout::flight;
use geryon_abi::outcome::{self, NOTHING};
use geryon_abi::row::{Property, Row};
use geryon_abi::table::{self, nr};
use pieces::Pieces;
use pipe::Pipe;

const WRITE: u64 = nr::write;
const PWRITE: u64 = nr::pwrite64;
const SENDTO: u64 = nr::sendto;

/// Before a call that all have agreed on: is it a write to a pipe, and of how many bytes at most is its
/// first part? [`complete`] makes the others. Where the thread has slept meanwhile it has looked again.
pub fn begin(b: Here, row: &Row, args: &[u64; 6]) -> Option<u64> {
    if row.nr as u64 != WRITE || private().replicas == 1 {
        return None;
    }
    let pipe = Pipe::of(args[0])?;
    let mut pieces = Pieces::of(row, args);
    if await_room(b, &pipe, &mut pieces, 0) {
        super::take_off(block_anew(), row.nr, CONFIRMED);
    }
    let room = pipe.room();
    pieces.check(0, room);
    Some(room)
}

/// Is this a write to what has room? A signal that came before it began does not end it, then: alone, the
/// program would have run its handler first, and the kernel would not have waited.
pub fn need_not_wait(nr: u64, args: &[u64; 6]) -> bool {
    table::is(nr, Property::Sends) && pipe::is_ready(args[0])
}

/// Has the monitor halted this thread since its call began? That may have cut a write short.
pub fn was_halted(b: Here) -> bool {
    b.halted.swap(0, Ordering::Relaxed) != 0
}

/// Write the rest of a write of which `done` bytes are out. How much is written by now.
pub fn complete(mut b: Here, row: &Row, args: &[u64; 6], checked: bool, mut done: i64) -> i64 {
    let nr = row.nr as u64;
    let guards = !checked && is_cut_short(nr, args, done) && private().replicas > 1;
    let pipe = if guards && nr == WRITE {
        Pipe::of(args[0])
    } else {
        None
    };
    let mut pieces = Pieces::of(row, args);
    // A handler that waits has a short count to see.
    while is_cut_short(nr, args, done) && !raise::pending(b) {
        let mut most = u64::MAX;
        if let Some(pipe) = &pipe {
            if await_room(b, pipe, &mut pieces, done as u64) {
                b = block_anew();
                if b.flight_done != done as u64 {
                    broken();
                }
            }
            most = pipe.room();
            pieces.check(done as u64, most);
        } else if guards && !is_unchanged(row, args) {
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
    matches!(nr, WRITE | PWRITE | SENDTO) && done > 0 && (done as u64) < args[2]
}

/// Write what is left of a write of which `done` bytes are out, `most` bytes at most: the result of that.
/// One step after the other, so that a successor finds a sum that is right at each.
fn write_part(mut b: Here, nr: u64, args: &[u64; 6], checked: bool, done: i64, most: u64) -> i64 {
    let by_now = done as u64;
    let mut rest = *args;
    rest[1] += by_now;
    rest[2] = (rest[2] - by_now).min(most);
    if nr == PWRITE {
        rest[3] += by_now;
    }
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

/// Wait until there is room, nobody is left who reads, or a signal wants its handler; `done`: bytes of
/// the write that are out. True if it had to sleep for that: then `pieces` are to be checked.
fn await_room(mut b: Here, pipe: &Pipe, pieces: &mut Pieces, done: u64) -> bool {
    let mut slept = false;
    while !pipe.has_room() && !raise::pending(b) {
        pieces.take(done);
        b.flight_done = done;
        b.flight_entered = 0;
        b.flight.store(flight::AWAITING_ROOM, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        b.flight_result = [NOTHING; 2];
        point!(RoomAwaited);
        pipe.sleep();
        b = block_anew();
        slept = true;
    }
    slept
}
