//! Calls that only look, of replicas that run different programs: see `log/passed.rs`.

use crate::gate::real;
use crate::state::{Here, have_own_programs, private};
use geryon_abi::row::{Property, Row};
use geryon_abi::table::nr;

const GETPID: u16 = nr::getpid as u16;
const GETTID: u16 = nr::gettid as u16;

/// Is the turn kept for this call? (Who does not ask for it would not know of another turn.)
#[inline(always)]
pub fn keeps_turn(row: &Row) -> bool {
    have_own_programs() && row.is(Property::Unordered)
}

/// Follower: what it answers its program where the leader has not asked for that.
pub fn answer(b: Here, nr: u16, args: [u64; 6]) -> u64 {
    match nr {
        GETPID => private().shown_pid.get().into(),
        GETTID => b.shown_tid.into(),
        _ => real(nr.into(), args) as u64,
    }
}
