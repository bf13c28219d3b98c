//! The thread's stream of records: the leader appends, a follower reads.

use crate::event::plain;
use crate::gate::rpc;
use crate::state::{Here, block, block_anew, header, is_own, leads, private};
use crate::stop::broken;
use crate::wait::{Patience, announce, announce_end, sleep64, wake_at};
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};
use geryon_abi::layout::{RING_WORDS, outdated, rpc as number, wait, why};
use geryon_abi::record::{kind, kind_of, word};
use geryon_ring::Ring;

const NR_MEMBARRIER: u64 = 324;
const MEMBARRIER_GLOBAL_EXPEDITED: u64 = 2;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: u64 = 4;
/// A follower tells the leader how far it is at least this often.
const TAIL_EVERY: u64 = RING_WORDS as u64 / 8;

/// Must have been called once in a process before it leads: its stores are then ordered by
/// the barrier that a follower issues before it sleeps.
pub fn register_barrier() {
    crate::gate::real(
        NR_MEMBARRIER,
        [MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0],
    );
}

#[inline(always)]
fn ring(b: Here) -> Ring {
    // SAFETY: the segment is mapped at its fixed address, and a block's slot is below MAX_THREADS.
    unsafe { Ring::of_slot(b.slot as usize) }
}

/// The living followers, as a mask of replica indices.
#[inline(always)]
pub fn followers() -> u32 {
    header().alive.load(Ordering::Acquire) & !(1 << private().replica)
}

/// Those whose unread records must not be overwritten.
pub fn readers() -> u32 {
    followers() | header().joining.load(Ordering::Acquire)
}

/// Those among the readers that stand still until they are needed (a checkpoint).
pub fn sleepers() -> u32 {
    header().sleeping.load(Ordering::Acquire)
}

/// Leader: append one word.
#[inline(always)]
pub fn put(mut b: Here, word: u64) {
    if b.pos >= b.limit {
        make_room(b, 1);
    }
    ring(b).slot(b.pos).store(word, Ordering::Relaxed);
    b.pos += 1;
}

/// Leader: append `words` words that lie at `from`.
///
/// # Safety
/// They are readable, and nobody writes them meanwhile.
pub unsafe fn put_words(mut b: Here, from: u64, words: u64) {
    let mut done = 0;
    while done < words {
        if b.pos >= b.limit {
            make_room(b, 1);
        }
        let r = ring(b);
        let room = (b.limit - b.pos).min(r.side_by_side(b.pos));
        let part = room.min(words - done);
        // SAFETY: the caller's promise; below the limit all readers have read what lay there.
        unsafe { r.store(b.pos, (from + 8 * done) as *const u8, part) };
        b.pos += part;
        done += part;
    }
}

/// Leader: append a record's words. What then lies in the log is what was meant, or this replica breaks
/// before anybody sees it: on the way there registers hold each word and its place.
#[inline(always)]
pub fn append<const N: usize>(b: Here, words: [u64; N]) {
    let start = b.pos;
    let meant = black_box(&words);
    for word in meant {
        put(b, *word);
    }
    let (b, meant) = (block_anew(), black_box(meant));
    let lies = |(i, word): (usize, &u64)| word_at(b, start + i as u64) == *word;
    if b.pos != start + N as u64 || !meant.iter().enumerate().all(lies) {
        broken();
    }
}

/// Leader: room for so many words, half of the ring at most: they are appended before any of them is seen.
pub fn reserve(b: Here, words: u64) {
    if b.pos + words > b.limit {
        make_room(b, words);
    }
}

/// Leader: a thread that does not stand where it can have come to breaks.
#[inline(always)]
pub fn check_place(b: Here) {
    let r = ring(b);
    if !is_own(b) || !leads() || b.pos.wrapping_sub(r.head()) > r.words() {
        broken();
    }
}

/// Leader: let the followers see everything appended so far. A position from which a wrong register has led
/// away is told to nobody: what was done behind it could not be found again.
#[inline(always)]
pub fn publish(mut b: Here) {
    check_place(b);
    let r = ring(b);
    r.publish(b.pos);
    b.published = b.pos;
    // It may have been another ring's end.
    let anew = block_anew();
    if ring(anew).head() != anew.pos {
        broken();
    }
    compiler_fence(Ordering::SeqCst);
    // A follower that goes to sleep raises the flag and then issues a barrier on all cores,
    // so either it sees the new head or this load sees the flag.
    if r.control().follower_sleeps.load(Ordering::Relaxed) != 0 {
        wake_at(&r.control().head as *const AtomicU64 as u64, true);
    }
}

