//! The calls that came after futex, each of which is one of its operations: futex_waitv, futex_wake, futex_wait,
//! futex_requeue. What they return is repeated where futex's results are.

use super::futex::is_repeated;
use crate::access::word32;
use crate::call::input;
use crate::gate::real;
use crate::state::leads;
use geryon_abi::frame::Frame;
use geryon_abi::row::Row;

/// Bits of their flags: the word's size is the lowest two.
const PRIVATE: u64 = 128;
/// So large is one of the waiters, its flags begin there, and so many can be given.
const WAITER: u64 = 24;
const WAITER_FLAGS: u64 = 16;
const MOST_WAITERS: u64 = 128;

const WAITV: u64 = 449;
const WAIT: u64 = 455;
const REQUEUE: u64 = 456;

/// One of them. False: it is each replica's own affair.
pub fn repeats(frame: &mut Frame, row: &Row) -> bool {
    let (args, nr) = (frame.args(), row.nr as u64);
    let waits = matches!(nr, WAITV | WAIT);
    let limit = match nr {
        WAITV => args[3],
        WAIT => args[4],
        _ => 0,
    };
    let is_own = match nr {
        WAITV => are_own(args[0], args[1]),
        REQUEUE => are_own(args[0], 2),
        _ => args[3] & PRIVATE != 0,
    };
    if !is_repeated(waits, limit != 0, is_own) {
        return false;
    }
    if !leads() && !waits {
        real(nr, args);
    }
    input(frame, row);
    true
}

/// Are all the words that these waiters name used by this process alone?
fn are_own(waiters: u64, count: u64) -> bool {
    let flags = |k| word32(waiters.wrapping_add(k * WAITER + WAITER_FLAGS));
    let is_own = |k| flags(k).is_none_or(|f| u64::from(f) & PRIVATE != 0);
    (0..count.min(MOST_WAITERS)).all(is_own)
}
