//! A follower that repeats the leader's order strictly. Clocks order the operations on each object, and what threads do by
//! plain loads and stores in between falls as it may; here no thread passes a record before all records with earlier
//! stamps (`stamps.rs`) have been passed in the others. So what is plain falls between the same records as it did
//! in the leader.
//!
//! *In time*: nobody waits in a circle. Of the records that nobody has passed the one with the earliest stamp waits for
//! none; its thread computes, or waits for what another one did in the leader before that stamp, which is behind a record
//! that is passed. (So a follower that has gone astray may stand still, and no other.)
//!
//! *One at a time*: a thread that has passed a record comes to its next one, or waits, before any other passes another. Who
//! waits for another thread is not waited for: in the kernel (a barrier, a join, a futex of the program's own), for its
//! turn, for a value, at the end of its log. Nor for long who computes, since it may spin on what another one is to store.

use super::stamps;
use crate::gate::real;
use crate::state::{Here, block, block_at, private, slots};
use crate::wait::{announce, announce_end, pause};
use core::hint::spin_loop;
use core::sync::atomic::Ordering;
use geryon_abi::hooks as id;
use geryon_abi::layout::{Word64, promotion, strict, wait};
use geryon_abi::record::{detail_of, kind, kind_of};
use geryon_abi::table::nr;
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

/// Turns of spinning, and then of giving the core away, of one whose turn comes soon: who went to sleep would come late, and
/// where the others compute meanwhile that is another order of what they load and store.
const SPINS: u32 = 200;
const YIELDS: u32 = 2_000;
/// `Block::holds`: behind this operation, or behind the next one.
const HERE: u32 = 1;
const BEHIND_NEXT: u32 = 2;
/// Between two looks of one that waits longer.
const LOOK_NS: u64 = 50_000;
/// So many of them one that computes is waited for, where one is to run at a time: some 50 ms.
const LOOKS: u32 = 500;

/// So long one that is late is held while all others wait, for one of them may have been woken and have no core yet; and so long
/// while one computes. (Time, and not looks: on a loaded machine a look may last as long as a slice of the processor's.)
const CIRCLE_NS: u64 = 60_000_000;
const HELD_NS: u64 = 1_000_000_000;

/// A wait for another thread of this replica that is soon over.
struct Prompt(u32);

impl Prompt {
    /// Wait a moment. False when that has been so often that the other one may compute for ever.
    fn spend(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        if self.0 <= SPINS {
            spin_loop();
        } else if self.0 <= SPINS + YIELDS {
            real(nr::sched_yield, [0; 6]);
        } else {
            pause(LOOK_NS);
        }
        self.0 < SPINS + YIELDS + LOOKS
    }
}

/// What is published from `at` on may be read up to there; first the thread waits until it may read that.
#[cold]
pub fn admitted(mut b: Here, at: u64, head: u64) -> u64 {
    if let Some(stamp) = stamps::at(b, at) {
        await_order(b, at, stamp);
    }
    let is_end = |pos: &u64| stamps::at(b, *pos).is_some();
    let end = (at + 1..head).find(is_end).unwrap_or(head);
    b.holds = match is_late(b.slot, end) {
        false => 0,
        true if is_released_later(b.ring().read(at)) => BEHIND_NEXT,
        true => HERE,
    };
    end
}

/// Does this record take what a hooked function gives back? Until it has, those whose turn comes first may wait for it: so the
/// thread holds behind that, and what it does while it has the lock is early.
fn is_released_later(record: u64) -> bool {
    const OWNER_DIED: u8 = 0x80;
    let hook = u16::from(detail_of(record) & !OWNER_DIED);
    kind_of(record) == kind::LOCK
        && matches!(
            hook,
            id::MUTEX_LOCK..=id::MUTEX_CLOCKLOCK
                | id::COND_WAIT..=id::COND_CLOCKWAIT
                | id::RW_RDLOCK..=id::RW_CLOCKWRLOCK
        )
}

