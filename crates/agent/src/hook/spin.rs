//! Spin locks: ordered like mutexes, by a hashed clock, and never spun on in serial order.

use super::ordered::{acquire, hashed, original, word_at};
use crate::state::{block, leads};
use crate::wait::{Patience, announce, announce_end};
use core::sync::atomic::Ordering;
use geryon_abi::hooks as id;
use geryon_abi::layout::wait;

fn is_free(l: u64) -> bool {
    word_at(l).load(Ordering::Relaxed) as i32 > 0
}

/// Take it, if it is free, as the original would.
fn takes(l: u64) -> bool {
    const FREE: u32 = 1;
    let taken = word_at(l).compare_exchange(FREE, 0, Ordering::AcqRel, Ordering::Relaxed);
    taken.is_ok()
}

/// Wait until the lock is free. The original only spins: with more threads than cores it keeps the core from who is to
/// give the lock back.
#[cold]
#[inline(never)]
fn await_free(l: u64) {
    let mut patience = Patience::new();
    while !is_free(l) {
        if patience.spend() {
            patience = Patience::new();
        }
    }
}

/// Follower: the same, behind the leader's tick: who has had the one before may still hold it.
pub(super) fn prepare(l: u64) {
    if !is_free(l) {
        announce(wait::WORD, l, 1);
        await_free(l);
        announce_end();
    }
}

pub(super) extern "C" fn spin_lock(l: u64) -> i32 {
    let b = block();
    if b.ordered == 0 {
        if !crate::serial::active() {
            return original(id::SPIN_LOCK, l, 0, 0, 0);
        }
        // Whoever has the lock needs the turn to give it back. (Not by the original of what only tries: a program that is linked
        // statically has what it calls.)
        while !takes(l) {
            crate::serial::yield_turn(b);
        }
        return 0;
    }
    if leads() && !is_free(l) {
        await_free(l);
    }
    acquire(id::SPIN_LOCK, id::SPIN_LOCK, l, hashed(l), [0; 3])
}

pub(super) extern "C" fn spin_trylock(l: u64) -> i32 {
    acquire(id::SPIN_TRYLOCK, id::SPIN_LOCK, l, hashed(l), [0; 3])
}
