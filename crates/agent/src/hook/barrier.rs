//! Barriers: all wait in every replica; who is told that it was the last is the leader's choice.

use super::ordered::{expect, hash16, intend_hook, log_word, suspended};
use crate::state::{block, leads};
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, low_of, word};

pub(super) extern "C" fn barrier_wait(l: u64) -> i32 {
    let b = block();
    intend_hook(b, l, id::BARRIER_WAIT);
    let r = suspended(b, id::BARRIER_WAIT, l, 0, 0, 0);
    if !leads()
        && let Some(w) = expect(b, l, id::BARRIER_WAIT)
    {
        return low_of(w) as i32;
    }
    log_word(
        b,
        word(kind::OUTCOME, id::BARRIER_WAIT as u8, hash16(l), r as u32),
    );
    r
}

pub(super) extern "C" fn barrier_destroy(l: u64) -> i32 {
    let b = block();
    suspended(b, id::BARRIER_DESTROY, l, 0, 0, 0)
}
