//! The instruction as a record: the leader performs it together with its tick, a follower waits
//! for that tick and until its own memory shows what the leader saw.

use super::compute::{apply, apply_cmpxchg, new_value};
use super::decode::{Descriptor, Saved, compare_operands, op};
use super::load::read;
use super::operand::{await_value, exchange, load};
use super::plain::Plain;
use super::{site, vain};
use crate::access::here;
use crate::clock::{Slot, advance, await_past_at, await_tick_at, of_address};
use crate::diverge::diverged;
use crate::log::{marks, peek, publish, put, remember, reserve, take, verified, view};
use crate::state::{Here, block, layout};
use crate::wait::intend_on;
use core::sync::atomic::Ordering;
use geryon_abi::layout::why;
use geryon_abi::record::{
    FAILED, KEPT, KEPT_PLAIN, detail_of, kind, kind_of, low_of, short_of, word,
};

/// Of a record of an atomic instruction.
pub(super) const WORDS: u64 = 3;

pub(super) fn lead(s: &mut Saved, d: &Descriptor, at: u64, compares: bool) {
    let b = block();
    let slot = of_address(at);
    let turns = vain::await_other(b, s, d, at, compares);
    // (Others cannot so much as look at the clock while this one is inside.)
    reserve(b, WORDS);
    slot.enter();
    let (expected, seen) = if compares {
        let (expected, new) = compare_operands(s, d);
        (expected, exchange(at, d.size, expected, new))
    } else {
        let mut old = load(at, d.size);
        loop {
            let seen = exchange(at, d.size, old, new_value(d, s, old));
            if seen == old {
                break;
            }
            old = seen;
        }
        (0, old)
    };
    let failed = compares && expected != seen;
    let leaves = left(s, d, compares, seen);
    let (detail, second) = match (failed, leaves == seen && d.op != op::STORE) {
        (true, _) => (FAILED, expected),
        (false, false) => (0, expected),
        (false, true) if slot.has_left(at, seen) => (KEPT, 0),
        (false, true) => (KEPT_PLAIN, marks::number()),
    };
    if !failed {
        slot.leaves(at, leaves);
    }
    let now = slot.clock.load(Ordering::Relaxed);
    let w = word(kind::ATOMIC, detail, site(d), now);
    put(b, w);
    put(b, second);
    put(b, seen);
    remember(b, w);
    // Before the next tick can be taken: whoever takes it must find this one in the log, should the
    // leader be lost.
    point!(AtomicUnpublished);
    publish(b);
    point!(AtomicUnadvanced);
    if !failed {
        slot.clock.store(now.wrapping_add(1), Ordering::Relaxed);
    }
    slot.leave();
    if d.spins != 0 && changes_nothing(s, d, compares, seen) {
        vain::keep(b, d, at, seen, turns);
    }
    if compares {
        apply_cmpxchg(d, s, expected, seen)
    } else {
        apply(d, s, seen)
    }
}

/// What it leaves in memory, where it has found `seen` and does not fail.
fn left(s: &Saved, d: &Descriptor, compares: bool, seen: u64) -> u64 {
    match compares {
        true => compare_operands(s, d).1,
        false => new_value(d, s, seen),
    }
}

/// Does it leave memory as it is, where it finds `seen`?
pub(super) fn changes_nothing(s: &Saved, d: &Descriptor, compares: bool, seen: u64) -> bool {
    match compares {
        true => compare_operands(s, d).0 != seen,
        false => new_value(d, s, seen) == seen,
    }
}

/// As the leader did. False when this replica leads by now, and nothing was done.
pub(super) fn follow(s: &mut Saved, d: &Descriptor, at: u64, compares: bool) -> bool {
    loop {
        match step(s, d, at, compares) {
            Step::Done => return true,
            Step::Leads => return false,
            Step::Again => {}
        }
    }
}

/// What came of an attempt to follow.
enum Step {
    /// The instruction is done.
    Done,
    /// This replica leads by now.
    Leads,
    /// The record was none of a leader that counts.
    Again,
}

