//! Timers of a process, which only the leader's has: what is to be known of them to set them again in a
//! successor's. The monitor reads them there, too.

use super::{Word32, Word64};

/// Timers of one process that are kept in mind: three interval timers, and those of timer_create.
pub const MAX_TIMERS: usize = 256;
/// The interval timers come first, each at its number (ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF).
pub const INTERVAL_TIMERS: usize = 3;

/// One of them. Times are nanoseconds of its clock.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// 1: it exists (an interval timer always does).
    pub exists: u32,
    /// The id that the program knows.
    pub id: u32,
    /// Its clock.
    pub clock: i32,
    /// 1: set for a time of its clock.
    pub absolute: u32,
    /// What was asked for at its creation: value, signal and way of notification, thread (struct sigevent).
    pub event: [u64; 3],
    /// Its interval; 0: it rings once.
    pub interval: u64,
    /// When it rings first, counted from `since`; 0: it is not armed.
    pub value: u64,
    /// When it was set, by the leader's clock.
    pub since: u64,
    /// Written by the monitor for a successor: it has rung, and its signal waits.
    pub rung: u64,
}

impl Timer {
    /// None.
    pub const NONE: Timer = Timer {
        exists: 0,
        id: 0,
        clock: 0,
        absolute: 0,
        event: [0; 3],
        interval: 0,
        value: 0,
        since: 0,
        rung: 0,
    };

    /// For how long a new leader is to set it at `now`, when the former one was lost at `lost`; 0: it is
    /// over. What has rung before and does not wait anywhere the program has taken, except in the last
    /// moment: then its signal may have been lost with the leader.
    pub fn left(&self, lost: u64, now: u64) -> u64 {
        const LAST_MOMENT: u64 = 100_000_000;
        if self.value == 0 {
            return 0;
        }
        let at = self.since.saturating_add(self.value);
        let next = if at > lost {
            at
        } else if let Some(rung) = (lost - at).checked_div(self.interval) {
            at + (rung + 1) * self.interval
        } else if self.rung != 0 || at + LAST_MOMENT < lost {
            return 0;
        } else {
            now
        };
        next.saturating_sub(now).max(1)
    }
}

/// A timer as a process keeps it, word for word as [`Timer`] has it.
#[repr(C)]
#[derive(Debug, Default)]
pub struct KeptTimer {
    /// See [`Timer`].
    pub exists: Word32,
    /// See [`Timer`].
    pub id: Word32,
    clock: Word32,
    absolute: Word32,
    event: [Word64; 3],
    /// See [`Timer`].
    pub interval: Word64,
    /// See [`Timer`].
    pub value: Word64,
    /// See [`Timer`].
    pub since: Word64,
    /// See [`Timer`].
    pub rung: Word64,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<KeptTimer>() == size_of::<Timer>());
    assert!(offset_of!(KeptTimer, clock) == offset_of!(Timer, clock));
    assert!(offset_of!(KeptTimer, interval) == offset_of!(Timer, interval));
    assert!(offset_of!(KeptTimer, value) == offset_of!(Timer, value));
    assert!(offset_of!(KeptTimer, since) == offset_of!(Timer, since));
    assert!(offset_of!(KeptTimer, rung) == offset_of!(Timer, rung));
};

impl KeptTimer {
    /// What it is set to.
    pub fn get(&self) -> Timer {
        Timer {
            exists: self.exists.get(),
            id: self.id.get(),
            clock: self.clock.get() as i32,
            absolute: self.absolute.get(),
            event: self.event.each_ref().map(Word64::get),
            interval: self.interval.get(),
            value: self.value.get(),
            since: self.since.get(),
            rung: self.rung.get(),
        }
    }

    /// Keep that in mind. (Last, that it exists.)
    pub fn set(&self, t: Timer) {
        self.id.set(t.id);
        self.clock.set(t.clock as u32);
        self.absolute.set(t.absolute);
        for (word, now) in self.event.iter().zip(t.event) {
            word.set(now);
        }
        self.interval.set(t.interval);
        self.value.set(t.value);
        self.since.set(t.since);
        self.rung.set(t.rung);
        self.exists.set(t.exists);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(interval: u64, value: u64, rung: u64) -> Timer {
        Timer {
            interval,
            value,
            since: 1_000_000_000,
            rung,
            ..Timer::NONE
        }
    }

    #[test]
    fn one_that_has_not_rung_has_its_time_left() {
        let t = set(0, 500, 0);
        assert_eq!(t.left(1_000_000_100, 1_000_000_200), 300);
        // It was due while nobody led.
        assert_eq!(t.left(1_000_000_100, 1_000_000_900), 1);
        assert_eq!(set(0, 0, 0).left(0, 5), 0);
    }

    #[test]
    fn one_that_has_rung_rings_no_more() {
        assert_eq!(set(0, 500, 1).left(1_000_000_600, 1_000_000_700), 0);
        // Taken long ago.
        assert_eq!(set(0, 500, 0).left(2_000_000_000, 2_000_000_000), 0);
        // Its signal was lost in the last moment.
        assert_eq!(set(0, 500, 0).left(1_000_000_600, 1_000_000_700), 1);
    }

    #[test]
    fn an_interval_keeps_its_pace() {
        let t = set(1000, 500, 1);
        assert_eq!(t.left(1_000_002_600, 1_000_003_000), 500);
    }
}