#[cold]
fn make_room(mut b: Here, words: u64) {
    let mut r = ring(b);
    // A record is seen whole or not at all, so that what a lost leader leaves behind ends with a
    // whole one; but for records that are larger than the ring.
    if b.pos - r.head() >= r.words() / 2 {
        publish(b);
    }
    let mut patience = Patience::new();
    loop {
        // (Anew each time: a wrong register leads to another ring once, and not for ever.)
        r = ring(block_anew());
        let sleepers = sleepers();
        let mask = readers() | sleepers;
        let low = r.lowest_tail(mask);
        if low == u64::MAX {
            // What is published at once fits into the ring, also where nobody reads it.
            b.limit = r.head() + r.words();
            break;
        }
        b.limit = low + r.words();
        if b.pos + words <= b.limit {
            if sleepers != 0 {
                ask_for_younger(b, r.lowest_tail(sleepers));
            }
            break;
        }
        if sleepers != 0 && r.lowest_tail(mask & !sleepers) > low {
            // Nobody else is so far behind, and they will not read.
            rpc(number::OUTDATED, outdated::NOW, 0, 0);
            continue;
        }
        announce(wait::ROOM, low, b.pos);
        if patience.spend() {
            sleep_on_followers(&r, mask & !sleepers, low, |i| {
                &r.control().followers[i].tail
            });
        }
    }
    announce_end();
}

/// Leader: have the sleeping readers, the slowest of which stands at `tail`, replaced by younger ones
/// once half of the ring holds what they have not read.
fn ask_for_younger(mut b: Here, tail: u64) {
    if tail == u64::MAX || header().open.crowded.load(Ordering::Relaxed) != 0 {
        return;
    }
    let half = tail + ring(b).words() / 2;
    if b.pos < half {
        b.limit = b.limit.min(half);
    } else if header().open.crowded.swap(1, Ordering::SeqCst) == 0 {
        rpc(number::OUTDATED, outdated::SOON, 0, 0);
    }
}

/// Leader: does the log that others see end at `pos`?
pub fn is_end(b: Here, pos: u64) -> bool {
    ring(b).head() == pos
}

/// Leader: wait until every living follower has verified everything below `pos`.
pub fn confirmed(b: Here, pos: u64) {
    let r = ring(b);
    let mut patience = Patience::new();
    let mut waited = false;
    loop {
        let mask = followers();
        let low = r.lowest_ack(mask);
        if low >= pos {
            break;
        }
        if !waited {
            announce(wait::CONFIRM, low, pos);
            waited = true;
        }
        if patience.spend() {
            sleep_on_followers(&r, mask, low, |i| &r.control().followers[i].ack);
        }
    }
    if waited {
        announce_end();
    }
}

fn sleep_on_followers<'a>(r: &'a Ring, mask: u32, low: u64, word: impl Fn(usize) -> &'a AtomicU64) {
    for i in 0..geryon_abi::layout::MAX_REPLICAS {
        if mask & (1 << i) != 0 && word(i).load(Ordering::Acquire) == low {
            r.control().leader_sleeps.store(1, Ordering::SeqCst);
            point!(LeaderSleepy);
            fence(Ordering::SeqCst);
            let w = word(i);
            let h = header();
            let takes_part =
                (h.alive.load(Ordering::SeqCst) | h.joining.load(Ordering::SeqCst)) & (1 << i) != 0;
            if w.load(Ordering::SeqCst) == low && takes_part {
                sleep64(w, low, true);
            }
            r.control().leader_sleeps.store(0, Ordering::SeqCst);
            return;
        }
    }
}

/// Follower: the first word of the next record, whatever its kind; None when there will be none,
/// because this replica leads by now.
#[inline(always)]
pub fn get_first(b: Here) -> Option<u64> {
    if b.pos >= b.limit && !await_record(b, b.pos) {
        return None;
    }
    Some(get(b))
}

