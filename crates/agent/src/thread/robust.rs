//! Robust mutexes of a thread that ends. The kernel marks those that it holds by their owner's id; in
//! every replica but the first leader that is another than the thread's own, and the agent marks them.
//! (As exit_robust_list of the kernel does, for locks without priority inheritance.)

use crate::gate::{guarded, real};
use crate::state::Here;
use crate::wait::wake_at;
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::table::nr;

const TID: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
/// As the kernel has it.
const MOST: usize = 2048;

/// The thread is about to end.
pub fn release(b: Here) {
    if b.own_tid.load(Ordering::Relaxed) == b.shown_tid {
        return;
    }
    let (mut head, mut len) = (0u64, 0u64);
    real(
        nr::get_robust_list,
        [0, &raw mut head as u64, &raw mut len as u64, 0, 0, 0],
    );
    if head == 0 {
        return;
    }
    let owner = b.shown_tid;
    guarded(|| {
        // SAFETY: inside `guarded`: the program's own list, which may be damaged.
        unsafe {
            let word = |at: u64| (at as *const u64).read_volatile();
            let offset = word(head + 8);
            let mut entry = word(head);
            for _ in 0..MOST {
                if entry & !1 == head {
                    break;
                }
                let next = word(entry & !1);
                abandon((entry & !1).wrapping_add(offset), owner);
                entry = next;
            }
            let pending = word(head + 16) & !1;
            if pending != 0 {
                abandon(pending.wrapping_add(offset), owner);
            }
        }
    });
}

/// # Safety
/// Inside `guarded`.
unsafe fn abandon(at: u64, owner: u32) {
    // SAFETY: the caller's promise.
    let lock = unsafe { &*(at as *const AtomicU32) };
    let now = lock.load(Ordering::SeqCst);
    if now & TID == owner {
        lock.store(now & WAITERS | OWNER_DIED, Ordering::SeqCst);
        if now & WAITERS != 0 {
            wake_at(at, true);
            wake_at(at, false);
        }
    }
}
