//! `--order serial`: one thread of a replica runs at a time. It hands its *turn* over only where
//! it may block (a call, a futex wait, a yield), and the log holds the hand-overs. Whatever the
//! threads do to each other's memory, by locks, atomics or plain loads and stores, is then
//! repeated exactly; nothing else need be recorded. It costs parallelism inside a replica, which
//! is free where there are no more cores than replicas.
//!
//! The record TURN says which turn this is, and whose it was before, up to which position of that
//! thread's ring. A follower's thread takes the turn when the one before has come to that position.

mod holder;
pub mod kin;
mod quick;
mod yields;

use crate::diverge::diverged;
use crate::event::plain;
use crate::log::{append, get, is_cut, publish, remember, rewind, word_at};
use crate::state::{Here, block, block_anew, block_at, layout, private};
use crate::stop::broken;
use crate::thread::await_exits;
use crate::wait::{Patience, announce, announce_end, sleep_at_most, wake_at, wake_one_at};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use geryon_abi::layout::turn::{FREE, LENT, OFFERED, TAKEN};
use geryon_abi::layout::{FIRST_LOOK, MAX_THREADS, wait, why};
use geryon_abi::record::{kind, kind_of, seal, unseal, word};
use geryon_abi::row::Row;
use holder::{Holder, LOOK_NS, Loan};
pub use yields::{KEPT_NS, YIELDED, gives_way, has_kept, log_yield, passes, yield_turn};

/// How often it is lent before it is given away, while others wait.
const MOST_LENT: u32 = 64;

/// Detail of a TURN record: the turn was taken from who had it.
const FORCED: u8 = 1;
/// The same: a KIN record follows.
const WITH_KIN: u8 = 2;

/// Leader: the turn.
fn turn() -> &'static AtomicU32 {
    &private().turns.state
}

/// Leader: threads that wait for it.
fn waiting() -> &'static AtomicU32 {
    &private().turns.waiting
}

/// Leader: how often it was lent since it was given away.
fn times_lent() -> &'static AtomicU32 {
    &private().turns.lends
}

/// Who had it last (changed by the owner only),
fn last_slot() -> &'static AtomicU64 {
    &private().turns.last_slot
}

/// and that thread's position then.
fn last_pos() -> &'static AtomicU64 {
    &private().turns.last_pos
}

/// Slot of the thread that has the turn.
fn owner() -> &'static AtomicU32 {
    &private().turns.owner
}

/// Number of the present turn.
fn turn_number() -> &'static AtomicU32 {
    &private().turns.number
}

/// Follower: where the thread whose turn comes next waits, by the turn's number.
static NEXT: [Place; PLACES] = [const {
    Place {
        events: AtomicU32::new(0),
        sleepers: AtomicU32::new(0),
    }
}; PLACES];
const PLACES: usize = 64;

/// A place to wait.
struct Place {
    /// Changes whenever something changes that is waited for here.
    events: AtomicU32,
    sleepers: AtomicU32,
}

/// Only one thread can be next: nobody else need wake up.
fn place_of(number: u32) -> &'static Place {
    &NEXT[number as usize % PLACES]
}

/// Is this process run serially, and does this thread take turns? A vfork's child does not: its parent
/// keeps the turn until it is gone.
#[inline(always)]
pub fn active() -> bool {
    is_serial() && block().vforked == 0
}

/// Does this thread look who waits for the turn, and for signals? In a process with one thread, too, whatever the order:
/// of signals it hears nowhere else while it spins. (Not where how often it comes to such a place is its own replica's affair, or its own program's.)
#[inline(always)]
pub fn looks() -> bool {
    let p = private();
    let is_counted = p.serial.get() != 0 || p.multi.get() == 0 && p.uncounted.get() == 0;
    is_counted && block().vforked == 0 && !layout().is_unrelated()
}

/// Is this process run serially?
#[inline(always)]
pub fn is_serial() -> bool {
    let p = private();
    p.serial.get() != 0 && p.multi.get() != 0
}

