//! Mutexes. One of an ordinary kind is taken in line when nobody has it, and carries its own
//! clock; a robust or priority-inheriting one holds thread ids, which the kernel would compare.

use super::ordered::{Clock, acquire, expect, hash16, hashed, log_tick, suspended, word_at};
use crate::annotation::is_relaxed;
use crate::clock::{advance, await_tick, tell};
use crate::state::{block, leads, private};
use crate::wait::{Patience, announce, announce_end, give_way, rest};
use core::sync::atomic::Ordering;
use geryon_abi::hooks as id;
use geryon_abi::layout::wait;
use geryon_abi::record::{kind, kind_of, low_of, word};
use geryon_abi::table::nr;

/// A lock that is not ordered.
#[cold]
#[inline(never)]
fn lock_relaxed(m: u64) -> i32 {
    let b = block();
    if take_plain(m) {
        return 0;
    }
    b.midway.store(u32::from(!leads()), Ordering::Release);
    let r = suspended(b, id::MUTEX_LOCK, m, 0, 0, 0);
    b.midway.store(0, Ordering::Release);
    r
}

/// The clock of a mutex: of an ordinary one, in a field that the holder alone writes.
#[inline(always)]
pub(super) fn mutex_clock(m: u64) -> Clock {
    const KIND: u64 = 16;
    const LIST: u64 = 24;
    const ROBUST_PI_PP: u32 = 16 | 32 | 64;
    if word_at(m + KIND).load(Ordering::Relaxed) & ROBUST_PI_PP == 0 {
        (word_at(m + LIST), None)
    } else {
        hashed(m)
    }
}

/// Follower: robust and priority-inheriting mutexes hold the leader's thread ids, which the
/// kernel would compare with ours: never let it. Wait for the owner here, and leave the mark of a
/// dead owner as the kernel would have.
pub(super) fn prepare_owned(m: u64, owner_died: bool) {
    const KIND: u64 = 16;
    const ROBUST_PI: u32 = 16 | 32;
    const TID: u32 = 0x3fff_ffff;
    const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
    if word_at(m + KIND).load(Ordering::Relaxed) & ROBUST_PI == 0 {
        return;
    }
    let lock = word_at(m);
    if owner_died {
        lock.store(FUTEX_OWNER_DIED, Ordering::SeqCst);
        return;
    }
    announce(wait::WORD, m, 0);
    let mut patience = Patience::new();
    loop {
        let owner = lock.load(Ordering::Acquire) & TID;
        if owner == 0 || owner == own_tid(private().tid_offset.get()) {
            break;
        }
        if patience.spend() {
            patience = Patience::new();
        }
    }
    announce_end();
}

/// An uncontended lock of an ordinary mutex, as glibc would take it.
#[inline(always)]
fn take_plain(m: u64) -> bool {
    const KIND: u64 = 16;
    let p = private();
    if word_at(m + KIND).load(Ordering::Relaxed) != 0 || p.tid_offset.get() == 0 {
        return false;
    }
    if word_at(m)
        .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        return false;
    }
    word_at(m + 8).store(own_tid(p.tid_offset.get()), Ordering::Relaxed);
    let users = word_at(m + 12);
    users.store(
        users.load(Ordering::Relaxed).wrapping_add(1),
        Ordering::Relaxed,
    );
    true
}

/// Leader: a contended lock of an ordinary mutex, before sleeping for it. Who has it may give it back within a moment. And one
/// that others take over and over is left to them for longer: that it goes from one thread to another one costs
/// each follower a wake-up and a switch, which takes as long as a hundred locks.
#[cold]
#[inline(never)]
fn take_patiently(m: u64) -> bool {
    const ROUNDS: u32 = 4;
    /// So often has a mutex been taken within the first round if others take it over and over.
    const HOT: u32 = 8;
    if word_at(m + 16).load(Ordering::Relaxed) != 0 {
        return false;
    }
    let clock = word_at(m + 24);
    let began = clock.load(Ordering::Relaxed);
    let mut is_hot = false;
    for round in 0..ROUNDS {
        if is_hot {
            give_way();
        } else {
            rest(20 << round);
            is_hot = round == 0 && clock.load(Ordering::Relaxed).wrapping_sub(began) >= HOT;
        }
        if !is_hot && take_plain(m) {
            return true;
        }
    }
    is_hot && take_plain(m)
}

