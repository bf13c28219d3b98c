//! Rewritten function entries: the pthread functions that order threads. The leader calls the
//! original and logs its outcome with the clock's tick; a follower waits for that tick.
//!
//! A mutex of an ordinary kind carries its own clock in the field that glibc uses only for
//! robust and priority-inheriting mutexes (design, section 4), an rwlock in its padding; the
//! rest hash into the wall of clocks.
//!
//! These functions run on the user's stack. While one calls its original, the thread is
//! *suspended*: atomics inside are not recorded, nested hooks go straight to their originals.

use crate::clock::{LIFE, advance, await_tick, of_address};
use crate::gate::on_user_stack;
use crate::log::{get, peek, publish, put, remember, verified};
use crate::raise;
use crate::state::{Here, block, leads, private};
use crate::stop::diverged;
use crate::thread::await_exits;
use crate::wait::{Patience, announce, announce_end, wake_at};
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::hooks as id;
use geryon_abi::layout::{ERRNO_LOCATION, wait, why};
use geryon_abi::record::{detail_of, kind, kind_of, low_of, short_of, word};

const EOWNERDEAD: i32 = 130;
const EINTR: i32 = 4;
/// Bit of a LOCK record's detail: the call returned EOWNERDEAD.
const OWNER_DIED: u8 = 0x80;

/// Call the original of a hooked function, on the user's stack.
#[inline(always)]
fn original(hook: u16, a: u64, c: u64, d: u64, e: u64) -> i32 {
    // SAFETY: the monitor stored the address of the relocated original before it wrote the
    // jump that leads here; C functions of fewer arguments ignore the rest.
    unsafe { on_user_stack(private().orig[hook as usize], [a, c, d, e]) as i32 }
}

/// Call the original while the thread is suspended.
#[inline(always)]
fn suspended(mut b: Here, hook: u16, a: u64, c: u64, d: u64, e: u64) -> i32 {
    b.suspend += 1;
    b.ordered = 0;
    let r = original(hook, a, c, d, e);
    b.suspend -= 1;
    if b.suspend == 0 {
        b.ordered = 1;
    }
    r
}

/// A signal handler that interrupted a hooked function returns: be suspended again.
pub fn resume_interrupted(rsp: u64) {
    const UC_RSP: u64 = 160;
    let mut b = block();
    if b.interrupted_rsp != 0 {
        // SAFETY: the kernel's signal frame lies at rsp; a bad one is fatal at sigreturn anyway.
        let to = unsafe { ((rsp + UC_RSP) as *const u64).read_unaligned() };
        if to == b.interrupted_rsp {
            b.interrupted_rsp = 0;
            b.suspend = b.interrupted_suspend;
            b.ordered = 0;
        }
    }
}

#[inline(always)]
fn hash16(address: u64) -> u16 {
    ((address >> 3) ^ (address >> 19)) as u16
}

/// Where an object's clock is.
#[inline(always)]
fn word_at(address: u64) -> &'static AtomicU32 {
    // SAFETY: a field of a live, aligned object that the program passed to a pthread function.
    unsafe { &*(address as *const AtomicU32) }
}

/// The clock of a mutex, and whether the holder alone advances it.
#[inline(always)]
fn mutex_clock(m: u64) -> (&'static AtomicU32, bool) {
    const KIND: u64 = 16;
    const LIST: u64 = 24;
    const ROBUST_PI_PP: u32 = 16 | 32 | 64;
    if word_at(m + KIND).load(Ordering::Relaxed) & ROBUST_PI_PP == 0 {
        (word_at(m + LIST), true)
    } else {
        (&of_address(m).clock, false)
    }
}

/// Leader: read the clock and advance it.
#[inline(always)]
fn tick(clock: &AtomicU32, alone: bool) -> u32 {
    if alone {
        let t = clock.load(Ordering::Relaxed);
        clock.store(t.wrapping_add(1), Ordering::Relaxed);
        t
    } else {
        clock.fetch_add(1, Ordering::AcqRel)
    }
}

#[inline(always)]
fn log_word(b: Here, w: u64) {
    put(b, w);
    remember(b, w);
    publish(b);
}

