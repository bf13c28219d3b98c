//! Calls that set timers. The leader's time at which they are made is in the log before them.

use crate::call::input_begun;
use crate::compare::expect_plain;
use crate::log::{get, publish, put, remember, verified};
use crate::state::{Here, block, leads};
use crate::stop::refused;
use crate::timer::{asked, clock_here, has_room, is_of_processor, now};
use geryon_abi::frame::Frame;
use geryon_abi::layout::Timer;
use geryon_abi::record::{kind, word};
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const NR_TIMER_CREATE: u16 = nr::timer_create as u16;
const EAGAIN: i64 = -11;

/// setitimer, alarm, timer_create, timer_settime, timer_delete.
pub fn set(frame: &mut Frame, row: &Row) {
    let mut b = block();
    // Read now: where the call puts an old value may be where the new one lies.
    b.timer_asked = Timer::NONE;
    if row.nr == NR_TIMER_CREATE && !has_room() {
        refused(u64::from(row.nr), 0);
        frame.rax = EAGAIN as u64;
        return;
    }
    let start = b.pos;
    if let Some(mut asked) = asked(&frame.args(), row.nr) {
        if asked.exists != 0 && asked.value != 0 && asked.absolute == 0 {
            asked.since = leaders_now(b, frame, asked.clock);
        }
        b.timer_asked = asked;
    }
    input_begun(frame, row, start);
}

/// The leader's time; of a clock that counts processor time, one's own.
fn leaders_now(b: Here, frame: &mut Frame, clock: i32) -> u64 {
    if is_of_processor(clock) {
        return now(clock_here(clock));
    }
    /// A detail that no instruction's value has.
    const TIME: u8 = 15;
    let ours = word(kind::VALUE, TIME, 0xffff, 0);
    if !leads() && expect_plain(b, frame, ours).is_some() {
        let at = get(b);
        verified(b);
        return at;
    }
    let at = now(clock);
    put(b, ours);
    put(b, at);
    remember(b, ours);
    publish(b);
    at
}
