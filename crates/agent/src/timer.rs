//! The real-time interval timer, which only the leader has: kept in mind by all, so that whoever
//! takes over can set it for the rest of its time.

use crate::call::input;
use crate::gate::{guarded, real};
use crate::state::{Here, block, private};
use geryon_abi::frame::Frame;
use geryon_abi::row::Row;

const NR_ALARM: u16 = 37;
const NR_SETITIMER: u16 = 38;
const NR_CLOCK_GETTIME: u64 = 228;
const REAL: u64 = 0;
const SIGALRM: u32 = 14;
const SECOND: u64 = 1_000_000;
/// Asked for: no timer of this kind.
const OTHER: [u64; 2] = [u64::MAX; 2];

/// Microseconds of the monotonic clock.
fn now() -> u64 {
    const MONOTONIC: u64 = 1;
    let mut t = [0u64; 2];
    real(
        NR_CLOCK_GETTIME,
        [MONOTONIC, t.as_mut_ptr() as u64, 0, 0, 0, 0],
    );
    t[0] * SECOND + t[1] / 1000
}

/// setitimer and alarm.
pub fn set(frame: &mut Frame, row: &Row) {
    // Read now: where the call puts the old value may be where the new one lies.
    block().timer_asked = asked(&frame.args(), row.nr).unwrap_or(OTHER);
    input(frame, row);
}

/// What is asked for, in microseconds: the interval, and the time until it rings first. None: it is
/// another timer, or nothing that can be read.
fn asked(args: &[u64; 6], nr: u16) -> Option<[u64; 2]> {
    if nr == NR_ALARM {
        return Some([0, (args[0] as u32 as u64) * SECOND]);
    }
    if args[0] != REAL {
        return None;
    }
    let mut v = [0u64; 4];
    let there = args[1] == 0
        || guarded(|| {
            // SAFETY: inside `guarded`.
            v = unsafe { (args[1] as *const [u64; 4]).read_unaligned() };
        });
    let us = |s: u64, us: u64| s.saturating_mul(SECOND).saturating_add(us);
    there.then(|| [us(v[0], v[1]), us(v[2], v[3])])
}

/// All: the call has been made. (Not before: as long as it gives way to signals, the old one rings.)
pub fn was_set(b: Here, nr: u16, result: i64) {
    if is_its(nr) && result >= 0 && b.timer_asked != OTHER {
        let [interval, value] = b.timer_asked;
        note(interval, value);
    }
}

/// New leader: what its predecessor has set ended with that.
pub fn was_given(b: Here, nr: u16, result: i64) {
    if is_its(nr) {
        was_set(b, nr, result);
        arm();
    }
}

fn is_its(nr: u16) -> bool {
    nr == NR_SETITIMER || nr == NR_ALARM
}

/// A signal is delivered: was it the timer's?
pub fn rang(signal: u32) {
    let [interval, value, _] = &private().timer;
    if signal == SIGALRM && value.get() != 0 {
        note(interval.get(), interval.get());
    }
}

/// Was the signal made by the timer?
pub fn is_ours(signal: u32, code: i32) -> bool {
    const SI_KERNEL: i32 = 0x80;
    signal == SIGALRM && code == SI_KERNEL && private().timer[0].get() != 0
}

/// Leader: it has rung again before its handler was over, for the `times`-th time in a row: a handler
/// takes longer here than it does natively, and the program would do nothing else any more. It rings
/// later, as any timer may.
pub fn put_off(times: u64) {
    const LEAST: u64 = 500;
    const DOUBLED_AT_MOST: u64 = 10;
    let interval = private().timer[0].get();
    note(interval, LEAST << times.min(DOUBLED_AT_MOST));
    arm();
}

/// It was set to this just now.
fn note(interval: u64, value: u64) {
    for (word, now) in private().timer.iter().zip([interval, value, now()]) {
        word.set(now);
    }
}

/// A forked child has none.
pub fn forget() {
    private().timer.iter().for_each(|w| w.set(0));
}

/// New leader: set it for what is left.
pub fn arm() {
    let [interval, value, since] = private().timer.each_ref().map(|w| w.get());
    let left = match value {
        0 => 0,
        _ => (since + value).saturating_sub(now()).max(1),
    };
    let v = [
        interval / SECOND,
        interval % SECOND,
        left / SECOND,
        left % SECOND,
    ];
    real(NR_SETITIMER as u64, [REAL, v.as_ptr() as u64, 0, 0, 0, 0]);
}
