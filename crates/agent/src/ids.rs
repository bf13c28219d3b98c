//! Process and thread ids after a replica has taken over: the program goes on with the ids that it
//! was told, which were those of a leader that is gone; the kernel is given those that name the same
//! processes and threads now.

use crate::gate::rpc;
use crate::state::{block, block_at, header, private};
use core::sync::atomic::Ordering;
use geryon_abi::layout::{MAX_THREADS, rpc as number, vforked, who};
use geryon_abi::row::Row;

const GETPID: u16 = 39;
const GETPPID: u16 = 110;
const GETTID: u16 = 186;
const SET_TID_ADDRESS: u16 = 218;
const TIMER_CREATE: u16 = 222;
const SIGKILL: u64 = 9;

/// Has any process of the run been taken over by another replica?
#[inline(always)]
fn differ() -> bool {
    header().taken_over.load(Ordering::Relaxed) != 0
}

/// The arguments that are ids, as a mask.
fn ids_of(nr: u16, args: &[u64; 6]) -> u32 {
    match nr {
        // kill, tkill, rt_sigqueueinfo, setpgid, getpgid, getsid, sched_*, prlimit64, pidfd_open
        62 | 200 | 129 | 109 | 121 | 124 | 143 | 145 | 148 | 203 | 204 | 302 | 315 | 434 => 1,
        // tgkill, rt_tgsigqueueinfo
        234 | 297 => 0b11,
        // getpriority of a process
        140 if args[0] == 0 => 0b10,
        _ => 0,
    }
}

/// Leader: the arguments for the kernel. Announces what ends another process by force: the monitor
/// could not tell it from a fault.
#[inline(always)]
pub fn translated(row: &Row, args: [u64; 6]) -> [u64; 6] {
    let sends = matches!(row.nr, 62 | 129 | 200 | 234 | 297 | 424);
    if sends {
        announce_kill(row.nr, &args);
    }
    if differ() { translate(row, args) } else { args }
}

/// May the kernel be given other arguments than the program has given?
pub fn are_ids_in(row: &Row) -> bool {
    differ() && (ids_of(row.nr, &[0; 6]) != 0 || row.nr == TIMER_CREATE)
}

#[cold]
fn translate(row: &Row, mut args: [u64; 6]) -> [u64; 6] {
    let mask = ids_of(row.nr, &args);
    for (i, a) in args.iter_mut().enumerate() {
        let id = *a as u32 as i32;
        if mask & (1 << i) != 0 && id > 0 {
            *a = own(id as u32) as u64;
        }
    }
    if row.nr == TIMER_CREATE && args[1] != 0 {
        let mut b = block();
        b.sigevent[2] = thread_of(&b.sigevent);
        args[1] = (&raw const b.sigevent) as u64;
    }
    args
}

/// The third word of a struct sigevent: the thread that is to be signalled, if one is named.
pub fn thread_of(event: &[u64]) -> u64 {
    const SIGEV_THREAD_ID: u64 = 4;
    match event[1] >> 32 {
        SIGEV_THREAD_ID => u64::from(own(event[2] as u32)),
        _ => event[2],
    }
}

/// Which process or thread the id that the program knows names now.
pub fn own(id: u32) -> u32 {
    if id == private().shown_pid {
        return private().own_pid;
    }
    let named = |s: &usize| {
        let b = block_at(*s);
        b.this != 0 && b.free.load(Ordering::Acquire) == 0 && b.shown_tid == id
    };
    if let Some(s) = (0..MAX_THREADS).find(named) {
        return block_at(s).own_tid;
    }
    rpc(number::WHO, id as u64, who::OWN, 0) as u32
}

/// Leader: the result as the program knows it.
#[inline(always)]
pub fn shown(row: &Row, result: i64) -> i64 {
    if differ() && result > 0 {
        show(row, result)
    } else {
        result
    }
}

/// Are this call's results shown translated?
pub fn is_shown(row: &Row) -> bool {
    matches!(row.nr, GETPID | GETTID | SET_TID_ADDRESS | GETPPID)
}

#[cold]
fn show(row: &Row, result: i64) -> i64 {
    // A vfork's child is a process of its own, in its parent's memory.
    let guest = block().vforked != vforked::NOT;
    match row.nr {
        GETPID if guest => block().shown_tid as i64,
        GETPPID if guest => private().shown_pid as i64,
        GETPID => private().shown_pid as i64,
        GETTID | SET_TID_ADDRESS => block().shown_tid as i64,
        GETPPID => match rpc(number::WHO, 0, who::PARENT, 0) {
            0 => result,
            parent => parent,
        },
        _ => result,
    }
}

fn announce_kill(nr: u16, args: &[u64; 6]) {
    let signal = if matches!(nr, 234 | 297) {
        args[2]
    } else {
        args[1]
    };
    if signal as u32 as u64 == SIGKILL {
        let target = if nr == 234 || nr == 297 {
            args[1]
        } else {
            args[0]
        };
        rpc(number::KILLS, nr as u64, target, 0);
    }
}
