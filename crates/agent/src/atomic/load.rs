//! Loads that decide about order (`geryon_patch` says which). The leader logs what it has found, a follower finds the
//! same, whatever its memory holds at that moment, and not before what the leader's value says has happened here, too:
//!
//! - Where the word holds what the last atomic instruction on it has left there, the clock of that word tells: all that
//!   came before the load has been done. (The word may have been changed again since.)
//! - Else another thread has stored it plainly: a follower waits until its memory shows it, or has shown it (`plain.rs`).
//!
//! A load that finds what it has found before, with no other record in between than those of such loads, is counted and
//! not logged. Followers see how far the count is, and the next such record has it. Source: seed 2,
//! sections 3 and 4.

use super::compute::apply_load;
use super::decode::{Descriptor, Saved};
use super::operand::load;
use super::plain::Plain;
use super::replay::either;
use super::{BY_ITSELF, MADE, SIGNAL, site};
use crate::clock::{Slot, await_past_at, of_address};
use crate::diverge::diverged;
use crate::gate::guarded;
use crate::log::{
    Came, has_next, marks, peek, peek_or, publish, publish_load, put, remember, take, verified,
    view,
};
use crate::raise;
use crate::state::{Here, block, leads};
use crate::timer;
use crate::wait::{Patience, give_way_if_crowded, intend_on};
use core::sync::atomic::{Ordering, fence};
use geryon_abi::layout::{MOST, Which, why};
use geryon_abi::record::{
    CLOCKED, FAULTED, POLLED, detail_of, kind, kind_of, low_of, short_of, word,
};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

/// Memory that was not there for the leader is waited for so many nanoseconds to go here, too.
const VANISH_NS: u64 = 2_000_000_000;

/// The instruction is made, by the leader or a follower. Where there is nothing at the address it is left to the
/// program's own one, which faults there. `interruptible`: a signal may come first.
pub(super) fn ordered(s: &mut Saved, d: &Descriptor, at: u64, interruptible: bool) -> u32 {
    let made = match leads() {
        true => lead(d, at, interruptible),
        false => match follow(s, d, at) {
            Made::Leads => lead(d, at, interruptible),
            made => made,
        },
    };
    match made {
        Made::Found(value) => {
            apply_load(d, s, value);
            MADE
        }
        Made::Interrupted => SIGNAL,
        Made::Faults | Made::Leads => BY_ITSELF,
    }
}

/// What memory holds there, if something is there.
pub(super) fn read(at: u64, size: u8) -> Option<u64> {
    let mut found = 0;
    guarded(|| found = load(at, size)).then_some(found)
}

/// What memory held, all that the clock counts, and whether the last of that left it there.
fn observe(slot: &Slot, at: u64, size: u8) -> Option<(u64, u32, bool)> {
    let mut patience = Patience::new();
    loop {
        let now = slot.clock.load(Ordering::Acquire);
        // (While an operation is under way its tick is not there yet.)
        if !slot.is_held() {
            let value = read(at, size)?;
            let left = slot.has_left(at, value);
            fence(Ordering::Acquire);
            if !slot.is_held() && slot.clock.load(Ordering::Relaxed) == now {
                return Some((value, now, left));
            }
        }
        if patience.spend() {
            patience = Patience::new();
        }
    }
}

fn lead(d: &Descriptor, at: u64, interruptible: bool) -> Made {
    let mut b = block();
    let start = b.pos;
    let again = b.poll.again(start, d.site, at);
    if let Some(which) = again.filter(|_| found_again(b)) {
        // A lost leader had, and others may have gone on with that.
        b.poll.found_again(which);
        return Made::Found(b.poll.value(which));
    }
    // Who polls comes to no call. Its followers know the place by the record before.
    let signal = interruptible && raise::pending(b) && b.given.load(Ordering::Acquire) == 0;
    if signal && again.is_some() && b.poll.count == 0 {
        return Made::Interrupted;
    }
    let counts = b.poll.goes_on(start) && b.poll.count > 0;
    let counted = again.is_some() || counts;
    let polled = if counted { POLLED } else { 0 };
    let Some((value, now, left)) = observe(of_address(at), at, d.size) else {
        let w = word(kind::LOAD, FAULTED | CLOCKED | polled, site(d), 0);
        put(b, w);
        if counted {
            put(b, b.poll.count);
        }
        remember(b, w);
        publish(b);
        return Made::Faults;
    };
    let ring = b.ring();
    let control = ring.control();
    let awaited = || control.follower_sleeps.load(Ordering::Relaxed) != 0;
    if let Some(which) = again.filter(|_| !signal)
        && b.poll.is_known(which, value, Slot::shows(now), awaited())
    {
        if marks::note_poll(b) {
            // Each follower is to find it as often, and computes for that as long.
            give_way_if_crowded();
        }
        b.poll.found_again(which);
        control.again.store(b.poll.told(), Ordering::Release);
        return Made::Found(value);
    }
    let clocked = if left { CLOCKED } else { 0 };
    let w = word(kind::LOAD, clocked | polled, site(d), now);
    put(b, w);
    put(b, value);
    if !left {
        put(b, marks::number());
    }
    if counted {
        put(b, b.poll.count);
    }
    remember(b, w);
    match left {
        true => publish(b),
        false => publish_load(b),
    }
    let end = b.pos;
    keep(b, (start, end), (d.site, at), value, now);
    Made::Found(value)
}

