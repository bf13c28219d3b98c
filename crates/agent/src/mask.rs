//! Calls with a signal mask of their own (ppoll, sigsuspend): a signal that ends one is delivered under
//! that mask, and its handler's frame shows the thread's, which is in force again behind it.

use crate::gate::guarded;
use crate::state::Here;
use core::sync::atomic::Ordering;
use geryon_abi::outcome::is_interrupted;
use geryon_abi::row::{Kind, Row};

/// The handler runs, and then the call is made anew: ERESTARTNOINTR.
const MADE_ANEW: i64 = -513;
/// The call is over: ERESTARTNOHAND.
const ENDED: i64 = -514;
const EINTR: i64 = -4;

/// The mask that is in force while this call waits, if it has one.
fn of(row: &Row, args: &[u64; 6]) -> Option<u64> {
    let at = row.args.iter().zip(args);
    let (kind, at) = at
        .map(|(a, at)| (a.kind, *at))
        .find(|(kind, at)| *at != 0 && matches!(kind, Kind::Sigmask | Kind::SigmaskPair))?;
    let mut mask = None;
    guarded(|| {
        // SAFETY: inside `guarded`.
        unsafe {
            let at = match kind {
                Kind::SigmaskPair => (at as *const u64).read_unaligned(),
                _ => at,
            };
            mask = (at != 0).then(|| (at as *const u64).read_unaligned());
        }
    });
    mask
}

fn lets_in(mask: u64, signal: u64) -> bool {
    mask & 1 << (signal.wrapping_sub(1) & 63) == 0
}

/// Leader: does the oldest signal that waits come in during this call? (It may have been queued by a
/// predecessor that was in it.)
pub fn comes_within(b: Here, row: &Row, args: &[u64; 6]) -> bool {
    of(row, args).is_some_and(|mask| lets_in(mask, b.pending[0].0[0]))
}

/// Leader: what a call shows that was interrupted. What its mask shuts out has come before it.
pub fn shown(b: Here, row: &Row, args: &[u64; 6], result: i64) -> i64 {
    let is_over = result == EINTR || is_interrupted(result);
    if !is_over || b.pending_count.load(Ordering::Acquire) == 0 || of(row, args).is_none() {
        return result;
    }
    if comes_within(b, row, args) {
        ENDED
    } else {
        MADE_ANEW
    }
}

/// All: a signal is about to be delivered behind a call that shows this result.
pub fn note(mut b: Here, row: &Row, args: &[u64; 6], result: i64) {
    let mask = of(row, args).filter(|_| result == EINTR);
    b.call_mask = mask.map_or([0; 2], |mask| [1, mask]);
}
