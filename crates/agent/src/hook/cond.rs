//! Condition variables: a follower never waits on one. It unlocks the mutex, waits for the tick of
//! the leader's re-acquisition, and returns the leader's result.

use super::mutex::mutex_clock;
use super::ordered::{expect, hash16, intend_hook, log_tick, suspended};
use crate::clock::{advance, await_tick};
use crate::log::get;
use crate::state::{block, leads};
use core::sync::atomic::Ordering;
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, low_of, word};

fn cond(hook: u16, c: u64, m: u64, a: [u64; 2]) -> i32 {
    let b = block();
    let clock = mutex_clock(m);
    let r = if leads() {
        intend_hook(b, m, hook);
        suspended(b, hook, c, m, a[0], a[1])
    } else {
        suspended(b, id::MUTEX_UNLOCK, m, 0, 0, 0);
        while let Some(w) = expect(b, m, hook) {
            let r = get(b) as u32 as i32;
            let t = low_of(w);
            if !await_tick(b, clock.0, t) {
                continue;
            }
            b.midway.store(1, Ordering::Release);
            suspended(b, id::MUTEX_LOCK, m, 0, 0, 0);
            advance(clock.0, t.wrapping_add(1));
            b.midway.store(0, Ordering::Release);
            return r;
        }
        // It leads by now. Nobody has signalled here, who knows whether somebody should have: this
        // wait ends without cause, as any may.
        suspended(b, id::MUTEX_LOCK, m, 0, 0, 0)
    };
    let record = |t| word(kind::LOCK, hook as u8, hash16(m), t);
    log_tick(b, clock, record, Some(r as u32 as u64));
    r
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

/// Nobody waits on a follower's condition variable: nothing to signal there.
fn signal(hook: u16, c: u64) -> i32 {
    let b = block();
    if leads() {
        suspended(b, hook, c, 0, 0, 0)
    } else {
        0
    }
}

pub(super) extern "C" fn cond_signal(c: u64) -> i32 {
    signal(id::COND_SIGNAL, c)
}

pub(super) extern "C" fn cond_broadcast(c: u64) -> i32 {
    signal(id::COND_BROADCAST, c)
}

pub(super) extern "C" fn cond_destroy(c: u64) -> i32 {
    signal(id::COND_DESTROY, c)
}
