//! A group under the model: one ring of two words, plain memory as slots (so that loom reports two accesses
//! that nothing orders, even where the hardware would forgive them), and threads without patience: who
//! cannot go on sleeps at once.

use crate::cores::Cores;
use crate::fault::{Fault, Name};
use crate::word::{Word32, Word64};
use geryon_abi::layout::promotion;
use geryon_ring::memory::{Control, Group, Log};
use geryon_ring::seats;
use geryon_ring::succeed::{Heir, promoted};
use geryon_ring::world::{Thread, Waits};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{Ordering, fence};
use std::cell::Cell;
use std::rc::Rc;

pub const SLOTS: u64 = 2;
/// The leader is replica 0.
pub const REPLICAS: usize = 3;

pub struct Line {
    pub tail: Word64,
    pub ack: Word64,
    /// What the follower did before it acknowledged.
    pub verified: UnsafeCell<u64>,
}

/// The ring's words, its slots, the header's words and, by replica, the word of its private structure.
pub struct Shared {
    pub head: Word64,
    follower_sleeps: Word32,
    leader_sleeps: Word32,
    pub lines: [Line; REPLICAS],
    slots: [UnsafeCell<u64>; SLOTS as usize],
    alive: Word32,
    joining: Word32,
    sleeping: Word32,
    crowded: Word32,
    pub promotion: Word32,
    pub fault: Fault,
    pub cores: Rc<Cores>,
}

impl Shared {
    /// With so many followers.
    pub fn new(followers: usize, fault: Fault) -> Rc<Shared> {
        let cores = Rc::new(Cores::default());
        let word = |name| Word64::new(0, name, fault, &cores);
        let flags = |value, name| Word32::new(value, name, fault, &cores);
        let line = || Line {
            tail: word(Name::Tail),
            ack: word(Name::Ack),
            verified: UnsafeCell::new(0),
        };
        Rc::new(Shared {
            head: word(Name::Head),
            follower_sleeps: flags(0, Name::FollowerSleeps),
            leader_sleeps: flags(0, Name::LeaderSleeps),
            lines: [line(), line(), line()],
            slots: [UnsafeCell::new(u64::MAX), UnsafeCell::new(u64::MAX)],
            alive: flags((2 << followers) - 1, Name::Other),
            joining: flags(0, Name::Joining),
            sleeping: flags(0, Name::Other),
            crowded: flags(0, Name::Other),
            promotion: flags(promotion::NONE, Name::Promotion),
            fault,
            cores: cores.clone(),
        })
    }

    /// Its leader, on the calling thread: in a process that is registered for barriers.
    pub fn leader(self: &Rc<Shared>) -> Here {
        if self.fault != Fault::LeaderUnregistered {
            self.cores.enter();
        }
        Here::new(self, 0, 0, SLOTS)
    }

    /// A follower at the ring's beginning.
    pub fn follower(self: &Rc<Shared>, replica: usize) -> Here {
        Here::new(self, replica, 0, 0)
    }

    /// The monitor's `Segment::drop_replica`.
    pub fn drop_replica(&self, replica: usize) {
        seats::goes(self, replica);
        seats::vacates(self, replica, Word32::wake);
    }
}

impl Control for Shared {
    type Word = Word64;
    type Flags = Word32;
    fn head(&self) -> &Word64 {
        &self.head
    }
    fn follower_sleeps(&self) -> &Word32 {
        &self.follower_sleeps
    }
    fn leader_sleeps(&self) -> &Word32 {
        &self.leader_sleeps
    }
    fn tail(&self, replica: usize) -> &Word64 {
        &self.lines[replica].tail
    }
    fn ack(&self, replica: usize) -> &Word64 {
        &self.lines[replica].ack
    }
}

impl Group for Shared {
    type Flags = Word32;
    fn alive(&self) -> &Word32 {
        &self.alive
    }
    fn joining(&self) -> &Word32 {
        &self.joining
    }
    fn sleeping(&self) -> &Word32 {
        &self.sleeping
    }
    fn crowded(&self) -> &Word32 {
        &self.crowded
    }
}

impl Log for &Shared {
    type Control = Shared;

    fn control(&self) -> &Shared {
        self
    }

    fn words(&self) -> u64 {
        SLOTS
    }

    fn read(&self, pos: u64) -> u64 {
        self.cores.step();
        // SAFETY: loom reports a write that is not ordered with this read.
        self.slots[(pos % SLOTS) as usize].with(|word| unsafe { *word })
    }

