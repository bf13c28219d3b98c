//! A group's shared segment, as the monitor sees it.

use crate::image::memfd;
use anyhow::{Context, Result};
use geryon_abi::layout::{
    ABI_VERSION, HEADER_BYTES, Header, LONG_RING_WORDS, MAX_THREADS, RingControl, SEGMENT_BASE,
    ring_stride, segment_bytes, stamps_address, strict,
};
use geryon_abi::point::FaultPoint;
use geryon_ring::seats;
use geryon_tracee::points;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The memfd and the monitor's mapping of it.
pub struct Segment {
    file: File,
    base: *mut u8,
    /// Words in each ring.
    words: usize,
}

impl Segment {
    /// A new segment for `replicas` replicas with the given leader, its rings of `words` words each.
    ///
    /// # Errors
    /// When memory or descriptors are short.
    pub fn new(
        words: usize,
        replicas: u32,
        alive: u32,
        leader: u32,
        taken_over: bool,
    ) -> Result<Segment> {
        let file = memfd("geryon-log")?;
        file.set_len(segment_bytes(words))
            .context("sizing the log segment")?;
        if points::fails(FaultPoint::SegmentUnmapped) {
            return Err(Error::from_raw_os_error(libc::ENOMEM)).with_context(|| unmapped(words));
        }
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                segment_bytes(words) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os_error()).with_context(|| unmapped(words));
        }
        let segment = Segment {
            file,
            base: base.cast(),
            words,
        };
        // SAFETY: the header lies at the start of the mapping, zeroed, seen by nobody else yet.
        unsafe {
            let h = base.cast::<Header>();
            (*h).version = ABI_VERSION;
            (*h).replicas = replicas;
            (*h).ring_words = words as u64;
            (*h).alive = AtomicU32::new(alive);
            (*h).leader = AtomicU32::new(leader);
            (*h).taken_over = AtomicU32::new(taken_over.into());
        }
        Ok(segment)
    }

    /// The shared header.
    pub fn header(&self) -> &Header {
        // SAFETY: mapped for the life of self; what replicas change is atomic.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// Words in each ring.
    pub fn ring_words(&self) -> usize {
        self.words
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        segment_bytes(self.words)
    }

    /// Control page of a ring.
    pub fn ring(&self, slot: usize) -> &RingControl {
        assert!(slot < MAX_THREADS);
        // SAFETY: inside the mapping; all fields are atomic.
        unsafe {
            &*self
                .base
                .add((HEADER_BYTES + ring_stride(self.words) * slot as u64) as usize)
                .cast::<RingControl>()
        }
    }

    /// Slots whose ring somebody has touched. (To read the control page of another one would create it,
    /// and of [`MAX_THREADS`] of them that takes milliseconds.)
    pub fn touched(&self) -> Vec<usize> {
        let start = |slot: usize| HEADER_BYTES + ring_stride(self.words) * slot as u64;
        let mut slots = Vec::new();
        let mut slot = 0;
        while slot < MAX_THREADS {
            let data = match self.data_from(start(slot)) {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(_) => {
                    // Nobody can tell: all of them may be.
                    slots.extend(slot..MAX_THREADS);
                    break;
                }
            };
            if data < start(slot) + size_of::<RingControl>() as u64 {
                slots.push(slot);
            }
            let there = (data - HEADER_BYTES) / ring_stride(self.words);
            slot = (slot + 1).max(there as usize);
        }
        slots
    }

    /// Where the rings end.
    pub fn ends(&self) -> Vec<u64> {
        let mut ends = vec![0; MAX_THREADS];
        for slot in self.touched() {
            ends[slot] = self.ring(slot).head.load(Ordering::Acquire);
        }
        ends
    }

    /// The first byte at or behind an offset of the file that is not in a hole.
    fn data_from(&self, offset: u64) -> std::io::Result<Option<u64>> {
        // SAFETY: asks about the file; nobody uses its offset.
        let at = unsafe { libc::lseek(self.file.as_raw_fd(), offset as i64, libc::SEEK_DATA) };
        match u64::try_from(at) {
            Ok(at) => Ok(Some(at)),
            Err(_) => match Error::last_os_error() {
                e if e.raw_os_error() == Some(libc::ENXIO) => Ok(None),
                e => Err(e),
            },
        }
    }

    /// The word of a ring at a position (slots repeat).
    pub fn log_word(&self, slot: usize, pos: u64) -> &AtomicU64 {
        assert!(slot < MAX_THREADS);
        let words =
            HEADER_BYTES + ring_stride(self.words) * slot as u64 + size_of::<RingControl>() as u64;
        // SAFETY: inside the mapping, aligned; replicas and the monitor use it as an atomic.
        unsafe {
            &*self
                .base
                .add(words as usize + 8 * (pos as usize % self.words))
                .cast::<AtomicU64>()
        }
    }

    /// The stamp of what the leader has published from this position on, if it still lies in the ring.
    pub fn stamp(&self, slot: usize, pos: u64) -> Option<u64> {
        assert!(slot < MAX_THREADS && self.words == LONG_RING_WORDS);
        let offset =
            stamps_address(slot, self.words) - SEGMENT_BASE + 8 * (pos % self.words as u64);
        // SAFETY: inside the mapping, aligned; replicas and the monitor use it as an atomic.
        let word = unsafe { &*self.base.add(offset as usize).cast::<AtomicU64>() };
        strict::stamp_of(
            word.load(Ordering::Acquire),
            strict::round(pos, self.words as u64),
        )
    }

    /// What a process of the group maps.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A replica that had been given its place in every ring takes part from now on. `asleep`: the
    /// rings at whose ends its threads sleep.
    pub fn join(&self, replica: usize, asleep: &[usize]) {
        for slot in asleep {
            seats::wants_waking(self.ring(*slot), replica);
        }
        if !asleep.is_empty() {
            barrier();
        }
        seats::joins(self.header(), replica);
    }

    /// It does not come after all.
    pub fn leave_seat(&self, replica: usize) {
        seats::leaves(self.header(), replica);
        self.drop_replica(replica);
    }

    /// Take a replica out: nobody waits for it any more. Its words change, so that a leader which is
    /// just going to sleep on one of them wakes up.
    pub fn drop_replica(&self, replica: usize) {
        seats::goes(self.header(), replica);
        for slot in self.touched() {
            let ring = self.ring(slot);
            if ring.head.load(Ordering::Acquire) != 0 {
                seats::vacates(ring, replica, wake_half);
            }
        }
        let maps = &self.header().open.file_maps[replica];
        maps.store(u64::MAX, Ordering::SeqCst);
        wake(maps.as_ptr().cast());
    }
}

