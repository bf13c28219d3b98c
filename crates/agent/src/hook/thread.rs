//! Making and joining threads. Neither is suspended: what happens inside is ordered as elsewhere.

use super::ordered::{expect, hash16, log_word, next, original};
use crate::clock::LIFE;
use crate::compare::same_kind;
use crate::log::peek;
use crate::state::{block, leads};
use crate::thread::await_exits;
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, kind_of, low_of, word};

/// The allocations inside are ordered like any other.
pub(super) extern "C" fn create(thread: u64, attr: u64, start: u64, arg: u64) -> i32 {
    let b = block();
    if leads() {
        let t = LIFE.enter(b.this);
        await_exits();
        LIFE.tick();
        log_word(b, word(kind::CREATE, 0, 0, t));
        let r = original(id::CREATE, thread, attr, start, arg);
        LIFE.leave();
        r
    } else {
        let w = next(b);
        let ours = word(kind::CREATE, 0, 0, 0);
        same_kind(b.pos - 1, w, ours, [ours, thread, 0, 0, 0, 0, 0, 0]);
        let t = low_of(w);
        LIFE.await_turn(t);
        await_exits();
        LIFE.turn_done(t);
        original(id::CREATE, thread, attr, start, arg)
    }
}

fn join(hook: u16, thread: u64, value: u64, a: [u64; 2]) -> i32 {
    let b = block();
    if leads() {
        let r = original(hook, thread, value, a[0], a[1]);
        log_word(b, word(kind::OUTCOME, hook as u8, hash16(thread), r as u32));
        return r;
    }
    let w = peek(b);
    if kind_of(w) != kind::OUTCOME || low_of(w) == 0 {
        // The leader's call succeeded; its atomics come first in the log. Wait as long as it takes.
        original(id::CLOCKJOIN, thread, value, 0, 0);
    }
    let w = next(b);
    expect(b, w, thread, hook);
    low_of(w) as i32
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
