//! What a thread of several is about to write is copied first, and what is digested, confirmed and given to
//! the kernel is the copy. Other threads of the program may change the original meanwhile: it is their right
//! (a log's last block, of which only the beginning counts), and while the thread waits for the others, for
//! its turn or for the kernel, they do. The copy nobody writes to, so that what changes in it was hit.

use crate::access::word64;
use crate::gate::{guarded, real, rpc};
use crate::state::{Here, leads, private};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::layout::{
    COPIES_BASE, COPY_BYTES, LARGE_COPIES, LARGE_COPIES_BASE, LARGE_COPY_BYTES, MAX_THREADS,
    rpc as number,
};
use geryon_abi::outcome::keeps_pages;
use geryon_abi::row::{Class, Kind, Len, Row};
use geryon_abi::table::nr;

const MMAP: u64 = nr::mmap;
const MUNMAP: u64 = nr::munmap;
const PAGE: u64 = 4096;
/// Files that are read and written without the page cache want buffers at multiples of that.
const ALIGNED: u64 = 512;
const IOVEC_BYTES: u64 = 16;
const MSGHDR_BYTES: u64 = 56;

/// What one thread has copied.
struct Copied {
    /// 1 from the copying on until the call is over.
    active: AtomicU32,
    /// Which of the large areas it lies in, and one more; 0: in the thread's own.
    large: AtomicU32,
    /// Bytes that are mapped of the thread's own.
    mapped: AtomicU64,
    /// Where the thread stood in its log.
    at: AtomicU64,
    /// Bytes of the copy.
    bytes: AtomicU64,
    /// The program's arguments, and those with the copy.
    asked: [AtomicU64; 6],
    given: [AtomicU64; 6],
}

static COPIED: [Copied; MAX_THREADS] = [const {
    Copied {
        active: AtomicU32::new(0),
        large: AtomicU32::new(0),
        mapped: AtomicU64::new(0),
        at: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        asked: [const { AtomicU64::new(0) }; 6],
        given: [const { AtomicU64::new(0) }; 6],
    }
}; MAX_THREADS];

/// An area for what is large.
struct Area {
    /// 1: some thread has it.
    used: AtomicU32,
    /// Bytes that are mapped.
    mapped: AtomicU64,
}

static LARGE: [Area; LARGE_COPIES] = [const {
    Area {
        used: AtomicU32::new(0),
        mapped: AtomicU64::new(0),
    }
}; LARGE_COPIES];
/// So much of an area stays mapped when its call is over: to have it mapped and filled with zeros each time
/// takes longer than all the rest.
const KEPT: u64 = 64 << 20;

fn of(b: Here) -> &'static Copied {
    &COPIED[b.slot as usize % MAX_THREADS]
}

fn words(of: &[AtomicU64; 6]) -> [u64; 6] {
    [0, 1, 2, 3, 4, 5].map(|i: usize| of[i].load(Ordering::Relaxed))
}

fn set_words(of: &[AtomicU64; 6], to: &[u64; 6]) {
    for (word, to) in of.iter().zip(to) {
        word.store(*to, Ordering::Relaxed);
    }
}

/// Before a call is confirmed: the leader copies what it is given. The arguments with the copy; None where the
/// program's own memory will do, or has to. (`at`: where the call begins in the log.)
#[inline(always)]
pub fn take(b: Here, row: &Row, args: &[u64; 6], at: u64) -> Option<[u64; 6]> {
    if private().multi.get() == 0 || private().replicas == 1 || row.class != Class::Output {
        return None;
    }
    take_from(b, row, args, at)
}

#[inline(never)]
fn take_from(b: Here, row: &Row, args: &[u64; 6], at: u64) -> Option<[u64; 6]> {
    if let Some(given) = taken_before(b, args, at) {
        return Some(given);
    }
    done(b);
    if !leads() {
        return None;
    }
    let (i, source) = source(row, args)?;
    let bytes = source.bytes(args[i])?;
    let c = of(b);
    let base = c.room(b, bytes)?;
    let Some(place) = source.copy(args[i], base, base + bytes) else {
        c.free();
        return None;
    };
    let mut given = *args;
    given[i] = place;
    set_words(&c.asked, args);
    set_words(&c.given, &given);
    c.at.store(at, Ordering::Relaxed);
    c.bytes.store(bytes, Ordering::Relaxed);
    c.active.store(1, Ordering::Release);
    Some(given)
}

