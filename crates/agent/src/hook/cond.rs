//! Condition variables: a follower never waits on one. It unlocks the mutex, waits for the tick of
//! the leader's re-acquisition, and returns the leader's result. When it comes to lead meanwhile, its wait
//! goes on ([`super::carried`]).

use super::carried;
use super::mutex::mutex_clock;
use super::ordered::{expect, hash16, intend_hook, is_copied_inside, log_tick, suspended, word_at};
use crate::clock::{advance, await_tick, tell};
use crate::gate::on_user_stack;
use crate::log::get;
use crate::state::{block, leads};
use core::sync::atomic::Ordering;
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, low_of, word};

const EOWNERDEAD: i32 = 130;

/// Offset of the word of a condition that holds its attributes, and the bit of those that processes share.
const ATTRIBUTES: u64 = 36;
const SHARED: u32 = 1;

fn cond(hook: u16, c: u64, m: u64, a: [u64; 2]) -> i32 {
    let b = block();
    crate::shared::stand();
    let clock = mutex_clock(m);
    let led = leads().then(|| {
        intend_hook(b, m, hook);
        suspended(b, hook, c, m, a[0], a[1])
    });
    // (A leader may have been copied inside, to follow its own log: the copy's wait was ended, and it has the mutex.)
    let r = if let Some(r) = led.filter(|_| !is_copied_inside()) {
        r
    } else {
        // Whoever signals later has locked the mutex after us, or need not be seen.
        let of_process = word_at(c + ATTRIBUTES).load(Ordering::Relaxed) & SHARED == 0;
        if of_process {
            carried::begin(b, c);
        }
        let now = clock.0.load(Ordering::Relaxed);
        suspended(b, id::MUTEX_UNLOCK, m, 0, 0, 0);
        tell(clock.0, now);
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
        let lock = || suspended(b, id::MUTEX_LOCK, m, 0, 0, 0);
        match of_process {
            true => carried::outlast(b, lock, || suspended(b, hook, c, m, a[0], a[1])),
            false => lock(),
        }
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

/// The original is not called here, but in the leader: there its traces have been wiped off the user's stack, and so here must what
/// lies in the same place.
fn passed_over() -> i32 {
    extern "C" fn nothing() -> u64 {
        0
    }
    // SAFETY: a C function; it ignores its arguments.
    unsafe { on_user_stack(nothing as *const () as u64, [0; 4]) as i32 }
}

pub(super) extern "C" fn cond_signal(c: u64) -> i32 {
    let b = block();
    let used_up = carried::signal(c);
    if leads() && !used_up {
        suspended(b, id::COND_SIGNAL, c, 0, 0, 0)
    } else {
        passed_over()
    }
}

pub(super) extern "C" fn cond_broadcast(c: u64) -> i32 {
    let b = block();
    carried::broadcast(c);
    if leads() {
        suspended(b, id::COND_BROADCAST, c, 0, 0, 0)
    } else {
        passed_over()
    }
}

pub(super) extern "C" fn cond_destroy(c: u64) -> i32 {
    let b = block();
    // Nobody waits any more, and no signal will come that is owed.
    carried::broadcast(c);
    if leads() {
        suspended(b, id::COND_DESTROY, c, 0, 0, 0)
    } else {
        passed_over()
    }
}
