//! One ring of the log: the leader's thread appends words, its followers read them.
//!
//! Nothing here blocks: waiting is the agent's business, because it decides between
//! spinning, yielding and sleeping. The protocol is single producer, many consumers:
//!
//! * the leader writes slots, then stores `head` (release);
//! * a follower loads `head` (acquire), reads slots, then stores its `tail` (release);
//! * the leader overwrites a slot only when every living follower's `tail` has passed it;
//! * `ack` is the position up to which a follower has verified outputs.
#![no_std]

use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::layout::{Header, MAX_REPLICAS, RingControl, SEGMENT_BASE, ring_address};

/// A ring mapped in this address space.
#[derive(Clone, Copy)]
pub struct Ring {
    control: *const RingControl,
    slots: *const AtomicU64,
    words: usize,
}

impl Ring {
    /// The ring of `words` words, a power of two, whose control page lies at `control`.
    ///
    /// # Safety
    /// `control` must be the address of a mapped `RingControl` followed by so many words
    /// that stay mapped as long as the value is used.
    #[inline(always)]
    pub const unsafe fn at(control: u64, words: usize) -> Ring {
        Ring {
            control: control as *const RingControl,
            slots: (control + 4096) as *const AtomicU64,
            words,
        }
    }

    /// The ring of thread group `slot` at the address that every replica uses.
    ///
    /// # Safety
    /// The group's segment must be mapped at `SEGMENT_BASE`, and `slot < MAX_THREADS`.
    #[inline(always)]
    pub unsafe fn of_slot(slot: usize) -> Ring {
        // SAFETY: the segment begins with its header, whose `ring_words` never changes; the rest is
        // passed on to the caller.
        unsafe {
            let words = (*(SEGMENT_BASE as *const Header)).ring_words as usize;
            Ring::at(ring_address(slot, words), words)
        }
    }

    /// How many words it has.
    #[inline(always)]
    pub fn words(&self) -> u64 {
        self.words as u64
    }

    /// The control page.
    #[inline(always)]
    pub fn control(&self) -> &RingControl {
        // SAFETY: `at`'s caller promised that the page is mapped; all its fields are atomic.
        unsafe { &*self.control }
    }

    /// The word at position `pos` (positions count for ever, slots repeat).
    #[inline(always)]
    pub fn slot(&self, pos: u64) -> &AtomicU64 {
        // SAFETY: the index is below `words`, and `at`'s caller promised that many.
        unsafe { &*self.slots.add(pos as usize & (self.words - 1)) }
    }

    /// How many words from `pos` on lie side by side, before the first one comes again.
    #[inline(always)]
    pub fn side_by_side(&self, pos: u64) -> u64 {
        self.words() - (pos & (self.words() - 1))
    }

    /// Leader: store the `words` words that lie at `from` (anywhere) at `pos`.
    ///
    /// # Safety
    /// `from` is readable for all of them, which nobody writes meanwhile; there are no more than lie
    /// [`Ring::side_by_side`], and none of them is published or still to be read.
    #[inline(always)]
    pub unsafe fn store(&self, pos: u64, from: *const u8, words: u64) {
        // SAFETY: the caller's promise; nobody else reads or writes what is not published.
        unsafe {
            let to = self.slot(pos).as_ptr().cast::<u8>();
            core::ptr::copy_nonoverlapping(from, to, 8 * words as usize);
        }
    }

    /// Follower: load `words` words from `pos` on to `to` (anywhere).
    ///
    /// # Safety
    /// `to` is writable for all of them, and nobody else uses it; there are no more than lie
    /// [`Ring::side_by_side`], all are published, and the leader does not yet know that they were read.
    #[inline(always)]
    pub unsafe fn load(&self, pos: u64, to: *mut u8, words: u64) {
        // SAFETY: the caller's promise; the leader does not overwrite what it must think unread.
        unsafe {
            let from = self.slot(pos).as_ptr().cast::<u8>();
            core::ptr::copy_nonoverlapping(from, to, 8 * words as usize);
        }
    }

    /// Leader: make all words below `pos` visible.
    #[inline(always)]
    pub fn publish(&self, pos: u64) {
        self.control().head.store(pos, Ordering::Release);
    }

    /// Follower: how far the leader has published.
    #[inline(always)]
    pub fn head(&self) -> u64 {
        self.control().head.load(Ordering::Acquire)
    }

    /// Leader: the lowest tail of the followers in `mask`; `u64::MAX` when there is none.
    pub fn lowest_tail(&self, mask: u32) -> u64 {
        self.lowest(mask, |i| &self.control().followers[i].tail)
    }

    /// Leader: the lowest ack of the followers in `mask` with its index; `u64::MAX` when there is none.
    pub fn lowest_ack(&self, mask: u32) -> u64 {
        self.lowest(mask, |i| &self.control().followers[i].ack)
    }

    #[inline(always)]
    fn lowest<'a>(&'a self, mask: u32, word: impl Fn(usize) -> &'a AtomicU64) -> u64 {
        let mut low = u64::MAX;
        for i in 0..MAX_REPLICAS {
            if mask & (1 << i) != 0 {
                low = low.min(word(i).load(Ordering::Acquire));
            }
        }
        low
    }
}
