//! Interval timers outlive an exec: the new program's replicas know of them from the start.

use super::Installer;
use crate::private_field;
use anyhow::Result;
use geryon_abi::layout::{INTERVAL_TIMERS, PRIVATE_BASE, PRIVATE_BYTES, Timer};
use std::mem::offset_of;

const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1000;

impl Installer<'_> {
    /// Note what is left of the timers that the former program has set.
    ///
    /// # Errors
    /// When the injected calls fail.
    pub fn note_timers(&self) -> Result<()> {
        let gate = self.image.symbol("geryon_blocking_syscall");
        let m = self.memory;
        let scratch = PRIVATE_BASE + PRIVATE_BYTES - 4096;
        for which in 0..INTERVAL_TIMERS {
            let args = [which as u64, scratch, 0, 0, 0, 0];
            self.call(gate, libc::SYS_getitimer, args, "read a timer")?;
            let [s, us, left_s, left_us] = m.words::<4>(scratch)?;
            if (left_s, left_us) == (0, 0) {
                continue;
            }
            let clock = match which {
                0 => libc::CLOCK_MONOTONIC,
                _ => libc::CLOCK_PROCESS_CPUTIME_ID,
            };
            let args = [clock as u64, scratch, 0, 0, 0, 0];
            self.call(gate, libc::SYS_clock_gettime, args, "read a clock")?;
            let [now_s, now_ns] = m.words::<2>(scratch)?;
            let at = private_field!(timers) + (which * size_of::<Timer>()) as u64;
            for (field, value) in [
                (offset_of!(Timer, exists), 1 | ((which as u64) << 32)),
                (offset_of!(Timer, clock), clock as u64),
                (offset_of!(Timer, interval), s * SECOND + us * MICROSECOND),
                (
                    offset_of!(Timer, value),
                    left_s * SECOND + left_us * MICROSECOND,
                ),
                (offset_of!(Timer, since), now_s * SECOND + now_ns),
            ] {
                m.set_word(at + field as u64, value)?;
            }
        }
        for i in 0..4 {
            m.set_word(scratch + 8 * i, 0)?;
        }
        Ok(())
    }
}