/// Follower: the next record of a hooked function; signals that come first run here.
#[inline(always)]
fn next(b: Here) -> u64 {
    loop {
        let w = get(b);
        if kind_of(w) != kind::SIGNAL {
            remember(b, w);
            return w;
        }
        raise::follow_signal_here(b, w);
    }
}

fn expect(b: Here, w: u64, object: u64, hook: u16) {
    let k = kind_of(w);
    if k != kind::LOCK && k != kind::OUTCOME {
        diverged(
            why::KIND,
            b.pos - 1,
            [
                word(kind::LOCK, hook as u8, hash16(object), 0),
                object,
                0,
                0,
                0,
                0,
                0,
                0,
            ],
        );
    }
    if short_of(w) != hash16(object) || detail_of(w) & !OWNER_DIED != hook as u8 {
        diverged(
            why::SITE,
            b.pos - 1,
            [
                word(kind::LOCK, hook as u8, hash16(object), 0),
                object,
                0,
                0,
                0,
                0,
                0,
                0,
            ],
        );
    }
    verified(b);
}

/// An operation that acquires, fails or times out.
#[inline(always)]
fn acquire(hook: u16, sure: u16, object: u64, clock: (&AtomicU32, bool), a: [u64; 3]) -> i32 {
    let b = block();
    if leads() {
        let r = suspended(b, hook, object, a[0], a[1], a[2]);
        if r == 0 || r == EOWNERDEAD {
            let t = tick(clock.0, clock.1);
            let died = if r == 0 { 0 } else { OWNER_DIED };
            log_word(b, word(kind::LOCK, hook as u8 | died, hash16(object), t));
        } else {
            log_word(b, word(kind::OUTCOME, hook as u8, hash16(object), r as u32));
        }
        r
    } else {
        let w = next(b);
        expect(b, w, object, hook);
        if kind_of(w) == kind::OUTCOME {
            return low_of(w) as i32;
        }
        let t = low_of(w);
        await_tick(clock.0, t);
        if sure == id::MUTEX_LOCK {
            prepare_owned(object, detail_of(w) & OWNER_DIED != 0);
        }
        let r = suspended(b, sure, object, 0, 0, 0);
        advance(clock.0, t.wrapping_add(1));
        r
    }
}

/// Follower: robust and priority-inheriting mutexes hold the leader's thread ids, which the
/// kernel would compare with ours: never let it. Wait for the owner here, and leave the mark of a
/// dead owner as the kernel would have.
fn prepare_owned(m: u64, owner_died: bool) {
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
    announce(wait::VALUE, m, 0);
    let mut patience = Patience::new();
    loop {
        let owner = lock.load(Ordering::Acquire) & TID;
        if owner == 0 || owner == own_tid(private().tid_offset) {
            break;
        }
        if patience.spend() {
            patience = Patience::new();
        }
    }
    announce_end();
}

/// The same for functions that return -1 and set errno.
fn acquire_errno(hook: u16, sure: u16, object: u64, a: [u64; 3]) -> i32 {
    let b = block();
    let clock = &of_address(object).clock;
    if leads() {
        let r = suspended(b, hook, object, a[0], a[1], a[2]);
        if r == 0 {
            let t = tick(clock, false);
            log_word(b, word(kind::LOCK, hook as u8, hash16(object), t));
        } else {
            let e = errno().map_or(EINTR, |p| p.load(Ordering::Relaxed) as i32);
            log_word(b, word(kind::OUTCOME, hook as u8, hash16(object), e as u32));
        }
        r
    } else {
        let w = next(b);
        expect(b, w, object, hook);
        if kind_of(w) == kind::OUTCOME {
            if let Some(p) = errno() {
                p.store(low_of(w), Ordering::Relaxed);
            }
            return -1;
        }
        let t = low_of(w);
        await_tick(clock, t);
        while suspended(b, sure, object, 0, 0, 0) != 0 {}
        advance(clock, t.wrapping_add(1));
        0
    }
}

fn errno() -> Option<&'static AtomicU32> {
    let f = private().orig[ERRNO_LOCATION];
    if f == 0 {
        return None;
    }
    // SAFETY: the address of libc's __errno_location, found by the monitor.
    let at = unsafe { on_user_stack(f, [0; 4]) };
    Some(word_at(at as u64))
}