/// Is what a thread does before this record to be done late? (Who is named twice is early again.)
fn is_late(slot: u32, pos: u64) -> bool {
    let p = private();
    let count = p.late_count.load(Ordering::Acquire) as usize;
    let named = |l: &&Word64| strict::is_named(l.get(), slot, pos);
    p.late.iter().take(count).filter(named).count() % 2 == 1
}

/// Behind an operation, before the program goes on.
#[inline(always)]
pub fn hold_if_late(b: Here) {
    if b.holds != 0 {
        geryon_hold();
    }
}

/// Let all other threads pass first what comes before this one's next record.
#[cold]
#[unsafe(no_mangle)]
extern "C" fn geryon_hold() {
    let mut b = block();
    if b.holds == BEHIND_NEXT {
        b.holds = HERE;
        return;
    }
    b.holds = 0;
    let may_go = || {
        let next = stamps::at(b, b.pos).filter(|_| b.ring().head() > b.pos);
        next.is_some_and(|stamp| !is_late(b.slot, b.pos) || has_turn(b, stamp, true))
    };
    announce(wait::ORDER, b.pos, 0);
    let mut patience = Prompt(0);
    let mut since: Option<(u64, u64)> = None;
    while is_strict() && !may_go() {
        patience.spend();
        let now = monotonic_ns();
        let (begin, stands) = since.unwrap_or((now, now));
        let stands = if others_wait(b) { stands } else { now };
        since = Some((begin, stands));
        if now - stands > CIRCLE_NS {
            // Another one waits for what this one gives back only behind here: it holds again behind that.
            b.holds = HERE;
            break;
        }
        // (One that nothing is known of may compute, or spin, for ever.)
        if now - begin > HELD_NS {
            break;
        }
    }
    announce_end();
}

/// Do all other threads wait?
fn others_wait(me: Here) -> bool {
    (0..slots()).all(|slot| {
        let b = block_at(slot);
        let counts = slot as u32 != me.slot && b.this != 0 && b.free.load(Ordering::SeqCst) == 0;
        !counts || !computes(b)
    })
}

fn monotonic_ns() -> u64 {
    const CLOCK_MONOTONIC: u64 = 1;
    let mut now = [0u64; 2];
    real(
        nr::clock_gettime,
        [CLOCK_MONOTONIC, now.as_mut_ptr() as u64, 0, 0, 0, 0],
    );
    now[0] * 1_000_000_000 + now[1]
}

/// (Who is about to lead makes what comes next itself.)
fn is_strict() -> bool {
    stamps::are_followed() && private().promotion.load(Ordering::Acquire) == promotion::NONE
}

fn await_order(b: Here, at: u64, stamp: u64) {
    announce(wait::ORDER, at, stamp);
    let mut patience = Prompt(0);
    let mut alone = private().strict.load(Ordering::Relaxed) == strict::ONE_AT_A_TIME;
    // (Where the log has been cut off the caller looks again.)
    while is_strict() && b.ring().head() > at && !has_turn(b, stamp, alone) {
        alone = patience.spend() && alone;
    }
    announce_end();
}

/// Have all others passed what comes before this stamp? `alone`: and do they stand?
fn has_turn(me: Here, stamp: u64, alone: bool) -> bool {
    (0..slots()).all(|slot| {
        let b = block_at(slot);
        let counts = slot as u32 != me.slot && b.this != 0 && b.free.load(Ordering::SeqCst) == 0;
        !counts || is_later(b, stamp) && !(alone && computes(b))
    })
}

/// Does nothing come next in another thread's log, or something with a later stamp?
fn is_later(b: Here, stamp: u64) -> bool {
    // SAFETY: a word of another thread's block, written whole.
    let pos = unsafe { core::ptr::from_ref(&b.pos).read_volatile() };
    if b.ring().head() <= pos {
        return true;
    }
    // (In the midst of a record it has yet to pass that, which has come before.)
    stamps::at(b, pos).is_some_and(|next| stamps::is_before(stamp, next))
}

/// Asked behind [`is_later`]: it says that it waits no more before it passes a record.
fn computes(b: Here) -> bool {
    b.waiting.load(Ordering::SeqCst) == wait::NONE
}
