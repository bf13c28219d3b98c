//! The test-only hook: one replica misbehaves at a chosen output call, as a fault would make it.

use crate::call::rendezvous;
use crate::gate::{guarded, real};
use crate::state::private;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::sabotage as what;
use geryon_abi::row::{Kind, Property, Row};
use geryon_abi::table::nr;

const NR_WRITE: u16 = nr::write as u16;
const NR_PWRITE64: u16 = nr::pwrite64 as u16;
const NR_WRITEV: u16 = nr::writev as u16;
const NR_GETTIMEOFDAY: u16 = nr::gettimeofday as u16;

/// At the start of an output call.
#[inline(always)]
pub fn maybe(frame: &mut Frame, row: &Row) {
    // (What only closes a descriptor is no output of the program.)
    if private().sabotage.get() != what::NONE && !row.is(Property::Closes) {
        count(frame, row);
    }
}

#[cold]
fn count(frame: &mut Frame, row: &Row) {
    let p = private();
    if p.sabotage.get() == what::UNCHECKED {
        return;
    }
    let nth = p.calls.fetch_add(1, Ordering::Relaxed) + 1;
    let due = match p.sabotage_core.get() {
        what::ONCE => nth == p.sabotage_at.get(),
        what::ALWAYS => nth >= p.sabotage_at.get(),
        core => nth >= p.sabotage_at.get() && this_core() == core,
    };
    if !due {
        return;
    }
    let kind = p.sabotage.get();
    p.sabotage.set(what::NONE);
    match kind {
        what::ARGUMENT => flip_argument(frame, row),
        what::CONTENT => flip_content(frame, row),
        what::ORDER => {
            rendezvous(frame, NR_GETTIMEOFDAY, 0, frame.args());
        }
        what::EXTRA => {
            let digest = crate::marshal::digest(row, &frame.args());
            rendezvous(frame, row.nr, digest, frame.args());
        }
        what::CRASH => {
            // SAFETY: none: the fault is the purpose.
            unsafe { core::ptr::null_mut::<u32>().write_volatile(1) }
        }
        what::HANG => loop {
            real(nr::sched_yield, [0; 6]);
        },
        _ => {}
    }
}

/// The core that this thread runs on.
fn this_core() -> u32 {
    let mut core = u32::MAX;
    real(nr::getcpu, [&raw mut core as u64, 0, 0, 0, 0, 0]);
    core
}

/// The canary of fault campaigns: in the leader, when the output is confirmed and before it is made.
/// Where a byte was changed; 0: nowhere.
#[inline(always)]
pub fn unchecked(row: &Row, args: &[u64; 6]) -> u64 {
    if private().sabotage.get() != what::UNCHECKED {
        return 0;
    }
    spoil(row, args)
}

#[cold]
fn spoil(row: &Row, args: &[u64; 6]) -> u64 {
    let at = match row.nr {
        NR_WRITE | NR_PWRITE64 if args[2] != 0 => args[1],
        // SAFETY: the first buffer of an array that the kernel is about to read.
        NR_WRITEV if args[2] != 0 => unsafe { *(args[1] as *const u64) },
        _ => return 0,
    };
    if !flip(at) {
        // A constant: the next output will do.
        return 0;
    }
    private().sabotage.set(what::NONE);
    // (As if it had changed behind the last look.)
    crate::state::block().agreed = crate::marshal::digest(row, args);
    at
}

/// The program's memory is as it was: only what has left is wrong.
#[inline(always)]
pub fn flip_back(at: u64) {
    if at != 0 {
        flip(at);
    }
}

/// Flip the lowest bit of a byte, if it can be written.
fn flip(at: u64) -> bool {
    let flip = || {
        // SAFETY: inside `guarded`; the fault is the purpose.
        unsafe { *(at as *mut u8) ^= 1 }
    };
    at != 0 && guarded(flip)
}

/// Flip the lowest bit of the last argument.
fn flip_argument(frame: &mut Frame, row: &Row) {
    match row.args.len() {
        0 | 1 => frame.rdi ^= 1,
        2 => frame.rsi ^= 1,
        _ => frame.rdx ^= 1,
    }
}

/// Flip a bit in the first buffer that goes out.
fn flip_content(frame: &mut Frame, row: &Row) {
    let args = frame.args();
    for (i, a) in row.args.iter().enumerate() {
        let at = match a.kind {
            Kind::In(_) | Kind::SockaddrIn(_) | Kind::Path => args[i],
            // SAFETY: the first buffer of an array that the kernel is about to read.
            Kind::IovecIn(_) => unsafe { *(args[i] as *const u64) },
            _ => continue,
        };
        if flip(at) {
            return;
        }
    }
    flip_argument(frame, row);
}