// ---- mutexes --------------------------------------------------------------------------------

/// An uncontended lock of an ordinary mutex, as glibc would take it.
#[inline(always)]
fn take_plain(m: u64) -> bool {
    const KIND: u64 = 16;
    let p = private();
    if word_at(m + KIND).load(Ordering::Relaxed) != 0 || p.tid_offset == 0 {
        return false;
    }
    if word_at(m)
        .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        return false;
    }
    word_at(m + 8).store(own_tid(p.tid_offset), Ordering::Relaxed);
    let users = word_at(m + 12);
    users.store(
        users.load(Ordering::Relaxed).wrapping_add(1),
        Ordering::Relaxed,
    );
    true
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

extern "C" fn mutex_lock(m: u64) -> i32 {
    let b = block();
    if leads() {
        if take_plain(m) {
            let t = tick(word_at(m + 24), true);
            log_word(b, word(kind::LOCK, id::MUTEX_LOCK as u8, hash16(m), t));
            return 0;
        }
    } else if word_at(m + 16).load(Ordering::Relaxed) == 0 {
        let w = next(b);
        expect(b, w, m, id::MUTEX_LOCK);
        if kind_of(w) == kind::OUTCOME {
            return low_of(w) as i32;
        }
        let t = low_of(w);
        let clock = word_at(m + 24);
        await_tick(clock, t);
        if !take_plain(m) {
            suspended(b, id::MUTEX_LOCK, m, 0, 0, 0);
        }
        advance(clock, t.wrapping_add(1));
        return 0;
    }
    acquire(id::MUTEX_LOCK, id::MUTEX_LOCK, m, mutex_clock(m), [0; 3])
}

extern "C" fn mutex_trylock(m: u64) -> i32 {
    acquire(id::MUTEX_TRYLOCK, id::MUTEX_LOCK, m, mutex_clock(m), [0; 3])
}

extern "C" fn mutex_timedlock(m: u64, t: u64) -> i32 {
    acquire(
        id::MUTEX_TIMEDLOCK,
        id::MUTEX_LOCK,
        m,
        mutex_clock(m),
        [t, 0, 0],
    )
}

extern "C" fn mutex_clocklock(m: u64, c: u64, t: u64) -> i32 {
    acquire(
        id::MUTEX_CLOCKLOCK,
        id::MUTEX_LOCK,
        m,
        mutex_clock(m),
        [c, t, 0],
    )
}

extern "C" fn mutex_unlock(m: u64) -> i32 {
    const KIND: u64 = 16;
    let b = block();
    if word_at(m + KIND).load(Ordering::Relaxed) == 0 {
        word_at(m + 8).store(0, Ordering::Relaxed);
        let users = word_at(m + 12);
        users.store(
            users.load(Ordering::Relaxed).wrapping_sub(1),
            Ordering::Relaxed,
        );
        if word_at(m).swap(0, Ordering::Release) > 1 {
            wake_one(m);
        }
        return 0;
    }
    suspended(b, id::MUTEX_UNLOCK, m, 0, 0, 0)
}

fn wake_one(address: u64) {
    const NR_FUTEX: u64 = 202;
    const WAKE_PRIVATE: u64 = 129;
    crate::gate::real(NR_FUTEX, [address, WAKE_PRIVATE, 1, 0, 0, 0]);
}

// ---- condition variables ----------------------------------------------------------------------

fn cond(hook: u16, c: u64, m: u64, a: [u64; 2]) -> i32 {
    let b = block();
    let clock = mutex_clock(m);
    if leads() {
        let r = suspended(b, hook, c, m, a[0], a[1]);
        let t = tick(clock.0, clock.1);
        let w = word(kind::LOCK, hook as u8, hash16(m), t);
        put(b, w);
        put(b, r as u32 as u64);
        remember(b, w);
        publish(b);
        r
    } else {
        suspended(b, id::MUTEX_UNLOCK, m, 0, 0, 0);
        let w = next(b);
        expect(b, w, m, hook);
        let r = get(b) as u32 as i32;
        let t = low_of(w);
        await_tick(clock.0, t);
        suspended(b, id::MUTEX_LOCK, m, 0, 0, 0);
        advance(clock.0, t.wrapping_add(1));
        r
    }
}

