//! A thread that makes an operation again and again which changes nothing waits for another one: it spins for a lock. Each is a
//! tick for which all followers wait, one after the other, and without a limit they are nearly all that is logged. So the leader
//! lets some time go by before it makes the same once more, as long as memory holds what it has found there: whoever looks at
//! that word later has seen no less.

use super::decode::{Descriptor, Saved};
use super::load::read;
use super::replay::changes_nothing;
use crate::state::Here;
use crate::wait::Patience;
use geryon_abi::layout::Vain;

/// Most turns of waiting. (A hundred microseconds, where every thread has a core.)
const MOST: u64 = 128;

/// The loop may be one that waits by this operation: wait until memory holds something else than when it was made in vain last, if
/// nothing else was logged since; but not for ever. So many turns are waited for before the next one.
pub(super) fn await_other(b: Here, s: &Saved, d: &Descriptor, at: u64, compares: bool) -> u64 {
    let last = &b.vain;
    let again = last.pos == b.pos && last.site == d.site && last.at == at;
    if !again || !changes_nothing(s, d, compares, last.value) {
        return 1;
    }
    let mut patience = Patience::new();
    for _ in 0..last.turns {
        if read(at, d.size) != Some(last.value) {
            break;
        }
        if patience.spend() {
            patience = Patience::new();
        }
    }
    MOST.min(last.turns + last.turns / 4 + 1)
}

/// It has been made, and has changed nothing.
pub(super) fn keep(mut b: Here, d: &Descriptor, at: u64, value: u64, turns: u64) {
    b.vain = Vain {
        pos: b.pos,
        site: d.site,
        at,
        value,
        turns,
    };
}
