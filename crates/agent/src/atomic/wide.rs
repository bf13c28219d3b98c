//! cmpxchg16b, which no plain atomic access can do: its outcome is logged instead of its values.

use super::compute::ZF;
use super::decode::{Descriptor, Saved};
use super::site;
use crate::clock::{advance, await_tick_at, of_address};
use crate::log::{first, get, publish, put, remember};
use crate::state::{block, leads};
use crate::stop::{broken, diverged, diverged_for_good};
use crate::wait::intend;
use core::sync::atomic::Ordering;
use geryon_abi::layout::why;
use geryon_abi::record::{kind, kind_of, low_of, short_of, word};

/// cmpxchg16b: ordered, its outcome is logged as one word (the low half and success).
pub(super) fn wide(s: &mut Saved, d: &Descriptor, at: u64) {
    let b = block();
    let slot = of_address(at);
    let perform = |s: &mut Saved| -> bool {
        let ok: u8;
        let (mut lo, mut hi) = (s.r[0], s.r[2]);
        // SAFETY: the application's own operand; rbx, which an operand cannot name and a class of
        // registers may still contain, is exchanged around the instruction.
        unsafe {
            core::arch::asm!(
                "xchg {bx}, rbx", "lock cmpxchg16b [rdi]", "sete r8b", "mov rbx, {bx}",
                bx = inout(reg) s.r[3] => _, in("rdi") at, out("r8b") ok,
                inout("rax") lo, inout("rdx") hi, in("rcx") s.r[1], options(nostack),
            );
        }
        if (ok != 0) != ((lo, hi) == (s.r[0], s.r[2])) {
            // See `exchange`.
            broken();
        }
        let (flags, overflow) = s.rflags();
        s.set_flags(if ok != 0 { flags | ZF } else { flags & !ZF }, overflow);
        if ok == 0 {
            (s.r[0], s.r[2]) = (lo, hi);
        }
        ok != 0
    };
    intend(b, word(kind::ATOMIC, 0, site(d), 0), at);
    while !leads()
        && let Some(w) = first(b)
    {
        if kind_of(w) == kind::SIGNAL {
            crate::raise::follow_signal_here(b, w);
            continue;
        }
        remember(b, w);
        if kind_of(w) == kind::ATOMIC && short_of(w) == site(d) {
            let (ok, low) = (get(b), get(b));
            if !await_tick_at(b, b.pos - 3, &slot.clock, low_of(w)) {
                continue;
            }
            let mine = perform(s);
            advance(&slot.clock, low_of(w).wrapping_add(1));
            if mine as u64 != ok || (!mine && s.r[0] != low) {
                diverged_for_good(
                    why::OUTCOME,
                    b.pos - 3,
                    [w, mine as u64, s.r[0], at, d.site, 0, 0, 0],
                );
            }
            return;
        }
        diverged(
            why::SITE,
            b.pos - 1,
            [
                word(kind::ATOMIC, 0, site(d), 0),
                at,
                d.site,
                d.vaddr,
                0,
                0,
                0,
                0,
            ],
        );
    }
    slot.enter();
    let ok = perform(s);
    let now = slot.clock.load(Ordering::Relaxed);
    let w = word(kind::ATOMIC, 0, site(d), now);
    put(b, w);
    put(b, ok as u64);
    put(b, if ok { 0 } else { s.r[0] });
    remember(b, w);
    publish(b);
    slot.clock.store(now.wrapping_add(1), Ordering::Relaxed);
    slot.leave();
}
