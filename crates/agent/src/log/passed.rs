//! Replicas of different programs (`--variant`) agree on what they do to the world, not on all that they ask it: what
//! only looks (the time, random numbers, what a file is) one of them may ask more often, less often, or in another order.
//! A follower that asks takes the leader's answer if that has asked the same between the same two other calls, and else
//! asks the kernel itself; what it does not ask it passes over. (Source: seed 1, section 2: relaxed monitoring.)
//!
//! So the log says of such a record how long it is, and where the leader's thread comes to a call in which it gives its turn
//! away: a follower's thread that waits for the leader's answer stands there only when it has come to that call, too.

use super::{acknowledge, get, is_there, peek, publish, put, take, verified, view};
use crate::event::plain;
use crate::state::{Here, have_own_programs, private};
use geryon_abi::layout::why;
use geryon_abi::record::{BEGIN_WORDS, detail_of, kind, kind_of, low_of, short_of, word};
use geryon_abi::row::Property;
use geryon_abi::table;

/// Words of a record of an instruction's value.
const VALUE_WORDS: u64 = 2;
/// In whose first word this stands in a call's number's place.
const NO_CALL: u16 = 0xffff;
/// The leader's thread has come to a call in which others may run.
const BEGINS: u64 = word(kind::VALUE, 14, NO_CALL, 0);
/// The largest detail of an instruction's value.
const LAST_VALUE: u8 = 3;
/// Detail of the record of a call's beginning: followers do not make this call, and pass it over to its end.
pub const ALONE: u8 = 1;
/// Block::asks: for nothing.
const NOTHING: u64 = 0;

/// How long such a record is; 0: it is of something else.
fn words_of(first: u64) -> u64 {
    match kind_of(first) {
        kind::CALL if table::is(short_of(first).into(), Property::Unordered) => {
            low_of(first).into()
        }
        kind::VALUE if short_of(first) == NO_CALL && detail_of(first) <= LAST_VALUE => VALUE_WORDS,
        _ => 0,
    }
}

/// Leader, about to make a call and to give its turn away meanwhile.
#[inline(always)]
pub fn begins(b: Here) {
    if have_own_programs() && private().replicas > 1 {
        put(b, BEGINS);
        publish(b);
    }
}

/// Follower: it has taken the first word of a record. Is that one that nobody here has asked for? It is passed over.
#[inline(always)]
pub fn passes_over(b: Here, first: u64) -> bool {
    have_own_programs() && is_passed_over(b, first)
}

fn is_passed_over(mut b: Here, first: u64) -> bool {
    if first == BEGINS {
        return true;
    }
    if b.asks == b.pos {
        b.asks = NOTHING;
        return false;
    }
    let begins_alone = kind_of(first) == kind::BEGIN && detail_of(first) == ALONE;
    let words = match kind_of(first) {
        kind::BEGIN if begins_alone => BEGIN_WORDS,
        kind::END if b.passes_over != 0 => low_of(first).into(),
        _ => words_of(first),
    };
    if words == 0 {
        return false;
    }
    b.passes_over = u32::from(begins_alone);
    take(b, words - 1);
    verified(b);
    if begins_alone {
        acknowledge(b);
    }
    true
}

/// Follower, about to ask for what such a record holds, whose words behind the first `is_same` knows: the next record
/// that [`first`](super::first) has is it. False: the leader has not asked for that here. None: this replica leads by now.
pub fn find(mut b: Here, first: u64, second: Option<u64>) -> Option<bool> {
    const KIND_AND_NUMBER: u64 = word(0xff, 0, 0xffff, 0);
    let mut ahead = 0;
    loop {
        if ahead != 0 && !is_there(b, ahead) {
            // It is to stand where the leader's thread may have given its turn away.
            take(b, ahead);
            verified(b);
            ahead = 0;
        }
        if ahead == 0 {
            let next = peek(b)?;
            if matches!(kind_of(next), kind::TURN | kind::KIN) {
                let next = get(b);
                match kind_of(next) {
                    kind::TURN => crate::serial::take(b, next),
                    _ => crate::serial::kin::take(b, next, false),
                };
                continue;
            }
            if crate::serial::active() && !crate::serial::runs(b) {
                crate::diverge::diverged(why::KIND, b.pos, plain(word(kind::TURN, 0, 0, 0)));
                continue;
            }
        }
        let next = view(b, ahead);
        if matches!(kind_of(next), kind::TURN | kind::KIN) {
            take(b, ahead);
            verified(b);
            ahead = 0;
            continue;
        }
        let words = words_of(next);
        if words == 0 {
            return Some(false);
        }
        let is_same = (next ^ first) & KIND_AND_NUMBER == 0
            && second.is_none_or(|second| view(b, ahead + 1) == second);
        if is_same {
            take(b, ahead);
            verified(b);
            b.asks = b.pos + 1;
            return Some(true);
        }
        ahead += words;
    }
}
