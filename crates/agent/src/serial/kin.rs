//! Processes that share memory, in serial order: one thread of all of them runs at a time. Whoever has a turn in
//! its process (`serial.rs`) needs that of the kin as well. It is handed over in the same places, and the log holds
//! where it went to another process.
//!
//! The record KIN says which turn this is, whose it was before, and at which place that one gave it away. A follower's
//! process takes it when the one before stands there, in its own replica. So what the processes store and load comes
//! in one order in all replicas, by whatever means they agree on it.
//!
//! A process becomes one of the kin when it forks and has memory that its child shares, or maps what another
//! one may map. Its children are from their birth on; who executes another program is not any more.

use super::holder::Loan;
use crate::diverge::diverged;
use crate::event::plain;
use crate::log::{get, is_cut, remember, rewind};
use crate::state::{Here, header, is_kin, private};
use crate::wait::{Patience, announce, announce_end, sleep_at_most_shared, wake_at, wake_one_at};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};
use geryon_abi::layout::kin::{FREE, Follower, KIN_BASE, Kin, LENT, OFFERED, TAKEN, place};
use geryon_abi::layout::{wait, why};
use geryon_abi::record::{kind, low_of, seal, unseal, word};
use geryon_ring::kin::Turn;

/// How often who waits looks again without having been woken.
const LOOK_NS: u64 = 50_000_000;

/// Leader: so many processes wait for the turn and have not taken it for long when it was offered: they are stopped.
static STOPPED: AtomicU32 = AtomicU32::new(0);
/// Leader: 1 while this process has the turn.
static HOLDS: AtomicU32 = AtomicU32::new(0);

fn kin() -> &'static Kin {
    // SAFETY: mapped by the monitor before any agent code runs; all of it is atomic.
    unsafe { &*(KIN_BASE as *const Kin) }
}

/// This replica's, while it follows.
fn own() -> &'static Follower {
    &kin().followers[private().replica.get() as usize]
}

/// The turn there.
fn turn() -> Turn<'static, AtomicU32, AtomicU64> {
    let f = own();
    Turn {
        number: &f.number,
        owner: &f.owner,
        stands: &f.stands,
    }
}

