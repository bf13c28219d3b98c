//! Waiting: spin a little, yield a little, then sleep in the kernel. A word that somebody
//! waits for is in shared memory (another replica stores it) or in this process.

use crate::gate::real;
use crate::state::{Here, block, private};
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::record::{kind, word};

const NR_SCHED_YIELD: u64 = 24;
const NR_FUTEX: u64 = 202;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAKE: u64 = 1;
const FUTEX_PRIVATE: u64 = 128;

/// Turns of spinning where every thread of every replica has a core: about two microseconds.
const SPIN_TURNS: u32 = 60;
/// The same where they share cores: spinning only keeps the partner from running. (Three replicas
/// that write on two cores: 4 us a rendezvous, against 25 us with long spinning.)
const SPIN_TURNS_SHARED: u32 = 1;
/// Turns that give the core to whoever else wants it, before sleeping in the kernel.
const YIELD_TURNS: u32 = 64;
/// The same where what is waited for is another thread's stretch of computation.
const YIELD_TURNS_LONG: u32 = 2;

/// Choose how to wait for this number of threads in each replica.
pub fn adapt(threads: u32) {
    let p = private();
    let fits = threads.saturating_mul(p.replicas) <= p.cores;
    let turns = if fits { SPIN_TURNS } else { SPIN_TURNS_SHARED };
    p.spin_turns.store(turns, Ordering::Relaxed);
}

/// How long one has waited already.
pub struct Patience {
    turns: u32,
    yields: u32,
}

impl Patience {
    /// Start.
    #[allow(clippy::new_without_default)] // the default is no better known by that name
    #[inline(always)]
    pub const fn new() -> Patience {
        Patience {
            turns: 0,
            yields: YIELD_TURNS,
        }
    }

    /// Start a wait that will be long.
    pub const fn long() -> Patience {
        Patience {
            turns: 0,
            yields: YIELD_TURNS_LONG,
        }
    }

    /// Wait a moment; true when it is time to sleep in the kernel instead.
    pub fn spend(&mut self) -> bool {
        self.turns += 1;
        let p = private();
        let spin = p.spin_turns.load(Ordering::Relaxed);
        if self.turns <= spin {
            for _ in 0..4 {
                spin_loop();
            }
            false
        } else if self.turns <= spin + self.yields {
            real(NR_SCHED_YIELD, [0; 6]);
            false
        } else {
            true
        }
    }
}

/// Say in the thread's block what it waits for, for the watchdog and for reports.
#[inline(always)]
pub fn announce(why: u32, what: u64, value: u64) {
    let mut b = block();
    b.waiting_for = what;
    b.waiting_value = value;
    b.waiting.store(why, Ordering::Relaxed);
}

/// Say in the thread's block what it is about to do at this position of the log, for the watchdog:
/// where one waits for what none of the others will ever do, nothing is logged that could be compared.
#[inline(always)]
pub fn intend(mut b: Here, what: u64, digest: u64) {
    b.intent = what;
    b.intent_digest = digest;
    b.intent_at = b.pos;
}

/// The same for a call, of whatever kind its record is.
#[inline(always)]
pub fn intend_call(b: Here, nr: u16, digest: u64) {
    intend(b, word(kind::CALL, 0, nr, 0), digest);
}

/// The thread goes on.
#[inline(always)]
pub fn announce_end() {
    block()
        .waiting
        .store(geryon_abi::layout::wait::NONE, Ordering::Relaxed);
}

/// Sleep while the low half of `word` is that of `seen`; wake-ups without cause happen.
pub fn sleep64(word: &AtomicU64, seen: u64, shared: bool) {
    sleep_at(word as *const AtomicU64 as u64, seen as u32, shared);
}

/// Sleep while `word` is `seen`.
pub fn sleep32(word: &AtomicU32, seen: u32, shared: bool) {
    sleep_at(word as *const AtomicU32 as u64, seen, shared);
}

/// Sleep while the 32-bit word at `address` is `seen`.
pub fn sleep_at(address: u64, seen: u32, shared: bool) {
    let op = if shared {
        FUTEX_WAIT
    } else {
        FUTEX_WAIT | FUTEX_PRIVATE
    };
    real(NR_FUTEX, [address, op, seen as u64, 0, 0, 0]);
}

/// The same, but no longer than `ns` nanoseconds (less than a second).
pub fn sleep_at_most(address: u64, seen: u32, ns: u64) {
    let limit = [0, ns];
    let op = FUTEX_WAIT | FUTEX_PRIVATE;
    real(
        NR_FUTEX,
        [address, op, seen as u64, limit.as_ptr() as u64, 0, 0],
    );
}

/// Sleep for so many nanoseconds (less than a second): a test wants it.
#[cold]
pub fn pause(ns: u64) {
    const NR_NANOSLEEP: u64 = 35;
    let time = [0, ns];
    real(NR_NANOSLEEP, [time.as_ptr() as u64, 0, 0, 0, 0, 0]);
}

/// Wake all that sleep on the word at `address`.
pub fn wake_at(address: u64, shared: bool) {
    let op = if shared {
        FUTEX_WAKE
    } else {
        FUTEX_WAKE | FUTEX_PRIVATE
    };
    real(NR_FUTEX, [address, op, i32::MAX as u64, 0, 0, 0]);
}
