//! Condition variables: a follower never waits on one. It unlocks the mutex, waits for the tick of
//! the leader's re-acquisition, and returns the leader's result. When it comes to lead meanwhile, its wait
//! goes on ([`super::carried`]).

use super::carried::{self, Deadline};
use super::mutex::mutex_clock;
use super::ordered::{expect, hash16, intend_hook, log_tick, suspended, word_at};
use crate::clock::{advance, await_tick};
use crate::log::get;
use crate::state::{block, leads};
use core::sync::atomic::Ordering;
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, low_of, word};

const EOWNERDEAD: i32 = 130;
const ETIMEDOUT: i32 = 110;

/// Offset of the word of a condition that holds its attributes, and their bits.
const ATTRIBUTES: u64 = 36;
const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;

fn cond(hook: u16, c: u64, m: u64, a: [u64; 2]) -> i32 {
    let b = block();
    crate::shared::stand();
    let clock = mutex_clock(m);
    let r = if leads() {
        intend_hook(b, m, hook);
        suspended(b, hook, c, m, a[0], a[1])
    } else {
        // Whoever signals later has locked the mutex after us, or need not be seen.
        let deadline = deadline(hook, c, a);
        let of_process = word_at(c + ATTRIBUTES).load(Ordering::Relaxed) & SHARED == 0;
        if of_process {
            carried::begin(b, c);
        }
        suspended(b, id::MUTEX_UNLOCK, m, 0, 0, 0);
        while let Some(w) = expect(b, m, hook) {
            let r = get(b) as u32 as i32;
            let t = low_of(w);
            if !await_tick(b, clock.0, t) {
                continue;
            }
            b.midway.store(1, Ordering::Release);
            carried::end(b, r == 0 || r == EOWNERDEAD);
            suspended(b, id::MUTEX_LOCK, m, 0, 0, 0);
            advance(clock.0, t.wrapping_add(1));
            b.midway.store(0, Ordering::Release);
            return r;
        }
        // It leads by now, and waits on for one of its own process to signal. (One of another process does
        // not know of this wait: it ends without cause, as any may.)
        let signalled = !of_process || carried::outlast(b, deadline);
        match suspended(b, id::MUTEX_LOCK, m, 0, 0, 0) {
            0 if !signalled => ETIMEDOUT,
            r => r,
        }
    };
    let record = |t| word(kind::LOCK, hook as u8, hash16(m), t);
    log_tick(b, clock, record, Some(r as u32 as u64));
    r
}

/// When a wait is to end, signalled or not.
fn deadline(hook: u16, c: u64, a: [u64; 2]) -> Option<Deadline> {
    const CLOCK_REALTIME: u64 = 0;
    const CLOCK_MONOTONIC: u64 = 1;
    let (clock, at) = match hook {
        id::COND_WAIT => return None,
        id::COND_CLOCKWAIT => (a[0], a[1]),
        _ if word_at(c + ATTRIBUTES).load(Ordering::Relaxed) & MONOTONIC != 0 => {
            (CLOCK_MONOTONIC, a[0])
        }
        _ => (CLOCK_REALTIME, a[0]),
    };
    // SAFETY: the time that the program passed, which glibc reads as well.
    let at = unsafe { (at as *const [u64; 2]).read_unaligned() };
    Some(Deadline { clock, at })
}

pub(super) extern "C" fn cond_wait(c: u64, m: u64) -> i32 {
    cond(id::COND_WAIT, c, m, [0, 0])
}

pub(super) extern "C" fn cond_timedwait(c: u64, m: u64, t: u64) -> i32 {
    cond(id::COND_TIMEDWAIT, c, m, [t, 0])
}

pub(super) extern "C" fn cond_clockwait(c: u64, m: u64, clock: u64, t: u64) -> i32 {
    cond(id::COND_CLOCKWAIT, c, m, [clock, t])
}

pub(super) extern "C" fn cond_signal(c: u64) -> i32 {
    let b = block();
    let used_up = carried::signal(c);
    if leads() && !used_up {
        suspended(b, id::COND_SIGNAL, c, 0, 0, 0)
    } else {
        0
    }
}

pub(super) extern "C" fn cond_broadcast(c: u64) -> i32 {
    let b = block();
    carried::broadcast(c);
    if leads() {
        suspended(b, id::COND_BROADCAST, c, 0, 0, 0)
    } else {
        0
    }
}

pub(super) extern "C" fn cond_destroy(c: u64) -> i32 {
    let b = block();
    // Nobody waits any more, and no signal will come that is owed.
    carried::broadcast(c);
    if leads() {
        suspended(b, id::COND_DESTROY, c, 0, 0, 0)
    } else {
        0
    }
}
