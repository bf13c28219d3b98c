//! The protocol with the processor's words and the ring as it is mapped, on threads that never sleep: also
//! under Miri, which reports what nothing orders and pointers that lead astray.

use geryon_abi::layout::{Header, RingControl, promotion};
use geryon_ring::Ring;
use geryon_ring::follow::{acknowledge, get_torn, get_words_torn};
use geryon_ring::lead::{append, confirmed, publish, put, put_words};
use geryon_ring::roll::By;
use geryon_ring::succeed::{Heir, promoted};
use geryon_ring::world::{Thread, Waits};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

const WORDS: usize = 16;
const ROUNDS: u64 = if cfg!(miri) { 10 } else { 500 };

#[repr(C, align(4096))]
struct Memory {
    control: RingControl,
    slots: [AtomicU64; WORDS],
}

struct Group {
    memory: *const Memory,
    header: Box<Header>,
}

// SAFETY: all that the threads share of it is atomic, but for what the protocol hands over.
unsafe impl Sync for Group {}

struct Here<'a> {
    group: &'a Group,
    replica: usize,
    pos: Cell<u64>,
    limit: Cell<u64>,
}

impl Waits for &Here<'_> {
    type Patience = ();
    fn patience(self) {}
    fn spend(self, _: &mut ()) -> bool {
        std::thread::yield_now();
        false
    }
    fn announce(self, _: u32, _: u64, _: u64) {}
    fn announce_end(self) {}
    fn passes<const POINT: u32>(self) {}
    fn fence(self) {
        fence(Ordering::SeqCst);
    }
    fn broken(self) -> ! {
        panic!("broken")
    }
}

impl<'a> Thread for &'a Here<'a> {
    type Ring = Ring;
    type Group = Header;
    const TAIL_EVERY: u64 = WORDS as u64 / 8;
    fn ring(self) -> Ring {
        // SAFETY: the control page and behind it the slots, for as long as the group is there.
        unsafe { Ring::at(self.group.memory.cast(), WORDS) }
    }
    fn group(&self) -> &Header {
        &self.group.header
    }
    fn replica(self) -> usize {
        self.replica
    }
    fn anew(self) -> Self {
        self
    }
    fn is_own_and_leads(self) -> bool {
        true
    }
    fn pos(self) -> u64 {
        self.pos.get()
    }
    fn set_pos(self, pos: u64) {
        self.pos.set(pos);
    }
    fn limit(self) -> u64 {
        self.limit.get()
    }
    fn set_limit(self, limit: u64) {
        self.limit.set(limit);
    }
    fn set_published(self, _: u64) {}
    fn set_verified(self, _: u64) {}
    fn begins_telling(self) {}
    fn ends_telling(self) {}
    fn sleep(self, _: &AtomicU64, _: u64) {}
    fn wake(self, _: &AtomicU64) {}
    fn sleep_flagged(self, _: &AtomicU32) {}
    fn wake_flagged(self, _: &AtomicU32) {}
    fn heavy_barrier(self) {}
    fn light_barrier(self) {}
    fn promoted(self) -> bool {
        promoted(self)
    }
    fn stands_at_end(self) {}
    fn outdated(self, _: u64) {}
}

static ASKED: AtomicU32 = AtomicU32::new(promotion::NONE);

impl Heir for &Here<'_> {
    type Word = AtomicU32;
    fn promotion(&self) -> &AtomicU32 {
        &ASKED
    }
    fn may_prepare(self) -> bool {
        true
    }
    fn prepare(self) {}
    fn settle(self) {}
    fn linger(self, _: &mut ()) {
        std::thread::yield_now();
    }
}

#[test]
fn two_followers_read_records_and_blocks() {
    // SAFETY: both are made of numbers.
    let (memory, mut header): (Box<Memory>, Box<Header>) =
        unsafe { (Box::new(std::mem::zeroed()), Box::new(std::mem::zeroed())) };
    *header.alive.get_mut() = 0b111;
    let memory = Box::into_raw(memory);
    let group = Group { memory, header };
    let here = |replica, limit| Here {
        group: &group,
        replica,
        pos: Cell::new(0),
        limit: Cell::new(limit),
    };
    std::thread::scope(|s| {
        for replica in 1..3 {
            s.spawn(move || {
                let t = here(replica, 0);
                for round in 0..ROUNDS {
                    assert_eq!(get_torn(&t), Some(round));
                    acknowledge(&t);
                    let mut block = [0u64; 21];
                    // SAFETY: an own array of so many words.
                    let all = unsafe { get_words_torn(&t, block.as_mut_ptr().cast(), 21) };
                    assert!(all && block.iter().all(|w| *w == round));
                }
            });
        }
        let t = here(0, WORDS as u64);
        for round in 0..ROUNDS {
            if round % 2 == 0 {
                append(&t, [round]);
            } else {
                put(&t, round);
            }
            publish(&t);
            let by = match round % 3 {
                0 => By::Majority,
                _ => By::All,
            };
            confirmed(&t, t.pos.get(), by);
            let block = [round; 21];
            // SAFETY: an own array of so many words.
            unsafe { put_words(&t, block.as_ptr().cast(), 21) };
            publish(&t);
        }
    });
    // SAFETY: made above, and nobody uses it any more.
    drop(unsafe { Box::from_raw(memory) });
}
