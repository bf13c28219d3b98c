//! Signals that the program has sent itself, and that it has not been given yet: a leader notes them before it
//! sends them, and so finds them who takes over from it. The kernel may have given one to a thread that was
//! killed at that moment, before anybody was told; then it is in no queue any more. What goes to another process
//! it tells the monitor, which knows whom it reaches.
//!
//! (In the leader's memory and not in what all know from the log: another thread may have been given a signal
//! before the call is over that has sent it.) Only those with a handler, or that end the program, without a value, and
//! that are not read from a descriptor; what goes to another process may be.

use crate::gate::{guarded, real, rpc};
use crate::ids;
use crate::state::{Here, block, block_at, header, leads, private};
use core::sync::atomic::Ordering;
use geryon_abi::layout::{MAX_THREADS, Sent, Siginfo, rpc as number, sent};
use geryon_abi::table::nr;

const NR_READ: u16 = nr::read as u16;
const NR_KILL: u16 = nr::kill as u16;
const NR_RT_SIGTIMEDWAIT: u16 = nr::rt_sigtimedwait as u16;
const NR_TKILL: u16 = nr::tkill as u16;
const NR_TGKILL: u16 = nr::tgkill as u16;
const NR_SIGNALFD: u16 = nr::signalfd as u16;
const NR_SIGNALFD4: u16 = nr::signalfd4 as u16;
const NR_PIDFD_SEND_SIGNAL: u16 = nr::pidfd_send_signal as u16;
const SIGKILL: u64 = 9;
/// `struct signalfd_siginfo`, which begins with the signal.
const READ_SIZE: u64 = 128;
/// Beyond these, others are sent each one anew.
const LAST: u64 = 31;
const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;
/// Stops, and what nothing comes of where it has no handler: SIGKILL (which nobody outlives), CHLD, CONT, STOP, TSTP, TTIN, TTOU,
/// URG, WINCH.
const NOT_ENDING: u64 = bits(&[9, 17, 18, 19, 20, 21, 22, 23, 28]);

const fn bits(signals: &[u64]) -> u64 {
    let (mut set, mut i) = (0, 0);
    while i < signals.len() {
        set |= bit(signals[i]);
        i += 1;
    }
    set
}

const fn bit(signal: u64) -> u64 {
    match signal {
        1..=64 => 1 << (signal - 1),
        _ => 0,
    }
}

/// Leader: a call is about to be made, and says so already.
#[inline(always)]
pub fn is_made(nr: u16, args: &[u64; 6]) {
    if matches!(nr, NR_KILL | NR_TKILL | NR_TGKILL | NR_PIDFD_SEND_SIGNAL) {
        note(nr, args);
    }
}

#[cold]
fn note(nr: u16, args: &[u64; 6]) {
    if let Some((to, signal)) = sends(nr, args) {
        if is_felt(signal) {
            to.add(signal);
        }
    } else if let Some((to, signal)) = posts(nr, args) {
        rpc(number::SENDS, nr.into(), to, signal);
    }
}

/// To which other process, or to which ones, the call sends which signal. (A thread of another process's is not
/// told from the process.)
fn posts(nr: u16, args: &[u64; 6]) -> Option<(u64, u64)> {
    let at = if nr == NR_TGKILL { 2 } else { 1 };
    let signal = u64::from(args[at] as u32);
    let is_known = (1..=LAST).contains(&signal) && signal != SIGKILL;
    (is_known && private().replicas > 1).then_some((args[0], signal))
}

/// To whom of this process the call sends which signal.
fn sends(nr: u16, args: &[u64; 6]) -> Option<(&'static Sent, u64)> {
    let p = private();
    let id = |i: usize| args[i] as u32;
    let thread = |i: usize| ids::slot_of(id(i)).map(sent_to);
    match nr {
        NR_KILL if id(0) == p.shown_pid.get() => Some((&p.sent, u64::from(id(1)))),
        NR_TKILL => thread(0).map(|t| (t, u64::from(id(1)))),
        NR_TGKILL if id(0) == p.shown_pid.get() => thread(1).map(|t| (t, u64::from(id(2)))),
        _ => None,
    }
}

/// What the thread in this slot has been sent.
fn sent_to(slot: usize) -> &'static Sent {
    let sent = &raw const block_at(slot).sent;
    // SAFETY: blocks are mapped for the process's life, and this word is changed by its methods only.
    unsafe { &*sent }
}