/// The first thread has the first turn (before its second thread is made; and in a forked child).
pub fn begin(mut b: Here) {
    if looks() {
        b.plain = FIRST_LOOK;
    }
    b.has_turn.store(1, Ordering::Relaxed);
    owner().store(b.slot, Ordering::Relaxed);
    turn().store(TAKEN, Ordering::Relaxed);
    waiting().store(0, Ordering::Relaxed);
    times_lent().store(0, Ordering::Relaxed);
    turn_number().store(0, Ordering::Relaxed);
}

/// Leader: about to make this call, which may block; let others run.
pub fn release_for(b: Here, row: &Row, args: &[u64; 6]) {
    crate::log::passed::begins(b);
    let lends =
        is_awaited() && times_lent().load(Ordering::SeqCst) < MOST_LENT && quick::is(row, args);
    give(b, lends);
}

/// Leader: about to wait in a call; let others run.
pub fn release_to_wait(b: Here) {
    crate::log::passed::begins(b);
    release(b);
}

/// Leader: about to block; let others run.
pub fn release(b: Here) {
    give(b, false);
}

fn give(b: Here, lends: bool) {
    if b.has_turn.swap(0, Ordering::SeqCst) == 0 {
        return;
    }
    kin::give(b, lends);
    b.starves.store(0, Ordering::Relaxed);
    last_slot().store(b.slot as u64, Ordering::Relaxed);
    last_pos().store(b.pos, Ordering::Relaxed);
    let next = if lends {
        LENT
    } else if waiting().load(Ordering::SeqCst) != 0 {
        OFFERED
    } else {
        FREE
    };
    match lends {
        true => times_lent().fetch_add(1, Ordering::SeqCst),
        false => times_lent().swap(0, Ordering::SeqCst),
    };
    // Whoever takes it next tells the others.
    let kept = block_anew();
    if !was_last(kept) || kept.slot != b.slot {
        broken();
    }
    point!(TurnReleased);
    turn().swap(next, Ordering::SeqCst);
    if !lends && waiting().load(Ordering::SeqCst) != 0 {
        // It is not this one, and takes the turn, or finds that somebody has, who will wake the next.
        wake_one_at(turn() as *const AtomicU32 as u64, false);
    }
}

/// Leader: go on running the program's code. Logs the turn if somebody else had it meanwhile.
pub fn acquire(b: Here) {
    if b.has_turn.load(Ordering::SeqCst) != 0 {
        if kin::lacks()
            && let Some(record) = kin::acquire()
        {
            let b = block_anew();
            append(b, record);
            remember(b, record[0]);
            publish(b);
        }
        return;
    }
    let forced = match regains(b) {
        true => 0,
        false => wait_for_turn(b),
    };
    let among_kin = kin::acquire();
    // A register that held it while the thread slept may name another one by now.
    let b = block_anew();
    owner().store(b.slot, Ordering::SeqCst);
    b.has_turn.store(1, Ordering::SeqCst);
    b.robbed.store(0, Ordering::Relaxed);
    let (slot, pos) = (
        last_slot().load(Ordering::Relaxed),
        last_pos().load(Ordering::Relaxed),
    );
    if slot != b.slot as u64 || pos != b.pos {
        let number = turn_number().load(Ordering::Relaxed).wrapping_add(1);
        turn_number().store(number, Ordering::Relaxed);
        let with_kin = if among_kin.is_some() { WITH_KIN } else { 0 };
        let w = word(kind::TURN, forced | with_kin, 0, number);
        append(b, [w, seal(w, slot as u32, pos), pos]);
        if !is_as_kept(b) {
            broken();
        }
        remember(b, w);
        if let Some(record) = among_kin {
            append(b, record);
            remember(b, record[0]);
        }
        point!(TurnUnpublished);
        // At once: followers run what comes now while we do, not when we come to the next record.
        publish(b);
    } else if let Some(record) = among_kin {
        append(b, record);
        remember(b, record[0]);
        publish(b);
    } else if !was_last(block_anew()) {
        broken();
    }
    // A thread whose death came before this turn is really gone for whoever looks at its id word.
    await_exits();
}

