//! Calls that the vDSO answers: without Geryon, which hides it, libc does not make them, and a filter that does not know
//! them does no harm.

const GETTIMEOFDAY: u64 = 96;
const TIME: u64 = 201;
const CLOCK_GETTIME: u64 = 228;
const CLOCK_GETRES: u64 = 229;
const GETCPU: u64 = 309;

/// Would the vDSO answer this call, whose first argument is that?
pub fn answers(nr: u64, first: u64) -> bool {
    match nr {
        GETTIMEOFDAY | TIME | GETCPU => true,
        // REALTIME, MONOTONIC, MONOTONIC_RAW, both COARSE, BOOTTIME, TAI.
        CLOCK_GETTIME | CLOCK_GETRES => matches!(first as u32, 0 | 1 | 4..=7 | 11),
        _ => false,
    }
}
