//! pthread_once: which thread runs the initialiser is the leader's outcome.

use super::ordered::{expect, hash16, log_word, word_at};
use crate::gate::on_user_stack;
use crate::state::{block, leads};
use crate::wait::{Patience, announce, announce_end, wake_at};
use core::sync::atomic::Ordering;
use geryon_abi::hooks as id;
use geryon_abi::layout::wait;
use geryon_abi::record::{kind, low_of, word};

/// Who runs the initialiser is logged for each call; the others wait until it has run.
/// (An exception that leaves the initialiser is not supported: it cannot pass this frame.)
pub(super) extern "C" fn once(control: u64, run: u64) -> i32 {
    const RUNNING: u32 = 1;
    const DONE: u32 = 2;
    let b = block();
    let c = word_at(control);
    let followed = if leads() {
        None
    } else {
        expect(b, control, id::ONCE)
    };
    let runner = if followed.is_none() {
        let mut mine = false;
        let mut patience = Patience::new();
        while c.load(Ordering::Acquire) & DONE == 0 {
            if c.compare_exchange(0, RUNNING, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                mine = true;
                break;
            }
            if patience.spend() {
                patience = Patience::new();
            }
        }
        log_word(
            b,
            word(kind::OUTCOME, id::ONCE as u8, hash16(control), mine as u32),
        );
        mine
    } else {
        let mine = followed.is_some_and(|w| low_of(w) == 1);
        let mut patience = Patience::new();
        announce(wait::WORD, control, DONE as u64);
        while !mine && c.load(Ordering::Acquire) & DONE == 0 {
            if patience.spend() {
                patience = Patience::new();
            }
        }
        announce_end();
        mine
    };
    if runner {
        c.store(RUNNING, Ordering::Relaxed);
        // SAFETY: the program's own initialiser.
        unsafe { on_user_stack(run, [0; 4]) };
        c.store(DONE, Ordering::Release);
        wake_at(control, false);
    }
    0
}
