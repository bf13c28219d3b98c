//! Waiting for children in a process that goes on in another replica than it began in, or that is to have children which
//! others have left: the kernel knows others as its children than the program does. The monitor says who has ended.

use crate::gate::{guarded, real_blocking, rpc};
use crate::promotion;
use crate::raise;
use crate::serial;
use crate::state::{Here, block, block_anew, header};
use crate::wait::{announce, announce_end, intend_call};
use core::sync::atomic::Ordering;
use geryon_abi::layout::{Reap, flight, reap, repeat, rpc as number, wait};
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const NR_WAIT4: u16 = nr::wait4 as u16;
const WNOHANG: u64 = 1;
const P_ALL: u64 = 0;
const P_PID: u64 = 1;
const P_PGID: u64 = 2;
const RESTARTS: i64 = -512;
const EAGAIN: i64 = -11;
const EFAULT: i64 = -14;

/// wait4 and waitid: the result, with what they write written, and the child that is gone, or 0.
pub fn wait(mut b: Here, row: &Row, args: [u64; 6], digest: u64) -> (i64, u32) {
    if let Some(result) = promotion::given(b, row, &args, digest) {
        if serial::active() {
            serial::acquire(b);
        }
        let gone = crate::process::gone_child(row.nr as u64, &args, result);
        forget(gone);
        if gone == 0 {
            told(row, &args, result);
        }
        return (result, gone);
    }
    if let Some(refused) = crate::waits::outcome_of_bad(row, &args) {
        return (show(row, &args, refused, 0), 0);
    }
    let is_of_descriptor = crate::waits::is_of_descriptor(row, &args);
    let (which, id, options) = if is_of_descriptor {
        match crate::pidfd::named(args[1]) {
            Ok(id) => (P_PID, id.into(), args[3]),
            Err(error) => return (show(row, &args, error, 0), 0),
        }
    } else if row.nr == NR_WAIT4 {
        let (which, id) = of_wait4(args[0] as u32 as i32);
        (which, id, args[2])
    } else {
        (args[0], args[1], args[3])
    };
    let mut interrupted = false;
    loop {
        let seen = header().child_events.load(Ordering::SeqCst);
        let mut reap = Reap {
            which,
            id,
            asked: crate::waits::asked(row, &args),
            status: 0,
        };
        crate::call::take_off(b, row.nr, digest);
        let child = rpc(number::REAP, &raw mut reap as u64, b.slot.into(), 0);
        if child > 0 {
            point!(WaitAnswered);
        }
        let sleeps = options & WNOHANG == 0;
        let never_sleeps = is_of_descriptor && sleeps && crate::pidfd::is_nonblocking(args[1]);
        if child != 0 || !sleeps || never_sleeps {
            let result = match show(row, &args, child, reap.status as u32) {
                0 if child == 0 && never_sleeps => EAGAIN,
                result => result,
            };
            b.flight_result = [result as u64; 2];
            b.flight.store(flight::RETURNED, Ordering::Release);
            let is_gone = child > 0 && reap.asked & reap::KEEPS == 0 && !lives(reap.status as u32);
            return (result, if is_gone { child as u32 } else { 0 });
        }
        b.flight.store(flight::NONE, Ordering::Release);
        if interrupted {
            return (RESTARTS, 0);
        }
        b.repeatable = repeat::CALL;
        if serial::active() {
            serial::release_to_wait(b);
        }
        intend_call(b, row.nr, digest);
        announce(wait::KERNEL, row.nr as u64, 0);
        let events = &raw const header().child_events as u64;
        let slept = real_blocking(nr::futex, &[events, 0, seen as u64, 0, 0, 0], true);
        announce_end();
        b = block_anew();
        if serial::active() {
            serial::acquire(b);
        }
        b.repeatable = repeat::NOTHING;
        b.call_start = b.pos;
        // (Natively, too, a child that is there is told of before a signal is seen: its end or stop sends one.)
        interrupted = raise::pending(b) && (slept == -4 || (-516..=-512).contains(&slept));
    }
}

/// A kernel has given this child, if any, to a wait.
pub fn forget(child: u32) {
    if child != 0 {
        let mut reap = Reap {
            which: P_PID,
            id: child as u64,
            asked: reap::ENDED | reap::ALL,
            status: 0,
        };
        rpc(number::REAP, &raw mut reap as u64, block().slot.into(), 0);
    }
}

/// The status of a child that was continued.
const GOES_ON: u32 = 0xffff;

/// Does the child of this status live on?
pub fn lives(status: u32) -> bool {
    status & 0x7f == 0x7f
}

/// A kernel has told the program by this wait that a child was stopped, or goes on, if it has.
pub fn told(row: &Row, args: &[u64; 6], result: i64) {
    let (child, status) = crate::waits::told(row, args, result);
    if result < 0 || child == 0 {
        return;
    }
    let mut reap = Reap {
        which: P_PID,
        id: child as u64,
        asked: reap::STOPPED | reap::CONTINUED | reap::TOLD | reap::ALL,
        status: status.into(),
    };
    rpc(number::REAP, &raw mut reap as u64, block().slot.into(), 0);
    point!(WaitAnswered);
}

/// wait4's first argument as waitid has it.
fn of_wait4(pid: i32) -> (u64, u64) {
    match pid {
        -1 => (P_ALL, 0),
        0 => (P_PGID, 0),
        p if p > 0 => (P_PID, p as u64),
        p => (P_PGID, p.unsigned_abs() as u64),
    }
}

/// Write what the call writes; its result.
fn show(row: &Row, args: &[u64; 6], child: i64, status: u32) -> i64 {
    const SIGCHLD: u32 = 17;
    const EXITED: u32 = 1;
    const KILLED: u32 = 2;
    const DUMPED: u32 = 3;
    const STOPPED: u32 = 5;
    const CONTINUED: u32 = 6;
    const SIGCONT: u32 = 18;
    // (waitid writes its answer whatever comes of it.)
    if child < 0 && row.nr == NR_WAIT4 {
        return child;
    }
    let (status_at, usage_at) = match row.nr {
        NR_WAIT4 => (args[1], args[3]),
        _ => (args[2], args[4]),
    };
    let written = guarded(|| {
        // SAFETY: inside `guarded`.
        unsafe {
            if row.nr == NR_WAIT4 {
                if status_at != 0 && child != 0 {
                    (status_at as *mut u32).write_unaligned(status);
                }
            } else if status_at != 0 {
                let (code, value) = match status & 0x7f {
                    0x7f if status == GOES_ON => (CONTINUED, SIGCONT),
                    0x7f => (STOPPED, status >> 8 & 0xff),
                    0 => (EXITED, status >> 8 & 0xff),
                    s if status & 0x80 != 0 => (DUMPED, s),
                    s => (KILLED, s),
                };
                let info = status_at as *mut u32;
                let words = if child <= 0 {
                    [0; 7]
                } else {
                    [SIGCHLD, 0, code, 0, child as u32, 0, value]
                };
                // signo, errno, code, (nothing,) pid, uid, status
                for w in [0, 1, 2, 4, 5, 6] {
                    info.add(w).write_unaligned(words[w]);
                }
            }
            if usage_at != 0 && child > 0 {
                (usage_at as *mut [u64; 18]).write_unaligned([0; 18]);
            }
        }
    });
    match (written, row.nr) {
        (false, _) => EFAULT,
        (true, NR_WAIT4) => child,
        (true, _) => child.min(0),
    }
}
