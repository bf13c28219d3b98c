//! cmpxchg16b, which no plain atomic access can do: its outcome is logged instead of its values.

use super::compute::ZF;
use super::decode::{Descriptor, Saved};
use super::replay::{WORDS, either};
use super::site;
use crate::clock::{advance, await_tick_at, of_address};
use crate::diverge::diverged;
use crate::log::{peek, publish, put, remember, reserve, take, verified, view};
use crate::state::{Here, block, leads};
use crate::stop::broken;
use crate::wait::intend_on;
use core::sync::atomic::Ordering;
use geryon_abi::layout::why;
use geryon_abi::record::{kind, kind_of, low_of, short_of, word};

/// Compare with `expected` (low and high half), exchange if equal; what was seen.
fn exchange(at: u64, expected: (u64, u64), new: (u64, u64)) -> (u64, u64) {
    let ok: u8;
    let (mut lo, mut hi) = expected;
    // SAFETY: the application's own operand; rbx, which an operand cannot name and a class of
    // registers may still contain, is exchanged around the instruction.
    unsafe {
        core::arch::asm!(
            "xchg {bx}, rbx", "lock cmpxchg16b [rdi]", "sete r8b", "mov rbx, {bx}",
            bx = inout(reg) new.0 => _, in("rdi") at, out("r8b") ok,
            inout("rax") lo, inout("rdx") hi, in("rcx") new.1, options(nostack),
        );
    }
    if (ok != 0) != ((lo, hi) == expected) {
        // See `exchange` in `operand`.
        broken();
    }
    (lo, hi)
}

/// What memory holds. (Like the instruction it takes memory that can be written.)
fn load(at: u64) -> (u64, u64) {
    exchange(at, (0, 0), (0, 0))
}

/// Registers and flags as the instruction leaves them.
fn apply(s: &mut Saved, ok: bool, seen: (u64, u64)) {
    let (flags, overflow) = s.rflags();
    s.set_flags(if ok { flags | ZF } else { flags & !ZF }, overflow);
    if !ok {
        (s.r[0], s.r[2]) = seen;
    }
}

/// cmpxchg16b: ordered, its outcome is logged as one word (the low half and success).
pub(super) fn wide(s: &mut Saved, d: &Descriptor, at: u64) {
    let b = block();
    intend_on(b, word(kind::ATOMIC, 0, site(d), 0), at);
    while !leads()
        && let Some(w) = peek(b)
    {
        if kind_of(w) == kind::SIGNAL {
            take(b, 1);
            crate::raise::follow_signal_here(b, w);
        } else if kind_of(w) != kind::ATOMIC || short_of(w) != site(d) {
            let ours = word(kind::ATOMIC, 0, site(d), 0);
            diverged(why::SITE, b.pos, [ours, at, d.site, d.vaddr, 0, 0, 0, 0]);
        } else if follow(b, s, d, at, w) {
            return;
        }
    }
    lead(b, s, d, at);
}

/// As the leader did, or, where a plain load that was too early or too late has seeded what is compared, a
/// failure, so that the program's loop comes again. False when the record is to be read anew.
fn follow(mut b: Here, s: &mut Saved, d: &Descriptor, at: u64, w: u64) -> bool {
    let (ok, low) = (view(b, 1), view(b, 2));
    let slot = of_address(at);
    b.verified = b.pos + 1;
    if !await_tick_at(b, b.pos, &slot.clock, low_of(w)) {
        return false;
    }
    let mine = (s.r[0], s.r[2]);
    let seen = match ok {
        0 => load(at),
        _ => exchange(at, mine, (s.r[3], s.r[1])),
    };
    if ok != 0 && seen != mine && d.constant == 0 {
        apply(s, false, seen);
        return true;
    }
    let same = match ok {
        0 => either(low).contains(&seen.0) && (seen != mine || d.constant == 0),
        _ => seen == mine,
    };
    if !same {
        let ours = [w, u64::from(seen == mine), seen.0, at, d.site, 0, 0, 0];
        diverged(why::OUTCOME, b.pos, ours);
        return false;
    }
    take(b, WORDS);
    remember(b, w);
    verified(b);
    slot.leaves(at, if ok != 0 { s.r[3] } else { seen.0 });
    advance(&slot.clock, low_of(w).wrapping_add(1));
    apply(s, ok != 0, seen);
    true
}

fn lead(b: Here, s: &mut Saved, d: &Descriptor, at: u64) {
    let slot = of_address(at);
    reserve(b, WORDS);
    slot.enter();
    let mine = (s.r[0], s.r[2]);
    let seen = exchange(at, mine, (s.r[3], s.r[1]));
    let ok = seen == mine;
    slot.leaves(at, if ok { s.r[3] } else { seen.0 });
    apply(s, ok, seen);
    let now = slot.clock.load(Ordering::Relaxed);
    let w = word(kind::ATOMIC, 0, site(d), now);
    put(b, w);
    put(b, u64::from(ok));
    put(b, if ok { 0 } else { seen.0 });
    remember(b, w);
    publish(b);
    slot.clock.store(now.wrapping_add(1), Ordering::Relaxed);
    slot.leave();
}
