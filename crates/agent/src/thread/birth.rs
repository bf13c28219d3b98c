//! Birth: clone inside the section LIFE, in the slot that the leader chose.

use super::flags::{
    Birth, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, CLONE_PARENT_SETTID, judge, traced,
};
use super::slot::{await_free, is_free};
use super::{ALIVE, store_tid};
use crate::clock::LIFE;
use crate::compare::expect_plain;
use crate::diverge::{diverged, diverged_for_good};
use crate::event::plain;
use crate::gate::{clone_thread, real};
use crate::log::{get, publish, put, remember};
use crate::raise;
use crate::state::{Here, block, block_at, leads, private, reach};
use core::sync::atomic::Ordering;
use geryon_abi::frame::{FRAME_BYTES, Frame};
use geryon_abi::layout::{
    GUARD_BYTES, MAX_THREADS, block_address, carries, flight, repeat, stack_top, wait, why,
};
use geryon_abi::record::{kind, low_of, seal, unseal, word};
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const EAGAIN: i64 = -11;

/// Are locks and atomics recorded? Not where one thread runs at a time, nor where nobody follows.
fn orders() -> bool {
    let p = private();
    p.serial.get() == 0 && p.replicas > 1
}

/// clone.
pub fn clone(frame: &mut Frame, row: &'static Row) {
    match judge(frame.rdi) {
        Ok(Birth::Thread) => {}
        Ok(Birth::Fork) => return crate::process::fork(frame, row),
        Ok(Birth::Vfork) => return crate::process::vfork(frame, row),
        Err(errno) => {
            crate::stop::refused(row.nr as u64, frame.rdi);
            frame.rax = errno as u64;
            return;
        }
    }
    let b = block();
    super::ascent::begin(b);
    super::becomes_many(b);
    if b.suspend == 0 && orders() {
        b.set_ordered(true);
    }
    if leads() || !follow_birth(b, frame) {
        lead_birth(b, frame)
    }
}

fn lead_birth(b: Here, frame: &mut Frame) {
    raise::lead_signal_before(b, frame);
    let inside = LIFE.held_by(b.this);
    let tick = LIFE.enter(b.this);
    let slot = (0..MAX_THREADS).find(|s| is_free(*s));
    let result = slot.map_or(EAGAIN, |s| start(frame, s, 0));
    let first = word(kind::BIRTH, 0, 0, tick);
    point!(BirthUnlogged);
    put(b, first);
    put(b, seal(first, slot.unwrap_or(0) as u32, result as u64));
    point!(BirthTorn);
    put(b, result as u64);
    remember(b, first);
    publish(b);
    point!(BirthUnborn);
    if let Some(s) = slot {
        block_at(s).born.store(1, Ordering::Release);
    }
    LIFE.tick();
    if !inside {
        LIFE.leave();
    }
    frame.rax = result as u64;
}

/// False when this replica leads by now, and nothing was done.
fn follow_birth(b: Here, frame: &mut Frame) -> bool {
    let (at, slot, result, tick) = loop {
        let Some(first) = expect_plain(b, frame, word(kind::BIRTH, 0, 0, 0)) else {
            return false;
        };
        let (second, result) = (get(b), get(b) as i64);
        let at = b.pos - 3;
        let named = unseal(first, second, result as u64);
        let Some(slot) = named.filter(|s| (*s as usize) < MAX_THREADS) else {
            diverged(why::DAMAGED, at, plain(first));
            continue;
        };
        let slot = slot as usize;
        crate::log::verified(b);
        let tick = low_of(first);
        if LIFE.await_turn_at(b, at, tick) {
            break (at, slot, result, tick);
        }
    };
    if result > 0 {
        await_free(slot);
        // Before the thread runs, as the kernel does it: it may be over, and its word cleared, when
        // clone returns here.
        if frame.rdi & CLONE_PARENT_SETTID != 0 {
            store_tid(frame.rdx, result as u32);
        }
        let own = point!(ThreadFails, start(frame, slot, result as u32));
        if own < 0 {
            diverged_for_good(
                why::LOCAL,
                at,
                [
                    word(kind::BIRTH, 0, 0, tick),
                    own as u64,
                    result as u64,
                    0,
                    0,
                    0,
                    0,
                    0,
                ],
            );
        }
    }
    LIFE.turn_done(tick);
    frame.rax = result as u64;
    true
}

