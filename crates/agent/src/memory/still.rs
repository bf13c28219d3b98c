//! Where the kernel would choose an address among what moves, although what is mapped there is to stay (variants
//! whose data lie alike): it is given one.

use super::{MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MREMAP_FIXED, MREMAP_MAYMOVE};
use crate::state::layout;
use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::layout::place::{STILL, STILL_END};
use geryon_abi::table::nr;

const PAGE: u64 = 4096;
const MAP_32BIT: u64 = 0x40;

/// From here on nothing was ever mapped. (What is unmapped again is not used anew: there is room for long.)
static NEXT: AtomicU64 = AtomicU64::new(STILL);

/// Leader, in the section of memory calls: what the kernel is given for these arguments.
pub fn given(nr: u64, args: &[u64; 6]) -> [u64; 6] {
    let mut given = *args;
    if !layout().keeps_anonymous() {
        return given;
    }
    let next = NEXT.load(Ordering::Relaxed);
    let room = STILL_END.saturating_sub(next);
    let elsewhere = MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT;
    let maps = args[0] == 0 && args[3] & elsewhere == 0 && args[3] & MAP_ANONYMOUS != 0;
    let moves = args[3] & (MREMAP_MAYMOVE | MREMAP_FIXED) == MREMAP_MAYMOVE;
    let grows = moves && args[2] > args[1] && (STILL..STILL_END).contains(&args[0]);
    match nr {
        // (A hint: where it is no good the kernel chooses.)
        nr::mmap if maps && args[1] < room => given[0] = next,
        nr::mremap if grows && args[2] < room => {
            given[3] |= MREMAP_FIXED;
            given[4] = next;
        }
        _ => {}
    }
    given
}

/// All, in the same section: that call has mapped something there.
pub fn changed(nr: u64, args: &[u64; 6], result: u64) {
    let len = match nr {
        nr::mmap => args[1],
        nr::mremap => args[2],
        _ => return,
    };
    if (STILL..STILL_END).contains(&result) {
        let end = (result + len).next_multiple_of(PAGE);
        NEXT.fetch_max(end, Ordering::Relaxed);
    }
}
