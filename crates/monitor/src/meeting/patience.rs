//! For how long threads are held to be brought to the same state, and for how long they are left alone afterwards: most of
//! the time they compute, whatever comes of it.
//!
//! What it costs to meet differs. Where a sentry stands, or the thread runs in a copy of its loop, a round takes some ten
//! nanoseconds longer, and who spins is met in a second at worst. Where a breakpoint stops the thread in each round, or where what a
//! sentry looks at is the same in each, that is 20 to 100 us for each: to come up from as near as a thread can be stopped may take
//! many seconds, all others wait meanwhile, and such a thread may have been 10 ms from its next call.

use super::LOOK;
use std::time::Duration;

/// A thread that makes a call now and then takes its signals there.
pub const CALLS_SOON: Duration = Duration::from_millis(10);
/// When nothing came of it, it is tried again so much later, and then twice as late each time.
const AGAIN: Duration = Duration::from_secs(1);
/// But never later than that.
const AGAIN_MOST: Duration = Duration::from_secs(60);
/// The same for a thread that others wait for: whether it spins is seen within milliseconds.
const SPINS_SOON: Duration = Duration::from_millis(50);
const SPINS_LATE: Duration = Duration::from_secs(2);
/// After so many looks it has kept the others waiting for a second and more, and is stopped wherever it is.
const MOST_LOOKS: u32 = 4;
/// When others have waited so long for a turn the user hears of it.
const LONG: Duration = Duration::from_secs(10);
/// They are never held for longer.
const LONGEST: Duration = Duration::from_secs(20);
/// Where a thread is stopped in each round they are held for a turn for as long as others had waited for it before, and for
/// so long at first.
const LONGEST_AT_FIRST: Duration = Duration::from_millis(50);
/// A thread whose turn has been given away so is not held again for so many times as long as that took: one that spins, and
/// one that computes.
const REST: [u32; 2] = [4, 30];
/// The same when its turn could not be given away.
const REST_IN_VAIN: u32 = 4;

/// What they are held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// A signal waits for the thread.
    Signal,
    /// Another thread waits for the turn; this one is left alone unless it spins.
    TurnOfSpinning,
    /// The same, and it has waited for long.
    Turn,
}

impl Aim {
    /// To give a turn away, after so many attempts in vain.
    pub fn turn(failed: u32) -> Aim {
        match failed < MOST_LOOKS {
            true => Aim::TurnOfSpinning,
            false => Aim::Turn,
        }
    }

    pub fn is_signal(self) -> bool {
        self == Aim::Signal
    }

    pub fn is_only_spinning(self) -> bool {
        self == Aim::TurnOfSpinning
    }

    /// They could not be met: does the user hear of it, when this had been waited for so long? (Who does not spin computes, and who
    /// computes mostly calls soon.)
    pub fn is_worth_a_word(self, waited: Duration) -> bool {
        match self {
            Aim::Signal => true,
            Aim::TurnOfSpinning => false,
            Aim::Turn => waited >= LONG,
        }
    }

    /// How long they are held at most, when this had been waited for so long. `stops_each_time`: the one that runs is
    /// stopped whenever it comes to the other one's instruction.
    pub fn longest(self, stops_each_time: bool, waited: Duration) -> Duration {
        match stops_each_time && !self.is_signal() {
            true => waited.clamp(LONGEST_AT_FIRST, LONGEST),
            false => LONGEST,
        }
    }

    /// How long they are left alone when they have met after so long.
    pub fn rest_when_met(self, took: Duration) -> Duration {
        let times = match self {
            Aim::Signal => 0,
            Aim::TurnOfSpinning => REST[0],
            Aim::Turn => REST[1],
        };
        // More than one signal may wait.
        CALLS_SOON.max(took * times)
    }

    /// The same when one of them has come to a call, or is gone.
    pub fn rest_when_disturbed(self, took: Duration) -> Duration {
        LOOK.max(self.rest_in_vain(took))
    }

    /// The same when nothing came of it, for so many times by now.
    pub fn rest_when_failed(self, took: Duration, failed: u32) -> Duration {
        let times = 2u32.saturating_pow(failed);
        let (again, most) = match self {
            Aim::TurnOfSpinning => (SPINS_SOON * times, SPINS_LATE),
            Aim::Signal | Aim::Turn => (AGAIN * times, AGAIN_MOST),
        };
        again.min(most).max(self.rest_in_vain(took))
    }

    fn rest_in_vain(self, took: Duration) -> Duration {
        match self {
            Aim::Signal => Duration::ZERO,
            Aim::TurnOfSpinning | Aim::Turn => took * REST_IN_VAIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each attempt begins, and how long it takes, where a thread keeps its turn for so long and cannot be met.
    fn attempts_in_vain(kept: Duration) -> Vec<(Duration, Duration)> {
        let (mut now, mut all) = (CALLS_SOON, Vec::new());
        while now < kept {
            let aim = Aim::turn(all.len() as u32);
            let took = aim.longest(true, now);
            all.push((now, took));
            now += took + aim.rest_when_failed(took, all.len() as u32);
        }
        all
    }

    fn held(attempts: &[(Duration, Duration)]) -> Duration {
        attempts.iter().map(|a| a.1).sum()
    }

    /// It was held for 20 s, in which it came a millisecond further.
    #[test]
    fn who_calls_soon_and_cannot_be_met_is_hardly_held() {
        let calls_soon = Duration::from_millis(240);
        assert_eq!(held(&attempts_in_vain(calls_soon)), LONGEST_AT_FIRST);
    }

    #[test]
    fn who_cannot_be_met_computes_most_of_the_time() {
        for ms in [300, 3_000, 30_000, 300_000] {
            let kept = Duration::from_millis(ms);
            let attempts = attempts_in_vain(kept);
            let (last, before) = attempts.split_last().expect("it is tried");
            assert!(held(before) * 3 < last.0, "{attempts:?}");
        }
    }

    #[test]
    fn who_need_not_be_stopped_in_each_round_is_held_until_it_is_met() {
        assert_eq!(Aim::turn(0).longest(false, CALLS_SOON), LONGEST);
        assert_eq!(Aim::Signal.longest(true, CALLS_SOON), LONGEST);
    }

    #[test]
    fn who_can_be_met_after_a_while_is_met_at_last() {
        let attempts = attempts_in_vain(Duration::from_secs(120));
        assert!(attempts.is_sorted_by_key(|a| a.1));
        assert_eq!(attempts.last().expect("it is tried").1, LONGEST);
    }

    #[test]
    fn what_is_soon_over_is_not_worth_a_word() {
        let soon = Duration::from_secs(1);
        assert!(Aim::Signal.is_worth_a_word(soon));
        assert!(!Aim::Turn.is_worth_a_word(soon));
        assert!(Aim::Turn.is_worth_a_word(LONG));
        assert!(!Aim::TurnOfSpinning.is_worth_a_word(LONG));
    }

    #[test]
    fn who_is_disturbed_again_and_again_computes_most_of_the_time() {
        let took = Duration::from_millis(15);
        assert!(Aim::turn(0).rest_when_disturbed(took) >= took * REST_IN_VAIN);
        assert_eq!(Aim::Signal.rest_when_disturbed(took), LOOK);
    }
}
