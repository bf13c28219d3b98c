//! Signals that are let in at one moment. The kernel builds all their handlers' frames before any of these runs: the
//! first signal's handler is interrupted by the second one at its first instruction, and so on, as far as the masks of
//! the handlers allow. One record holds them all.

use super::pending;
use crate::access::here;
use crate::gate::{real, rpc};
use crate::log::{get, put};
use crate::state::{Here, have_own_programs, layout};
use crate::stop::broken;
use core::sync::atomic::Ordering;
use geryon_abi::layout::{MAX_PENDING, MAX_TOGETHER, Siginfo, rpc as number};
use geryon_abi::table::nr;

const LAST_SIGNAL: u32 = 64;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;

/// The signals, in the order in which the kernel takes them: the last one's handler runs first.
pub struct Together {
    infos: [Siginfo; MAX_TOGETHER],
    count: usize,
}

impl Together {
    const fn none() -> Together {
        Together {
            infos: [Siginfo([0; 16]); MAX_TOGETHER],
            count: 0,
        }
    }

    /// One alone.
    pub fn alone(info: Siginfo) -> Together {
        let mut this = Together::none();
        this.add(info);
        this
    }

    fn add(&mut self, info: Siginfo) {
        if let Some(to) = self.infos.get_mut(self.count) {
            *to = info;
            self.count += 1;
        }
    }

    /// Where they are, one behind the other.
    pub fn address(&self) -> u64 {
        self.infos.as_ptr() as u64
    }

    /// How many there are beside the first one.
    pub fn more(&self) -> u64 {
        self.count as u64 - 1
    }
}

/// Leader: log the oldest queued signal, and those that come with it.
pub fn take_queued(mut b: Here) -> Together {
    let mut taken = Together::none();
    let count = come_together(b);
    for left in (0..count).rev() {
        let info = b.pending[taken.count];
        if !is_signal(&info) {
            // It has come here by a fault: what is logged all others believe.
            broken();
        }
        crate::timer::rang(&info);
        crate::sent::was_given(b, &info);
        for w in info.0 {
            // (Of addresses in another program nothing is known.)
            let is_own = have_own_programs();
            put(b, if is_own { w } else { layout().name(w) });
        }
        put(b, left as u64);
        taken.add(info);
    }
    point!(SignalUnlogged);
    b.signal_count = b.pending_count.load(Ordering::Acquire);
    b.signals_in_record = count as u32;
    b.signal_logged = b.pos;
    crate::call::landed(b);
    point!(SignalQueued);
    // Only now: a successor takes over what was not logged (and knows by `signal_logged` what was).
    drop_first(b, count);
    b.signal_logged = 0;
    taken
}

/// Follower: the signals whose words come next in the log.
pub fn take_logged(b: Here) -> Together {
    let mut taken = Together::none();
    loop {
        let mut info = Siginfo([0; 16]);
        for w in &mut info.0 {
            // (What a process gave a signal to hold may be an address.)
            *w = here(get(b));
        }
        let left = get(b);
        crate::timer::rang(&info);
        crate::sent::was_given(b, &info);
        taken.add(info);
        if left == 0 || taken.count == MAX_TOGETHER {
            point!(SignalRead);
            return taken;
        }
    }
}

fn is_signal(info: &Siginfo) -> bool {
    (1..=LAST_SIGNAL).contains(&(info.0[0] as u32))
}

/// Leader: how many of the signals that wait are let in now, from the oldest one on?
fn come_together(b: Here) -> usize {
    if !pending(b) {
        broken();
    }
    let mut shut = 0;
    for count in 1..MAX_TOGETHER {
        shut |= shut_out_by(&b.pending[count - 1]);
        let waiting = |b: Here| b.pending_count.load(Ordering::Acquire) as usize > count;
        // (All that the program catches waits in the kernel since the oldest one is here.)
        if !waiting(b) && held_back() & !shut == 0 {
            return count;
        }
        match rpc(number::LETS_IN, shut, count as u64, 0) {
            1 => {}
            2 if waiting(b) => {}
            2 => {
                // Another thread has it.
                rpc(number::LETS_IN, u64::MAX, count as u64, 0);
                return count;
            }
            _ => return count,
        }
    }
    MAX_TOGETHER
}

/// Signals that wait in the kernel.
fn held_back() -> u64 {
    let mut set = 0u64;
    real(nr::rt_sigpending, [&raw mut set as u64, 8, 0, 0, 0, 0]);
    // SAFETY: a local variable, which the kernel has written.
    unsafe { (&raw const set).read_volatile() }
}

/// What waits while the handler of this signal runs.
fn shut_out_by(info: &Siginfo) -> u64 {
    let signal = info.0[0] as u32;
    if !is_signal(info) {
        broken();
    }
    let mut action = [0u64; 4];
    let at = action.as_mut_ptr() as u64;
    real(nr::rt_sigaction, [signal.into(), 0, at, 8, 0, 0]);
    // SAFETY: a local variable, which the kernel has written.
    let [_, flags, _, mask] = unsafe { (&raw const action).read_volatile() };
    let own = 1u64 << (signal - 1);
    // (One that loses its handler by that has another meaning the next time.)
    let is_deferred = flags & SA_NODEFER == 0 || flags & SA_RESETHAND != 0;
    mask | if is_deferred { own } else { 0 }
}

/// The oldest queued signals are taken. The monitor only appends, while this thread is stopped.
fn drop_first(mut b: Here, taken: usize) {
    let count = (b.pending_count.load(Ordering::Acquire) as usize).min(MAX_PENDING);
    for i in taken..count {
        b.pending[i - taken] = b.pending[i];
    }
    b.pending_count.fetch_sub(taken as u32, Ordering::AcqRel);
}
