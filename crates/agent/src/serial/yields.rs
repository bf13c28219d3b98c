//! Where a thread that keeps its turn gives it away all the same: it yields, or it makes one call after the other that never blocks.

use super::{acquire, active, is_awaited, number, release_to_wait};
use crate::diverge::diverged;
use crate::event::plain;
use crate::log::{publish, put};
use crate::state::{Here, have_own_programs, leads};
use crate::timer;
use core::sync::atomic::Ordering;
use geryon_abi::layout::{repeat, why};
use geryon_abi::record::{kind, word};
use geryon_abi::table::nr;

/// A thread that does not spin keeps its turn for so long (nanoseconds) while another one waits for it.
pub const KEPT_NS: u64 = 10_000_000;
/// Of calls that nothing is logged of so many are made before threads meet.
const MEETS_EVERY: u32 = 256;
/// At so many calls for which it keeps the turn a thread looks at the time once.
const ASKS_EVERY: u32 = 16;

/// The record of a yield.
pub const YIELDED: u64 = word(kind::CALL, 0, NR_SCHED_YIELD, 1);
const NR_SCHED_YIELD: u16 = nr::sched_yield as u16;

/// Give the others a chance, at a place that every replica comes to (a spinning thread).
pub fn yield_turn(b: Here) {
    if follows_yield(b) {
        return;
    }
    hand_over(b);
    log_yield(b);
}

/// Leader: let others run, and go on when the turn comes back. (A copy that is made of one that waits makes its call anew.)
fn hand_over(mut b: Here) {
    b.call_start = b.pos;
    b.repeatable = repeat::CALL;
    release_to_wait(b);
    acquire(b);
    b.repeatable = repeat::NOTHING;
}

/// Follower: the leader has yielded here. False: this one leads.
fn follows_yield(b: Here) -> bool {
    while !leads()
        && let Some(theirs) = crate::log::first(b)
    {
        if theirs == YIELDED {
            return true;
        }
        let at = b.pos - 1;
        diverged(why::KIND, at, plain(YIELDED));
    }
    false
}

/// Leader, about to make a call for which it keeps the turn, that is logged, and of which nothing is logged yet: it gives the
/// turn away first if others have waited for long. (Who does nothing but such calls would never. Not where replicas make calls
/// of their own: a follower does not come to each.)
pub fn gives_way(mut b: Here) {
    let has = b.has_turn.load(Ordering::SeqCst) != 0;
    if !active() || !has || !is_awaited() || have_own_programs() {
        return;
    }
    b.keeps = b.keeps.wrapping_add(1);
    if !b.keeps.is_multiple_of(ASKS_EVERY) || !has_kept(b, KEPT_NS) {
        return;
    }
    hand_over(b);
    // (Among kin it may have come back under the same number.)
    b.kept[0] = u64::MAX;
}

/// Before a call that each replica makes by itself, and of which nothing is logged: at every so many of them threads meet, so that the
/// leader can give its turn away.
pub fn passes(mut b: Here) {
    if !active() || have_own_programs() {
        return;
    }
    if b.unlogged + 1 < MEETS_EVERY {
        b.unlogged += 1;
        return;
    }
    if !follows_yield(b) {
        b.keeps = ASKS_EVERY - 1;
        gives_way(b);
        log_yield(b);
    }
    // (Not before: a copy that is made of one that waits here comes here anew.)
    b.unlogged = 0;
}

/// Leader: has it kept the turn for so long (nanoseconds) since another thread was first seen waiting for it?
pub fn has_kept(mut b: Here, limit: u64) -> bool {
    let turn = u64::from(number());
    let now = timer::now(timer::MONOTONIC);
    if b.kept[0] != turn {
        b.kept = [turn, now];
        return false;
    }
    now.saturating_sub(b.kept[1]) > limit
}

/// Leader: log a yield that is over.
pub fn log_yield(b: Here) {
    put(b, YIELDED);
    publish(b);
}
