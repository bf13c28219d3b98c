//! How fast the time stamp counter runs, which agents that answer rdtsc need to know.

use std::time::{Duration, Instant};

/// Time stamp counter ticks in 2^20 ns, measured over a short while.
pub fn mult() -> u64 {
    let (t0, c0) = (Instant::now(), tsc());
    while t0.elapsed() < Duration::from_micros(500) {
        std::hint::spin_loop();
    }
    let (ns, c) = (t0.elapsed().as_nanos(), tsc().wrapping_sub(c0));
    ((u128::from(c) << 20) / ns.max(1)) as u64
}

fn tsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}
