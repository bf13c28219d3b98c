//! Calls that change something of one thread: executed in every replica, with the leader's result.

use crate::call::{complete, finish_for_good, input};
use crate::compare::expect;
use crate::gate::real;
use crate::marshal::{self, Before};
use crate::raise;
use crate::state::{block, leads, private};
use core::arch::asm;
use geryon_abi::frame::Frame;
use geryon_abi::record::kind;
use geryon_abi::row::Row;

/// set_tid_address: local effect everywhere, the leader's id as the result.
pub fn set_tid_address(frame: &mut Frame, row: &'static Row) {
    let mut b = block();
    b.clear_tid = frame.rdi;
    if private().tid_offset.get() == 0 && b.slot == 0 {
        let base: u64;
        // SAFETY: reads a register.
        unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
        let offset = frame.rdi.wrapping_sub(base);
        if base != 0 && offset < 4096 {
            private().tid_offset.set(offset);
        }
    }
    if !leads() {
        real(row.nr as u64, frame.args());
    }
    input(frame, row);
}

/// rt_sigprocmask: executed everywhere, but logged, for it may let a signal in; and where it only asks,
/// the signal that waits comes first.
pub fn sigprocmask(frame: &mut Frame, row: &'static Row) {
    let args = frame.args();
    let b = block();
    // The order matters only for signals, and those come from the log.
    let digest = marshal::digest(row, &args);
    let shown = [args[0], args[1], args[2], args[3], 0, 0];
    if !leads()
        && let Some((first, [])) = expect(b, frame, kind::CALL, row.nr, digest, &shown)
    {
        real(row.nr as u64, args);
        return finish_for_good(b, frame, row, first);
    }
    crate::serial::gives_way(b);
    raise::lead_signal_before(b, frame);
    let mut result = real(row.nr as u64, args);
    while args[1] == 0 && raise::pending(b) {
        // While it waits all others are shut out, which is nothing for the program to see.
        raise::lead_signal_before(b, frame);
        result = real(row.nr as u64, args);
    }
    let k = kind::CALL;
    complete(b, frame, row, k, Some(digest), result, &Before::default());
}
