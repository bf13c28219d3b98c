//! The instruction as a record: the leader performs it together with its tick, a follower waits
//! for that tick and until its own memory shows what the leader saw.

use super::compute::{apply, apply_cmpxchg, new_value};
use super::decode::{Descriptor, Saved, compare_operands};
use super::operand::{await_value, exchange, load};
use super::site;
use crate::clock::{advance, await_tick, of_address};
use crate::log::{publish, put, remember, take, view};
use crate::state::block;
use crate::stop::diverged;
use core::sync::atomic::Ordering;
use geryon_abi::layout::why;
use geryon_abi::record::{detail_of, kind, kind_of, low_of, short_of, word};

/// Detail of an atomic's record: the compare failed, nothing was written, no tick.
const FAILED: u8 = 1;

pub(super) fn lead(s: &mut Saved, d: &Descriptor, at: u64, compares: bool) {
    let b = block();
    let slot = of_address(at);
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
    let now = slot.clock.load(Ordering::Relaxed);
    if !failed {
        slot.clock.store(now.wrapping_add(1), Ordering::Relaxed);
    }
    slot.leave();
    let w = word(kind::ATOMIC, if failed { FAILED } else { 0 }, site(d), now);
    put(b, w);
    put(b, expected);
    put(b, seen);
    remember(b, w);
    publish(b);
    if compares {
        apply_cmpxchg(d, s, expected, seen)
    } else {
        apply(d, s, seen)
    }
}

pub(super) fn follow(s: &mut Saved, d: &Descriptor, at: u64, compares: bool) {
    let mut b = block();
    let mut w = view(b, 0);
    while kind_of(w) == kind::SIGNAL {
        take(b, 1);
        crate::raise::follow_signal_here(b, w);
        w = view(b, 0);
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
    }
    let (expected, seen) = (view(b, 1), view(b, 2));
    b.verified = b.pos + 1;
    if detail_of(w) == FAILED {
        take(b, 3);
        remember(b, w);
        // The leader's compare failed on this value; whatever memory holds here, so does ours.
        let (mine, _) = compare_operands(s, d);
        if mine == seen {
            diverged(
                why::OUTCOME,
                b.pos - 3,
                [w, mine, seen, at, d.site, 0, 0, 0],
            );
        }
        return apply_cmpxchg(d, s, mine, seen);
    }
    let clock = &of_address(at).clock;
    let tick = low_of(w);
    await_tick(clock, tick);
    if compares {
        let (mine, new) = compare_operands(s, d);
        if mine != expected {
            // Seeded by a plain load that was too early or too late: fail, so that the
            // program's loop comes again with the value that is there now.
            let now = load(at, d.size);
            if now != mine {
                return apply_cmpxchg(d, s, mine, now);
            }
        }
        await_value(at, d.size, mine);
        while exchange(at, d.size, mine, new) != mine {
            await_value(at, d.size, mine);
        }
        take(b, 3);
        remember(b, w);
        advance(clock, tick.wrapping_add(1));
        return apply_cmpxchg(d, s, mine, mine);
    }
    loop {
        await_value(at, d.size, seen);
        if exchange(at, d.size, seen, new_value(d, s, seen)) == seen {
            break;
        }
    }
    take(b, 3);
    remember(b, w);
    advance(clock, tick.wrapping_add(1));
    apply(d, s, seen);
}