/// A copy of a leader's thread begins its call once more, as a follower: what the leader had copied then is
/// what the log knows.
fn taken_before(b: Here, args: &[u64; 6], at: u64) -> Option<[u64; 6]> {
    let c = of(b);
    let same = c.active.load(Ordering::Acquire) != 0
        && c.at.load(Ordering::Relaxed) == at
        && words(&c.asked) == *args;
    same.then(|| words(&c.given))
}

/// What the kernel is to be given for these arguments of a call that was confirmed.
#[inline(always)]
pub fn given(b: Here, args: &[u64; 6]) -> [u64; 6] {
    let c = of(b);
    if c.active.load(Ordering::Acquire) != 0 && words(&c.asked) == *args {
        words(&c.given)
    } else {
        *args
    }
}

/// The call is over, or will not be made.
#[inline(always)]
pub fn done(b: Here) {
    let c = of(b);
    if c.active.load(Ordering::Relaxed) != 0 {
        c.free();
    }
}

/// New leader, whose program has gone on to change what this thread is to write: take the copy that the
/// former leader had made. False where there is none. (Who takes it looks whether it is what was agreed on.)
#[cold]
pub fn inherit(b: Here, args: &[u64; 6]) -> bool {
    let c = of(b);
    c.free();
    let mapped = c.mapped.load(Ordering::Relaxed);
    let from = core::ptr::from_ref(c) as u64;
    rpc(number::INHERIT, from, size_of::<Copied>() as u64, 0);
    c.mapped.store(mapped, Ordering::Relaxed);
    let (large, bytes) = (
        c.large.swap(0, Ordering::Relaxed),
        c.bytes.load(Ordering::Relaxed),
    );
    let is_its = c.active.swap(0, Ordering::Relaxed) != 0
        && words(&c.asked) == *args
        && bytes <= LARGE_COPY_BYTES
        && large as usize <= LARGE_COPIES;
    if !is_its {
        return false;
    }
    // (All areas are as free here as they were there when the copy was made.)
    let base = match large as usize {
        0 => c.room(b, bytes),
        n if take_area(n - 1) => c.large_room(n - 1, bytes),
        _ => None,
    };
    let Some(base) = base else {
        return false;
    };
    rpc(number::INHERIT, base, bytes, 0);
    c.active.store(1, Ordering::Release);
    true
}

/// A forked child: nobody else is in the midst of writing there.
pub fn forget() {
    for c in &COPIED {
        if c.active.load(Ordering::Relaxed) != 0 {
            c.free();
        }
    }
}

fn large_area(n: usize) -> u64 {
    LARGE_COPIES_BASE + LARGE_COPY_BYTES * n as u64
}

/// Memory at an address that is nobody else's.
fn map(at: u64, bytes: u64) -> Option<u64> {
    const READ_WRITE: u64 = 3;
    /// MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS, MAP_POPULATE
    const HOW: u64 = 0x2 | 0x10 | 0x20 | 0x8000;
    let bytes = bytes.next_multiple_of(PAGE);
    (real(MMAP, [at, bytes, READ_WRITE, HOW, u64::MAX, 0]) == at as i64).then_some(at)
}

impl Copied {
    /// Room for so many bytes.
    fn room(&self, b: Here, bytes: u64) -> Option<u64> {
        if bytes > LARGE_COPY_BYTES {
            return None;
        }
        if bytes > COPY_BYTES {
            let n = (0..LARGE_COPIES).find(|n| take_area(*n))?;
            return self.large_room(n, bytes);
        }
        let base = COPIES_BASE + COPY_BYTES * (b.slot as u64 % MAX_THREADS as u64);
        let mapped = self.mapped.load(Ordering::Relaxed);
        if bytes > mapped {
            let more = bytes.next_power_of_two().clamp(16 * PAGE, COPY_BYTES);
            map(base + mapped, more - mapped)?;
            self.mapped.store(more, Ordering::Relaxed);
        }
        Some(base)
    }

    /// Room in a large area that this thread has taken.
    fn large_room(&self, n: usize, bytes: u64) -> Option<u64> {
        let (area, at) = (&LARGE[n], large_area(n));
        let mapped = area.mapped.load(Ordering::Relaxed);
        let wanted = bytes.next_multiple_of(PAGE);
        if wanted > mapped {
            if map(at + mapped, wanted - mapped).is_none() {
                area.used.store(0, Ordering::Release);
                return None;
            }
            area.mapped.store(wanted, Ordering::Relaxed);
        }
        self.large.store(n as u32 + 1, Ordering::Relaxed);
        Some(at)
    }

