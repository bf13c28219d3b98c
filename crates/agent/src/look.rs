//! Looks at who waits for the turn, where one thread runs at a time. Who computes for long, or spins on a word that
//! another thread is to store, comes to no call at which it would give its turn away. But it comes to atomic
//! instructions and to loads that wait (`geryon_patch` says which); trampolines count them, in every replica alike,
//! and when the count is used up the thread looks. The leader gives its turn away or not, as it likes, and
//! logs that there was a look, with the next count (LOOK); followers do at that very instruction what
//! the log has next.

use crate::atomic::Waiting;
use crate::log::{publish, put};
use crate::serial;
use crate::state::Here;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{FIRST_LOOK, LOOKED, repeat};
use geryon_abi::record::{kind, word};

/// The longest: some 50 microseconds of atomics, or 10 of polls.
const LONGEST: u32 = 4096;
/// A thread keeps its turn for so long (nanoseconds) where it may well wait: it calls a function again and again until that says something else, or comes to a
/// fence.
const LIKELY_NS: u64 = 200_000;

/// The leader looks.
pub(crate) fn lead(mut b: Here, frame: &Frame) {
    let spins = spins(b, frame);
    let gives = serial::active()
        && serial::is_awaited()
        && (spins || b.look[0] == 0 || serial::has_kept(b, most(b)));
    if gives {
        b.call_start = b.pos;
        b.repeatable = repeat::LOOK;
        serial::release(b);
        serial::acquire(b);
        b.repeatable = repeat::NOTHING;
    }
    let next = match gives || spins {
        true => FIRST_LOOK,
        false => b.looking.saturating_mul(2).clamp(FIRST_LOOK, LONGEST),
    };
    b.looking = next;
    b.plain = next;
    put(b, word(kind::LOOK, 0, 0, next));
    publish(b);
}

/// Is it before a load that finds the same value as at the last look there, or before an operation that does not
/// change the same word?
fn spins(mut b: Here, frame: &Frame) -> bool {
    let Some(now) = Waiting::of(b.look, frame) else {
        return false;
    };
    let known = &mut b.looked[now.site as usize / 2 % LOOKED];
    core::mem::replace(known, now.words()) == now.words()
}

/// For so long (nanoseconds) it may keep the turn while another thread waits for it.
fn most(b: Here) -> u64 {
    match Waiting::is_likely(b.look) {
        true => LIKELY_NS,
        false => serial::KEPT_NS,
    }
}
