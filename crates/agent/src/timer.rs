//! Timers, which only the leader has: kept in mind by all, so that whoever takes over can set them for the
//! rest of their time. When they were set is the leader's time, which is in the log.

use crate::gate::{guarded, real};
use crate::ids;
use crate::state::{Here, private};
use geryon_abi::layout::{INTERVAL_TIMERS, KeptTimer, MAX_TIMERS, Siginfo, Timer};
use geryon_abi::table::nr;

mod again;

pub use again::{put_off, set_again};

const NR_ALARM: u16 = nr::alarm as u16;
const NR_SETITIMER: u16 = nr::setitimer as u16;
const NR_RT_SIGTIMEDWAIT: u16 = nr::rt_sigtimedwait as u16;
const NR_TIMER_CREATE: u16 = nr::timer_create as u16;
const NR_TIMER_SETTIME: u16 = nr::timer_settime as u16;
const NR_TIMER_DELETE: u16 = nr::timer_delete as u16;
const REAL: usize = 0;
const SIGALRM: u64 = 14;
/// Signals of the interval timers.
const SIGNALS: [u64; INTERVAL_TIMERS] = [SIGALRM, 26, 27];
const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1000;
/// The clock that nobody sets.
pub const MONOTONIC: i32 = 1;
const PROCESS_CPU: i32 = 2;
const THREAD_CPU: i32 = 3;

/// Nanoseconds of a clock.
pub fn now(clock: i32) -> u64 {
    let mut t = [0u64; 2];
    let args = [clock as u32 as u64, t.as_mut_ptr() as u64, 0, 0, 0, 0];
    real(nr::clock_gettime, args);
    t[0].wrapping_mul(SECOND).wrapping_add(t[1])
}

/// Does each replica have a time of its own there?
pub fn is_of_processor(clock: i32) -> bool {
    clock < 0 || clock == PROCESS_CPU || clock == THREAD_CPU
}

/// The clock as this replica's kernel knows it: a negative one holds an id.
pub fn clock_here(clock: i32) -> i32 {
    const KIND_BITS: u32 = 3;
    let id = !(clock >> KIND_BITS);
    if clock >= 0 || id <= 0 {
        return clock;
    }
    (!(ids::own(id as u32) as i32) << KIND_BITS) | (clock & ((1 << KIND_BITS) - 1))
}

/// All timers but the interval timers.
fn timers() -> &'static [KeptTimer] {
    &private().timers[INTERVAL_TIMERS..]
}

fn by_id(id: u32) -> Option<&'static KeptTimer> {
    timers()
        .iter()
        .find(|t| t.exists.get() != 0 && t.id.get() == id)
}

/// The words at an address, if they are there.
fn words<const N: usize>(at: u64) -> Option<[u64; N]> {
    let mut v = [0; N];
    let there = guarded(|| {
        // SAFETY: inside `guarded`.
        v = unsafe { (at as *const [u64; N]).read_unaligned() };
    });
    there.then_some(v)
}

/// Is there room for one more timer?
pub fn has_room() -> bool {
    timers().iter().any(|t| t.exists.get() == 0)
}

/// What is asked for. None: nothing that can be read.
pub fn asked(args: &[u64; 6], nr: u16) -> Option<Timer> {
    const SIGEV_SIGNAL_ALRM: u64 = SIGALRM;
    const ABSTIME: u64 = 1;
    let ns = |s: u64, rest: u64| s.saturating_mul(SECOND).saturating_add(rest);
    let there = Timer {
        exists: 1,
        ..Timer::NONE
    };
    match nr {
        NR_ALARM => Some(Timer {
            clock: MONOTONIC,
            value: ns(args[0] as u32 as u64, 0),
            ..there
        }),
        NR_SETITIMER => {
            let id = args[0] as u32;
            let v: [u64; 4] = match args[1] {
                0 => [0; 4],
                at => words(at)?,
            };
            ((id as usize) < INTERVAL_TIMERS).then_some(Timer {
                id,
                clock: if id as usize == REAL {
                    MONOTONIC
                } else {
                    PROCESS_CPU
                },
                interval: ns(v[0], v[1].saturating_mul(MICROSECOND)),
                value: ns(v[2], v[3].saturating_mul(MICROSECOND)),
                ..there
            })
        }
        NR_TIMER_CREATE => {
            let event: [u64; 8] = match args[1] {
                0 => [0, SIGEV_SIGNAL_ALRM, 0, 0, 0, 0, 0, 0],
                at => words(at)?,
            };
            Some(Timer {
                clock: args[0] as i32,
                event: [event[0], event[1], event[2]],
                ..there
            })
        }
        NR_TIMER_SETTIME => {
            let v: [u64; 4] = words(args[2])?;
            let timer = by_id(args[0] as u32)?.get();
            Some(Timer {
                absolute: (args[1] & ABSTIME) as u32,
                interval: ns(v[0], v[1]),
                value: ns(v[2], v[3]),
                since: 0,
                rung: 0,
                ..timer
            })
        }
        _ => None,
    }
}

