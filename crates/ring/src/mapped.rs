//! A ring that is mapped in this address space.

use crate::memory::Log;
use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::layout::{Header, RingControl, SEGMENT_BASE, ring_address};

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
    pub const unsafe fn at(control: *const RingControl, words: usize) -> Ring {
        Ring {
            control,
            slots: control.wrapping_byte_add(4096).cast(),
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
            Ring::at(ring_address(slot, words) as *const RingControl, words)
        }
    }

    #[inline(always)]
    fn slot(&self, pos: u64) -> &AtomicU64 {
        // SAFETY: the index is below `words`, and `at`'s caller promised that many.
        unsafe { &*self.slots.add(pos as usize & (self.words - 1)) }
    }
}

impl Log for Ring {
    type Control = RingControl;

    #[inline(always)]
    fn control(&self) -> &RingControl {
        // SAFETY: `at`'s caller promised that the page is mapped; all its fields are atomic.
        unsafe { &*self.control }
    }

    #[inline(always)]
    fn words(&self) -> u64 {
        self.words as u64
    }

    #[inline(always)]
    fn read(&self, pos: u64) -> u64 {
        self.slot(pos).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn write(&self, pos: u64, word: u64) {
        self.slot(pos).store(word, Ordering::Relaxed);
    }

    #[inline(always)]
    unsafe fn store(&self, pos: u64, from: *const u8, words: u64) {
        let at = pos as usize & (self.words - 1);
        // SAFETY: the caller's promise; nobody else reads or writes what is not published.
        unsafe {
            let to = self.slots.add(at).cast_mut().cast::<u8>();
            core::ptr::copy_nonoverlapping(from, to, 8 * words as usize);
        }
    }

    #[inline(always)]
    unsafe fn load(&self, pos: u64, to: *mut u8, words: u64) {
        let at = pos as usize & (self.words - 1);
        // SAFETY: the caller's promise; the leader does not overwrite what it must think unread.
        unsafe {
            let from = self.slots.add(at).cast::<u8>();
            core::ptr::copy_nonoverlapping(from, to, 8 * words as usize);
        }
    }
}
