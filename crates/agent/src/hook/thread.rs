//! Making and joining threads. Neither is suspended: what happens inside is ordered as elsewhere.

use super::ordered::{expect, hash16, intend_hook, log_word, next, original};
use crate::clock::LIFE;
use crate::compare::same_kind;
use crate::log::peek;
use crate::state::{block, leads};
use crate::thread::await_exits;
use crate::wait::intend_on;
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, kind_of, low_of, word};

/// The allocations inside are ordered like any other.
pub(super) extern "C" fn create(thread: u64, attr: u64, start: u64, arg: u64) -> i32 {
    let b = block();
    let ours = word(kind::CREATE, 0, 0, 0);
    intend_on(b, ours, thread);
    while !leads()
        && let Some(w) = next(b)
    {
        if !same_kind(b.pos - 1, w, ours, [ours, thread, 0, 0, 0, 0, 0, 0]) {
            continue;
        }
        let t = low_of(w);
        if !LIFE.await_turn(b, t) {
            continue;
        }
        await_exits();
        LIFE.turn_done(t);
        return original(id::CREATE, thread, attr, start, arg);
    }
    let t = LIFE.enter(b.this);
    await_exits();
    log_word(b, word(kind::CREATE, 0, 0, t));
    LIFE.tick();
    let r = original(id::CREATE, thread, attr, start, arg);
    // A replica that has begun to lead inside has not entered.
    if LIFE.held_by(b.this) {
        LIFE.leave();
    }
    r
}

/// Nothing of it is ordered: see `geryon_hook_cancel`.
pub(super) extern "C" fn cancel(thread: u64) -> i32 {
    original(id::CANCEL, thread, 0, 0, 0)
}

fn join(hook: u16, thread: u64, value: u64, a: [u64; 2]) -> i32 {
    let b = block();
    let log = |r: i32| {
        log_word(b, word(kind::OUTCOME, hook as u8, hash16(thread), r as u32));
        r
    };
    intend_hook(b, thread, hook);
    if !leads()
        && let Some(w) = peek(b)
    {
        let mut r = 0;
        if kind_of(w) != kind::OUTCOME || low_of(w) == 0 {
            // The leader's call succeeded; its atomics come first in the log. Wait as long as it takes.
            r = original(id::CLOCKJOIN, thread, value, 0, 0);
        }
        return match expect(b, thread, hook) {
            Some(w) => low_of(w) as i32,
            None => log(r),
        };
    }
    log(original(hook, thread, value, a[0], a[1]))
}

pub(super) extern "C" fn tryjoin(thread: u64, value: u64) -> i32 {
    join(id::TRYJOIN, thread, value, [0, 0])
}

pub(super) extern "C" fn timedjoin(thread: u64, value: u64, t: u64) -> i32 {
    join(id::TIMEDJOIN, thread, value, [t, 0])
}

pub(super) extern "C" fn clockjoin(thread: u64, value: u64, clock: u64, t: u64) -> i32 {
    join(id::CLOCKJOIN, thread, value, [clock, t])
}
