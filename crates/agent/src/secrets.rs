//! Each replica's C library has taken words of its own by chance (`--variants full`). Whoever asks for them later
//! (getauxval(AT_RANDOM), as run-time systems and allocators do for seeds) finds the same words in all replicas: they are put
//! there as soon as the library's own lie behind the thread pointer. That is between two calls of ld.so or of the static
//! start-up code: no code of the program's has run. (musl makes no call between that and the program's first
//! instruction: what a program asks for before its first call is its replica's own.)

use crate::access::word64;
use crate::gate::guarded;
use crate::state::private;
use geryon_abi::frame::Frame;
use geryon_abi::layout::Secrets;
use geryon_abi::layout::secrets::{CANARY_AT, CANARY_BITS, POINTER_GUARD_AT};
use geryon_abi::table::nr;

const ARCH_SET_FS: u64 = 0x1002;

/// Before a call of the program's.
#[inline(always)]
pub fn before(frame: &Frame) {
    if private().secrets.at.get() != 0 {
        look(frame, &private().secrets);
    }
}

#[cold]
fn look(frame: &Frame, s: &Secrets) {
    let thread = s.thread.get();
    if frame.rax == nr::arch_prctl && frame.rdi == ARCH_SET_FS {
        s.thread.set(frame.rsi);
    } else if thread != 0 && are_taken(thread, s) {
        let at = s.at.get() as *mut [u64; 2];
        // SAFETY: inside `guarded`; the program's initial stack.
        guarded(|| unsafe { at.write_unaligned(s.shown) });
        s.at.set(0);
    }
}

fn are_taken(thread: u64, s: &Secrets) -> bool {
    let [canary, guard] = [CANARY_AT, POINTER_GUARD_AT].map(|at| word64(thread.wrapping_add(at)));
    canary.is_some_and(|c| (c ^ s.own[0]) & CANARY_BITS == 0)
        && (s.takes_both == 0 || guard == Some(s.own[1]))
}
