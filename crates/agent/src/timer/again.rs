//! Setting timers again: in a new leader, or later because handlers take too long.

use super::{MICROSECOND, MONOTONIC, REAL, SECOND, clock_here, is_of_processor, now};
use crate::gate::real;
use crate::ids;
use crate::state::private;
use crate::stop::refused;
use geryon_abi::layout::{INTERVAL_TIMERS, MAX_TIMERS, Timer};
use geryon_abi::table::nr;

/// Leader: it has rung again before its handler was over, for the `times`-th time in a row: a handler
/// takes longer here than it does natively, and the program would do nothing else any more. It rings
/// later, as any timer may.
pub fn put_off(times: u64) {
    const LEAST: u64 = 500 * MICROSECOND;
    const DOUBLED_AT_MOST: u64 = 10;
    let t = &private().timers[REAL];
    let value = LEAST << times.min(DOUBLED_AT_MOST);
    t.value.set(value);
    t.since.set(now(MONOTONIC));
    set_interval(REAL, t.interval.get(), value);
}

/// New leader: set all for what is left.
pub fn set_again() {
    let lost = private().lost_at.get();
    let ago = now(MONOTONIC).saturating_sub(lost);
    for i in 0..MAX_TIMERS {
        let t = private().timers[i].get();
        if t.exists == 0 {
            continue;
        }
        let clock = clock_here(t.clock);
        let at = now(clock);
        let left = match is_of_processor(t.clock) {
            // (A copy's clock has begun anew.)
            true => of_processor(&t, at),
            false => t.left(at.saturating_sub(ago), at),
        };
        if i < INTERVAL_TIMERS {
            set_interval(i, t.interval, left);
        } else {
            restore(&t, clock, left);
        }
    }
}

/// What is left by a clock that no other replica has.
fn of_processor(t: &Timer, at: u64) -> u64 {
    let due = t.since.saturating_add(t.value);
    match at < due {
        _ if t.value == 0 || t.interval == 0 && t.rung != 0 => 0,
        true if t.absolute != 0 => due - at,
        true => (due - at).min(t.value),
        false if t.interval == 0 => 1,
        false => t.interval - (at - due) % t.interval,
    }
}

fn set_interval(which: usize, interval: u64, left: u64) {
    let us = left.div_ceil(MICROSECOND);
    let of_interval = interval / MICROSECOND;
    const MILLION: u64 = SECOND / MICROSECOND;
    let v = [
        of_interval / MILLION,
        of_interval % MILLION,
        us / MILLION,
        us % MILLION,
    ];
    real(nr::setitimer, [which as u64, v.as_ptr() as u64, 0, 0, 0, 0]);
}

/// Create a timer of timer_create again if it is not there, and set it.
fn restore(t: &Timer, clock: i32, left: u64) {
    let mut v = [0u64; 4];
    let id = u64::from(t.id);
    if real(nr::timer_gettime, [id, v.as_mut_ptr() as u64, 0, 0, 0, 0]) < 0 && !create(t, clock) {
        refused(nr::timer_create, 0);
        return;
    }
    v = [
        t.interval / SECOND,
        t.interval % SECOND,
        left / SECOND,
        left % SECOND,
    ];
    real(nr::timer_settime, [id, 0, v.as_ptr() as u64, 0, 0, 0]);
}

/// Under its id: where the kernel does not take it from us, it counts, and this process has had none.
fn create(t: &Timer, clock: i32) -> bool {
    const RESTORE_IDS: u64 = 77;
    const MANY: u64 = 1 << 20;
    let mut event = [0u64; 8];
    event[..3].copy_from_slice(&t.event);
    event[2] = ids::thread_of(&event);
    let mut id = t.id;
    let chosen = real(nr::prctl, [RESTORE_IDS, 1, 0, 0, 0, 0]) == 0;
    let mut make = || {
        let args = [
            clock as u32 as u64,
            event.as_ptr() as u64,
            (&raw mut id) as u64,
            0,
            0,
            0,
        ];
        let made = real(nr::timer_create, args) == 0;
        // SAFETY: the kernel may have written it.
        made.then(|| unsafe { (&raw const id).read_volatile() })
    };
    if chosen {
        let made = make();
        real(nr::prctl, [RESTORE_IDS, 0, 0, 0, 0, 0]);
        return made == Some(t.id);
    }
    for _ in 0..MANY {
        match make() {
            Some(made) if made == t.id => return true,
            Some(made) if made < t.id => {
                real(nr::timer_delete, [u64::from(made), 0, 0, 0, 0, 0]);
            }
            _ => return false,
        }
    }
    false
}