/// A call has been made. (Only a leader has noted anything.)
#[inline(always)]
pub fn was_made(b: Here, nr: u16, args: &[u64; 6], result: i64) {
    match nr {
        NR_KILL | NR_TKILL | NR_TGKILL | NR_PIDFD_SEND_SIGNAL if result < 0 => failed(nr, args),
        NR_RT_SIGTIMEDWAIT if result >= 0 => {
            came(b, result as u64);
            is_over(result as u64);
        }
        NR_SIGNALFD | NR_SIGNALFD4 if result >= 0 => is_read_from_descriptor(b, args[1]),
        _ => {}
    }
}

/// Leader: a call has been made, and is not logged yet. (Behind that its successor would be sent again what it has read.)
#[inline(always)]
pub fn was_read(nr: u16, args: &[u64; 6], result: i64) {
    if nr == NR_READ && result >= READ_SIZE as i64 && header().posted.load(Ordering::Relaxed) != 0 {
        are_read(args, result as u64);
    }
}

/// From a descriptor, if it is one of signals: the monitor, which sees none of those come, finds that out.
#[cold]
fn are_read([fd, at, ..]: &[u64; 6], len: u64) {
    for place in (*at..at + len).step_by(READ_SIZE as usize) {
        let mut signal = 0;
        // SAFETY: inside `guarded`.
        guarded(|| signal = unsafe { (place as *const u32).read_unaligned() });
        if u64::from(header().posted.load(Ordering::Relaxed)) & bit(signal.into()) != 0 {
            rpc(number::CAME, signal.into(), 1 + u64::from(*fd as u32), 0);
        }
    }
}

#[cold]
fn failed(nr: u16, args: &[u64; 6]) {
    if let Some((to, signal)) = sends(nr, args) {
        if is_felt(signal) {
            to.take(signal);
        }
    } else if let Some((to, _)) = posts(nr, args)
        && leads()
    {
        rpc(number::SENDS, nr.into(), to, 0);
    }
}

#[cold]
fn is_read_from_descriptor(b: Here, set: u64) {
    let mut mask = 0;
    // SAFETY: inside `guarded`.
    guarded(|| mask = unsafe { (set as *const u64).read_unaligned() });
    let p = private();
    p.sent_apart.set(p.sent_apart.get() | mask);
    for signal in (1..=sent::LAST).filter(|s| mask & bit(*s) != 0) {
        p.sent.forget(signal);
        b.sent.forget(signal);
    }
}

/// Has it a handler, or does it end the program, and cannot be had otherwise?
fn is_felt(signal: u64) -> bool {
    let mut action = [0u64; 4];
    let args = [signal, 0, action.as_mut_ptr() as u64, 8, 0, 0];
    bit(signal) & !private().sent_apart.get() != 0
        && real(nr::rt_sigaction, args) == 0
        && acts(action[0], signal)
}

/// Does this handler, or the end that it stands for, keep the signal from being dropped?
fn acts(handler: u64, signal: u64) -> bool {
    match handler {
        SIG_DFL => bit(signal) & !NOT_ENDING != 0,
        SIG_IGN => false,
        _ => true,
    }
}

/// All: the thread has been given a signal.
pub fn was_given(b: Here, info: &Siginfo) {
    came(b, u64::from(info.0[0] as u32));
}

/// (The kernel takes the thread's own first.)
fn came(b: Here, signal: u64) {
    let of = match b.sent.count(signal) {
        0 => &private().sent,
        _ => &b.sent,
    };
    of.take(signal);
}

/// Leader: one that the monitor has not seen come. (What a handler is given it has.)
fn is_over(signal: u64) {
    if u64::from(header().posted.load(Ordering::Relaxed)) & bit(signal) != 0 && leads() {
        rpc(number::CAME, signal, 0, 0);
    }
}

/// Is this rt_sigaction to drop the signal where it waits? (Asked before it: the old action may be told in
/// the same place.)
pub fn drops(args: &[u64; 6]) -> Option<u64> {
    let signal = u64::from(args[0] as u32);
    let mut handler = u64::MAX;
    if args[1] != 0 {
        // SAFETY: inside `guarded`.
        guarded(|| handler = unsafe { (args[1] as *const u64).read_unaligned() });
    }
    (!acts(handler, signal)).then_some(signal)
}

/// All: it is. Those that wait have gone with their handler.
pub fn dropped(signal: u64) {
    let p = private();
    p.sent.forget(signal);
    block().sent.forget(signal);
    for slot in (0..MAX_THREADS).filter(|_| p.multi.get() != 0) {
        sent_to(slot).forget(signal);
    }
    is_over(signal);
}

/// A forked child's first thread: nothing waits for it.
pub fn forget(b: Here) {
    private().sent.clear();
    b.sent.clear();
}
