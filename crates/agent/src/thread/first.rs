//! A thread's first steps, on its agent stack: its stream, the id that the program sees, its turn.

use super::flags::CLONE_CHILD_SETTID;
use super::store_tid;
use crate::compare::same_kind;
use crate::event::plain;
use crate::gate::{real, rpc};
use crate::log::{get_first, publish, put, remember, resume_stream};
use crate::promotion::has_taken_over;
use crate::state::{Here, block, block_anew, leads};
use crate::wait::Patience;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{repeat, rpc as number, vforked};
use geryon_abi::record::{kind, low_of, word};
use geryon_abi::table::nr;

/// First Rust code of a new thread, on its agent stack.
#[unsafe(no_mangle)]
extern "C" fn geryon_thread_started(_block: u64) {
    let b = block();
    if b.vforked != vforked::NOT {
        if !leads() {
            // A copy of the descriptor table would keep pipes open that the program closes.
            block_anew().vforked = vforked::NAKED;
            real(nr::close_range, [0, u32::MAX as u64, 0, 0, 0, 0]);
        }
        rpc(number::VFORKED, b.slot as u64, 0, 0);
        resume_stream(leads());
        greet(b);
        for address in b.vfork_tids.into_iter().filter(|a| *a != 0) {
            store_tid(address, b.shown_tid);
        }
        return;
    }
    // Its birth comes first: whoever takes over must find it in the log.
    let mut patience = Patience::new();
    while b.born.load(Ordering::Acquire) == 0 {
        patience.spend();
    }
    resume_stream(leads());
    greet(b);
    // SAFETY: the creator put the frame there.
    let frame = unsafe { &*(b.frame as *const Frame) };
    if frame.rdi & CLONE_CHILD_SETTID != 0 {
        store_tid(frame.r10, b.shown_tid);
    }
    geryon_first_turn();
}

/// The thread's first turn, where one runs at a time.
#[unsafe(no_mangle)]
extern "C" fn geryon_first_turn() {
    let mut b = block();
    if crate::serial::active() {
        // A new thread always begins with a turn.
        let ours = word(kind::TURN, 0, 0, 0);
        while !leads()
            && let Some(w) = get_first(b)
        {
            if same_kind(b.pos - 1, w, ours, plain(ours)) && crate::serial::take(b, w) {
                return;
            }
        }
        b.repeatable = repeat::FIRST_TURN;
        b.call_start = b.pos;
        crate::serial::acquire(b);
        b.repeatable = repeat::NOTHING;
        publish(b);
    }
}

/// The first record of a thread or process carries the id that the program sees.
pub fn greet(mut b: Here) {
    let own = real(nr::gettid, [0; 6]) as u32;
    b.own_tid.store(own, Ordering::Relaxed);
    let ours = word(kind::HELLO, 0, 0, 0);
    while !leads()
        && let Some(first) = get_first(b)
    {
        remember(b, first);
        if same_kind(b.pos - 1, first, ours, plain(ours)) {
            b.shown_tid = low_of(first);
            return;
        }
    }
    // What a former leader has told this thread's creator stays true.
    if b.shown_tid == 0 || !has_taken_over() {
        b.shown_tid = own;
    }
    let first = word(kind::HELLO, 0, 0, b.shown_tid);
    put(b, first);
    remember(b, first);
    publish(b);
}
