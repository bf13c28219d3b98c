//! What the leader has read from a file it reads a second time, and compares. It reads for all replicas: a
//! bit that flips in its buffer behind the kernel's copy, and before anything has digested what lies there,
//! would be believed by all. That is a short time for a byte, and not for a megabyte.

use crate::gate::{guarded, real};
use crate::state::private;
use crate::undo::{file_bytes, offset_of};
use core::mem::MaybeUninit;
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const READ: u64 = nr::read;
const PREAD: u64 = nr::pread64;

/// Who reads less is not asked again: that would take longer than all the rest.
const LEAST: u64 = 4096;
/// So much is compared at a time, on the agent's stack.
const PART: u64 = 4096;
/// A file that somebody writes to all the time is believed after so many attempts.
const ATTEMPTS: usize = 3;

/// A call that reads from something that has offsets.
pub struct Reading {
    fd: u64,
    buffer: u64,
    offset: u64,
    /// The descriptor's own offset is what is read at, and others may have that, too.
    moves: bool,
}

/// Before the call: does it read much, and from where?
pub fn begin(row: &Row, args: &[u64; 6]) -> Option<Reading> {
    let [fd, buffer, most, at, ..] = *args;
    let nr = row.nr as u64;
    if !matches!(nr, READ | PREAD) || most < LEAST || private().replicas == 1 {
        return None;
    }
    let offset = match nr {
        READ => offset_of(fd),
        _ => at as i64,
    };
    (offset >= 0).then_some(Reading {
        fd,
        buffer,
        offset: offset as u64,
        moves: nr == READ,
    })
}

impl Reading {
    /// Behind the call, and behind a digest of what it has read: `anew` is called when the buffer was
    /// filled again, because it does not hold what the file holds. It was hit, or else the file was
    /// written to meanwhile, and then the program has read it a little later.
    pub fn confirm(&self, result: i64, mut anew: impl FnMut()) {
        if result < LEAST as i64 || !self.is_still_there(result as u64) {
            return;
        }
        let len = result as u64;
        for _ in 0..ATTEMPTS {
            if self.is_same(len) {
                return;
            }
            real(PREAD, [self.fd, self.buffer, len, self.offset, 0, 0]);
            anew();
        }
    }

    /// Is it a file, as long as that, and nobody else has read on in it? (What the kernel makes up when it
    /// is read has no length.)
    fn is_still_there(&self, len: u64) -> bool {
        let end = self.offset + len;
        file_bytes(self.fd).is_some_and(|bytes| bytes >= end)
            && (!self.moves || offset_of(self.fd) == end as i64)
    }

    /// Does the buffer hold what the file holds? True where the file does not say.
    fn is_same(&self, len: u64) -> bool {
        let mut part = MaybeUninit::<[u64; (PART / 8) as usize]>::uninit();
        let theirs = part.as_mut_ptr() as u64;
        let mut done = 0;
        let mut same = true;
        while same && done < len {
            let wanted = (len - done).min(PART);
            let got = real(PREAD, [self.fd, theirs, wanted, self.offset + done, 0, 0]);
            if got <= 0 {
                return true;
            }
            let ours = self.buffer + done;
            let there = guarded(|| {
                // SAFETY: inside `guarded`; the kernel has just written so much to both.
                same = unsafe { equal(ours, theirs, got as u64) };
            });
            if !there {
                return true;
            }
            done += got as u64;
        }
        same
    }
}

/// # Safety
/// Both are readable.
unsafe fn equal(a: u64, b: u64, len: u64) -> bool {
    let words = len / 8;
    // SAFETY: the caller's promise.
    unsafe {
        let word = |k: u64| {
            ((a + 8 * k) as *const u64).read_unaligned()
                ^ ((b + 8 * k) as *const u64).read_unaligned()
        };
        let byte = |k: u64| ((a + k) as *const u8).read() ^ ((b + k) as *const u8).read();
        // (Without a branch for each: nearly all are equal.)
        (0..words).fold(0, |all, k| all | word(k)) == 0 && (8 * words..len).all(|k| byte(k) == 0)
    }
}
