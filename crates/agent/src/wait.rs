//! Waiting: spin a little, yield a little, then sleep in the kernel. A word that somebody
//! waits for is in shared memory (another replica stores it) or in this process.

use crate::gate::real;
use crate::state::{Here, block, layout, private};
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::record::{kind, word};
use geryon_abi::table::nr;

const FUTEX_WAIT: u64 = 0;
const FUTEX_WAKE: u64 = 1;
const FUTEX_PRIVATE: u64 = 128;

/// Turns of spinning where every thread has a core: about two microseconds.
const SPIN_TURNS: u32 = 60;
/// The same where they share cores: spinning only keeps others from running.
const SPIN_TURNS_SHARED: u32 = 1;
/// Turns that give the core to whoever else wants it, before sleeping in the kernel.
const YIELD_TURNS: u32 = 64;
/// The same where what is waited for is another thread's stretch of computation.
const YIELD_TURNS_LONG: u32 = 2;

/// Choose how to wait for this number of threads in each replica.
pub fn adapt(threads: u32) {
    let p = private();
    // (Where each replica has one, it knows who else runs on its core.)
    let fits = threads == 1 || threads.saturating_mul(p.replicas) <= p.cores;
    p.crowded.store(u32::from(!fits), Ordering::Relaxed);
}

/// How long one has waited already, and what is still to be tried: turns of spinning, then turns that give the
/// core away.
pub struct Patience {
    spins: u32,
    yields: u32,
}

impl Patience {
    /// Start a wait for another thread of this replica.
    #[allow(clippy::new_without_default)] // the default is no better known by that name
    #[inline(always)]
    pub fn new() -> Patience {
        let spins = match is_crowded() {
            true => SPIN_TURNS_SHARED,
            false => SPIN_TURNS,
        };
        Patience {
            spins,
            yields: YIELD_TURNS,
        }
    }

    /// Start a wait that will be long.
    pub fn long() -> Patience {
        Patience {
            yields: YIELD_TURNS_LONG,
            ..Patience::new()
        }
    }

    /// Start a wait for this thread in another replica.
    ///
    /// Who shares the core with one gives it away at once: spinning keeps that one from running. Who does not
    /// spins for as long as a sleep costs, here and in who wakes it. To give the core away would help nobody that
    /// is waited for: where somebody else's program runs there it gets a slice of milliseconds (a scheduler by
    /// deadlines takes all of its slice from who yields). And to sleep sooner costs more than it saves: until the
    /// one is awake the other has gone to sleep, too, at each rendezvous anew.
    #[inline(always)]
    pub fn for_replica(shares_core: bool) -> Patience {
        if is_crowded() {
            Patience::new()
        } else if shares_core {
            Patience {
                spins: 0,
                yields: YIELD_TURNS,
            }
        } else {
            Patience {
                spins: private().patience,
                yields: 0,
            }
        }
    }

    /// Wait a moment; true when it is time to sleep in the kernel instead.
    pub fn spend(&mut self) -> bool {
        if self.spins > 0 {
            self.spins -= 1;
            rest(4);
            false
        } else if self.yields > 0 {
            self.yields -= 1;
            give_way();
            false
        } else {
            true
        }
    }
}

/// Let so many pauses of the processor go by.
pub fn rest(pauses: u32) {
    for _ in 0..pauses {
        spin_loop();
    }
}

/// Let another thread run on this core, if one is ready to.
pub fn give_way() {
    real(nr::sched_yield, [0; 6]);
}

/// The same, where the threads of all replicas are more than the cores.
pub fn give_way_if_crowded() {
    if is_crowded() {
        give_way();
    }
}

#[inline(always)]
fn is_crowded() -> bool {
    private().crowded.load(Ordering::Relaxed) != 0
}

/// The core that this thread runs on, as the kernel has left it in a segment's limit for everybody to read
/// (vgetcpu does the same). None where it has not.
#[inline(always)]
pub fn core_now() -> Option<u32> {
    const CPUNODE_SELECTOR: u32 = 0x7b;
    const CORE_BITS: u32 = 0xfff;
    let mut limit = u32::MAX;
    // SAFETY: the instruction changes a register and a flag; of a segment that is none, the flag alone.
    unsafe {
        core::arch::asm!("lsl {0:e}, {1:e}", inout(reg) limit, in(reg) CPUNODE_SELECTOR,
            options(nomem, nostack));
    }
    (limit != u32::MAX).then_some(limit & CORE_BITS)
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

/// The same for an operation on an object at this address.
#[inline(always)]
pub fn intend_on(b: Here, what: u64, object: u64) {
    intend(b, what, layout().name(object));
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
    real(nr::futex, [address, op, seen as u64, 0, 0, 0]);
}

/// The same, but no longer than `ns` nanoseconds (less than a second).
pub fn sleep_at_most(address: u64, seen: u32, ns: u64) {
    sleep_limited(address, seen, ns, FUTEX_WAIT | FUTEX_PRIVATE);
}

/// The same, of a word that another process may store.
pub fn sleep_at_most_shared(address: u64, seen: u32, ns: u64) {
    sleep_limited(address, seen, ns, FUTEX_WAIT);
}

fn sleep_limited(address: u64, seen: u32, ns: u64, op: u64) {
    let limit = [0, ns];
    real(
        nr::futex,
        [address, op, seen as u64, limit.as_ptr() as u64, 0, 0],
    );
}

/// Sleep for so many nanoseconds (less than a second): a test wants it.
#[cold]
pub fn pause(ns: u64) {
    let time = [0, ns];
    real(nr::nanosleep, [time.as_ptr() as u64, 0, 0, 0, 0, 0]);
}

/// A test may want a pause there, of so long.
#[inline(always)]
pub fn pause_if(ns: i64) {
    if ns != 0 {
        pause(ns as u64);
    }
}

/// Wake all that sleep on the word at `address`.
pub fn wake_at(address: u64, shared: bool) {
    wake(address, shared, i32::MAX);
}

/// The same, where one of them is enough: the one that sleeps longest.
pub fn wake_one_at(address: u64, shared: bool) {
    wake(address, shared, 1);
}

fn wake(address: u64, shared: bool, count: i32) {
    let op = if shared {
        FUTEX_WAKE
    } else {
        FUTEX_WAKE | FUTEX_PRIVATE
    };
    real(nr::futex, [address, op, count as u64, 0, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::core_now;

    #[test]
    fn a_thread_knows_the_core_it_is_bound_to() {
        // SAFETY: plain calls about the calling thread, on a set of the right size.
        let bind = |set: &libc::cpu_set_t| unsafe {
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) == 0
        };
        // SAFETY: all zero is an empty set, which the call then fills.
        let allowed = unsafe {
            let mut set: libc::cpu_set_t = core::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
            set
        };
        for core in 0..libc::CPU_SETSIZE as usize {
            // SAFETY: the core's number is below the set's size.
            if !unsafe { libc::CPU_ISSET(core, &allowed) } {
                continue;
            }
            // SAFETY: as above.
            let one = unsafe {
                let mut set: libc::cpu_set_t = core::mem::zeroed();
                libc::CPU_SET(core, &mut set);
                set
            };
            assert!(bind(&one));
            assert_eq!(core_now(), Some(core as u32));
        }
        assert!(bind(&allowed));
    }
}