/// A load has been logged that found this, when the clock of its operand showed this.
fn keep(mut b: Here, from_to: (u64, u64), which: Which, value: u64, shown: u32) {
    let clock = (of_address(which.1).place(), Slot::shows(shown));
    let tells = b.ring().control().again.as_ptr() as u64;
    b.poll.logged(from_to, which, value, clock, tells);
}

/// Has the leader found the same more often at this thread's place than this one?
fn found_again(b: Here) -> bool {
    b.poll
        .is_behind(b.ring().control().again.load(Ordering::Acquire))
}

/// What came of it.
enum Made {
    Found(u64),
    /// Nothing is there.
    Faults,
    /// A handler runs first.
    Interrupted,
    /// A follower's: this replica leads by now.
    Leads,
}

fn follow(s: &Saved, d: &Descriptor, at: u64) -> Made {
    loop {
        if let Some(made) = step(s, d, at) {
            return made;
        }
    }
}

/// None: the record was none of a leader that counts.
fn step(s: &Saved, d: &Descriptor, at: u64) -> Option<Made> {
    let mut b = block();
    let ours = word(kind::LOAD, 0, site(d), 0);
    if b.pos >= b.limit {
        intend_on(b, ours, at);
    }
    let start = b.pos;
    let again = b.poll.again(start, d.site, at);
    if let Some(which) = again.filter(|_| comes_again(b)) {
        b.poll.found_again(which);
        return Some(Made::Found(b.poll.value(which)));
    }
    let w = match await_next(b, again.is_some()) {
        Came::Record(w) => w,
        Came::Other => return None,
        Came::Leads => return Some(Made::Leads),
    };
    let is_signal = kind_of(w) == kind::SIGNAL;
    if is_signal && again.is_some() && b.poll.count == 0 && detail_of(w) == raise::POLLS {
        return Some(Made::Interrupted);
    }
    if is_signal && again.is_none() {
        take(b, 1);
        raise::follow_signal_here(b, w);
        return None;
    }
    let is_load = kind_of(w) == kind::LOAD;
    let is_ours = is_load && short_of(w) == site(d);
    let clocked = detail_of(w) & CLOCKED != 0;
    let faulted = is_load && detail_of(w) & FAULTED != 0;
    let words = match (faulted, clocked) {
        (true, _) => 1,
        (_, true) => 2,
        _ => 3,
    };
    let polled = is_load && detail_of(w) & POLLED != 0;
    if let Some(which) = again
        && (!polled || b.poll.count < view(b, words))
    {
        // The leader has found the same, too, and has gone on from there, or has not yet found something else.
        let count = if polled { view(b, words) } else { MOST };
        b.poll.has_seen(count);
        b.poll.found_again(which);
        return Some(Made::Found(b.poll.value(which)));
    }
    if !is_ours {
        let holds = read(at, d.size).unwrap_or(0);
        let ours = [ours, at, d.site, d.vaddr, holds, s.r[0], 0, 0];
        let code = match kind_of(w) == kind::LOAD {
            true => why::SITE,
            false => why::KIND,
        };
        diverged(code, b.pos, ours);
        return None;
    }
    if faulted {
        take(b, words + u64::from(polled));
        remember(b, w);
        verified(b);
        vanishes(at, d.size);
        return Some(Made::Faults);
    }
    let seen = view(b, 1);
    let slot = of_address(at);
    b.verified = b.pos + 1;
    if !await_past_at(b, b.pos, &slot.clock, low_of(w)) {
        return None;
    }
    let value = match clocked {
        true => meant(seen, read(at, d.size)),
        false => {
            let plain = Plain {
                at,
                size: d.size,
                seen,
                tick: low_of(w),
                epoch: view(b, 2),
            };
            plain.await_stored(b, slot)?
        }
    };
    if !clocked {
        b.loaded = view(b, 2);
    }
    take(b, words + u64::from(polled));
    remember(b, w);
    verified(b);
    let end = b.pos;
    keep(b, (start, end), (d.site, at), value, low_of(w));
    Some(Made::Found(value))
}

/// Wait for the next record; or, at a load that may find the same again, until the leader has.
fn await_next(b: Here, again: bool) -> Came {
    match again {
        true => peek_or(b, &|| found_again(b)),
        false => peek(b).map_or(Came::Leads, Came::Record),
    }
}

/// Does the leader find the same again here, before there is another record? (It may be that it does not come to it for long.)
fn comes_again(b: Here) -> bool {
    let mut patience = Patience::new();
    loop {
        // (First: where there is a record that tells what was counted before it.)
        if found_again(b) {
            return true;
        }
        if has_next(b) || leads() || patience.spend() {
            return false;
        }
    }
}

/// What was there is taken away by another thread: for its leader it was away.
fn vanishes(at: u64, size: u8) {
    let since = timer::now(timer::MONOTONIC);
    let mut patience = Patience::new();
    while read(at, size).is_some() {
        if patience.spend() {
            if timer::now(timer::MONOTONIC) - since > VANISH_NS {
                return;
            }
            patience = Patience::new();
        }
    }
}

/// What the leader has seen, as it is here: memory tells, where it holds it, whether it is an address.
fn meant(seen: u64, holds: Option<u64>) -> u64 {
    let [same, here] = either(seen);
    if holds == Some(same) { same } else { here }
}
