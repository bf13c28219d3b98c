//! Rewritten function entries: the pthread functions that order threads. The leader calls the
//! original and logs its outcome with the clock's tick; a follower waits for that tick.
//!
//! A mutex of an ordinary kind carries its own clock in the field that glibc uses only for
//! robust and priority-inheriting mutexes (design, section 4), an rwlock in its padding; the
//! rest hash into the wall of clocks.
//!
//! These functions run on the agent's stack, their originals on the user's. While one calls its
//! original, the thread is *suspended*: atomics inside are not recorded, nested hooks go straight
//! to their originals.

mod barrier;
pub mod carried;
mod cond;
mod mutex;
mod once;
mod ordered;
mod rwlock;
mod sem;
mod spin;
mod thread;

use crate::state::{block, private};
use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::layout::CANCEL_WORD;

/// A time long past, for attempts that must not wait.
static PAST: [u64; 2] = [0, 0];

/// The bit of a thread that may be cancelled at any moment.
const ASYNCHRONOUS: u32 = 2;

/// The word of this thread's control block in which its C library keeps whether it may be cancelled.
fn cancel_word() -> Option<&'static AtomicU32> {
    let at = private().orig[CANCEL_WORD].get();
    if at == 0 {
        return None;
    }
    let own: u64;
    // SAFETY: a thread in a function of glibc's has its control block there, which begins with its own address.
    unsafe {
        asm!("mov {}, fs:[0x10]", out(reg) own, options(nostack, readonly, preserves_flags));
        Some(&*((own + at) as *const AtomicU32))
    }
}

/// Leader, where a signal's handler is about to run on top of a hooked function's original: in that the thread may be cancelled at any
/// moment. A follower waits outside of it and may not; what the handler calls asks for that, and does something else then (stdio does
/// in fflush). What was taken out of the word.
pub fn hide_cancel_type() -> u32 {
    cancel_word().map_or(0, |w| {
        w.fetch_and(!ASYNCHRONOUS, Ordering::SeqCst) & ASYNCHRONOUS
    })
}

/// The handler has returned to it.
fn show_cancel_type(hidden: u32) {
    if hidden != 0
        && let Some(word) = cancel_word()
    {
        word.fetch_or(hidden, Ordering::SeqCst);
    }
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
            let hidden = core::mem::take(&mut b.interrupted_cancel);
            show_cancel_type(hidden);
            b.set_ordered(false);
        }
    }
}

/// One entry of the table of hooks.
#[repr(transparent)]
pub struct Address(*const ());

// SAFETY: addresses of functions, never written.
unsafe impl Sync for Address {}

/// The hooks by id, called by `geryon_hook`.
#[unsafe(no_mangle)]
#[used]
pub static GERYON_HOOKS_INNER: [Address; 36] = [
    Address(mutex::mutex_lock as *const ()),
    Address(mutex::mutex_trylock as *const ()),
    Address(mutex::mutex_timedlock as *const ()),
    Address(mutex::mutex_clocklock as *const ()),
    Address(mutex::mutex_unlock as *const ()),
    Address(cond::cond_wait as *const ()),
    Address(cond::cond_timedwait as *const ()),
    Address(cond::cond_clockwait as *const ()),
    Address(cond::cond_signal as *const ()),
    Address(cond::cond_broadcast as *const ()),
    Address(rwlock::rw_rdlock as *const ()),
    Address(rwlock::rw_wrlock as *const ()),
    Address(rwlock::rw_tryrdlock as *const ()),
    Address(rwlock::rw_trywrlock as *const ()),
    Address(rwlock::rw_timedrdlock as *const ()),
    Address(rwlock::rw_timedwrlock as *const ()),
    Address(rwlock::rw_clockrdlock as *const ()),
    Address(rwlock::rw_clockwrlock as *const ()),
    Address(rwlock::rw_unlock as *const ()),
    Address(sem::sem_wait as *const ()),
    Address(sem::sem_trywait as *const ()),
    Address(sem::sem_timedwait as *const ()),
    Address(sem::sem_clockwait as *const ()),
    Address(sem::sem_post as *const ()),
    Address(sem::sem_getvalue as *const ()),
    Address(barrier::barrier_wait as *const ()),
    Address(spin::spin_lock as *const ()),
    Address(spin::spin_trylock as *const ()),
    Address(once::once as *const ()),
    Address(thread::create as *const ()),
    Address(thread::tryjoin as *const ()),
    Address(thread::timedjoin as *const ()),
    Address(thread::clockjoin as *const ()),
    Address(cond::cond_destroy as *const ()),
    Address(barrier::barrier_destroy as *const ()),
    Address(thread::cancel as *const ()),
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
    35 "geryon_hook_cancel"
);