/// Wake whoever sleeps on a word of the header, or on the flags of a ring.
pub fn wake_half(word: &AtomicU32) {
    wake(word.as_ptr());
}

/// Wake whoever sleeps on a word of a ring.
pub fn wake_word(word: &AtomicU64) {
    wake(word.as_ptr().cast());
}

fn wake(word: *mut u32) {
    // SAFETY: wakes sleepers on an address of the mapping; touches nothing.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
}

/// A barrier on all cores that run a replica which leads or has led.
fn barrier() {
    const GLOBAL_EXPEDITED: i32 = 2;
    // SAFETY: has no argument that points anywhere.
    unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL_EXPEDITED, 0, 0) };
}

/// What could not be done, and what may be the matter.
fn unmapped(words: usize) -> String {
    format!(
        "mapping the log segment of {} MiB of addresses (`ulimit -v` bounds them; try without it)",
        segment_bytes(words) >> 20
    )
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.base.cast(), self.bytes() as usize) };
    }
}

/// Offset of a field of a thread block.
#[macro_export]
macro_rules! block_field {
    ($field:ident) => {
        std::mem::offset_of!(geryon_abi::layout::Block, $field) as u64
    };
}

/// Offset of a field of the private structure.
#[macro_export]
macro_rules! private_field {
    ($field:ident) => {
        geryon_abi::layout::PRIVATE_BASE
            + std::mem::offset_of!(geryon_abi::layout::Private, $field) as u64
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::layout::RING_WORDS;

    #[test]
    fn only_rings_that_somebody_has_touched_are_looked_at() {
        let s = Segment::new(RING_WORDS, 3, 7, 0, false).unwrap();
        assert!(s.touched().is_empty());
        let touched = [0, 1, 7, MAX_THREADS - 1];
        for slot in touched {
            s.ring(slot).head.store(5, Ordering::SeqCst);
        }
        // What was lowered to nothing was touched all the same.
        s.ring(7).head.store(0, Ordering::SeqCst);
        // Words without a control page, far behind it and of a ring between others.
        s.log_word(4, RING_WORDS as u64 - 1)
            .store(1, Ordering::SeqCst);
        let found = s.touched();
        assert!(found.is_sorted() && touched.iter().all(|slot| found.contains(slot)));
        // (Where shared memory comes in huge pages, their neighbours, too.)
        assert!(found.len() < MAX_THREADS / 8, "{found:?}");
    }
}
