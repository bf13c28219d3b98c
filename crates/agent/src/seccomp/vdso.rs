//! Calls that the vDSO answers: without Geryon, which hides it, libc does not make them, and a filter that does not know
//! them does no harm.

use geryon_abi::table::nr;
const GETTIMEOFDAY: u64 = nr::gettimeofday;
const TIME: u64 = nr::time;
const CLOCK_GETTIME: u64 = nr::clock_gettime;
const CLOCK_GETRES: u64 = nr::clock_getres;
const GETCPU: u64 = nr::getcpu;

/// Would the vDSO answer this call, whose first argument is that?
pub fn answers(nr: u64, first: u64) -> bool {
    match nr {
        GETTIMEOFDAY | TIME | GETCPU => true,
        // REALTIME, MONOTONIC, MONOTONIC_RAW, both COARSE, BOOTTIME, TAI.
        CLOCK_GETTIME | CLOCK_GETRES => matches!(first as u32, 0 | 1 | 4..=7 | 11),
        _ => false,
    }
}
