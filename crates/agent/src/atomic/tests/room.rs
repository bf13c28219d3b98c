//! A leader's thread that waits for room in its log, and what others can do meanwhile.

extern crate std;

use super::replicas::{Group, become_thread};
use super::{RAX, STATUS};
use crate::atomic::decode::{Descriptor, Saved, op};
use crate::atomic::{MADE, geryon_on_atomic};
use crate::log::tell_tail;
use crate::state::{block, block_at, leads};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use geryon_abi::layout::{RING_WORDS, wait};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;
use std::boxed::Box;

/// Records of three words each: more than there is room for.
const TIMES: usize = RING_WORDS / 3 + 100;

/// One instruction on a word, at a place of its own.
fn make(op: u8, place: u64, word: &AtomicU64) -> u64 {
    let d = Descriptor {
        site: 0x40_0000 + place,
        vaddr: 0x1000 + place,
        immediate: 0,
        op,
        size: 8,
        source: 1,
        register: RAX as u8,
        len: 5,
        constant: 0,
        spins: 0,
        pad: 0,
    };
    let mut s = Saved {
        flags: STATUS & 0xd5,
        r: [1; 16],
    };
    let at = word as *const AtomicU64 as u64;
    assert_eq!(geryon_on_atomic(&mut s, &d, at, 0), MADE);
    s.r[RAX]
}

/// A word that all replicas share.
pub(super) fn shared() -> &'static AtomicU32 {
    // SAFETY: a new mapping, of zeros.
    unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(core::ptr::null_mut(), 4096, access, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        &*(at as *const AtomicU32)
    }
}

pub(super) fn until(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn who_waits_for_room_keeps_nobody_from_looking_at_the_word() {
    let looked = shared();
    Group::new(2).run(2, || {
        let word: &AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        let adds = std::thread::spawn(|| {
            become_thread(0);
            if !leads() {
                // It makes room only when the leader's other thread has looked.
                until(|| looked.load(Ordering::SeqCst) != 0);
            }
            for _ in 0..TIMES {
                make(op::XADD, 0, word);
            }
            if !leads() {
                tell_tail(block());
            }
        });
        let looks = std::thread::spawn(|| {
            become_thread(1);
            if leads() {
                until(|| block_at(0).waiting.load(Ordering::SeqCst) == wait::ROOM);
            }
            make(op::LOAD_ZERO, 8, word);
            match leads() {
                true => looked.store(1, Ordering::SeqCst),
                false => tell_tail(block()),
            }
        });
        adds.join().expect("the one that adds");
        looks.join().expect("the one that looks");
        assert_eq!(word.load(Ordering::SeqCst), TIMES as u64);
    });
}

/// Who sleeps at a load, for the record of what its leader finds there, goes on when that has found the same again and logs nothing.
#[test]
fn who_sleeps_at_a_load_sees_that_its_leader_has_found_the_same() {
    const LOADS: usize = 4;
    let ended = shared();
    Group::new(2).run(2, || {
        become_thread(0);
        let word: &AtomicU64 = Box::leak(Box::new(AtomicU64::new(7)));
        for turn in 0..LOADS {
            if leads() && turn > 0 {
                let ring = block().ring();
                until(|| ring.control().follower_sleeps.load(Ordering::SeqCst) != 0);
                // (It is really asleep, and not only about to be.)
                std::thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(make(op::LOAD_ZERO, 0, word), 7);
        }
        match leads() {
            // Nothing is logged that would wake it.
            true => until(|| ended.load(Ordering::SeqCst) != 0),
            false => ended.store(1, Ordering::SeqCst),
        }
    });
}
