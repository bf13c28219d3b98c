//! The filters of a thread, one behind the other (see `geryon_abi::layout::filter`).
//!
//! They are added without a lock, which a copy of this process might find taken for ever: who adds one takes its place
//! first, and says how many instructions it has when all the rest is there.

use super::action::action_of;
use super::check::is_filter;
use super::operation::{Data, run};
use crate::gate::{guarded, real};
use crate::state::private;
use crate::stop::broken;
use core::sync::atomic::Ordering;
use geryon_abi::layout::filter::{
    FILTERS_BASE, FILTERS_BYTES, FIRST_ADDRESS, Filter, HEAD_BYTES, Instruction, MAX_WEIGHT,
    PENALTY, bytes_of, is_place,
};
use geryon_abi::table::nr;

const ENOMEM: i64 = -12;
const EFAULT: i64 = -14;
const EEXIST: i64 = -17;
const EINVAL: i64 = -22;
/// SECCOMP_RET_ALLOW.
const ALLOW: u32 = 0x7fff_0000;

/// What the filters say of a call, from the newest one on: of the gravest, the first.
pub fn verdict(newest: u64, data: &Data) -> u32 {
    let mut verdict = ALLOW;
    for (_, program) in of(newest) {
        let Some(said) = run(program, data) else {
            broken();
        };
        if action_of(said) < action_of(verdict) {
            verdict = said;
        }
    }
    verdict
}

/// Has a thread whose newest filter is `newest` this one, too?
pub fn has(newest: u64, filter: u64) -> bool {
    of(newest).any(|(address, _)| address == filter)
}

/// The filters from this one on, with their addresses.
fn of(newest: u64) -> impl Iterator<Item = (u64, &'static [Instruction])> {
    let mut at = newest;
    core::iter::from_fn(move || {
        if at < FIRST_ADDRESS {
            return None;
        }
        let (head, program) = filter_at(at).unwrap_or_else(|| broken());
        let address = at;
        // (Each lies behind the one before it: there is no round.)
        at = head.before.get();
        if at >= address {
            broken();
        }
        Some((address, program))
    })
}

/// The complete filter there; None while there is none.
fn filter_at(address: u64) -> Option<(&'static Filter, &'static [Instruction])> {
    if !is_place(address, 0) {
        broken();
    }
    // SAFETY: in the area, which is mapped for good with its first filter.
    let head = unsafe { &*(address as *const Filter) };
    let count = head.count.load(Ordering::Acquire);
    if count == 0 {
        return None;
    }
    if !is_place(address, count) {
        broken();
    }
    let first = (address + HEAD_BYTES) as *const Instruction;
    // SAFETY: in the area; a filter that is complete does not change.
    let program = unsafe { core::slice::from_raw_parts(first, count as usize) };
    Some((head, program))
}

/// Add the filter whose instructions the program has at `from` to those of a thread whose newest one is `before`. Its
/// address, or an errno.
pub fn add(before: u64, from: u64, count: u32) -> Result<u64, i64> {
    let area = &private().filters_end;
    if area.load(Ordering::Acquire) == 0 {
        map()?;
    }
    let bytes = bytes_of(count);
    let place = area.fetch_add(bytes, Ordering::AcqRel);
    if !is_place(place, count) {
        area.fetch_sub(bytes, Ordering::AcqRel);
        return Err(ENOMEM);
    }
    let written = fill(place, before, from, count);
    let known = written.map(|()| known(place, before, count));
    match known {
        Ok(None) => {
            // SAFETY: this thread's place, whose head is written.
            let head = unsafe { &*(place as *const Filter) };
            head.count.store(count, Ordering::Release);
            Ok(place)
        }
        Ok(Some(same)) => {
            give_back(place, bytes);
            Ok(same)
        }
        Err(errno) => {
            give_back(place, bytes);
            Err(errno)
        }
    }
}

/// Map the area. (Another thread may do so at the same time.)
fn map() -> Result<(), i64> {
    const RW: u64 = 3;
    /// MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_FIXED_NOREPLACE.
    const FLAGS: u64 = 2 | 0x20 | 0x4000 | 0x10_0000;
    let args = [FILTERS_BASE, FILTERS_BYTES, RW, FLAGS, u64::MAX, 0];
    let got = real(nr::mmap, args);
    if got < 0 && got != EEXIST {
        return Err(got);
    }
    // (An error says that another thread has done it.)
    let _ = private().filters_end.compare_exchange(
        0,
        FILTERS_BASE,
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    Ok(())
}

/// Put everything there but the number of its instructions.
fn fill(place: u64, before: u64, from: u64, count: u32) -> Result<(), i64> {
    let mut weight = count;
    for (_, program) in of(before) {
        weight = weight.saturating_add(program.len() as u32 + PENALTY);
    }
    let first = (place + HEAD_BYTES) as *mut Instruction;
    let copied = guarded(|| {
        // SAFETY: inside `guarded`; the place is this thread's.
        unsafe {
            core::ptr::copy_nonoverlapping(
                from as *const u8,
                first.cast::<u8>(),
                count as usize * size_of::<Instruction>(),
            );
        }
    });
    if !copied {
        return Err(EFAULT);
    }
    // SAFETY: this thread's place, which was filled just now.
    let program = unsafe { core::slice::from_raw_parts(first, count as usize) };
    if !is_filter(program) {
        return Err(EINVAL);
    }
    if weight > MAX_WEIGHT {
        return Err(ENOMEM);
    }
    // SAFETY: this thread's place.
    let head = unsafe { &*(place as *const Filter) };
    head.before.set(before);
    head.weight.set(weight);
    Ok(())
}

/// The filter that is the same as what was put there, if some thread has added one with the same ones before it: threads
/// that come and go, each with its own, take no more room than one.
fn known(place: u64, before: u64, count: u32) -> Option<u64> {
    let first = (place + HEAD_BYTES) as *const Instruction;
    // SAFETY: this thread's place, which is filled.
    let wanted = unsafe { core::slice::from_raw_parts(first, count as usize) };
    let mut at = FILTERS_BASE;
    while at < place {
        // (Where one is not complete yet nobody knows what follows.)
        let (head, program) = filter_at(at)?;
        if head.before.get() == before && program == wanted {
            return Some(at);
        }
        at += bytes_of(program.len() as u32);
    }
    None
}

/// The place is not needed. (It stays empty if another thread has taken the next one.)
fn give_back(place: u64, bytes: u64) {
    // SAFETY: this thread's place.
    unsafe { core::ptr::write_bytes(place as *mut u8, 0, bytes as usize) };
    let _ = private().filters_end.compare_exchange(
        place + bytes,
        place,
        Ordering::AcqRel,
        Ordering::Acquire,
    );
}
