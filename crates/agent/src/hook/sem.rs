//! Semaphores: taking is ordered by a hashed clock, posting is not recorded.

use super::PAST;
use super::ordered::{
    acquire_errno, errno, expect, follow_errno, hash16, hashed, log_tick, log_word, original,
    suspended, word_at,
};
use crate::state::{block, leads};
use core::sync::atomic::Ordering;
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, low_of, word};

macro_rules! semaphore {
    ($($f:ident = $hook:ident;)*) => {$(
        pub(super) extern "C" fn $f(s: u64, a: u64, c: u64) -> i32 {
            acquire_errno(id::$hook, id::SEM_WAIT, s, [a, c, 0])
        }
    )*};
}

semaphore! {
    sem_wait = SEM_WAIT;
    sem_timedwait = SEM_TIMEDWAIT;
    sem_clockwait = SEM_CLOCKWAIT;
}

pub(super) extern "C" fn sem_post(s: u64) -> i32 {
    let b = block();
    suspended(b, id::SEM_POST, s, 0, 0, 0)
}

pub(super) extern "C" fn sem_getvalue(s: u64, to: u64) -> i32 {
    let b = block();
    if !leads()
        && let Some(w) = expect(b, s, id::SEM_GETVALUE)
    {
        word_at(to).store(low_of(w), Ordering::Relaxed);
        return 0;
    }
    let r = suspended(b, id::SEM_GETVALUE, s, to, 0, 0);
    let v = word_at(to).load(Ordering::Relaxed);
    log_word(b, word(kind::OUTCOME, id::SEM_GETVALUE as u8, hash16(s), v));
    r
}

/// Replaced, not wrapped, like `rw_tryrdlock`.
pub(super) extern "C" fn sem_trywait(s: u64) -> i32 {
    const EAGAIN: u32 = 11;
    let past = PAST.as_ptr() as u64;
    let b = block();
    let attempt = || {
        let r = original(id::SEM_TIMEDWAIT, s, past, 0, 0);
        if r != 0
            && let Some(p) = errno()
        {
            p.store(EAGAIN, Ordering::Relaxed);
        }
        r
    };
    if b.ordered == 0 {
        return attempt();
    }
    if !leads()
        && let Some(r) = follow_errno(b, id::SEM_TRYWAIT, id::SEM_WAIT, s)
    {
        return r;
    }
    let r = suspended(b, id::SEM_TIMEDWAIT, s, past, 0, 0);
    if r == 0 {
        let record = |t| word(kind::LOCK, id::SEM_TRYWAIT as u8, hash16(s), t);
        log_tick(b, hashed(s), record, None);
        return 0;
    }
    if let Some(p) = errno() {
        p.store(EAGAIN, Ordering::Relaxed);
    }
    log_word(
        b,
        word(kind::OUTCOME, id::SEM_TRYWAIT as u8, hash16(s), EAGAIN),
    );
    r
}
