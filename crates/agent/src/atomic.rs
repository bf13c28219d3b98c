//! Rewritten atomic instructions: the operation and its tick together, on a hashed clock; the
//! replay is value-checked (design, section 4). Also the instructions whose value is an input:
//! rdtsc, rdtscp, rdrand, rdseed; and what xsavec leaves.

mod again;
mod compute;
mod decode;
mod load;
mod operand;
mod passed;
mod plain;
mod replay;
mod saved;
mod stub;
#[cfg(test)]
mod tests;
mod vain;
mod value;
mod waiting;
mod wide;

use crate::log::hold_if_late;
use crate::state::{block, leads};
use compute::apply_cmpxchg;
use decode::{Descriptor, Saved, compare_operands, op, target};
use operand::{exchange, is_writable};
use replay::{follow, lead};
pub use waiting::Waiting;
use wide::wide;

/// What the stub is told: the instruction has been made.
const MADE: u32 = 0;
/// It is left to the original one.
const BY_ITSELF: u32 = 1;
/// A handler runs first, then it is made.
const SIGNAL: u32 = 2;

/// `hook`: where the hooked function has been called in whose original the thread is, or 0.
#[unsafe(no_mangle)]
pub(in crate::atomic) extern "C" fn geryon_on_atomic(
    s: &mut Saved,
    d: &Descriptor,
    address: u64,
    hook: u64,
) -> u32 {
    let at = target(d, s, address);
    let outcome = match d.op {
        n if op::loads(n) => load::ordered(s, d, at, hook == 0),
        // A place where a loop waits, in code that was mapped on the way from clocks to serial order.
        op::PAUSE | op::MAY_WAIT => BY_ITSELF,
        op::STORE if !is_writable(at, d.size) => BY_ITSELF,
        _ => {
            on_operation(s, d, at);
            MADE
        }
    };
    hold_if_late(block());
    outcome
}

fn on_operation(s: &mut Saved, d: &Descriptor, at: u64) {
    if d.op == op::CMPXCHG16B {
        return wide(s, d, at);
    }
    let compares = matches!(d.op, op::CMPXCHG | op::CMPXCHG8B);
    if toggles_own_cancellation(s, d, at) {
        let (expected, new) = compare_operands(s, d);
        let seen = exchange(at, d.size, expected, new);
        return apply_cmpxchg(d, s, expected, seen);
    }
    if leads() || !follow(s, d, at, compares) {
        lead(s, d, at, compares)
    }
}

/// Around every cancellable call glibc sets and clears the "asynchronous" bit of the thread's own
/// descriptor. Nobody else looks at it unless pthread_cancel is used, and how often a wait loops
/// is each replica's own affair: no order.
fn toggles_own_cancellation(s: &Saved, d: &Descriptor, at: u64) -> bool {
    /// Bytes of glibc's thread descriptor, from the thread pointer on.
    const DESCRIPTOR: u64 = 0x900;
    const ASYNCHRONOUS: u64 = 2;
    if d.op != op::CMPXCHG || d.size != 4 {
        return false;
    }
    let base: u64;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags));
    }
    let (expected, new) = compare_operands(s, d);
    at.wrapping_sub(base) < DESCRIPTOR && expected ^ new == ASYNCHRONOUS
}

/// A hash of the place in the program's file, for the record: another path shows at once.
fn site(d: &Descriptor) -> u16 {
    (d.vaddr ^ d.vaddr >> 16) as u16
}
