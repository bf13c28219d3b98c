//! What a thread looks at while it writes a large buffer in many parts: digests of its pieces, so that each
//! part needs its own pieces only.

use super::super::is_unchanged;
use super::pipe::PIPE_BUF;
use crate::digest::Digest;
use crate::gate::guarded;
use crate::stop::broken;
use geryon_abi::row::Row;

/// So many pieces at most.
const MOST: usize = 128;

pub(super) struct Pieces<'a> {
    row: &'a Row,
    args: &'a [u64; 6],
    /// Bytes of each but the last.
    size: u64,
    /// Of those that are not out yet, once the thread has slept.
    digests: Option<[u64; MOST]>,
    /// What lies below has been looked at since the thread has slept last.
    sound: u64,
}

impl<'a> Pieces<'a> {
    /// Of what a write with these arguments is given.
    pub(super) fn of(row: &'a Row, args: &'a [u64; 6]) -> Pieces<'a> {
        Pieces {
            row,
            args,
            size: args[2].div_ceil(MOST as u64).next_multiple_of(PIPE_BUF),
            digests: None,
            sound: u64::MAX,
        }
    }

    /// The thread is about to sleep; what is below `done` is out. The whole is looked at behind the pieces:
    /// so what these say is what all have agreed on.
    pub(super) fn take(&mut self, done: u64) {
        if self.digests.is_none() {
            let mut digests = [0; MOST];
            for n in self.numbers(done, u64::MAX) {
                digests[n as usize] = self.digest(n);
            }
            if !is_unchanged(self.row, self.args) {
                broken();
            }
            self.digests = Some(digests);
        }
        self.sound = done;
    }

    /// Look at the pieces that a part of `len` bytes from `done` on is of, unless the thread has since it
    /// slept.
    pub(super) fn check(&mut self, done: u64, len: u64) {
        let Some(digests) = &self.digests else {
            return;
        };
        let end = done.saturating_add(len).min(self.args[2]);
        if end <= self.sound {
            return;
        }
        let from = done.max(self.sound);
        for n in self.numbers(from, end - from) {
            if self.digest(n) != digests[n as usize] {
                broken();
            }
        }
        self.sound = (end.div_ceil(self.size) * self.size).max(self.sound);
    }

    /// The numbers of the pieces in which these bytes lie.
    fn numbers(&self, from: u64, len: u64) -> core::ops::Range<u64> {
        let end = from.saturating_add(len).min(self.args[2]);
        from / self.size..end.div_ceil(self.size).min(MOST as u64)
    }

    fn digest(&self, n: u64) -> u64 {
        let [_, buffer, len, ..] = *self.args;
        let start = n * self.size;
        let len = self.size.min(len.saturating_sub(start)) as usize;
        let mut digest = Digest::new(n);
        // (Memory that is not there has the same digest each time; the kernel says what is to be said.)
        guarded(|| {
            // SAFETY: inside `guarded`.
            digest
                .bytes(unsafe { core::slice::from_raw_parts((buffer + start) as *const u8, len) });
        });
        digest.finish()
    }
}