    fn free(&self) {
        self.active.store(0, Ordering::Relaxed);
        let large = self.large.swap(0, Ordering::Relaxed) as usize;
        if large != 0 && large <= LARGE_COPIES {
            let area = &LARGE[large - 1];
            let mapped = area.mapped.load(Ordering::Relaxed);
            if mapped > KEPT {
                real(MUNMAP, [large_area(large - 1), mapped, 0, 0, 0, 0]);
                area.mapped.store(0, Ordering::Relaxed);
            }
            area.used.store(0, Ordering::Release);
        }
    }
}

/// True if nobody else had it.
fn take_area(n: usize) -> bool {
    LARGE[n].used.swap(1, Ordering::Acquire) == 0
}

/// What is copied of a call's argument.
#[derive(Clone, Copy)]
enum Source {
    /// So many bytes.
    Bytes(u64),
    /// An array of so many `struct iovec`.
    Vector(u64),
    /// A `struct msghdr`; its name and its control data stay where they are.
    Message,
}

/// The first argument that holds what goes out.
fn source(row: &Row, args: &[u64; 6]) -> Option<(usize, Source)> {
    if keeps_pages(row, args) {
        return None;
    }
    (0..row.args.len()).find_map(|i| {
        let source = match row.args[i].kind {
            Kind::In(len @ (Len::Arg(_) | Len::ArgPlus(..))) => Source::Bytes(row.given(len, args)),
            Kind::SockaddrIn(n) => Source::Bytes(u64::from(args[n as usize] as u32)),
            Kind::IovecIn(n) => Source::Vector(args[n as usize]),
            Kind::MsghdrIn => Source::Message,
            _ => return None,
        };
        (args[i] != 0).then_some((i, source))
    })
}

impl Source {
    /// The room that it wants. None where it is not there, too much, or nothing: the kernel looks at the address of
    /// nothing, too.
    fn bytes(self, at: u64) -> Option<u64> {
        const MOST: u64 = 0x7fff_f000;
        const MOST_BUFFERS: u64 = 1024;
        match self {
            Source::Bytes(len) => (1..=MOST).contains(&len).then_some(len + PAGE),
            Source::Vector(count) => {
                if count == 0 || count > MOST_BUFFERS {
                    return None;
                }
                let mut sum = count * IOVEC_BYTES;
                for k in 0..count {
                    let len = word64(at + IOVEC_BYTES * k + 8)?;
                    sum = sum.checked_add(len)?.checked_add(2 * ALIGNED)?;
                }
                (sum <= MOST).then_some(sum)
            }
            Source::Message => {
                let inner = Source::Vector(word64(at.wrapping_add(24))?).bytes(word64(at + 16)?)?;
                Some(inner + 2 * MSGHDR_BYTES)
            }
        }
    }

    /// Copy it to `to`; where the copy begins. None where it is not there, or reaches beyond `end`.
    fn copy(self, at: u64, to: u64, end: u64) -> Option<u64> {
        match self {
            Source::Bytes(len) => {
                let place = to + at % PAGE;
                copy(at, place, len, end).then_some(place)
            }
            Source::Vector(count) => {
                let len = count * IOVEC_BYTES;
                copy(at, to, len, end).then_some(())?;
                let mut free = to + len;
                for k in 0..count {
                    let entry = to + IOVEC_BYTES * k;
                    let (from, len) = (word64(entry)?, word64(entry + 8)?);
                    if len == 0 {
                        continue;
                    }
                    let place = free.next_multiple_of(ALIGNED) + from % ALIGNED;
                    copy(from, place, len, end).then_some(())?;
                    set_word64(entry, place);
                    free = place + len;
                }
                Some(to)
            }
            Source::Message => {
                copy(at, to, MSGHDR_BYTES, end).then_some(())?;
                let vector = to + MSGHDR_BYTES;
                Source::Vector(word64(to + 24)?).copy(word64(to + 16)?, vector, end)?;
                set_word64(to + 16, vector);
                Some(to)
            }
        }
    }
}

/// A word of the copy.
fn set_word64(at: u64, to: u64) {
    // SAFETY: `at` lies in an area of this module that has been mapped, and that this thread has taken.
    unsafe { (at as *mut u64).write_unaligned(to) }
}

/// False where the program's memory is not there, or there is no room: a length may have changed since it
/// was looked at.
fn copy(from: u64, to: u64, len: u64, end: u64) -> bool {
    let fits = to.checked_add(len).is_some_and(|until| until <= end);
    fits && guarded(|| {
        // SAFETY: inside `guarded`, for the program's memory; up to `end` it is an area of this module.
        unsafe { core::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, len as usize) }
    })
}
