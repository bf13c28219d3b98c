//! Memory that the program has named. Nothing says that it is there: whoever looks at it here gets an
//! answer, and no fault. What the kernel does with a bad pointer (EFAULT, bytes up to the end of a page) the
//! program then sees as from the kernel.

use crate::gate::guarded;
use crate::state::{block, layout};
use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::layout::MAX_THREADS;

const PAGE: u64 = 4096;
/// Above this no program has memory.
pub const END: u64 = 0x7fff_ffff_f000;

/// The word at an address, if it is there.
#[inline(always)]
pub fn word32(address: u64) -> Option<u32> {
    let mut word = 0;
    // SAFETY: inside `guarded`.
    guarded(|| word = unsafe { (address as *const u32).read_unaligned() }).then_some(word)
}

/// The same of 64 bits.
#[inline(always)]
pub fn word64(address: u64) -> Option<u64> {
    let mut word = 0;
    // SAFETY: inside `guarded`.
    guarded(|| word = unsafe { (address as *const u64).read_unaligned() }).then_some(word)
}

/// How many of these bytes can be read, from the first one on.
#[inline]
pub fn readable(address: u64, len: u64) -> u64 {
    if len == 0 || address >= END {
        return 0;
    }
    let end = address.saturating_add(len).min(END);
    let mut at = address;
    guarded(|| {
        while at < end {
            // SAFETY: inside `guarded`; `at` is written before each access, not kept in a register.
            unsafe {
                (&raw mut at).write_volatile(at);
                (at as *const u8).read_volatile();
            }
            at = next_page(at);
        }
    });
    // SAFETY: a local variable: a fault has left it where it was noted.
    unsafe { (&raw const at).read_volatile() }.min(end) - address
}

/// Where the next page begins.
fn next_page(at: u64) -> u64 {
    (at | (PAGE - 1)) + 1
}

/// Put a byte there, where it differs from what is there. False where that cannot be done.
fn put_byte(address: u64, byte: u8) -> bool {
    let mut same = false;
    let at = address as *mut u8;
    // SAFETY: inside `guarded`.
    let there = guarded(|| same = unsafe { at.read_volatile() } == byte);
    // SAFETY: inside `guarded`.
    there && (same || guarded(|| unsafe { at.write_volatile(byte) }))
}

/// What a word means here that the leader has, and that may be an address or any number that looks like one (a count
/// above an index, say): it is an address if it leads somewhere.
pub fn here(word: u64) -> u64 {
    let place = layout().place(word);
    if place != word && readable(place, 1) != 0 {
        place
    } else {
        word
    }
}

/// Put bytes where a copy of them has failed: the kernel has stopped, too, where it could not write, and
/// what lies there is what the others have, or the digest behind the record says so.
#[cold]
pub fn put_what_differs(address: u64, bytes: &[u8]) {
    for (at, byte) in (address..).zip(bytes) {
        put_byte(at, *byte);
    }
}

/// No packet is larger.
pub const LARGEST: u64 = 1 << 16;

/// Changes whenever memory may have become one that cannot be written.
static MAPPINGS: AtomicU64 = AtomicU64::new(1);

/// The program has asked for a change of its memory.
pub fn mappings_change() {
    MAPPINGS.fetch_add(1, Ordering::SeqCst);
}

/// What a thread has found to be writable.
struct Known {
    from: AtomicU64,
    to: AtomicU64,
    mappings: AtomicU64,
}

static KNOWN: [Known; MAX_THREADS] = [const {
    Known {
        from: AtomicU64::new(0),
        to: AtomicU64::new(0),
        mappings: AtomicU64::new(0),
    }
}; MAX_THREADS];

/// A call has put `done` bytes to a buffer of `most`, and says so. How many bytes behind them it may have
/// written, too? It has where it had more, and came to memory that it could not write: what it has copied of
/// a packet, or of an entry of a directory, up to there is not counted.
pub fn written_beyond(address: u64, done: u64, most: u64) -> u64 {
    let behind = address.saturating_add(done);
    let end = address
        .saturating_add(most)
        .min(behind.saturating_add(LARGEST));
    match first_unwritable(behind.next_multiple_of(PAGE), end) {
        Some(there) => there - behind,
        None => 0,
    }
}

/// Behind the first `done` bytes of a buffer of `most`, which the kernel has just written: is all of it memory that can
/// be written, as far as one call writes?
pub fn is_writable_behind(address: u64, done: u64, most: u64) -> bool {
    let behind = address.saturating_add(done);
    let end = address
        .saturating_add(most)
        .min(behind.saturating_add(LARGEST));
    let first = match done {
        0 => behind & !(PAGE - 1),
        _ => behind.next_multiple_of(PAGE),
    };
    first_unwritable(first, end).is_none()
}

/// Where memory that can be written ends, from the begin of a page on; None where all of it can be.
fn first_unwritable(first: u64, end: u64) -> Option<u64> {
    if first >= end {
        return None;
    }
    let known = &KNOWN[block().slot as usize % MAX_THREADS];
    let mappings = MAPPINGS.load(Ordering::SeqCst);
    if known.mappings.load(Ordering::Relaxed) == mappings
        && (known.from.load(Ordering::Relaxed)..=known.to.load(Ordering::Relaxed)).contains(&first)
        && end <= known.to.load(Ordering::Relaxed)
    {
        return None;
    }
    let there = writable(first, end);
    if there < end {
        return Some(there);
    }
    known.from.store(first, Ordering::Relaxed);
    known.to.store(end, Ordering::Relaxed);
    known.mappings.store(mappings, Ordering::Relaxed);
    None
}

/// Up to where memory can be written, from a page's begin on. What lies there stays as it is, whoever else
/// writes to it at the same time.
fn writable(from: u64, end: u64) -> u64 {
    let mut at = from;
    guarded(|| {
        while at < end {
            // SAFETY: inside `guarded`; nothing is changed. `at` is written before each access.
            unsafe {
                (&raw mut at).write_volatile(at);
                core::arch::asm!("lock or byte ptr [{}], 0", in(reg) at, options(nostack));
            }
            at += PAGE;
        }
    });
    // SAFETY: a local variable: a fault has left it where it was noted.
    unsafe { (&raw const at).read_volatile() }.min(end)
}