#[inline(always)]
fn own_tid(offset: u64) -> u32 {
    let tid: u32;
    // SAFETY: reads the thread descriptor's id word, whose offset set_tid_address showed.
    unsafe {
        core::arch::asm!("mov {:e}, fs:[{}]", out(reg) tid, in(reg) offset, options(nostack, preserves_flags, readonly));
    }
    tid
}

pub(super) extern "C" fn mutex_lock(m: u64) -> i32 {
    let b = block();
    crate::shared::stand();
    if is_relaxed(m) {
        return lock_relaxed(m);
    }
    if !leads() && word_at(m + 16).load(Ordering::Relaxed) == 0 {
        while let Some(w) = expect(b, m, id::MUTEX_LOCK) {
            if kind_of(w) == kind::OUTCOME {
                return low_of(w) as i32;
            }
            let t = low_of(w);
            let clock = word_at(m + 24);
            if !await_tick(b, clock, t) {
                continue;
            }
            if take_plain(m) {
                // Whoever comes next can only wait for the mutex: it is woken when this thread unlocks it.
                clock.store(t.wrapping_add(1), Ordering::Release);
                return 0;
            }
            b.midway.store(1, Ordering::Release);
            suspended(b, id::MUTEX_LOCK, m, 0, 0, 0);
            advance(clock, t.wrapping_add(1));
            b.midway.store(0, Ordering::Release);
            return 0;
        }
    }
    if leads() && (take_plain(m) || take_patiently(m)) {
        let record = |t| word(kind::LOCK, id::MUTEX_LOCK as u8, hash16(m), t);
        log_tick(b, (word_at(m + 24), None), record, None);
        return 0;
    }
    acquire(id::MUTEX_LOCK, id::MUTEX_LOCK, m, mutex_clock(m), [0; 3])
}

pub(super) extern "C" fn mutex_trylock(m: u64) -> i32 {
    acquire(id::MUTEX_TRYLOCK, id::MUTEX_LOCK, m, mutex_clock(m), [0; 3])
}

pub(super) extern "C" fn mutex_timedlock(m: u64, t: u64) -> i32 {
    acquire(
        id::MUTEX_TIMEDLOCK,
        id::MUTEX_LOCK,
        m,
        mutex_clock(m),
        [t, 0, 0],
    )
}

pub(super) extern "C" fn mutex_clocklock(m: u64, c: u64, t: u64) -> i32 {
    acquire(
        id::MUTEX_CLOCKLOCK,
        id::MUTEX_LOCK,
        m,
        mutex_clock(m),
        [c, t, 0],
    )
}

pub(super) extern "C" fn mutex_unlock(m: u64) -> i32 {
    const KIND: u64 = 16;
    let b = block();
    if word_at(m + KIND).load(Ordering::Relaxed) == 0 {
        word_at(m + 8).store(0, Ordering::Relaxed);
        let users = word_at(m + 12);
        users.store(
            users.load(Ordering::Relaxed).wrapping_sub(1),
            Ordering::Relaxed,
        );
        // (Before: who gets it may be the last one to use it, and its memory is gone.)
        let clock = word_at(m + 24);
        let now = clock.load(Ordering::Relaxed);
        if word_at(m).swap(0, Ordering::Release) > 1 {
            wake_one(m);
        }
        if !leads() {
            tell(clock, now);
        }
        return 0;
    }
    suspended(b, id::MUTEX_UNLOCK, m, 0, 0, 0)
}

fn wake_one(address: u64) {
    const WAKE_PRIVATE: u64 = 129;
    crate::gate::real(nr::futex, [address, WAKE_PRIVATE, 1, 0, 0, 0]);
}