/// This thread makes the next record of its own code itself: not beside one that has the turn.
#[cold]
fn leads_from_here(b: Here) {
    // (It may stand in the middle of a call whose beginning is logged: no copy of it is made meanwhile.)
    if crate::serial::active() {
        crate::serial::acquire(b);
    }
}

/// Follower: the next word of a record.
#[inline(always)]
pub fn get(b: Here) -> u64 {
    match get_torn(b) {
        Some(w) => w,
        None => crate::promotion::torn_record(b),
    }
}

/// Follower: the next word of a record that may be larger than the ring; None when its writer was
/// lost before it had written this.
#[inline(always)]
pub fn get_torn(mut b: Here) -> Option<u64> {
    if b.pos >= b.limit && !await_record(b, b.pos) {
        return None;
    }
    let w = ring(b).slot(b.pos).load(Ordering::Relaxed);
    b.pos += 1;
    if b.pos.is_multiple_of(TAIL_EVERY) {
        tell_tail(b);
    }
    Some(w)
}

/// Follower: the next `words` words of such a record, to the memory at `to`. False when its writer was lost
/// before it had written all of them.
///
/// # Safety
/// `to` is writable for all of them, and nobody else uses it.
pub unsafe fn get_words_torn(mut b: Here, to: u64, words: u64) -> bool {
    let mut done = 0;
    while done < words {
        if b.pos >= b.limit && !await_record(b, b.pos) {
            return false;
        }
        let r = ring(b);
        let until_told = TAIL_EVERY - b.pos % TAIL_EVERY;
        let there = (b.limit - b.pos).min(r.side_by_side(b.pos));
        let part = there.min(until_told).min(words - done);
        // SAFETY: the caller's promise; below the limit all is published, and the tail is not yet told.
        unsafe { r.load(b.pos, (to + 8 * done) as *mut u8, part) };
        b.pos += part;
        done += part;
        if b.pos.is_multiple_of(TAIL_EVERY) {
            tell_tail(b);
        }
    }
    true
}

/// New leader: complete a record that the former one has begun: what is there already stays.
pub fn put_again(mut b: Here, word: u64) {
    if b.pos < ring(b).head() {
        b.pos += 1;
    } else {
        put(b, word);
    }
}

/// Follower: the record at `pos` was the leader's mistake and is not in the log any more.
pub fn rewind(mut b: Here, pos: u64) {
    b.pos = pos;
    b.limit = pos;
}

/// Was the log cut off at or before this position?
pub fn is_cut(b: Here, pos: u64) -> bool {
    ring(b).head() <= pos
}

/// Follower: has the leader logged a signal as the next record?
pub fn signal_is_next(mut b: Here) -> bool {
    b.limit = b.limit.max(ring(b).head());
    b.pos < b.limit && kind_of(ring(b).slot(b.pos).load(Ordering::Relaxed)) == kind::SIGNAL
}

/// Follower: has the leader logged a next record?
pub fn has_next(mut b: Here) -> bool {
    b.limit = b.limit.max(ring(b).head());
    b.pos < b.limit
}

/// Follower: the first word of the next record; turns are taken on the way. None when there will
/// be none, because this replica leads by now.
#[inline(always)]
pub fn first(b: Here) -> Option<u64> {
    loop {
        let Some(w) = get_first(b) else {
            leads_from_here(b);
            return None;
        };
        if kind_of(w) == kind::TURN {
            crate::serial::take(b, w);
        } else if !crate::serial::active() || crate::serial::runs(b) {
            return Some(w);
        } else {
            crate::diverge::diverged(why::KIND, b.pos - 1, plain(word(kind::TURN, 0, 0, 0)));
        }
    }
}

/// Follower: the first word of the next record, without taking it.
#[inline(always)]
pub fn peek(b: Here) -> Option<u64> {
    if b.pos >= b.limit && !await_record(b, b.pos) {
        leads_from_here(b);
        return None;
    }
    Some(ring(b).slot(b.pos).load(Ordering::Relaxed))
}

/// Follower: the next word of a record, without taking it.
#[inline(always)]
pub fn get_ahead(b: Here) -> u64 {
    view(b, 0)
}

