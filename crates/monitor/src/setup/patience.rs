//! How long a replica spins for another one that runs on another core before it sleeps.

use std::hint::spin_loop;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// As long as it takes to go to sleep there and to be woken, on a machine on which that is slow (a virtual
/// one: 15 to 40 microseconds).
const AS_LONG_AS: Duration = Duration::from_micros(30);
/// Hints in each turn (the agent's `Patience`).
const HINTS: u32 = 4;
/// Turns that are timed.
const TIMED: u32 = 256;
/// So often: whoever is interrupted takes longer.
const TIMES: u32 = 5;

/// Turns that take so long. The hint takes 4 to 140 cycles, by the processor's kind: measured once.
pub fn turns() -> u32 {
    static TURNS: OnceLock<u32> = OnceLock::new();
    *TURNS.get_or_init(|| {
        let time = || {
            let start = Instant::now();
            for _ in 0..TIMED * HINTS {
                spin_loop();
            }
            start.elapsed()
        };
        in_time((0..TIMES).map(|_| time()).min().unwrap_or_default())
    })
}

/// The turns, where [`TIMED`] of them take `time`.
fn in_time(time: Duration) -> u32 {
    let turns = AS_LONG_AS.as_nanos() * u128::from(TIMED) / time.as_nanos().max(1);
    (turns as u32).clamp(TIMED / 8, TIMED * 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_hint_is_given_fewer_times() {
        assert_eq!(in_time(Duration::from_micros(30)), TIMED);
        assert_eq!(in_time(Duration::from_micros(60)), TIMED / 2);
        assert_eq!(in_time(Duration::ZERO), TIMED * 64, "a clock that stands");
    }
}
