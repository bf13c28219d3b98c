//! What the leader has found and another thread has stored plainly. A follower waits until its memory shows it. It may have
//! shown it, and gone on from there. If an atomic instruction did that, its tick tells. If a plain store did, all other threads
//! have come further than their leaders' were when they had stored it (`passed.rs`).

use super::load::read;
use super::passed::Passed;
use super::replay::either;
use crate::clock::{Slot, is_past};
use crate::log::{is_cut, rewind};
use crate::state::Here;
use crate::thread;
use crate::timer;
use crate::wait::{Patience, announce, announce_end};
use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::layout::wait;

/// So many nanoseconds a thread waits for a value which another one could still store that does nothing by which one could
/// tell: it computes; or it spins on a word that is not known to decide, waits in fact for this thread, and the value
/// has come and gone. Halved when that has been so.
static PATIENCE: AtomicU64 = AtomicU64::new(2_000_000_000);
/// But not below this.
const LEAST: u64 = 50_000_000;

/// A value that was stored plainly.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    pub at: u64,
    pub size: u8,
    /// What the leader has found,
    pub seen: u64,
    /// when the clock of the word showed this.
    pub tick: u32,
    /// The number under which it did (`log/marks.rs`).
    pub epoch: u64,
}

impl Plain {
    /// Follower: the store has yet to come, or has come and gone. What was there; None when the log was cut off before the
    /// present record meanwhile.
    pub fn await_stored(&self, mut b: Here, slot: &Slot) -> Option<u64> {
        let Plain { at, size, .. } = *self;
        let values = either(self.seen);
        let shown = || read(at, size).filter(|holds| values.contains(holds));
        if let Some(value) = shown() {
            return Some(value);
        }
        // Of a thread's id only its end counts, and that comes for certain, from the kernel.
        let is_id = thread::is_id_word(at);
        if is_id && values[0] != 0 {
            return Some(values[0]);
        }
        b.standing = b.pos;
        announce(wait::VALUE, wait::operand(at, size), values[1]);
        let (mut patience, mut passed) = (Patience::new(), Passed::default());
        let mut since = 0;
        let value = loop {
            if let Some(value) = shown() {
                break value;
            }
            let now = slot.clock.load(Ordering::Acquire);
            if now != self.tick && is_past(now, self.tick) && slot.is_last(at) {
                break values[1];
            }
            if !is_id && passed.is_all(b, self.epoch) {
                // (It may have come since.)
                break shown().unwrap_or(values[1]);
            }
            if patience.spend() {
                if is_cut(b, b.pos) {
                    announce_end();
                    rewind(b, b.pos);
                    return None;
                }
                let now = timer::now(timer::MONOTONIC);
                if since == 0 {
                    since = now;
                }
                let limit = PATIENCE.load(Ordering::Relaxed);
                if now - since >= limit && !is_id {
                    PATIENCE.store((limit / 2).max(LEAST), Ordering::Relaxed);
                    break values[1];
                }
                patience = Patience::new();
            }
        };
        announce_end();
        if is_cut(b, b.pos) {
            rewind(b, b.pos);
            return None;
        }
        Some(value)
    }
}