/// All: a call has been made. (Not before: as long as it gives way to signals, the old timer rings.)
pub fn was_made(b: Here, nr: u16, args: &[u64; 6], result: i64) {
    if result < 0 {
        return;
    }
    match nr {
        NR_ALARM | NR_SETITIMER | NR_TIMER_SETTIME | NR_TIMER_CREATE
            if b.timer_asked.exists == 0 => {}
        NR_ALARM | NR_SETITIMER => {
            let at = b.timer_asked.id as usize % INTERVAL_TIMERS;
            private().timers[at].set(b.timer_asked);
        }
        NR_TIMER_SETTIME => {
            if let Some(timer) = by_id(args[0] as u32) {
                timer.set(b.timer_asked);
            }
        }
        NR_TIMER_CREATE => {
            let id = words::<1>(args[2] & !7).map(|[w]| (w >> (8 * (args[2] & 4))) as u32);
            if let (Some(id), Some(place)) = (id, timers().iter().find(|t| t.exists.get() == 0)) {
                let mut timer = Timer {
                    id,
                    ..b.timer_asked
                };
                if b.timer_asked.event[1] as u32 == SIGALRM as u32 && args[1] == 0 {
                    // By default its value is its id.
                    timer.event[0] = u64::from(id);
                }
                place.set(timer);
            }
        }
        NR_TIMER_DELETE => {
            if let Some(timer) = by_id(args[0] as u32) {
                timer.set(Timer::NONE);
            }
        }
        NR_RT_SIGTIMEDWAIT if result > 0 && args[1] != 0 => {
            if let Some(info) = words::<16>(args[1]) {
                rang(&Siginfo(info));
            }
        }
        _ => {}
    }
}

/// New leader: what its predecessor has set, created or deleted ended with that.
pub fn was_given(b: Here, nr: u16, args: &[u64; 6], result: i64) {
    was_made(b, nr, args, result);
    if matches!(nr, NR_ALARM | NR_SETITIMER) || (NR_TIMER_CREATE..=NR_TIMER_DELETE).contains(&nr) {
        // (What a call has written is here already; its end finds the same once more.)
        set_again();
    }
}

/// Which timer has made this signal?
fn maker(info: &Siginfo) -> Option<usize> {
    const SI_KERNEL: i32 = 0x80;
    const SI_TIMER: i32 = -2;
    let signal = u64::from(info.0[0] as u32);
    match info.0[1] as i32 {
        SI_KERNEL => SIGNALS.iter().position(|s| *s == signal),
        SI_TIMER => {
            let id = info.0[2] as u32;
            let all = private().timers.iter().enumerate().skip(INTERVAL_TIMERS);
            let mut all = all.filter(|(_, t)| t.exists.get() != 0 && t.id.get() == id);
            all.next().map(|(i, _)| i)
        }
        _ => None,
    }
}

/// The program has been given a signal: one that a timer has made which rings once?
pub fn rang(info: &Siginfo) {
    let Some(i) = maker(info).filter(|i| *i < MAX_TIMERS) else {
        return;
    };
    let kept = &private().timers[i];
    kept.rung.set(0);
    let t = kept.get();
    // (One that was set anew since has not rung yet.)
    let is_due = is_of_processor(t.clock) || t.since + t.value <= now(t.clock);
    if t.interval == 0 && is_due {
        kept.value.set(0);
    }
}

/// Was the signal made by the real-time interval timer?
pub fn is_ours(info: &Siginfo) -> bool {
    maker(info) == Some(REAL) && private().timers[REAL].interval.get() != 0
}

/// A forked child has none.
pub fn forget() {
    private().timers.iter().for_each(|t| t.set(Timer::NONE));
}
