//! Slots: which block, agent stack and ring a new thread gets. The leader chooses, and followers
//! wait until theirs is free.

use crate::clock::LIFE;
use crate::compare::expect_plain;
use crate::diverge::diverged;
use crate::event::plain;
use crate::log::{get, publish, put, remember};
use crate::state::{block, block_at, leads};
use crate::wait::Patience;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{MAX_THREADS, block_address, why};
use geryon_abi::record::{kind, low_of, seal, unseal, word};

pub(super) fn is_free(slot: usize) -> bool {
    let b = block_at(slot);
    b.this == 0 || b.free.load(Ordering::Acquire) == 1
}

/// Agree on a free slot for a process that will run in this memory.
pub fn take_slot(frame: &mut Frame) -> Option<usize> {
    let b = block();
    while !leads()
        && let Some(first) = expect_plain(b, frame, word(kind::BIRTH, 1, 0, 0))
    {
        let (second, third) = (get(b), get(b));
        let Some(slot) = unseal(first, second, third) else {
            diverged(why::DAMAGED, b.pos - 3, plain(first));
            continue;
        };
        let slot = slot as usize;
        crate::log::verified(b);
        let tick = low_of(first);
        if !LIFE.await_turn_at(b, b.pos - 3, tick) {
            continue;
        }
        if slot < MAX_THREADS {
            await_free(slot);
            claim(slot);
        }
        LIFE.turn_done(tick);
        return (slot < MAX_THREADS).then_some(slot);
    }
    let tick = LIFE.enter(b.this);
    let slot = (0..MAX_THREADS).find(|s| is_free(*s));
    if let Some(s) = slot {
        claim(s);
    }
    let first = word(kind::BIRTH, 1, 0, tick);
    put(b, first);
    put(b, seal(first, slot.map_or(u32::MAX, |s| s as u32), 0));
    put(b, 0);
    remember(b, first);
    publish(b);
    LIFE.tick();
    LIFE.leave();
    slot
}

fn claim(slot: usize) {
    let mut b = block_at(slot);
    b.this = block_address(slot);
    b.free.store(0, Ordering::Release);
}

/// Its last owner executes its last instructions.
pub(super) fn await_free(slot: usize) {
    let mut patience = Patience::new();
    while !is_free(slot) {
        if patience.spend() {
            patience = Patience::new();
        }
    }
}