    fn write(&self, pos: u64, word: u64) {
        self.cores.step();
        // SAFETY: loom reports an access that is not ordered with this write.
        self.slots[(pos % SLOTS) as usize].with_mut(|slot| unsafe { *slot = word });
    }

    unsafe fn store(&self, pos: u64, from: *const u8, words: u64) {
        assert!(words <= self.side_by_side(pos));
        for k in 0..words {
            // SAFETY: the caller's promise.
            let word = unsafe { from.cast::<u64>().add(k as usize).read_unaligned() };
            self.write(pos + k, word);
        }
    }

    unsafe fn load(&self, pos: u64, to: *mut u8, words: u64) {
        assert!(words <= self.side_by_side(pos));
        for k in 0..words {
            let word = self.read(pos + k);
            // SAFETY: the caller's promise.
            unsafe { to.cast::<u64>().add(k as usize).write_unaligned(word) };
        }
    }
}

/// A thread of a replica.
pub struct Here {
    pub shared: Rc<Shared>,
    replica: usize,
    pos: Cell<u64>,
    limit: Cell<u64>,
    pub verified: Cell<u64>,
    /// How often it has prepared its process.
    pub prepared: Cell<u32>,
}

impl Here {
    pub fn new(shared: &Rc<Shared>, replica: usize, pos: u64, limit: u64) -> Here {
        Here {
            shared: shared.clone(),
            replica,
            pos: Cell::new(pos),
            limit: Cell::new(limit),
            verified: Cell::new(pos),
            prepared: Cell::new(0),
        }
    }

    pub fn line(&self) -> &Line {
        &self.shared.lines[self.replica]
    }

    /// The thread's own core runs something else from here on.
    pub fn ends(&self) {
        self.shared.cores.leave();
    }
}

impl Waits for &Here {
    type Patience = ();
    fn patience(self) {}
    fn spend(self, _: &mut ()) -> bool {
        true
    }
    fn announce(self, _: u32, _: u64, _: u64) {}
    fn announce_end(self) {}
    fn passes<const POINT: u32>(self) {}
    fn fence(self) {
        if self.shared.fault != Fault::LeaderSleepsUnordered {
            fence(Ordering::SeqCst);
        }
    }
    fn broken(self) -> ! {
        panic!("broken")
    }
}

impl<'a> Thread for &'a Here {
    type Ring = &'a Shared;
    type Group = Shared;
    const TAIL_EVERY: u64 = SLOTS;

    fn ring(self) -> &'a Shared {
        &self.shared
    }
    fn group(&self) -> &Shared {
        &self.shared
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
    fn set_verified(self, pos: u64) {
        self.verified.set(pos);
    }
    fn begins_telling(self) {}
    fn ends_telling(self) {}

    fn sleep(self, word: &Word64, seen: u64) {
        self.shared.follower_sleeps.catch_up();
        word.sleep(seen);
    }

    fn wake(self, word: &Word64) {
        let is_head = std::ptr::eq(word, &self.shared.head);
        if !(is_head && self.shared.fault == Fault::NoWake) {
            word.wake();
        }
    }

    fn sleep_flagged(self, flags: &Word32) {
        flags.sleep(1);
    }

    fn wake_flagged(self, flags: &Word32) {
        flags.wake();
    }

    fn heavy_barrier(self) {
        match self.shared.fault {
            Fault::NoBarrier => {}
            Fault::FenceForBarrier => fence(Ordering::SeqCst),
            _ => self.shared.cores.barrier(),
        }
    }

    /// The compiler's: to the processor it is nothing.
    fn light_barrier(self) {
        let missing = self.shared.fault == Fault::NoLightBarrier;
        self.shared.cores.is_movable.set(missing);
    }

    fn promoted(self) -> bool {
        promoted(self)
    }

    fn stands_at_end(self) {}

    fn outdated(self, _: u64) {
        unreachable!("nobody sleeps");
    }
}

impl Heir for &Here {
    type Word = Word32;
    fn promotion(&self) -> &Word32 {
        &self.shared.promotion
    }
    fn may_prepare(self) -> bool {
        true
    }
    fn prepare(self) {
        self.prepared.set(self.prepared.get() + 1);
        // SAFETY: loom reports an access that is not ordered with this write.
        let more = |v: *mut u64| unsafe { *v += 1 };
        self.line().verified.with_mut(more);
    }
    fn settle(self) {}
    fn linger(self, _: &mut ()) {
        loom::thread::yield_now();
    }
}
