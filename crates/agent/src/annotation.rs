//! What the program itself says about the order of its threads (`include/geryon.h`).

use crate::gate::guarded;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::annotation::{IS_HERE, NUMBER, RELAX};
use geryon_abi::frame::Frame;

const EINVAL: i64 = -22;

/// Where in a mutex its kind lies; 0 is an ordinary one.
const KIND: u64 = 16;
/// And a field that glibc does not use in such a one.
const FREE: u64 = 32;
/// There: it is taken out of order.
const RELAXED: u64 = 0x7865_6c61_7265_7279;

/// A prctl(2) of that header's; false for any other one. (All replicas say the same, and the kernel is not asked.)
pub fn prctl(frame: &mut Frame) -> bool {
    if frame.rdi as u32 != NUMBER {
        return false;
    }
    let result = match frame.rsi {
        IS_HERE => 1,
        RELAX if relax(frame.rdx) => 0,
        _ => EINVAL,
    };
    frame.rax = result as u64;
    true
}

/// From now on nobody repeats in which order this mutex is taken. False: it is none of an ordinary kind.
fn relax(mutex: u64) -> bool {
    let mut is_ordinary = false;
    let is_there = mutex.is_multiple_of(8)
        && guarded(|| {
            is_ordinary = kind(mutex).load(Ordering::Relaxed) == 0;
            if is_ordinary {
                free(mutex).store(RELAXED, Ordering::Relaxed);
            }
        });
    is_there && is_ordinary
}

/// Is this mutex, which the program uses, taken out of order?
#[inline(always)]
pub fn is_relaxed(mutex: u64) -> bool {
    free(mutex).load(Ordering::Relaxed) == RELAXED && kind(mutex).load(Ordering::Relaxed) == 0
}

fn kind(mutex: u64) -> &'static AtomicU32 {
    // SAFETY: a field of a live, aligned mutex, or inside `guarded`.
    unsafe { &*((mutex + KIND) as *const AtomicU32) }
}

fn free(mutex: u64) -> &'static AtomicU64 {
    // SAFETY: as above.
    unsafe { &*((mutex + FREE) as *const AtomicU64) }
}
