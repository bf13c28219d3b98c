//! Sleeps that tell what is left of them. The kernel writes that at each stop of the thread, also at one of Geryon's,
//! behind which it sleeps on: the program would find there what natively nobody writes, or be told that the place is
//! a bad one. So the kernel is given a place in the thread's block, and the program's is written when a signal has ended
//! the sleep.

use crate::gate::guarded;
use crate::state::block;
use geryon_abi::frame::Frame;
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const EINTR: i64 = -4;
const EFAULT: i64 = -14;
const ABSOLUTE: u64 = 1;

/// Which arguments of this call say for how long, and where what is left is to be told.
fn times_of(number: u64) -> (usize, usize) {
    match number {
        nr::nanosleep => (0, 1),
        _ => (2, 3),
    }
}

/// nanosleep or clock_nanosleep is about to be made.
pub fn begin(frame: &mut Frame, row: &Row) {
    let mut args = frame.args();
    let (asked, rest) = times_of(row.nr.into());
    let until = row.nr as u64 == nr::clock_nanosleep && args[1] & ABSOLUTE != 0;
    if args[rest] == 0 || until {
        return;
    }
    let mut b = block();
    let mut time = [0u64; 2];
    guarded(|| {
        // SAFETY: inside `guarded`.
        time = unsafe { (args[asked] as *const [u64; 2]).read_unaligned() };
    });
    b.rest = begun(time);
    b.rest_at = args[rest];
    args[rest] = &raw const b.rest as u64;
    frame.set_args(args);
}

/// What is left if a signal ends it before it has begun: the kernel has always slept for a moment.
fn begun([s, ns]: [u64; 2]) -> [u64; 2] {
    match (s, ns) {
        (0, 0) => [0, 0],
        (s, 0) => [s - 1, 999_999_999],
        (s, ns) => [s, ns - 1],
    }
}

/// The sleep is over, or its thread goes to a handler, or (a copy of one that slept) begins it anew: the program has its
/// registers, and is told what is left.
#[inline(always)]
pub fn wake(frame: &mut Frame) {
    if block().rest_at != 0 {
        give_back(frame);
    }
}

#[cold]
fn give_back(frame: &mut Frame) {
    let mut b = block();
    let (at, left) = (b.rest_at, b.rest);
    b.rest_at = 0;
    let mut args = frame.args();
    args[times_of(b.called - 1).1] = at;
    frame.set_args(args);
    // SAFETY: inside `guarded`.
    let tell = || unsafe { (at as *mut [u64; 2]).write_unaligned(left) };
    if frame.rax as i64 == EINTR && !guarded(tell) {
        frame.rax = EFAULT as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_that_all_is_left() {
        assert_eq!(begun([60, 0]), [59, 999_999_999]);
        assert_eq!(begun([60, 5]), [60, 4]);
        assert_eq!(begun([0, 0]), [0, 0]);
    }
}
