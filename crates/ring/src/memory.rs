//! The shared memory that the log lies in: the words of a group, of a ring, and the ring's slots.

use crate::word::Atom;
use core::sync::atomic::Ordering;
use geryon_abi::layout::{Header, MAX_REPLICAS, RingControl};

/// Who takes part, each a mask of replica indices.
pub trait Group {
    /// Its words.
    type Flags: Atom<Value = u32>;
    /// Those that take part.
    fn alive(&self) -> &Self::Flags;
    /// Those that are being made: nothing that they have still to read is overwritten.
    fn joining(&self) -> &Self::Flags;
    /// Those of them that stand still until they are needed.
    fn sleeping(&self) -> &Self::Flags;
    /// 1: the monitor knows that the sleeping ones hold up much of the log.
    fn crowded(&self) -> &Self::Flags;
}

impl Group for Header {
    type Flags = core::sync::atomic::AtomicU32;
    #[inline(always)]
    fn alive(&self) -> &Self::Flags {
        &self.alive
    }
    #[inline(always)]
    fn joining(&self) -> &Self::Flags {
        &self.joining
    }
    #[inline(always)]
    fn sleeping(&self) -> &Self::Flags {
        &self.sleeping
    }
    #[inline(always)]
    fn crowded(&self) -> &Self::Flags {
        &self.open.crowded
    }
}

/// The words of a ring beside its slots.
pub trait Control {
    /// A position.
    type Word: Atom<Value = u64>;
    /// Who sleeps.
    type Flags: Atom<Value = u32>;
    /// How far the leader has published.
    fn head(&self) -> &Self::Word;
    /// Mask of the followers that sleep on `head`.
    fn follower_sleeps(&self) -> &Self::Flags;
    /// Not 0 while the leader sleeps on this word, until a follower has written to its line.
    fn leader_sleeps(&self) -> &Self::Flags;
    /// How far a follower has read.
    fn tail(&self, replica: usize) -> &Self::Word;
    /// How far it has verified outputs.
    fn ack(&self, replica: usize) -> &Self::Word;
}

impl Control for RingControl {
    type Word = core::sync::atomic::AtomicU64;
    type Flags = core::sync::atomic::AtomicU32;
    #[inline(always)]
    fn head(&self) -> &Self::Word {
        &self.head
    }
    #[inline(always)]
    fn follower_sleeps(&self) -> &Self::Flags {
        &self.follower_sleeps
    }
    #[inline(always)]
    fn leader_sleeps(&self) -> &Self::Flags {
        &self.leader_sleeps
    }
    #[inline(always)]
    fn tail(&self, replica: usize) -> &Self::Word {
        &self.followers[replica].tail
    }
    #[inline(always)]
    fn ack(&self, replica: usize) -> &Self::Word {
        &self.followers[replica].ack
    }
}

/// A ring: its control words and its slots.
pub trait Log: Copy {
    /// Its control words.
    type Control: Control;
    /// They.
    fn control(&self) -> &Self::Control;
    /// How many slots it has, a power of two.
    fn words(&self) -> u64;
    /// The word at position `pos` (positions count for ever, slots repeat).
    fn read(&self, pos: u64) -> u64;
    /// Leader: put one there.
    fn write(&self, pos: u64, word: u64);

    /// Leader: store the `words` words that lie at `from` (anywhere) at `pos`.
    ///
    /// # Safety
    /// `from` is readable for all of them, which nobody writes meanwhile; there are no more than lie
    /// [`Log::side_by_side`], and none of them is published or still to be read.
    unsafe fn store(&self, pos: u64, from: *const u8, words: u64);

    /// Follower: load `words` words from `pos` on to `to` (anywhere).
    ///
    /// # Safety
    /// `to` is writable for all of them, and nobody else uses it; there are no more than lie
    /// [`Log::side_by_side`], all are published, and the leader does not yet know that they were read.
    unsafe fn load(&self, pos: u64, to: *mut u8, words: u64);

    /// How many words from `pos` on lie side by side, before the first one comes again.
    #[inline(always)]
    fn side_by_side(&self, pos: u64) -> u64 {
        self.words() - (pos & (self.words() - 1))
    }

    /// Leader: make all words below `pos` visible.
    #[inline(always)]
    fn show(&self, pos: u64) {
        self.control().head().store(pos, Ordering::Release);
    }

    /// How far the leader has published.
    #[inline(always)]
    fn head(&self) -> u64 {
        self.control().head().load(Ordering::Acquire)
    }

    /// Leader: the lowest tail of the followers in `mask`; `u64::MAX` when there is none.
    fn lowest_tail(&self, mask: u32) -> u64 {
        lowest(mask, |i| self.control().tail(i).load(Ordering::Acquire))
    }

    /// Leader: how many of the followers in `mask` have not verified everything below `pos`.
    #[inline(always)]
    fn late(&self, mask: u32, pos: u64) -> u32 {
        let is_late = |i: &usize| {
            mask & (1 << i) != 0 && self.control().ack(*i).load(Ordering::Acquire) < pos
        };
        (0..MAX_REPLICAS).filter(is_late).count() as u32
    }

    /// Leader: the lowest ack of the followers in `mask`; `u64::MAX` when there is none.
    fn lowest_ack(&self, mask: u32) -> u64 {
        lowest(mask, |i| self.control().ack(i).load(Ordering::Acquire))
    }
}

#[inline(always)]
fn lowest(mask: u32, word: impl Fn(usize) -> u64) -> u64 {
    let mut low = u64::MAX;
    for i in 0..MAX_REPLICAS {
        if mask & (1 << i) != 0 {
            low = low.min(word(i));
        }
    }
    low
}
