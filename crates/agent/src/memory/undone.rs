//! Calls that fail when they have unmapped something already, as the kernel's do: a file that cannot be mapped takes the
//! place of what was there, and then there is nothing.

use super::{CLEARED, CUT, MAP_FIXED, MAP_FIXED_NOREPLACE, MREMAP_FIXED, failed};
use crate::gate::real;
use geryon_abi::table::nr;

const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;
const MAP_NORESERVE: u64 = 0x4000;
const PAGE: u64 = 4096;

/// Where a call may have unmapped something before it failed, and the bit that says so.
fn places(nr: u64, a: &[u64; 6]) -> [Option<(u8, u64, u64)>; 2] {
    let replaces = a[3] & MAP_FIXED != 0 && a[3] & MAP_FIXED_NOREPLACE == 0;
    match nr {
        nr::mmap if replaces => [Some((CLEARED, a[0], a[1])), None],
        nr::mremap => {
            let moves = a[3] & MREMAP_FIXED != 0;
            let cuts = a[2] < a[1];
            [
                moves.then_some((CLEARED, a[4], a[2])),
                cuts.then(|| (CUT, a[0].wrapping_add(a[2]), a[1] - a[2])),
            ]
        }
        _ => [None; 2],
    }
}

/// Leader: what has such a call unmapped? (Something else than before only if nothing at all is there now.)
pub fn lead(nr: u64, args: &[u64; 6], result: i64) -> u8 {
    if !failed(result) {
        return 0;
    }
    let places = places(nr, args).into_iter().flatten();
    let empty = places.filter(|(_, start, len)| is_empty(*start, *len));
    empty.fold(0, |bits, (bit, ..)| bits | bit)
}

/// Follower: the same.
pub fn follow(nr: u64, args: &[u64; 6], detail: u8) {
    if detail & (CLEARED | CUT) == 0 {
        return;
    }
    for (_, start, len) in places(nr, args)
        .into_iter()
        .flatten()
        .filter(|p| detail & p.0 != 0)
    {
        real(nr::munmap, [start, len, 0, 0, 0, 0]);
    }
}

/// Is nothing mapped there?
fn is_empty(start: u64, len: u64) -> bool {
    let how = MAP_PRIVATE_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE;
    let len = len.checked_next_multiple_of(PAGE).unwrap_or(0);
    let mapped = real(nr::mmap, [start, len, 0, how, u64::MAX, 0]);
    if failed(mapped) {
        return false;
    }
    real(nr::munmap, [start, len, 0, 0, 0, 0]);
    true
}