extern "C" fn cond_wait(c: u64, m: u64) -> i32 {
    cond(id::COND_WAIT, c, m, [0, 0])
}

extern "C" fn cond_timedwait(c: u64, m: u64, t: u64) -> i32 {
    cond(id::COND_TIMEDWAIT, c, m, [t, 0])
}

extern "C" fn cond_clockwait(c: u64, m: u64, clock: u64, t: u64) -> i32 {
    cond(id::COND_CLOCKWAIT, c, m, [clock, t])
}

/// Nobody waits on a follower's condition variable: nothing to signal there.
fn signal(hook: u16, c: u64) -> i32 {
    let b = block();
    if leads() {
        suspended(b, hook, c, 0, 0, 0)
    } else {
        0
    }
}

extern "C" fn cond_signal(c: u64) -> i32 {
    signal(id::COND_SIGNAL, c)
}

extern "C" fn cond_broadcast(c: u64) -> i32 {
    signal(id::COND_BROADCAST, c)
}

extern "C" fn cond_destroy(c: u64) -> i32 {
    signal(id::COND_DESTROY, c)
}

// ---- read-write locks --------------------------------------------------------------------------

#[inline(always)]
fn rw_clock(l: u64) -> (&'static AtomicU32, bool) {
    const PAD3: u64 = 16;
    (word_at(l + PAD3), false)
}