fn step(s: &mut Saved, d: &Descriptor, at: u64, compares: bool) -> Step {
    let mut b = block();
    if b.pos >= b.limit {
        intend_on(b, word(kind::ATOMIC, 0, site(d), 0), at);
    }
    let Some(w) = peek(b) else {
        return Step::Leads;
    };
    if kind_of(w) == kind::SIGNAL {
        take(b, 1);
        crate::raise::follow_signal_here(b, w);
        return Step::Again;
    }
    if kind_of(w) != kind::ATOMIC || short_of(w) != site(d) {
        let ours = [
            word(kind::ATOMIC, 0, site(d), 0),
            at,
            d.site,
            d.vaddr,
            load(at, d.size),
            s.r[0],
            0,
            0,
        ];
        let code = if kind_of(w) == kind::ATOMIC {
            why::SITE
        } else {
            why::KIND
        };
        diverged(code, b.pos, ours);
        return Step::Again;
    }
    let (expected, seen) = (view(b, 1), view(b, 2));
    let slot = of_address(at);
    let clock = &slot.clock;
    let tick = low_of(w);
    if detail_of(w) == FAILED {
        // The leader's compare failed on this value; whatever memory holds here, so does ours.
        let (mine, _) = compare_operands(s, d);
        let is_wrong = expected == seen;
        let seen = meant(seen, load(at, d.size));
        if is_wrong || (mine == seen && d.constant != 0) {
            let ours = [w, mine, seen, at, d.site, 0, 0, 0];
            diverged(why::OUTCOME, b.pos, ours);
            return Step::Again;
        }
        // It is an acquire all the same: what was published with the value must be there before the
        // program looks at it.
        b.verified = b.pos + 1;
        if !await_past_at(b, b.pos, clock, tick) {
            return Step::Again;
        }
        take(b, WORDS);
        remember(b, w);
        // (Not before: who has compared is not asked again what it says of the record.)
        verified(b);
        // For a moment that is nobody's fault: what the leader saw another thread stores plainly.
        b.contradicted = match load(at, d.size) == mine {
            true => b.contradicted + 1,
            false => 0,
        };
        // What is compared may be seeded by a plain load that was too late, and has seen what the leader
        // saw only now.
        apply_cmpxchg(d, s, expected, seen);
        return Step::Done;
    }
    b.verified = b.pos + 1;
    let contradicted = b.contradicted;
    b.contradicted = 0;
    if !await_tick_at(b, b.pos, clock, tick) {
        return Step::Again;
    }
    if matches!(detail_of(w), KEPT | KEPT_PLAIN) && would_keep(s, d, compares, seen) {
        let plain = Plain {
            at,
            size: d.size,
            seen,
            tick,
            epoch: expected,
        };
        let here = match detail_of(w) {
            KEPT => Some(meant(seen, load(at, d.size))),
            _ => plain.await_stored(b, slot),
        };
        let Some(here) = here else {
            return Step::Again;
        };
        if detail_of(w) == KEPT_PLAIN {
            b.loaded = expected;
        }
        // (It may be the leader that sees what nobody has stored.)
        b.contradicted = match read(at, d.size) == Some(here) {
            true => 0,
            false => contradicted + 1,
        };
        done(b, w, slot, (at, here));
        match compares {
            true => apply_cmpxchg(d, s, here, here),
            false => apply(d, s, here),
        }
        return Step::Done;
    }
    if compares {
        let (mine, new) = compare_operands(s, d);
        if !either(seen).contains(&mine) {
            // Seeded by a plain load that was too early or too late: fail, so that the
            // program's loop comes again with the value that the leader had.
            if let Some(here) = await_value(b, at, d.size, either(seen)) {
                apply_cmpxchg(d, s, mine, here);
                return Step::Done;
            }
            return Step::Again;
        }
        loop {
            if await_value(b, at, d.size, [mine; 2]).is_none() {
                return Step::Again;
            }
            if exchange(at, d.size, mine, new) == mine {
                break;
            }
        }
        done(b, w, slot, (at, new));
        apply_cmpxchg(d, s, mine, mine);
        return Step::Done;
    }
    let here = loop {
        // (What a store finds nobody asks.)
        let here = match d.op {
            op::STORE => Some(load(at, d.size)),
            _ => await_value(b, at, d.size, either(seen)),
        };
        let Some(here) = here else {
            return Step::Again;
        };
        if exchange(at, d.size, here, new_value(d, s, here)) == here {
            break here;
        }
    };
    done(b, w, slot, (at, left(s, d, false, here)));
    apply(d, s, here);
    Step::Done
}

/// Does it leave memory as it is here, too, where that holds what the leader has seen? (What a plain load has seeded that was
/// too early or too late may be something else.)
fn would_keep(s: &Saved, d: &Descriptor, compares: bool, seen: u64) -> bool {
    either(seen).into_iter().any(|here| match compares {
        true => compare_operands(s, d) == (here, here),
        false => new_value(d, s, here) == here,
    })
}

/// A follower has made the operation of this record, whose turn it was, and left a value there: now others may.
fn done(b: Here, w: u64, slot: &Slot, (at, left): (u64, u64)) {
    take(b, WORDS);
    remember(b, w);
    slot.leaves(at, left);
    advance(&slot.clock, low_of(w).wrapping_add(1));
}

/// What a word that the leader has seen may be here: the same, or the address of the same place. (A number may look like
/// an address, a count above an index, say: what this replica's memory holds tells.)
pub(super) fn either(word: u64) -> [u64; 2] {
    [word, layout().place(word)]
}

/// Which of the two it is, where a compare has failed on it: what memory holds, if it is one of them, and else what it
/// can be.
fn meant(word: u64, holds: u64) -> u64 {
    if holds == word { word } else { here(word) }
}
