//! One ordered operation: the leader calls the original and logs its outcome with the clock's
//! tick; a follower waits for that tick, or is told the outcome.

use super::mutex::prepare_owned;
use crate::clock::{Slot, advance, await_tick, of_address};
use crate::diverge::diverged;
use crate::gate::on_user_stack;
use crate::log::{get_first, publish, put, remember, reserve, verified};
use crate::raise;
use crate::serial::is_serial;
use crate::state::{Here, block, block_anew, layout, leads, private};
use crate::wait::intend_on;
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::hooks as id;
use geryon_abi::layout::{ERRNO_LOCATION, why};
use geryon_abi::record::{detail_of, kind, kind_of, low_of, short_of, word};

const EOWNERDEAD: i32 = 130;
const EINTR: i32 = 4;
/// Bit of a LOCK record's detail: the call returned EOWNERDEAD.
const OWNER_DIED: u8 = 0x80;

/// The clock of an object, with the lock that excludes other users of it; None when nobody else can
/// be at it, because what it orders is held.
pub(super) type Clock = (&'static AtomicU32, Option<&'static Slot>);

/// The hashed clock of an object.
#[inline(always)]
pub(super) fn hashed(object: u64) -> Clock {
    let slot = of_address(object);
    (&slot.clock, Some(slot))
}

/// Call the original of a hooked function, on the user's stack.
#[inline(always)]
pub(super) fn original(hook: u16, a: u64, c: u64, d: u64, e: u64) -> i32 {
    // SAFETY: the monitor stored the address of the relocated original before it wrote the
    // jump that leads here; C functions of fewer arguments ignore the rest.
    unsafe { on_user_stack(private().orig[hook as usize].get(), [a, c, d, e]) as i32 }
}

/// Call the original while the thread is suspended.
#[inline(always)]
pub(super) fn suspended(mut b: Here, hook: u16, a: u64, c: u64, d: u64, e: u64) -> i32 {
    b.suspend += 1;
    b.set_ordered(false);
    let r = original(hook, a, c, d, e);
    if is_serial() {
        // It was not when this began: nobody is suspended any more.
        b.suspend = 0;
        return r;
    }
    b.suspend -= 1;
    if b.suspend == 0 {
        b.set_ordered(true);
    }
    r
}

#[inline(always)]
pub(super) fn hash16(address: u64) -> u16 {
    let name = layout().name(address);
    ((name >> 3) ^ (name >> 19)) as u16
}

/// Where an object's clock is.
#[inline(always)]
pub(super) fn word_at(address: u64) -> &'static AtomicU32 {
    // SAFETY: a field of a live, aligned object that the program passed to a pthread function.
    unsafe { &*(address as *const AtomicU32) }
}

/// Leader: log the tick that the clock shows, with `rest` behind it, and advance the clock. In this
/// order: whoever takes the next tick must find this one in the log, should the leader be lost. Nothing is logged
/// where the process has gone over to serial order inside the original, which all replicas call there.
#[inline(always)]
pub(super) fn log_tick(
    b: Here,
    (clock, section): Clock,
    record: impl Fn(u32) -> u64,
    rest: Option<u64>,
) {
    if is_serial() {
        return;
    }
    if let Some(s) = section {
        reserve(b, 1 + u64::from(rest.is_some()));
        s.enter();
    }
    let t = clock.load(Ordering::Relaxed);
    let w = record(t);
    put(b, w);
    if let Some(r) = rest {
        put(b, r);
    }
    remember(b, w);
    point!(TickUnpublished);
    publish(b);
    point!(TickUnadvanced);
    clock.store(t.wrapping_add(1), Ordering::Release);
    if let Some(s) = section {
        s.leave();
    }
}

/// Leader: log an outcome, unless the process has gone over to serial order (see [`log_tick`]).
#[inline(always)]
pub(super) fn log_word(b: Here, w: u64) {
    if is_serial() {
        return;
    }
    put(b, w);
    remember(b, w);
    point!(OutcomeUnpublished);
    publish(b);
}

/// Follower: the next record of a hooked function; signals that come first run here. None when this
/// replica leads by now.
#[inline(always)]
pub(super) fn next(mut b: Here) -> Option<u64> {
    loop {
        let w = get_first(b)?;
        b.wait_ended = 0;
        if kind_of(w) != kind::SIGNAL {
            remember(b, w);
            return Some(w);
        }
        raise::follow_signal_here(b, w);
        b = block_anew();
        b.wait_ended = u32::from(low_of(w) == raise::ENDED);
    }
}

/// Follower: the next record, which must be one of this function and this object.
#[inline(always)]
pub(super) fn expect(b: Here, object: u64, hook: u16) -> Option<u64> {
    loop {
        if b.pos >= b.limit {
            intend_hook(b, object, hook);
        }
        let w = next(b)?;
        let k = kind_of(w);
        if k != kind::LOCK && k != kind::OUTCOME {
            differs(why::KIND, b, object, hook);
        } else if short_of(w) != hash16(object) || detail_of(w) & !OWNER_DIED != hook as u8 {
            differs(why::SITE, b, object, hook);
        } else {
            verified(b);
            return Some(w);
        }
    }
}

/// Say what this thread is about to do, before it may wait for long.
#[inline(always)]
pub(super) fn intend_hook(b: Here, object: u64, hook: u16) {
    intend_on(b, word(kind::LOCK, hook as u8, hash16(object), 0), object);
}

/// Out of line, so that only who differs puts the event together.
#[cold]
#[inline(never)]
fn differs(code: u32, b: Here, object: u64, hook: u16) {
    let ours = word(kind::LOCK, hook as u8, hash16(object), 0);
    diverged(code, b.pos - 1, [ours, object, 0, 0, 0, 0, 0, 0]);
}

