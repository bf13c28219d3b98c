//! Signals that the program has sent itself, and that it has not been given yet: all replicas keep them in mind.
//! The kernel may have given one to a thread of the leader that was killed at that moment, before anybody was
//! told; then it is in no queue any more, and the monitor finds here that it was sent.
//!
//! Only those are known that come behind their sending in one thread's log: what a thread sends itself, and what
//! a process sends itself that has never had a second one. (Another thread may have been given a signal before
//! the call is over that has sent it.) Only those with a handler, without a value, and that are not read from a
//! descriptor.

use crate::gate::{guarded, real};
use crate::state::{Here, block, block_at, private};
use geryon_abi::layout::{MAX_THREADS, Siginfo};

const NR_RT_SIGACTION: u64 = 13;
const NR_KILL: u16 = 62;
const NR_RT_SIGTIMEDWAIT: u16 = 128;
const NR_TKILL: u16 = 200;
const NR_TGKILL: u16 = 234;
const NR_SIGNALFD: u16 = 282;
const NR_SIGNALFD4: u16 = 289;
/// Beyond these, each that is sent comes.
const LAST: u64 = 31;
/// SIG_DFL and SIG_IGN: no handlers.
const LAST_OF_NONE: u64 = 1;

fn bit(signal: u64) -> u64 {
    match signal {
        1..=LAST => 1 << (signal - 1),
        _ => 0,
    }
}

/// All: a call has been made.
#[inline(always)]
pub fn was_made(b: Here, nr: u16, args: &[u64; 6], result: i64) {
    if matches!(
        nr,
        NR_KILL | NR_TKILL | NR_TGKILL | NR_RT_SIGTIMEDWAIT | NR_SIGNALFD | NR_SIGNALFD4
    ) && result >= 0
    {
        note(b, nr, args, result);
    }
}

#[cold]
fn note(mut b: Here, nr: u16, args: &[u64; 6], result: i64) {
    let p = private();
    let id = |i: usize| args[i] as u32;
    match nr {
        NR_KILL if id(0) == p.shown_pid.get() && p.multi.get() == 0 => {
            p.sent.set(p.sent.get() | handled(u64::from(id(1))));
        }
        NR_TKILL if id(0) == b.shown_tid => b.sent |= handled(u64::from(id(1))),
        NR_TGKILL if id(1) == b.shown_tid => b.sent |= handled(u64::from(id(2))),
        NR_RT_SIGTIMEDWAIT => came(b, result as u64),
        NR_SIGNALFD | NR_SIGNALFD4 => {
            let mut mask = 0;
            // SAFETY: inside `guarded`.
            guarded(|| mask = unsafe { (args[1] as *const u64).read_unaligned() });
            p.sent_apart.set(p.sent_apart.get() | mask);
            p.sent.set(p.sent.get() & !mask);
            b.sent &= !mask;
        }
        _ => {}
    }
}

/// Its bit, if it has a handler, and cannot be had otherwise.
fn handled(signal: u64) -> u64 {
    let bit = bit(signal);
    let mut action = [0u64; 4];
    if bit & !private().sent_apart.get() == 0 {
        return 0;
    }
    let args = [signal, 0, action.as_mut_ptr() as u64, 8, 0, 0];
    match real(NR_RT_SIGACTION, args) == 0 && action[0] > LAST_OF_NONE {
        true => bit,
        false => 0,
    }
}

/// All: the thread has been given a signal.
pub fn was_given(b: Here, info: &Siginfo) {
    came(b, u64::from(info.0[0] as u32));
}

/// (The kernel takes the thread's own first.)
fn came(mut b: Here, signal: u64) {
    let bit = bit(signal);
    if b.sent & bit != 0 {
        b.sent &= !bit;
    } else {
        let p = private();
        p.sent.set(p.sent.get() & !bit);
    }
}

/// Is this rt_sigaction to leave the signal without a handler? (Asked before it: the old action may be told in
/// the same place.)
pub fn loses_handler(args: &[u64; 6]) -> Option<u64> {
    let mut handler = u64::MAX;
    if args[1] != 0 {
        // SAFETY: inside `guarded`.
        guarded(|| handler = unsafe { (args[1] as *const u64).read_unaligned() });
    }
    (handler <= LAST_OF_NONE).then_some(args[0] as u32 as u64)
}

/// All: it has none any more. Those that wait may go with it.
pub fn handler_lost(signal: u64) {
    let bit = bit(signal);
    let p = private();
    p.sent.set(p.sent.get() & !bit);
    block().sent &= !bit;
    for slot in (0..MAX_THREADS).filter(|_| p.multi.get() != 0) {
        let mut b = block_at(slot);
        if b.sent & bit != 0 {
            b.sent &= !bit;
        }
    }
}

/// A forked child's first thread: nothing waits for it.
pub fn forget(mut b: Here) {
    private().sent.set(0);
    b.sent = 0;
}
