//! The leader's side of the log: append, publish, wait for room and for confirmations.

use crate::memory::{Control, Group, Log};
use crate::roll::{self, By, are_all, followers, readers, sleepers};
use crate::word::Atom;
use crate::world::{Thread, at};
use core::hint::black_box;
use core::sync::atomic::Ordering;
use geryon_abi::layout::{RING_WORDS, outdated, wait};
use geryon_abi::point::FaultPoint;

/// Append one word.
#[inline(always)]
pub fn put<T: Thread>(t: T, word: u64) {
    if t.pos() >= t.limit() {
        make_room(t, 1);
    }
    t.ring().write(t.pos(), word);
    t.set_pos(t.pos() + 1);
}

/// Append `words` words that lie at `from`.
///
/// # Safety
/// They are readable, and nobody writes them meanwhile.
pub unsafe fn put_words<T: Thread>(t: T, from: *const u8, words: u64) {
    let mut done = 0;
    while done < words {
        if t.pos() >= t.limit() {
            make_room(t, 1);
        }
        let r = t.ring();
        let room = (t.limit() - t.pos()).min(r.side_by_side(t.pos()));
        let part = room.min(words - done);
        let from = from.wrapping_add(8 * done as usize);
        // SAFETY: the caller's promise; below the limit all readers have read what lay there.
        unsafe { r.store(t.pos(), from, part) };
        t.set_pos(t.pos() + part);
        done += part;
    }
}

/// Append a record's words. What then lies in the log is what was meant, or this replica breaks
/// before anybody sees it: on the way there registers hold each word and its place.
#[inline(always)]
pub fn append<T: Thread, const N: usize>(t: T, words: [u64; N]) {
    let start = t.pos();
    let meant = black_box(&words);
    for word in meant {
        put(t, *word);
    }
    let (t, meant) = (t.anew(), black_box(meant));
    let lies = |(i, word): (usize, &u64)| t.ring().read(start + i as u64) == *word;
    if t.pos() != start + N as u64 || !meant.iter().enumerate().all(lies) {
        t.broken();
    }
}

/// Room for so many words, half of the ring at most: they are appended before any of them is seen.
pub fn reserve<T: Thread>(t: T, words: u64) {
    if t.pos() + words > t.limit() {
        make_room(t, words);
    }
}

/// A thread that does not stand where it can have come to breaks.
#[inline(always)]
pub fn check_place<T: Thread>(t: T) {
    let r = t.ring();
    if !t.is_own_and_leads() || t.pos().wrapping_sub(r.head()) > r.words() {
        t.broken();
    }
}

/// Let the followers see everything appended so far. A position from which a wrong register has led
/// away is told to nobody: what was done behind it could not be found again.
#[inline(always)]
pub fn publish<T: Thread>(t: T) {
    check_place(t);
    let r = t.ring();
    r.show(t.pos());
    t.set_published(t.pos());
    // It may have been another ring's end.
    let anew = t.anew();
    if anew.ring().head() != anew.pos() {
        t.broken();
    }
    t.light_barrier();
    // A follower that goes to sleep raises the flag and then issues a barrier on all cores,
    // so either it sees the new head or this load sees the flag.
    if r.control().follower_sleeps().load(Ordering::Relaxed) != 0 {
        t.wake(r.control().head());
    }
}

/// How far ahead of those that read the leader may be, about to append so many words. (A ring is longer where some sleep: what
/// is confirmed waits for those that read.)
fn ahead<T: Thread>(t: T, words: u64) -> u64 {
    let (usual, most) = (RING_WORDS as u64, t.ring().words());
    match words > usual / 2 {
        true => most,
        false => usual.min(most),
    }
}

