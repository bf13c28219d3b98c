//! One ordered operation: the leader calls the original and logs its outcome with the clock's
//! tick; a follower waits for that tick, or is told the outcome.

use super::mutex::prepare_owned;
use crate::clock::{advance, await_tick, of_address};
use crate::gate::on_user_stack;
use crate::log::{get, publish, put, remember, verified};
use crate::raise;
use crate::state::{Here, block, leads, private};
use crate::stop::diverged;
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::hooks as id;
use geryon_abi::layout::{ERRNO_LOCATION, why};
use geryon_abi::record::{detail_of, kind, kind_of, low_of, short_of, word};

const EOWNERDEAD: i32 = 130;
const EINTR: i32 = 4;
/// Bit of a LOCK record's detail: the call returned EOWNERDEAD.
const OWNER_DIED: u8 = 0x80;

/// Call the original of a hooked function, on the user's stack.
#[inline(always)]
pub(super) fn original(hook: u16, a: u64, c: u64, d: u64, e: u64) -> i32 {
    // SAFETY: the monitor stored the address of the relocated original before it wrote the
    // jump that leads here; C functions of fewer arguments ignore the rest.
    unsafe { on_user_stack(private().orig[hook as usize], [a, c, d, e]) as i32 }
}

/// Call the original while the thread is suspended.
#[inline(always)]
pub(super) fn suspended(mut b: Here, hook: u16, a: u64, c: u64, d: u64, e: u64) -> i32 {
    b.suspend += 1;
    b.ordered = 0;
    let r = original(hook, a, c, d, e);
    b.suspend -= 1;
    if b.suspend == 0 {
        b.ordered = 1;
    }
    r
}

#[inline(always)]
pub(super) fn hash16(address: u64) -> u16 {
    ((address >> 3) ^ (address >> 19)) as u16
}

/// Where an object's clock is.
#[inline(always)]
pub(super) fn word_at(address: u64) -> &'static AtomicU32 {
    // SAFETY: a field of a live, aligned object that the program passed to a pthread function.
    unsafe { &*(address as *const AtomicU32) }
}

/// Leader: read the clock and advance it.
#[inline(always)]
pub(super) fn tick(clock: &AtomicU32, alone: bool) -> u32 {
    if alone {
        let t = clock.load(Ordering::Relaxed);
        clock.store(t.wrapping_add(1), Ordering::Relaxed);
        t
    } else {
        clock.fetch_add(1, Ordering::AcqRel)
    }
}

#[inline(always)]
pub(super) fn log_word(b: Here, w: u64) {
    put(b, w);
    remember(b, w);
    publish(b);
}

/// Follower: the next record of a hooked function; signals that come first run here.
#[inline(always)]
pub(super) fn next(b: Here) -> u64 {
    loop {
        let w = get(b);
        if kind_of(w) != kind::SIGNAL {
            remember(b, w);
            return w;
        }
        raise::follow_signal_here(b, w);
    }
}

/// Follower: the record `w` must be one of this function and this object.
pub(super) fn expect(b: Here, w: u64, object: u64, hook: u16) {
    let k = kind_of(w);
    if k != kind::LOCK && k != kind::OUTCOME {
        differs(why::KIND, b, object, hook);
    }
    if short_of(w) != hash16(object) || detail_of(w) & !OWNER_DIED != hook as u8 {
        differs(why::SITE, b, object, hook);
    }
    verified(b);
}

/// Out of line, so that only who differs puts the event together.
#[cold]
#[inline(never)]
fn differs(code: u32, b: Here, object: u64, hook: u16) -> ! {
    let ours = word(kind::LOCK, hook as u8, hash16(object), 0);
    diverged(code, b.pos - 1, [ours, object, 0, 0, 0, 0, 0, 0])
}

/// An operation that acquires, fails or times out.
#[inline(always)]
pub(super) fn acquire(
    hook: u16,
    sure: u16,
    object: u64,
    clock: (&AtomicU32, bool),
    a: [u64; 3],
) -> i32 {
    let b = block();
    if leads() {
        let r = suspended(b, hook, object, a[0], a[1], a[2]);
        if r == 0 || r == EOWNERDEAD {
            let t = tick(clock.0, clock.1);
            let died = if r == 0 { 0 } else { OWNER_DIED };
            log_word(b, word(kind::LOCK, hook as u8 | died, hash16(object), t));
        } else {
            log_word(b, word(kind::OUTCOME, hook as u8, hash16(object), r as u32));
        }
        r
    } else {
        let w = next(b);
        expect(b, w, object, hook);
        if kind_of(w) == kind::OUTCOME {
            return low_of(w) as i32;
        }
        let t = low_of(w);
        await_tick(clock.0, t);
        if sure == id::MUTEX_LOCK {
            prepare_owned(object, detail_of(w) & OWNER_DIED != 0);
        }
        let r = suspended(b, sure, object, 0, 0, 0);
        advance(clock.0, t.wrapping_add(1));
        r
    }
}

/// The same for functions that return -1 and set errno.
pub(super) fn acquire_errno(hook: u16, sure: u16, object: u64, a: [u64; 3]) -> i32 {
    let b = block();
    let clock = &of_address(object).clock;
    if leads() {
        let r = suspended(b, hook, object, a[0], a[1], a[2]);
        if r == 0 {
            let t = tick(clock, false);
            log_word(b, word(kind::LOCK, hook as u8, hash16(object), t));
        } else {
            let e = errno().map_or(EINTR, |p| p.load(Ordering::Relaxed) as i32);
            log_word(b, word(kind::OUTCOME, hook as u8, hash16(object), e as u32));
        }
        r
    } else {
        let w = next(b);
        expect(b, w, object, hook);
        if kind_of(w) == kind::OUTCOME {
            if let Some(p) = errno() {
                p.store(low_of(w), Ordering::Relaxed);
            }
            return -1;
        }
        let t = low_of(w);
        await_tick(clock, t);
        while suspended(b, sure, object, 0, 0, 0) != 0 {}
        advance(clock, t.wrapping_add(1));
        0
    }
}

pub(super) fn errno() -> Option<&'static AtomicU32> {
    let f = private().orig[ERRNO_LOCATION];
    if f == 0 {
        return None;
    }
    // SAFETY: the address of libc's __errno_location, found by the monitor.
    let at = unsafe { on_user_stack(f, [0; 4]) };
    Some(word_at(at as u64))
}
