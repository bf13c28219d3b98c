//! A thread that spins for a lock which another one holds for long.

extern crate std;

use super::replicas::{Group, become_thread};
use super::{RAX, STATUS};
use crate::atomic::decode::{Descriptor, Saved, op};
use crate::atomic::{MADE, geryon_on_atomic};
use crate::log::tell_tail;
use crate::state::{block, leads};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::boxed::Box;

/// The lock is held for so long.
const HELD: Duration = Duration::from_millis(50);
/// Words of a record.
const RECORD: u64 = 3;

/// `while (exchange(lock, 1));`
fn take(lock: &AtomicU32) {
    let d = Descriptor {
        site: 0x40_0000,
        vaddr: 0x1000,
        immediate: 0,
        op: op::XCHG,
        size: 4,
        source: 1,
        register: RAX as u8,
        len: 2,
        constant: 0,
        spins: 1,
        pad: 0,
    };
    let mut s = Saved {
        flags: STATUS & 0xd5,
        r: [0; 16],
    };
    loop {
        s.r[RAX] = 1;
        let at = lock as *const AtomicU32 as u64;
        assert_eq!(geryon_on_atomic(&mut s, &d, at, 0), MADE);
        if s.r[RAX] == 0 {
            return;
        }
    }
}

/// The other thread gives the lock back by a plain store, which nothing orders: in a follower it has come and gone before the
/// thread that spins comes to what its leader has found.
#[test]
fn who_spins_for_a_lock_asks_less_and_less() {
    Group::new(2).run(2, || {
        become_thread(0);
        let lock: &AtomicU32 = Box::leak(Box::new(AtomicU32::new(1)));
        let release = || lock.store(0, Ordering::Release);
        let before = block().pos;
        if leads() {
            let other = std::thread::spawn(move || {
                std::thread::sleep(HELD);
                release();
            });
            take(lock);
            other.join().expect("it only sleeps");
        } else {
            release();
            take(lock);
        }
        let records = (block().pos - before) / RECORD;
        assert!((2..10_000).contains(&records), "{records}");
        assert_eq!(lock.load(Ordering::Relaxed), 1, "it is taken");
        if !leads() {
            tell_tail(block());
        }
    });
}