/// Really create the thread, in every replica. `shown`: the id that its creator has been told.
fn start(frame: &Frame, slot: usize, shown: u32) -> i64 {
    let mut child = *frame;
    child.rsp = frame.rsi;
    crate::wait::adapt(ALIVE.fetch_add(1, Ordering::Relaxed) + 1);
    // The leader's id is the one that the program sees: there the kernel itself may store it.
    let keep = traced(frame.rdi)
        & if leads() {
            !CLONE_CHILD_SETTID
        } else {
            !(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID)
        };
    block_at(slot).shown_tid = shown;
    block_at(slot)
        .born
        .store((shown != 0) as u32, Ordering::Release);
    let result = start_in(&child, slot, keep, false);
    if result < 0 {
        block_at(slot).free.store(1, Ordering::Release);
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    } else {
        crate::wait::pause_if(point!(ThreadMade, 0));
        note_own(slot, result as u32);
        if leads() && shown == 0 {
            block_at(slot).shown_tid = result as u32;
        }
    }
    result
}

/// Its creator may name a thread at once: it has this id, as it will find out itself. (It has another one where the creator
/// stands here in a copy, which has been told so.)
fn note_own(slot: usize, tid: u32) {
    let own = &block_at(slot).own_tid;
    let _ = own.compare_exchange(0, tid, Ordering::Relaxed, Ordering::Relaxed);
}

/// Clone with the slot's block and agent stack; `state` is what the child starts from.
pub fn start_in(state: &Frame, slot: usize, flags: u64, vforked: bool) -> i64 {
    let parent = block();
    let mut new = block_at(slot);
    let address = block_address(slot);
    let top = stack_top(slot);
    if new.stack_top == 0 {
        // Its first thread. (Where the kernel has no more mappings to give it goes without.)
        const PROT_NONE: u64 = 0;
        real(nr::mprotect, [top, GUARD_BYTES, PROT_NONE, 0, 0, 0]);
    }
    let copy = top - FRAME_BYTES as u64;
    new.this = address;
    new.slot = slot as u32;
    new.own_tid.store(0, Ordering::Relaxed);
    new.stack_top = top;
    new.frame = copy;
    new.called = 0;
    new.free.store(0, Ordering::Relaxed);
    new.set_ordered(if vforked {
        parent.ordered != 0
    } else {
        orders()
    });
    if crate::serial::is_serial() && !vforked && !crate::state::layout().is_unrelated() {
        new.plain = geryon_abi::layout::FIRST_LOOK;
    }
    new.has_turn.store(vforked as u32, Ordering::Relaxed);
    new.suspend = 0;
    new.interrupted_rsp = 0;
    new.interrupted_cancel = 0;
    new.carries.store(carries::NOTHING, Ordering::Relaxed);
    new.fault_rip = 0;
    new.altstack = [0; 3];
    new.vforked = vforked as u32;
    if vforked {
        new.shown_tid = 0;
    }
    new.flight.store(flight::NONE, Ordering::Relaxed);
    new.given.store(0, Ordering::Relaxed);
    new.repeatable = repeat::NOTHING;
    new.midway.store(0, Ordering::Relaxed);
    new.waiting.store(wait::NONE, Ordering::Relaxed);
    new.pending_count.store(0, Ordering::Relaxed);
    new.signal_logged = 0;
    crate::nowhere::forget(slot);
    new.sent.clear();
    new.rest_at = 0;
    new.at_parents_end = 0;
    new.orphan = 0;
    new.reaps_orphans = 0;
    new.is_bound = parent.is_bound;
    if parent.is_bound != 0 {
        new.cpus = parent.cpus;
    }
    new.filter = parent.filter;
    new.is_named = parent.is_named;
    new.name = parent.name;
    new.clear_tid = if state.rdi & CLONE_CHILD_CLEARTID != 0 && !vforked {
        state.r10
    } else {
        0
    };
    let mut child = *state;
    child.rax = 0;
    child.pad = child.rflags();
    // SAFETY: the top of the unused block's stack.
    unsafe { (copy as *mut Frame).write(child) };
    reach(slot);
    clone_thread([flags, copy, state.rdx, state.r10, state.r8], address, copy)
}
