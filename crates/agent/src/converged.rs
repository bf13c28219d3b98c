//! A thread that computes, and comes here from between two instructions, with every register as it was: either
//! because the count of atomics and polls that were left to it is used up (`look.rs`), or because the monitor has
//! stopped it in every replica where its state is the same. What is logged here happens at that instruction
//! everywhere; then the thread goes on. A process that is asked to lead, and of which all threads compute, is told so
//! here, too: of that nothing is logged.
//!
//! (Seed 1, section 2.3, defers signals to the next call; who makes none would wait for ever.)

use crate::diverge::diverged;
use crate::event::plain;
use crate::log::{self, put, remember};
use crate::look;
use crate::promotion::promoted;
use crate::raise::together::{self, Together};
use crate::raise::{CONVERGED, POLLS, pending};
use crate::serial;
use crate::state::{Here, block, leads};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{FIRST_LOOK, LOOK_ASKED, repeat, why};
use geryon_abi::record::{detail_of, kind, kind_of, low_of, word};

/// Called from the assembly entry with the application's registers; `Frame::pad` holds r11.
#[unsafe(no_mangle)]
extern "C" fn geryon_on_converged(frame: &mut Frame) {
    let mut b = block();
    b.called = 0;
    if b.look[0] == LOOK_ASKED {
        // All that was logged is replayed, and what comes next is what the program does next: nothing is logged here.
        promoted();
        return;
    }
    let looks = serial::looks();
    // Where instructions are ordered the stub for atomics comes here for a signal alone.
    let polls = !looks && b.look[0] != 0;
    if polls && b.ordered == 0 {
        b.plain = u32::MAX;
        return;
    }
    b.call_start = b.pos;
    let detail = if polls { POLLS } else { CONVERGED };
    let signal = word(kind::SIGNAL, detail, 0, 0);
    while !leads()
        && let Some(first) = log::first(b)
    {
        if kind_of(first) == kind::SIGNAL && detail_of(first) == detail {
            remember(b, first);
            let taken = together::take_logged(b);
            deliver(b, frame, &taken);
        }
        if looks && kind_of(first) == kind::LOOK {
            b.plain = low_of(first);
            return;
        }
        if !looks && !polls && first == serial::YIELDED {
            return;
        }
        remember(b, first);
        diverged(why::KIND, b.pos - 1, plain(signal));
    }
    lead(b, frame, signal);
}

fn lead(mut b: Here, frame: &mut Frame, signal: u64) {
    if serial::active() {
        // A thread of a new leader, which waited for a record, may not have the turn.
        b.repeatable = repeat::LOOK;
        serial::acquire(b);
        b.repeatable = repeat::NOTHING;
    }
    // (Not in the original of a hooked function, whose caller stands on the agent's stack.)
    if pending(b) && b.hook_rsp == 0 {
        put(b, signal);
        remember(b, signal);
        let taken = together::take_queued(b);
        deliver(b, frame, &taken);
    }
    if serial::looks() {
        look::lead(b, frame);
    } else if detail_of(signal) != POLLS {
        // All others wait for a record.
        serial::log_yield(b);
    }
}

fn deliver(mut b: Here, frame: &mut Frame, signals: &Together) -> ! {
    if serial::looks() {
        b.plain = FIRST_LOOK;
    }
    crate::gate::deliver(
        core::ptr::from_mut(frame) as u64,
        signals.address(),
        signals.more(),
        true,
    )
}