/// Leader: has the thread lent the turn, and nobody has taken it?
fn regains(b: Here) -> bool {
    let seq = Ordering::SeqCst;
    turn().load(seq) == LENT
        && last_slot().load(seq) == b.slot as u64
        && turn().compare_exchange(LENT, TAKEN, seq, seq).is_ok()
}

/// Leader: wait until the turn can be had, and take it: by force ([`FORCED`]), or not.
fn wait_for_turn(b: Here) -> u8 {
    let mut forced = 0;
    let (mut holder, mut same) = (Holder::default(), Holder::default());
    waiting().fetch_add(1, Ordering::SeqCst);
    let mut patience = Patience::long();
    let mut loan = Loan::default();
    announce(wait::TURN, turn() as *const AtomicU32 as u64, 0);
    loop {
        let now = turn().load(Ordering::SeqCst);
        let mine = last_slot().load(Ordering::SeqCst) == b.slot as u64;
        let others = waiting().load(Ordering::SeqCst) > 1;
        let may = match now {
            FREE => true,
            OFFERED => !mine || !others,
            LENT => mine || loan.is_overdue(last_pos().load(Ordering::SeqCst)),
            _ => false,
        };
        if may
            && turn()
                .compare_exchange(now, TAKEN, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        {
            break;
        }
        if !may && patience.spend() {
            let limit = holder.look_again();
            if loan.nap(limit, |ns| {
                sleep_at_most(turn() as *const AtomicU32 as u64, now, ns)
            }) {
                continue;
            }
            holder.complain();
            // Seen twice, and each for itself: a wrong register does not take anybody's turn away.
            if now == TAKEN && holder.spins() & same.spins() && holder.rob() {
                forced = FORCED;
                break;
            }
        }
    }
    waiting().fetch_sub(1, Ordering::SeqCst);
    announce_end();
    forced
}

/// Leader: was this thread the last one to have the turn, and has it been nowhere since?
fn was_last(b: Here) -> bool {
    last_slot().load(Ordering::SeqCst) == b.slot as u64
        && last_pos().load(Ordering::SeqCst) == b.pos
}

/// Leader: does the log's last record say whose the turn was, and which one this is? Registers have held
/// that since it was looked up, and a turn that never comes stops all followers.
fn is_as_kept(b: Here) -> bool {
    let [w, second, pos] = [3, 2, 1].map(|n| word_at(b, b.pos - n));
    unseal(w, second, pos).map(u64::from) == Some(last_slot().load(Ordering::SeqCst))
        && pos == last_pos().load(Ordering::SeqCst)
        && geryon_abi::record::low_of(w) == turn_number().load(Ordering::SeqCst)
}

/// Follower: this thread stands at its present position and holds nothing back.
pub fn pause(mut b: Here) {
    // First: as soon as another thread may have the turn it is not this one that has it.
    kin::stand(b, b.pos);
    b.released = b.pos;
    changed();
}

/// (A turn taken meanwhile says so itself, to the thread behind it: a number that is out of date
/// here wakes nobody who would have to see this change.)
fn changed() {
    fence(Ordering::SeqCst);
    let next = place_of(turn_number().load(Ordering::SeqCst).wrapping_add(1));
    next.events.fetch_add(1, Ordering::SeqCst);
    if next.sleepers.load(Ordering::SeqCst) != 0 {
        wake_at(&raw const next.events as u64, false);
    }
}

/// Follower: a TURN record was read (its first word is `w`): wait for it. False when the log was cut
/// off before it meanwhile.
pub fn take(mut b: Here, w: u64) -> bool {
    let start = b.pos - 1;
    remember(b, w);
    let number = geryon_abi::record::low_of(w);
    let detail = geryon_abi::record::detail_of(w);
    let forced = detail & FORCED != 0;
    let (second, pos) = (get(b), get(b));
    let Some(slot) = unseal(w, second, pos).filter(|s| (*s as usize) < MAX_THREADS) else {
        diverged(why::DAMAGED, start, plain(w));
        return false;
    };
    // Only now: a record that the leader published in two parts (its ring was full) makes `get`
    // wait, and that notes another position.
    kin::stand(b, start);
    b.released = start;
    b.standing = start;
    changed();
    let before = block_at(slot as usize);
    let mut patience = Patience::long();
    announce(
        wait::TURN,
        turn_number() as *const AtomicU32 as u64,
        number as u64,
    );
    let place = place_of(number);
    loop {
        let seen = place.events.load(Ordering::SeqCst);
        // First: that the turn is there may be because the log was cut off, and others went back.
        if is_cut(b, start) {
            announce_end();
            rewind(b, start);
            return false;
        }
        let ready = turn_number().load(Ordering::SeqCst) == number.wrapping_sub(1)
            && (released_at(before) == pos || (forced && position(before) == pos));
        if ready {
            break;
        }
        if patience.spend() {
            place.sleepers.fetch_add(1, Ordering::SeqCst);
            if place.events.load(Ordering::SeqCst) == seen {
                // Who is robbed of its turn tells nobody where it is.
                let limit = if forced { LOOK_NS / 50 } else { LOOK_NS };
                sleep_at_most(&raw const place.events as u64, seen, limit);
            }
            place.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
    announce_end();
    crate::log::verified(b);
    before.robbed.store(forced as u32, Ordering::SeqCst);
    b.robbed.store(0, Ordering::SeqCst);
    turn_number().store(number, Ordering::SeqCst);
    owner().store(b.slot, Ordering::SeqCst);
    point!(TurnTaken);
    changed();
    if detail & WITH_KIN == 0 {
        kin::goes_on(b);
    } else if let Some(next) = crate::log::get_first(b) {
        // (Where the log was cut off before it the turn of the kin is to be had as a leader.)
        if kind_of(next) == kind::KIN {
            kin::take(b, next, true);
        } else {
            diverged(why::KIND, b.pos - 1, plain(word(kind::KIN, 0, 0, 0)));
        }
    }
    await_exits();
    true
}

/// Follower: may this thread run, as the log has it? Where another one has taken the turn that this one
/// stood waiting with, the next that is logged of it is a turn again, or the leader has let two run.
#[inline(always)]
pub fn runs(b: Here) -> bool {
    owner().load(Ordering::SeqCst) == b.slot || b.robbed.load(Ordering::SeqCst) != 0
}

/// Follower: is this the thread that has its process's turn?
fn owns(b: Here) -> bool {
    owner().load(Ordering::SeqCst) == b.slot
}

/// The process leads from now on: the turn is with whom its former leader has last given it to, unless
/// that thread has ended.
pub fn promoted() {
    let slot = owner().load(Ordering::SeqCst);
    let o = block_at(slot as usize);
    let ended = o.this == 0 || o.free.load(Ordering::SeqCst) != 0;
    waiting().store(0, Ordering::SeqCst);
    times_lent().store(0, Ordering::SeqCst);
    kin::promoted();
    last_slot().store(slot as u64, Ordering::SeqCst);
    last_pos().store(position(o), Ordering::SeqCst);
    for slot in 0..MAX_THREADS {
        let b = block_at(slot);
        if b.this != 0 && b.vforked == 0 {
            b.has_turn.store(0, Ordering::SeqCst);
        }
    }
    if ended {
        turn().store(FREE, Ordering::SeqCst);
    } else {
        o.has_turn.store(1, Ordering::SeqCst);
        turn().store(TAKEN, Ordering::SeqCst);
    }
}

fn position(b: Here) -> u64 {
    // SAFETY: a word of another thread's block, written whole.
    unsafe { core::ptr::from_ref(&b.pos).read_volatile() }
}

fn released_at(b: Here) -> u64 {
    // SAFETY: a word of another thread's block, written whole.
    unsafe { core::ptr::from_ref(&b.released).read_volatile() }
}

/// Leader: does another thread wait for the turn, or a process for that of the kin?
pub(crate) fn is_awaited() -> bool {
    waiting().load(Ordering::SeqCst) != 0 || kin::is_awaited()
}

/// Leader: which turn this is.
pub(crate) fn number() -> u32 {
    turn_number().load(Ordering::Relaxed)
}
