//! A thread that computes without a call, and that has to be interrupted: the monitor has stopped it in every
//! replica where its state is the same, and leads all of them here (`geryon_converged` in the entry
//! code). What is logged now happens at that instruction everywhere; then the thread goes on, with every
//! register as it was.
//!
//! (Seed 1, section 2.3, defers signals to the next call; who makes none would wait for ever.)

use crate::diverge::diverged;
use crate::event::plain;
use crate::log::{self, put, remember};
use crate::raise::{self, CONVERGED, pending};
use crate::serial;
use crate::state::{Here, block, leads};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{Siginfo, why};
use geryon_abi::record::{detail_of, kind, kind_of, word};

/// Called from the assembly entry with the application's registers; `Frame::pad` holds r11.
#[unsafe(no_mangle)]
extern "C" fn geryon_on_converged(frame: &mut Frame) {
    let b = block();
    let signal = word(kind::SIGNAL, CONVERGED, 0, 0);
    while !leads()
        && let Some(first) = log::first(b)
    {
        remember(b, first);
        if kind_of(first) == kind::SIGNAL && detail_of(first) == CONVERGED {
            let info = raise::take_logged(b);
            deliver(frame, &info);
        }
        if first == serial::YIELDED {
            return;
        }
        diverged(why::KIND, b.pos - 1, plain(signal));
    }
    lead(b, frame, signal);
}

fn lead(b: Here, frame: &mut Frame, signal: u64) {
    if serial::active() {
        // A thread of a new leader, which waited for a record, may not have the turn.
        serial::acquire(b);
    }
    if pending(b) {
        put(b, signal);
        remember(b, signal);
        let info = raise::take_queued(b);
        deliver(frame, &info);
    }
    if serial::active() {
        // Others wait for the turn.
        serial::give_way(b);
    } else {
        // All others wait for a record.
        serial::log_yield(b);
    }
}

fn deliver(frame: &mut Frame, info: &Siginfo) -> ! {
    crate::gate::deliver(
        core::ptr::from_mut(frame) as u64,
        core::ptr::from_ref(info) as u64,
        true,
    )
}
