//! Read-write locks: readers are ordered like writers, by a clock in the lock's padding.

use super::PAST;
use super::ordered::{
    Clock, acquire, follow, hash16, log_tick, log_word, original, suspended, word_at,
};
use crate::clock::of_address;
use crate::state::{block, leads};
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, word};

#[inline(always)]
fn rw_clock(l: u64) -> Clock {
    const PAD3: u64 = 16;
    (word_at(l + PAD3), Some(of_address(l)))
}

macro_rules! rwlock {
    ($($f:ident = $hook:ident, $sure:ident;)*) => {$(
        pub(super) extern "C" fn $f(l: u64, a: u64, c: u64) -> i32 {
            acquire(id::$hook, id::$sure, l, rw_clock(l), [a, c, 0])
        }
    )*};
}

rwlock! {
    rw_rdlock = RW_RDLOCK, RW_RDLOCK;
    rw_wrlock = RW_WRLOCK, RW_WRLOCK;
    rw_trywrlock = RW_TRYWRLOCK, RW_WRLOCK;
    rw_timedrdlock = RW_TIMEDRDLOCK, RW_RDLOCK;
    rw_timedwrlock = RW_TIMEDWRLOCK, RW_WRLOCK;
    rw_clockrdlock = RW_CLOCKRDLOCK, RW_RDLOCK;
    rw_clockwrlock = RW_CLOCKWRLOCK, RW_WRLOCK;
}

/// Replaced, not wrapped: glibc's loops back into its first bytes, which leaves no room for a jump.
/// A timed lock whose time is over does the same.
pub(super) extern "C" fn rw_tryrdlock(l: u64) -> i32 {
    const EBUSY: i32 = 16;
    let past = PAST.as_ptr() as u64;
    let b = block();
    if b.ordered == 0 {
        return if original(id::RW_TIMEDRDLOCK, l, past, 0, 0) == 0 {
            0
        } else {
            EBUSY
        };
    }
    let clock = rw_clock(l);
    if !leads()
        && let Some(r) = follow(b, id::RW_TRYRDLOCK, id::RW_RDLOCK, l, clock.0)
    {
        return r;
    }
    if suspended(b, id::RW_TIMEDRDLOCK, l, past, 0, 0) == 0 {
        let record = |t| word(kind::LOCK, id::RW_TRYRDLOCK as u8, hash16(l), t);
        log_tick(b, clock, record, None);
        return 0;
    }
    log_word(
        b,
        word(
            kind::OUTCOME,
            id::RW_TRYRDLOCK as u8,
            hash16(l),
            EBUSY as u32,
        ),
    );
    EBUSY
}

pub(super) extern "C" fn rw_unlock(l: u64) -> i32 {
    let b = block();
    suspended(b, id::RW_UNLOCK, l, 0, 0, 0)
}
