//! PR_SET_PDEATHSIG: a thread wants to be told when its process's parent ends. To the kernel the parent of a replica may be
//! another replica, whose end is none of the program's: it is not asked, and the monitor sends the signal.

use crate::gate::{guarded, rpc};
use crate::state::{Here, block};
use geryon_abi::frame::Frame;
use geryon_abi::layout::rpc as number;

const PR_SET_PDEATHSIG: u32 = 1;
const PR_GET_PDEATHSIG: u32 = 2;
const MOST: u64 = 64;
const EFAULT: i64 = -14;
const EINVAL: i64 = -22;

/// A prctl(2) that concerns this signal; false for any other one.
pub fn prctl(frame: &mut Frame) -> bool {
    let mut b = block();
    let value = frame.rsi;
    frame.rax = match frame.rdi as u32 {
        PR_SET_PDEATHSIG if value > MOST => EINVAL as u64,
        PR_SET_PDEATHSIG => {
            b.at_parents_end = 1 + value as u32;
            0
        }
        PR_GET_PDEATHSIG => {
            let signal = b.at_parents_end.saturating_sub(1);
            // SAFETY: inside `guarded`.
            let tell = || unsafe { (value as *mut u32).write_unaligned(signal) };
            if guarded(tell) { 0 } else { EFAULT as u64 }
        }
        _ => return false,
    };
    true
}

/// The thread is about to have another program, in which that holds, too.
pub fn executes(b: Here) {
    if b.at_parents_end != 0 {
        rpc(number::AT_PARENTS_END, b.at_parents_end.into(), 0, 0);
    }
}