macro_rules! rwlock {
    ($($f:ident = $hook:ident, $sure:ident;)*) => {$(
        extern "C" fn $f(l: u64, a: u64, c: u64) -> i32 {
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

/// A time long past, for the functions below.
static PAST: [u64; 2] = [0, 0];

/// Replaced, not wrapped: glibc's loops back into its first bytes, which leaves no room for a jump.
/// A timed lock whose time is over does the same.
extern "C" fn rw_tryrdlock(l: u64) -> i32 {
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
    if leads() {
        let r = suspended(b, id::RW_TIMEDRDLOCK, l, past, 0, 0);
        if r == 0 {
            let t = tick(rw_clock(l).0, false);
            log_word(b, word(kind::LOCK, id::RW_TRYRDLOCK as u8, hash16(l), t));
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
        return EBUSY;
    }
    acquire(id::RW_TRYRDLOCK, id::RW_RDLOCK, l, rw_clock(l), [0; 3])
}

/// Replaced for the same reason.
extern "C" fn sem_trywait(s: u64) -> i32 {
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
    if !leads() {
        return acquire_errno(id::SEM_TRYWAIT, id::SEM_WAIT, s, [0; 3]);
    }
    let clock = &of_address(s).clock;
    let r = suspended(b, id::SEM_TIMEDWAIT, s, past, 0, 0);
    if r == 0 {
        let t = tick(clock, false);
        log_word(b, word(kind::LOCK, id::SEM_TRYWAIT as u8, hash16(s), t));
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

extern "C" fn rw_unlock(l: u64) -> i32 {
    let b = block();
    suspended(b, id::RW_UNLOCK, l, 0, 0, 0)
}

// ---- semaphores ----------------------------------------------------------------------------------

macro_rules! semaphore {
    ($($f:ident = $hook:ident;)*) => {$(
        extern "C" fn $f(s: u64, a: u64, c: u64) -> i32 {
            acquire_errno(id::$hook, id::SEM_WAIT, s, [a, c, 0])
        }
    )*};
}

semaphore! {
    sem_wait = SEM_WAIT;
    sem_timedwait = SEM_TIMEDWAIT;
    sem_clockwait = SEM_CLOCKWAIT;
}

extern "C" fn sem_post(s: u64) -> i32 {
    let b = block();
    suspended(b, id::SEM_POST, s, 0, 0, 0)
}

extern "C" fn sem_getvalue(s: u64, to: u64) -> i32 {
    let b = block();
    if leads() {
        let r = suspended(b, id::SEM_GETVALUE, s, to, 0, 0);
        let v = word_at(to).load(Ordering::Relaxed);
        log_word(b, word(kind::OUTCOME, id::SEM_GETVALUE as u8, hash16(s), v));
        r
    } else {
        let w = next(b);
        expect(b, w, s, id::SEM_GETVALUE);
        word_at(to).store(low_of(w), Ordering::Relaxed);
        0
    }
}

// ---- barriers, spin locks, once --------------------------------------------------------------------

extern "C" fn barrier_wait(l: u64) -> i32 {
    let b = block();
    let r = suspended(b, id::BARRIER_WAIT, l, 0, 0, 0);
    if leads() {
        log_word(
            b,
            word(kind::OUTCOME, id::BARRIER_WAIT as u8, hash16(l), r as u32),
        );
        r
    } else {
        let w = next(b);
        expect(b, w, l, id::BARRIER_WAIT);
        low_of(w) as i32
    }
}

extern "C" fn barrier_destroy(l: u64) -> i32 {
    let b = block();
    suspended(b, id::BARRIER_DESTROY, l, 0, 0, 0)
}

extern "C" fn spin_lock(l: u64) -> i32 {
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
    acquire(
        id::SPIN_LOCK,
        id::SPIN_LOCK,
        l,
        (&of_address(l).clock, false),
        [0; 3],
    )
}

extern "C" fn spin_trylock(l: u64) -> i32 {
    acquire(
        id::SPIN_TRYLOCK,
        id::SPIN_LOCK,
        l,
        (&of_address(l).clock, false),
        [0; 3],
    )
}

/// Who runs the initialiser is logged for each call; the others wait until it has run.
/// (An exception that leaves the initialiser is not supported: it cannot pass this frame.)
extern "C" fn once(control: u64, run: u64) -> i32 {
    const RUNNING: u32 = 1;
    const DONE: u32 = 2;
    let b = block();
    let c = word_at(control);
    let runner = if leads() {
        let mut mine = false;
        let mut patience = Patience::new();
        while c.load(Ordering::Acquire) & DONE == 0 {
            if c.compare_exchange(0, RUNNING, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                mine = true;
                break;
            }
            if patience.spend() {
                patience = Patience::new();
            }
        }
        log_word(
            b,
            word(kind::OUTCOME, id::ONCE as u8, hash16(control), mine as u32),
        );
        mine
    } else {
        let w = next(b);
        expect(b, w, control, id::ONCE);
        let mine = low_of(w) == 1;
        let mut patience = Patience::new();
        announce(wait::VALUE, control, DONE as u64);
        while !mine && c.load(Ordering::Acquire) & DONE == 0 {
            if patience.spend() {
                patience = Patience::new();
            }
        }
        announce_end();
        mine
    };
    if runner {
        c.store(RUNNING, Ordering::Relaxed);
        // SAFETY: the program's own initialiser.
        unsafe { on_user_stack(run, [0; 4]) };
        c.store(DONE, Ordering::Release);
        wake_at(control, false);
    }
    0
}

// ---- threads -----------------------------------------------------------------------------------------

/// Not suspended: the allocations inside are ordered like any other.
extern "C" fn create(thread: u64, attr: u64, start: u64, arg: u64) -> i32 {
    let b = block();
    if leads() {
        let t = LIFE.enter(b.this);
        await_exits();
        LIFE.tick();
        log_word(b, word(kind::CREATE, 0, 0, t));
        let r = original(id::CREATE, thread, attr, start, arg);
        LIFE.leave();
        r
    } else {
        let w = next(b);
        if kind_of(w) != kind::CREATE {
            diverged(
                why::KIND,
                b.pos - 1,
                [word(kind::CREATE, 0, 0, 0), thread, 0, 0, 0, 0, 0, 0],
            );
        }
        let t = low_of(w);
        LIFE.await_turn(t);
        await_exits();
        LIFE.turn_done(t);
        original(id::CREATE, thread, attr, start, arg)
    }
}

fn join(hook: u16, thread: u64, value: u64, a: [u64; 2]) -> i32 {
    let b = block();
    if leads() {
        let r = original(hook, thread, value, a[0], a[1]);
        log_word(b, word(kind::OUTCOME, hook as u8, hash16(thread), r as u32));
        return r;
    }
    let w = peek(b);
    if kind_of(w) != kind::OUTCOME || low_of(w) == 0 {
        // The leader's call succeeded; its atomics come first in the log. Wait as long as it takes.
        original(id::CLOCKJOIN, thread, value, 0, 0);
    }
    let w = next(b);
    expect(b, w, thread, hook);
    low_of(w) as i32
}

extern "C" fn tryjoin(thread: u64, value: u64) -> i32 {
    join(id::TRYJOIN, thread, value, [0, 0])
}

extern "C" fn timedjoin(thread: u64, value: u64, t: u64) -> i32 {
    join(id::TIMEDJOIN, thread, value, [t, 0])
}

extern "C" fn clockjoin(thread: u64, value: u64, clock: u64, t: u64) -> i32 {
    join(id::CLOCKJOIN, thread, value, [clock, t])
}

/// One entry of the table of hooks.
#[repr(transparent)]
pub struct Address(*const ());

// SAFETY: addresses of functions, never written.
unsafe impl Sync for Address {}

/// The hooks by id, called by `geryon_hook`.
#[unsafe(no_mangle)]
#[used]
pub static GERYON_HOOKS_INNER: [Address; 35] = [
    Address(mutex_lock as *const ()),
    Address(mutex_trylock as *const ()),
    Address(mutex_timedlock as *const ()),
    Address(mutex_clocklock as *const ()),
    Address(mutex_unlock as *const ()),
    Address(cond_wait as *const ()),
    Address(cond_timedwait as *const ()),
    Address(cond_clockwait as *const ()),
    Address(cond_signal as *const ()),
    Address(cond_broadcast as *const ()),
    Address(rw_rdlock as *const ()),
    Address(rw_wrlock as *const ()),
    Address(rw_tryrdlock as *const ()),
    Address(rw_trywrlock as *const ()),
    Address(rw_timedrdlock as *const ()),
    Address(rw_timedwrlock as *const ()),
    Address(rw_clockrdlock as *const ()),
    Address(rw_clockwrlock as *const ()),
    Address(rw_unlock as *const ()),
    Address(sem_wait as *const ()),
    Address(sem_trywait as *const ()),
    Address(sem_timedwait as *const ()),
    Address(sem_clockwait as *const ()),
    Address(sem_post as *const ()),
    Address(sem_getvalue as *const ()),
    Address(barrier_wait as *const ()),
    Address(spin_lock as *const ()),
    Address(spin_trylock as *const ()),
    Address(once as *const ()),
    Address(create as *const ()),
    Address(tryjoin as *const ()),
    Address(timedjoin as *const ()),
    Address(clockjoin as *const ()),
    Address(cond_destroy as *const ()),
    Address(barrier_destroy as *const ()),
];

macro_rules! stubs {
    ($($id:literal $entry:literal)*) => {
        core::arch::global_asm!(
            ".balign 16",
            ".globl GERYON_HOOK_STUBS",
            "GERYON_HOOK_STUBS:",
            $(concat!(".balign 16\nmov eax, ", $id, "\njmp ", $entry),)*
        );
        const STUBS: usize = [$($id),*].len();
        const _: () = assert!(STUBS == geryon_abi::hooks::HOOKS.len());
    };
}

// Where the rewritten entries jump to: 16 bytes for each hook, in order of their ids. Those of
// `REPLACED` (12, 20) have no original to go to when there is nothing to order, and a spin lock (26)
// must not spin where one thread runs at a time.
stubs!(
    0 "geryon_hook" 1 "geryon_hook" 2 "geryon_hook" 3 "geryon_hook" 4 "geryon_hook"
    5 "geryon_hook" 6 "geryon_hook" 7 "geryon_hook" 8 "geryon_hook" 9 "geryon_hook"
    10 "geryon_hook" 11 "geryon_hook" 12 "geryon_hook_always" 13 "geryon_hook" 14 "geryon_hook"
    15 "geryon_hook" 16 "geryon_hook" 17 "geryon_hook" 18 "geryon_hook" 19 "geryon_hook"
    20 "geryon_hook_always" 21 "geryon_hook" 22 "geryon_hook" 23 "geryon_hook" 24 "geryon_hook"
    25 "geryon_hook" 26 "geryon_hook_always" 27 "geryon_hook" 28 "geryon_hook" 29 "geryon_hook"
    30 "geryon_hook" 31 "geryon_hook" 32 "geryon_hook" 33 "geryon_hook" 34 "geryon_hook"
);
