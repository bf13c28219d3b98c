//! Threads: birth, death, and the calls that concern one thread. Births and deaths have one
//! order in the process, because glibc's cache of stacks depends on it.

pub mod ascent;
mod birth;
mod death;
mod first;
pub mod flags;
mod futex;
mod futex2;
pub mod kin;
mod own;
mod robust;
mod slot;

pub use birth::{clone, start_in};
#[cfg(test)]
pub(crate) use death::announce_exit;
pub use death::{await_exits, exit, is_any_exiting};
pub use first::greet;
pub use futex::{futex, waits};
pub use futex2::repeats as repeats_futex;
pub use own::{set_tid_address, sigprocmask};
pub use slot::take_slot;

use crate::gate::guarded;
use crate::state::Here;
pub use crate::state::slots;
use crate::state::{block, block_at, header, private};
use core::sync::atomic::{AtomicU32, Ordering};
use death::EXITING_COUNT;
use geryon_abi::layout::LONG_RING_WORDS;

/// Threads alive (changed inside LIFE).
static ALIVE: AtomicU32 = AtomicU32::new(1);

/// Store an id where the program has asked for it.
pub fn store_tid(address: u64, tid: u32) {
    guarded(|| {
        // SAFETY: inside `guarded`.
        unsafe { (address as *mut u32).write_volatile(tid) }
    });
}

/// Has the process one thread?
pub fn is_single() -> bool {
    ALIVE.load(Ordering::Acquire) == 1
}

/// Does the kernel clear this word when a thread ends, or has it?
pub fn is_id_word(address: u64) -> bool {
    (0..slots()).any(|slot| block_at(slot).clear_tid == address)
}

/// The process is to have a second thread, or another process is to share its memory.
pub fn becomes_many(b: Here) {
    let p = private();
    if p.multi.get() == 0 {
        crate::clock::register_barrier();
        p.multi.set(1);
        crate::serial::begin(b);
    }
}

/// In a forked child: this thread is the only one, and every ring is new.
pub fn alone() {
    ALIVE.store(1, Ordering::Relaxed);
    crate::wait::adapt(1);
    EXITING_COUNT.store(0, Ordering::Relaxed);
    if header().ring_words != LONG_RING_WORDS as u64 {
        // (Where its parent's has them it may have none.)
        private().stamps.set(0);
    }
    let mut me = block();
    for s in 0..slots() {
        let mut b = block_at(s);
        b.pos = 0;
        b.limit = 0;
        b.verified = 0;
        b.released = 0;
        // (Loads are numbered from one again.)
        (b.loaded, b.noted) = (0, 0);
        if s as u32 != me.slot {
            b.this = 0;
        }
    }
    me.events = 0;
    me.vforked = 0;
    if private().multi.get() != 0 {
        crate::clock::register_barrier();
        crate::serial::begin(me);
    }
    me.pending_count.store(0, Ordering::Relaxed);
    me.signal_logged = 0;
    me.sent.clear();
}