/// Follower: acquire at the leader's tick, or fail as the leader did. None when this replica leads
/// by now.
#[inline(always)]
pub(super) fn follow(b: Here, hook: u16, sure: u16, object: u64, clock: &AtomicU32) -> Option<i32> {
    loop {
        let w = expect(b, object, hook)?;
        if kind_of(w) == kind::OUTCOME {
            return Some(low_of(w) as i32);
        }
        let t = low_of(w);
        if !await_tick(b, clock, t) {
            continue;
        }
        if sure == id::MUTEX_LOCK {
            prepare_owned(object, detail_of(w) & OWNER_DIED != 0);
        } else if sure == id::SPIN_LOCK {
            super::spin::prepare(object);
        }
        b.midway.store(1, Ordering::Release);
        let r = suspended(b, sure, object, 0, 0, 0);
        point!(TickFollowed);
        advance(clock, t.wrapping_add(1));
        b.midway.store(0, Ordering::Release);
        return Some(r);
    }
}

/// An operation that acquires, fails or times out.
#[inline(always)]
pub(super) fn acquire(hook: u16, sure: u16, object: u64, clock: Clock, a: [u64; 3]) -> i32 {
    let b = block();
    crate::shared::stand();
    if !leads()
        && let Some(r) = follow(b, hook, sure, object, clock.0)
    {
        return r;
    }
    intend_hook(b, object, hook);
    let r = suspended(b, hook, object, a[0], a[1], a[2]);
    if is_copied_inside() {
        return acquire_as_copy(b, hook, sure, object, clock, r);
    }
    point!(SignalInLock);
    if r == 0 || r == EOWNERDEAD {
        let died = if r == 0 { 0 } else { OWNER_DIED };
        let record = |t| word(kind::LOCK, hook as u8 | died, hash16(object), t);
        log_tick(b, clock, record, None);
    } else {
        log_word(b, word(kind::OUTCOME, hook as u8, hash16(object), r as u32));
    }
    r
}

/// Was the leader copied while this thread, which led when it began, waited in the original? (Copies that are made where the order
/// becomes serial have nothing to follow: see [`log_tick`].)
#[inline(always)]
pub(super) fn is_copied_inside() -> bool {
    !leads() && !is_serial()
}

/// The leader was copied while this thread waited in the original, to follow its own log: the copy gives back what it has
/// got there, if it has got it, and acquires at the leader's tick.
#[cold]
#[inline(never)]
fn acquire_as_copy(b: Here, hook: u16, sure: u16, object: u64, clock: Clock, r: i32) -> i32 {
    let release = match sure {
        id::MUTEX_LOCK => id::MUTEX_UNLOCK,
        _ => id::RW_UNLOCK,
    };
    if r == 0 || r == EOWNERDEAD {
        suspended(b, release, object, 0, 0, 0);
    }
    // (Such a copy never leads.)
    follow(b, hook, sure, object, clock.0).unwrap_or(r)
}

/// Follower: the same for functions that return -1 and set errno.
pub(super) fn follow_errno(b: Here, hook: u16, sure: u16, object: u64) -> Option<i32> {
    let clock = hashed(object).0;
    loop {
        let w = expect(b, object, hook)?;
        if kind_of(w) == kind::OUTCOME {
            if let Some(p) = errno() {
                p.store(low_of(w), Ordering::Relaxed);
            }
            return Some(-1);
        }
        let t = low_of(w);
        if !await_tick(b, clock, t) {
            continue;
        }
        b.midway.store(1, Ordering::Release);
        while suspended(b, sure, object, 0, 0, 0) != 0 {}
        advance(clock, t.wrapping_add(1));
        b.midway.store(0, Ordering::Release);
        return Some(0);
    }
}

/// The same for functions that return -1 and set errno.
pub(super) fn acquire_errno(hook: u16, sure: u16, object: u64, a: [u64; 3]) -> i32 {
    let mut b = block();
    crate::shared::stand();
    b.wait_ended = 0;
    if !leads()
        && let Some(r) = follow_errno(b, hook, sure, object)
    {
        return r;
    }
    if core::mem::take(&mut b.wait_ended) != 0 {
        // The handler was the end of the lost leader's wait.
        if let Some(p) = errno() {
            p.store(EINTR as u32, Ordering::Relaxed);
        }
        log_word(
            b,
            word(kind::OUTCOME, hook as u8, hash16(object), EINTR as u32),
        );
        return -1;
    }
    intend_hook(b, object, hook);
    let r = suspended(b, hook, object, a[0], a[1], a[2]);
    if is_copied_inside() {
        // (As in `acquire_as_copy`.)
        if r == 0 {
            suspended(b, id::SEM_POST, object, 0, 0, 0);
        }
        return follow_errno(b, hook, sure, object).unwrap_or(r);
    }
    if r == 0 {
        let record = |t| word(kind::LOCK, hook as u8, hash16(object), t);
        log_tick(b, hashed(object), record, None);
    } else {
        let e = errno().map_or(EINTR, |p| p.load(Ordering::Relaxed) as i32);
        log_word(b, word(kind::OUTCOME, hook as u8, hash16(object), e as u32));
    }
    r
}

pub(super) fn errno() -> Option<&'static AtomicU32> {
    let f = private().orig[ERRNO_LOCATION].get();
    if f == 0 {
        return None;
    }
    // SAFETY: the address of libc's __errno_location, found by the monitor.
    let at = unsafe { on_user_stack(f, [0; 4]) };
    Some(word_at(at as u64))
}