#[cold]
fn make_room<T: Thread>(t: T, words: u64) {
    let mut r = t.ring();
    let ahead = ahead(t, words);
    // A record is seen whole or not at all, so that what a lost leader leaves behind ends with a
    // whole one; but for records that are larger than the ring.
    if t.pos() - r.head() >= ahead / 2 {
        publish(t);
    }
    let mut patience = t.patience();
    loop {
        // (Anew each time: a wrong register leads to another ring once, and not for ever.)
        r = t.anew().ring();
        let sleepers = sleepers(t);
        let mask = readers(t) | sleepers;
        // (Once: whoever has read on between two looks would be waited for again.)
        let awake = r.lowest_tail(mask & !sleepers);
        let low = awake.min(r.lowest_tail(sleepers));
        if !are_all(t, mask) {
            continue;
        }
        if low == u64::MAX {
            // What is published at once fits into the ring, also where nobody reads it.
            t.set_limit(r.head() + r.words());
            break;
        }
        t.set_limit((low + r.words()).min(awake.saturating_add(ahead)));
        if t.pos() + words <= t.limit() {
            if sleepers != 0 {
                ask_for_younger(t, r.lowest_tail(sleepers), words);
            }
            break;
        }
        if sleepers != 0 && t.pos() + words > low + r.words() && awake > low {
            // Nobody else is so far behind, and they will not read.
            t.outdated(outdated::NOW);
            continue;
        }
        t.announce(wait::ROOM, awake, t.pos());
        if t.spend(&mut patience) {
            sleep_until_told(t, &r, || {
                let sleepers = roll::sleepers(t);
                r.lowest_tail((readers(t) | sleepers) & !sleepers) != awake
            });
        }
    }
    t.announce_end();
}

/// Have the sleeping readers, the slowest of which stands at `tail`, replaced by younger ones once half of
/// the ring holds what they have not read.
fn ask_for_younger<T: Thread>(t: T, tail: u64, words: u64) {
    if tail == u64::MAX || t.group().crowded().load(Ordering::Relaxed) != 0 {
        return;
    }
    let half = tail + t.ring().words() / 2;
    if t.pos() < half {
        // (Not in the midst of what there is room for: it is seen whole.)
        t.set_limit(t.limit().min(half.max(t.pos() + words)));
    } else if t.group().crowded().swap(1, Ordering::SeqCst) == 0 {
        t.outdated(outdated::SOON);
    }
}

/// Does the log that others see end at `pos`?
pub fn is_end<T: Thread>(t: T, pos: u64) -> bool {
    t.ring().head() == pos
}

/// Wait until so many of the living followers have verified everything below `pos`.
pub fn confirmed<T: Thread>(t: T, pos: u64, by: By) {
    let r = t.ring();
    let mut patience = t.patience();
    let mut waited = false;
    while !is_confirmed(t, &r, pos, by) {
        if !waited {
            t.announce(wait::CONFIRM, r.lowest_ack(followers(t)), pos);
            waited = true;
        }
        if t.spend(&mut patience) {
            sleep_until_told(t, &r, || is_confirmed(t, &r, pos, by));
        }
    }
    if waited {
        t.announce_end();
    }
}

#[inline(always)]
fn is_confirmed<T: Thread>(t: T, r: &T::Ring, pos: u64, by: By) -> bool {
    let mask = followers(t);
    by.is_enough(mask.count_ones(), r.late(mask, pos))
}

/// Sleep until a follower says something, unless `is_over`: nobody says anything any more that matters.
fn sleep_until_told<T: Thread>(t: T, r: &T::Ring, is_over: impl Fn() -> bool) {
    let sleeps = r.control().leader_sleeps();
    sleeps.store(1, Ordering::SeqCst);
    t.passes::<{ at(FaultPoint::LeaderSleepy) }>();
    t.fence();
    if !is_over() {
        t.sleep_flagged(sleeps);
    }
    sleeps.store(0, Ordering::SeqCst);
}

/// New leader: complete a record that the former one has begun: what is there already stays.
pub fn put_again<T: Thread>(t: T, word: u64) {
    if t.pos() < t.ring().head() {
        t.set_pos(t.pos() + 1);
    } else {
        put(t, word);
    }
}

/// Take the position that this thread's slot had before (a slot's stream never starts anew).
pub fn resume<T: Thread>(t: T, leads: bool) {
    let r = t.ring();
    if !leads {
        return t.set_limit(t.pos());
    }
    let low = loop {
        let mask = readers(t);
        let low = r.lowest_tail(mask);
        if are_all(t, mask) {
            break low;
        }
    };
    t.set_limit(match low {
        u64::MAX => t.pos() + r.words(),
        low => low + r.words(),
    });
}