/// Say something of the turn. (A copy of this thread that went on in the midst of it would say it in the words of its
/// source.)
#[inline(always)]
fn tell<T>(b: Here, what: impl FnOnce(Turn<'static, AtomicU32, AtomicU64>) -> T) -> T {
    let before = b.publishing.load(Ordering::Relaxed);
    b.publishing.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let told = what(turn());
    compiler_fence(Ordering::SeqCst);
    b.publishing.store(before, Ordering::Relaxed);
    told
}

/// This process, as owners are named.
fn name() -> u32 {
    header().group.load(Ordering::Relaxed).wrapping_add(1)
}

/// In a forked child: its parent has the turn.
pub fn born() {
    HOLDS.store(0, Ordering::SeqCst);
}

/// Leader: does another process wait for the turn?
pub fn is_awaited() -> bool {
    is_kin() && kin().waiting.load(Ordering::SeqCst) != 0
}

/// Leader: about to block, or to make a call that is over soon, with nothing that is not published; let others run.
pub fn give(b: Here, lends: bool) {
    if !is_kin() || HOLDS.swap(0, Ordering::SeqCst) == 0 {
        return;
    }
    let k = kin();
    k.last.store(place(b.slot, b.pos), Ordering::SeqCst);
    let next = match k.waiting.load(Ordering::SeqCst) {
        _ if lends => LENT,
        0 => FREE,
        _ => OFFERED,
    };
    let (mine, seq) = (TAKEN.wrapping_add(name()), Ordering::SeqCst);
    // (Unless this replica was lost meanwhile.)
    let _ = k.turn.compare_exchange(mine, next, seq, seq);
    if !lends && k.waiting.load(Ordering::SeqCst) != 0 {
        wake_one_at(k.turn.as_ptr() as u64, true);
    }
}

/// Leader: does this process lack the turn?
#[inline(always)]
pub fn lacks() -> bool {
    is_kin() && HOLDS.load(Ordering::SeqCst) == 0
}

/// The words of a KIN record.
pub type Record = [u64; 3];

/// Leader: wait for the turn. What has to be logged, if another process had it meanwhile.
pub fn acquire() -> Option<Record> {
    if !lacks() {
        return None;
    }
    let (k, me) = (kin(), name());
    let (taken, seq) = (TAKEN.wrapping_add(me), Ordering::SeqCst);
    // (It may be another one's by then, taken for being overdue and lent again. What is logged says so.)
    if !(k.owner.load(seq) == me && k.turn.compare_exchange(LENT, taken, seq, seq).is_ok()) {
        wait_for_turn(k, me);
    }
    HOLDS.store(1, Ordering::SeqCst);
    let before = k.owner.load(Ordering::SeqCst);
    if before == me {
        return None;
    }
    STOPPED.store(0, Ordering::SeqCst);
    let number = k.number.load(Ordering::SeqCst).wrapping_add(1);
    let last = k.last.load(Ordering::SeqCst);
    k.owner.store(me, Ordering::SeqCst);
    k.number.store(number, Ordering::SeqCst);
    let w = word(kind::KIN, 0, 0, number);
    Some([w, seal(w, before, last), last])
}

/// Leader: wait until the turn can be had, and take it.
fn wait_for_turn(k: &Kin, me: u32) {
    let taken = TAKEN.wrapping_add(me);
    k.waiting.fetch_add(1, Ordering::SeqCst);
    let mut loan = Loan::default();
    let mut offered = None;
    let mut patience = Patience::long();
    announce(wait::KIN, k.turn.as_ptr() as u64, 0);
    loop {
        let now = k.turn.load(Ordering::SeqCst);
        let mine = k.owner.load(Ordering::SeqCst) == me;
        let others = k.waiting.load(Ordering::SeqCst).saturating_sub(1);
        let may = match now {
            FREE => true,
            OFFERED => !mine || others <= STOPPED.load(Ordering::SeqCst),
            LENT => mine || loan.is_overdue(k.last.load(Ordering::SeqCst)),
            _ => false,
        };
        if may
            && k.turn
                .compare_exchange(now, taken, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        {
            break;
        }
        if !may && patience.spend() {
            let goes_on = loan.nap(LOOK_NS, |ns| {
                sleep_at_most_shared(k.turn.as_ptr() as u64, now, ns)
            });
            if !goes_on && now == OFFERED && mine {
                let place = Some(k.last.load(Ordering::SeqCst));
                if offered == place {
                    STOPPED.store(others, Ordering::SeqCst);
                }
                offered = place;
            }
        }
    }
    // (The monitor counts anew when another replica leads.)
    let fewer = |n: u32| n.checked_sub(1);
    let _ = k
        .waiting
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
    announce_end();
}

/// Follower: this thread, which has its process's turn, stands at this position and does nothing without another
/// record.
pub fn stand(b: Here, pos: u64) {
    // (Not who makes a call anew without its process's turn: it is where the one that has it stands that counts.)
    if !is_kin() || !super::owns(b) {
        return;
    }
    if tell(b, |t| t.stands_at(name(), place(b.slot, pos))) {
        changed();
    }
}

/// Follower: this thread has its process's turn, and the turn of the kin with it.
pub fn goes_on(b: Here) {
    if is_kin() {
        tell(b, |t| t.goes_on(name()));
    }
}

fn changed() {
    own().events.fetch_add(1, Ordering::SeqCst);
    if own().sleepers.load(Ordering::SeqCst) != 0 {
        wake_at(own().events.as_ptr() as u64, true);
    }
}

/// Follower: a KIN record was read (its first word is `w`): wait for the turn. False when the log was cut off
/// before it meanwhile. `fresh`: the thread has done nothing since another one of its process had the turn.
pub fn take(mut b: Here, w: u64, fresh: bool) -> bool {
    let start = b.pos - 1;
    remember(b, w);
    if !fresh {
        stand(b, start);
    }
    let number = low_of(w);
    let (second, at) = (get(b), get(b));
    let Some(before) = unseal(w, second, at) else {
        diverged(why::DAMAGED, start, plain(w));
        return false;
    };
    b.standing = start;
    let mut patience = Patience::long();
    announce(wait::KIN, own().number.as_ptr() as u64, number as u64);
    loop {
        // (A copy of this thread goes on from anywhere, and has another one: it is asked for anew each time.)
        let seen = own().events.load(Ordering::SeqCst);
        // First: that the turn is there may be because the log was cut off, and others went back.
        if is_cut(b, start) {
            announce_end();
            rewind(b, start);
            return false;
        }
        if turn().is_due(number, before, at) {
            break;
        }
        if patience.spend() {
            own().sleepers.fetch_add(1, Ordering::SeqCst);
            if own().events.load(Ordering::SeqCst) == seen {
                sleep_at_most_shared(own().events.as_ptr() as u64, seen, LOOK_NS);
            }
            own().sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
    announce_end();
    crate::log::verified(b);
    tell(b, |t| t.take(name(), number));
    changed();
    true
}

/// The process leads from now on. It has the turn if it had it last; what all see of it the monitor has set up.
pub fn promoted() {
    let has = is_kin() && own().owner.load(Ordering::SeqCst) == name();
    HOLDS.store(has.into(), Ordering::SeqCst);
}
