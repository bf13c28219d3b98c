//! Spin locks: ordered like mutexes, by a hashed clock, and never spun on in serial order.

use super::ordered::{acquire, hashed, original};
use crate::state::block;
use geryon_abi::hooks as id;

pub(super) extern "C" fn spin_lock(l: u64) -> i32 {
    let b = block();
    if b.ordered == 0 {
        if !crate::serial::active() {
            return original(id::SPIN_LOCK, l, 0, 0, 0);
        }
        // Whoever has the lock needs the turn to give it back.
        while original(id::SPIN_TRYLOCK, l, 0, 0, 0) != 0 {
            crate::serial::yield_turn(b);
        }
        return 0;
    }
    acquire(id::SPIN_LOCK, id::SPIN_LOCK, l, hashed(l), [0; 3])
}

pub(super) extern "C" fn spin_trylock(l: u64) -> i32 {
    acquire(id::SPIN_TRYLOCK, id::SPIN_LOCK, l, hashed(l), [0; 3])
}