/// Follower: the word `n` ahead, without taking it.
pub fn view(b: Here, n: u64) -> u64 {
    let at = b.pos + n;
    if at >= b.limit && !await_record(b, at) {
        crate::promotion::torn_record(b);
    }
    ring(b).slot(at).load(Ordering::Relaxed)
}

/// Follower: take `n` words that were viewed.
pub fn take(b: Here, n: u64) {
    for _ in 0..n {
        get(b);
    }
}

/// The word at `pos`, for reports: it may have been overwritten by now.
pub fn word_at(b: Here, pos: u64) -> u64 {
    ring(b).slot(pos).load(Ordering::Relaxed)
}

/// Follower: the records read so far were compared and are equal.
#[inline(always)]
pub fn verified(mut b: Here) {
    b.verified = b.pos;
}

/// Follower: tell the leader which slots it may overwrite.
pub fn tell_tail(b: Here) {
    let r = ring(b);
    b.publishing.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let line = &r.control().followers[replica()];
    line.tail.store(b.pos, Ordering::SeqCst);
    compiler_fence(Ordering::SeqCst);
    b.publishing.store(0, Ordering::Relaxed);
    wake_leader(&r, &line.tail);
}

/// This replica's index. Read anew each time: a copy of a replica gets another one while it stands
/// in the middle of anything.
#[inline(always)]
fn replica() -> usize {
    // SAFETY: a word of the private structure.
    unsafe { core::ptr::from_ref(&private().replica).read_volatile() as usize }
}

/// Follower: everything below the present position was verified.
pub fn acknowledge(b: Here) {
    let r = ring(b);
    verified(b);
    b.publishing.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let line = &r.control().followers[replica()];
    point!(Acknowledging);
    line.tail.store(b.pos, Ordering::Release);
    point!(HalfAcknowledged);
    line.ack.store(b.pos, Ordering::SeqCst);
    compiler_fence(Ordering::SeqCst);
    b.publishing.store(0, Ordering::Relaxed);
    point!(Acknowledged);
    wake_leader(&r, &line.ack);
}

fn wake_leader(r: &Ring, word: &AtomicU64) {
    if r.control().leader_sleeps.load(Ordering::SeqCst) != 0 {
        wake_at(word as *const AtomicU64 as u64, true);
    }
}

/// Wait until the word at `at` is there; the leader learns only what was taken. False when it will
/// not come, because this replica leads by now.
#[cold]
fn await_record(mut b: Here, at: u64) -> bool {
    let r = ring(b);
    b.limit = r.head();
    if at < b.limit {
        return true;
    }
    if crate::promotion::promoted() {
        return false;
    }
    tell_tail(b);
    if crate::serial::active() {
        crate::serial::pause(b);
    }
    announce(wait::RECORD, at, 0);
    let mut patience = Patience::new();
    let there = loop {
        let promoted = crate::promotion::promoted();
        let head = r.head();
        if at < head {
            b.limit = head;
            break true;
        }
        if promoted {
            break false;
        }
        if patience.spend() {
            let sleeps = &r.control().follower_sleeps;
            sleeps.fetch_or(1 << replica(), Ordering::SeqCst);
            point!(FollowerSleepy);
            crate::gate::real(NR_MEMBARRIER, [MEMBARRIER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0]);
            // (Who is asked to lead is woken after the question.)
            if r.head() == head && !crate::promotion::promoted() {
                sleep64(&r.control().head, head, true);
            }
            sleeps.fetch_and(!(1 << replica()), Ordering::SeqCst);
        }
    };
    announce_end();
    there
}

/// Take the position that this thread's slot had before (a slot's stream never starts anew).
pub fn resume_stream(leads: bool) {
    let mut b = block();
    let r = ring(b);
    b.limit = if leads {
        let low = r.lowest_tail(readers());
        if low == u64::MAX {
            b.pos + r.words()
        } else {
            low + r.words()
        }
    } else {
        r.head()
    };
}

/// Note the first word of a record that this thread has produced or consumed.
#[inline(always)]
pub fn remember(mut b: Here, word: u64) {
    let at = (b.events & 15) as usize;
    b.last[at] = word;
    b.events += 1;
    let ns = point!(RecordDelayed, 0);
    if ns != 0 {
        crate::wait::pause(ns as u64);
    }
}
