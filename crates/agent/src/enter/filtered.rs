//! What comes of a call that a seccomp filter of the program does not let pass.

use crate::gate::real;
use crate::raise::{self, together::Together};
use crate::seccomp::{ARCHITECTURE, Action, judge};
use crate::state::{Here, block, private};
use crate::stop::broken;
use crate::thread::is_single;
use geryon_abi::frame::Frame;
use geryon_abi::layout::filter::{ENDS_PROCESS, KILLS_THREAD, NONE};
use geryon_abi::layout::{Siginfo, vforked};
use geryon_abi::table;
use geryon_abi::table::nr;

const SIGKILL: u64 = 9;
const SIGSYS: u64 = 31;
const SIGSYS_BIT: u64 = 1 << (SIGSYS - 1);

/// May the call in the frame be made? If not, the frame has its result.
#[inline(always)]
pub fn passes(frame: &mut Frame) -> bool {
    match block().filter {
        NONE => true,
        filter => enact(frame, filter),
    }
}

#[cold]
fn enact(frame: &mut Frame, filter: u64) -> bool {
    match judge(filter, frame) {
        Action::Allow => true,
        Action::Answer(result) => {
            frame.rax = result as u64;
            false
        }
        Action::Trap(number) => trap(frame, number),
        Action::End(how) => end(frame, how),
    }
}

/// The handler of SIGSYS runs, where the call would return with its own number. Where none can run the process ends.
fn trap(frame: &mut Frame, number: u32) -> ! {
    let mut action = [0u64; 4];
    real(
        nr::rt_sigaction,
        [SIGSYS, 0, action.as_mut_ptr() as u64, 8, 0, 0],
    );
    let mut mask = 0u64;
    real(nr::rt_sigprocmask, [0, 0, &raw mut mask as u64, 8, 0, 0]);
    /// SIG_DFL and SIG_IGN: no handlers.
    const LAST_OF_NONE: u64 = 1;
    // SAFETY: local variables, which the kernel has written.
    let (handler, mask) = unsafe {
        (
            (&raw const action[0]).read_volatile(),
            (&raw const mask).read_volatile(),
        )
    };
    if handler <= LAST_OF_NONE || mask & SIGSYS_BIT != 0 {
        end(frame, ENDS_PROCESS);
    }
    let info = told(frame, number);
    raise::deliver(frame, &Together::alone(info))
}

/// What the handler is told: number, place and architecture of the call, and the filter's number as an errno.
fn told(frame: &Frame, number: u32) -> Siginfo {
    const SYS_SECCOMP: u64 = 1;
    let mut info = [0; 16];
    info[0] = SIGSYS | u64::from(number) << 32;
    info[1] = SYS_SECCOMP;
    info[2] = frame.rcx;
    info[3] = frame.rax | u64::from(ARCHITECTURE) << 32;
    Siginfo(info)
}

/// The thread makes the call by which it, or its process, ends as `how` says (see `geryon_abi::layout::filter`), and no other
/// one from now on, whatever handlers run before that. (It may be another thread that takes the signal.)
fn end(frame: &mut Frame, how: u64) -> ! {
    let mut b = block();
    b.filter = how;
    let signal = match how {
        KILLS_THREAD => SIGKILL,
        _ => SIGSYS,
    };
    loop {
        let nr = if how != ENDS_PROCESS && b.vforked == vforked::NOT && !is_single() {
            frame.rdi = signal;
            nr::exit
        } else {
            if signal == SIGSYS {
                expose();
            }
            frame.rdi = u64::from(own_id(b));
            frame.rsi = signal;
            nr::kill
        };
        frame.rax = nr;
        match table::row(nr) {
            Some(row) => super::dispatch(frame, row),
            None => broken(),
        }
    }
}

/// The signal is neither caught nor blocked.
fn expose() {
    const SIG_UNBLOCK: u64 = 1;
    let action = [0u64; 4];
    let at = (&raw const action) as u64;
    real(nr::rt_sigaction, [SIGSYS, at, 0, 8, 0, 0]);
    let mask = SIGSYS_BIT;
    let at = &raw const mask as u64;
    real(nr::rt_sigprocmask, [SIG_UNBLOCK, at, 0, 8, 0, 0]);
}

/// What the program calls this process.
fn own_id(b: Here) -> u32 {
    match b.vforked {
        vforked::NOT => private().shown_pid.get(),
        _ => b.shown_tid,
    }
}
