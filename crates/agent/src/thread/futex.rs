//! Futex calls of code that is not hooked: each replica waits for itself, but in serial order and where loads that decide
//! about order are repeated: there what they return is logged, and only the leader waits.

use crate::call::input;
use crate::gate::{self, real};
use crate::log::get;
use crate::raise;
use crate::state::{block, block_anew, leads, private};
use crate::wait::{announce, announce_end, intend};
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{UNLOGGED, promotion, wait};
use geryon_abi::record::low_of;
use geryon_abi::row::Row;

const CMD_MASK: u64 = 0x7f;
const PRIVATE: u64 = 128;
const WAIT_BITSET: u64 = 9;
const EINTR: i64 = -4;
const ETIMEDOUT: i64 = -110;

/// Is it one of the commands that wait?
pub fn waits(args: &[u64; 6]) -> bool {
    const WAIT: u64 = 0;
    const LOCK_PI: u64 = 6;
    const WAIT_REQUEUE_PI: u64 = 11;
    const LOCK_PI2: u64 = 13;
    matches!(
        args[1] & CMD_MASK,
        WAIT | WAIT_BITSET | LOCK_PI | WAIT_REQUEUE_PI | LOCK_PI2
    )
}

/// futex. Where the loads around it are repeated, what it returns decides how code goes on that is not hooked, and is an
/// input. Where they are not, calls are not matched one to one: what they return matters only to code that loops on
/// its word. Timeouts are inputs in any case. A join waits, as if processes shared the word, for each replica's own thread.
pub fn futex(frame: &mut Frame, row: &'static Row) {
    let args = frame.args();
    let mut b = block();
    let waits = waits(&args);
    let timed = waits && args[3] != 0;
    if is_repeated(waits, timed, args[1] & PRIVATE != 0) {
        // A follower's threads never sleep here: they wait for the record.
        if !leads() && !waits {
            real(row.nr as u64, args);
        }
        return input(frame, row);
    }
    if !waits {
        frame.rax = real(row.nr as u64, args) as u64;
        return;
    }
    if b.suspend != 0 {
        return wait_in_kernel(frame, row, args);
    }
    b.unlogged_at = b.pos;
    if leads() {
        if b.intent_at != b.pos {
            // Not inside another operation, a join, say, that the others know by its name.
            intend(b, UNLOGGED, 0);
        }
        wait_in_kernel(frame, row, args);
    } else {
        follow_wait(frame, row, args);
    }
}

/// Is what such a call returns an input? `timed`: a wait with a limit; `is_own`: of a word that no other process uses.
pub fn is_repeated(waits: bool, timed: bool, is_own: bool) -> bool {
    let p = private();
    if crate::serial::active() {
        return true;
    }
    // (In which order processes come to a word that they share is not repeated with clocks. Who waits alone is woken by
    // nobody, and sees what the kernel says; but not where processes share the word.)
    let is_alone = p.multi.get() == 0 && waits;
    block().suspend == 0 && (is_own && (is_alone || p.loads != 0) || timed && waits)
}

/// Follower: wait as the leader does, until its own history wakes it, or the leader has got on.
fn follow_wait(frame: &mut Frame, row: &'static Row, args: [u64; 6]) {
    // It must not sleep for ever on a wake-up that its own history may not have: it wakes by itself now and
    // then.
    const NAP: [u64; 2] = [0, 3_000_000];
    let b = block();
    let mut nap = args;
    nap[3] = NAP.as_ptr() as u64;
    if args[1] & CMD_MASK == WAIT_BITSET {
        // The plain form takes a relative time, and no flag for another clock.
        nap[1] = args[1] & PRIVATE;
    }
    loop {
        if crate::log::signal_is_next(b) {
            // The leader's handler ran while it waited here.
            let first = get(b);
            if low_of(first) == raise::ENDED {
                frame.rax = EINTR as u64;
                raise::follow_signal_behind(b, first, frame);
            }
            raise::follow_signal_before(b, first, frame);
        }
        announce(wait::KERNEL, row.nr as u64, args[0]);
        let r = real(row.nr as u64, nap);
        announce_end();
        if r != ETIMEDOUT {
            frame.rax = r as u64;
            return;
        }
        let leads = private().promotion.load(Ordering::Acquire) != promotion::NONE;
        if leads || (crate::log::has_next(b) && !crate::log::signal_is_next(b)) {
            // For no reason, which futex(2) allows.
            frame.rax = 0;
            return;
        }
    }
}

/// A futex wait that is not logged. A signal that ends it is: its handler runs on top of the
/// hooked function, and what the wait returns then is as the kernel would have it.
fn wait_in_kernel(frame: &mut Frame, row: &Row, args: [u64; 6]) {
    loop {
        announce(wait::KERNEL, row.nr as u64, args[0]);
        let r = gate::real_blocking(row.nr as u64, &args, true);
        announce_end();
        let mut b = block_anew();
        let stopped = (-516..=-512).contains(&r) || r == -4;
        if !stopped {
            frame.rax = r as u64;
            return;
        }
        if !raise::pending(b) {
            continue;
        }
        if !leads() {
            continue;
        }
        if b.suspend != 0 {
            b.interrupted_rsp = frame.rsp;
            b.interrupted_suspend = b.suspend;
            b.suspend = 0;
            b.interrupted_cancel = crate::hook::hide_cancel_type();
            b.set_ordered(true);
        }
        let ended = match raise::interrupted(b, r) {
            Some(shown) => {
                frame.rax = shown as u64;
                raise::ENDED
            }
            None => {
                frame.rax = row.nr as u64;
                raise::reissue(frame);
                0
            }
        };
        raise::lead_signal_in_hook(b, frame, ended);
    }
}
