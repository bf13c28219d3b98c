//! Order between the threads of one process: a *section* is a lock with a clock. In the
//! leader the holder reads the clock, does the work and adds one; a follower's thread waits
//! until the clock shows the tick that its leader saw. Sources: seed 1, section 2
//! (wall of clocks); seed 2, chapter 4 (schedule replication).

use crate::log::{is_cut, rewind};
use crate::state::{Here, layout, private};
use crate::wait::{Patience, announce, announce_end, sleep_at, sleep_at_most, wake_at};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};
use geryon_abi::layout::{CLOCKS, wait};
use geryon_abi::table::nr;

/// A process-wide ordered section.
#[repr(C)]
pub struct Section {
    /// First: the monitor looks at that of `LIFE`.
    lock: AtomicU32,
    clock: AtomicU32,
    owner: AtomicU64,
}

/// Memory calls: mmap, munmap, mremap, brk.
pub static MEMORY: Section = Section::new();
/// Births and deaths of threads.
#[unsafe(export_name = "geryon_life")]
pub static LIFE: Section = Section::new();

/// Clocks for objects that have no room for one: addresses hash into them.
static WALL: [Slot; CLOCKS] = [const {
    Slot {
        lock: AtomicU32::new(0),
        clock: AtomicU32::new(0),
        last: AtomicU64::new(0),
        left: AtomicU64::new(0),
    }
}; CLOCKS];

/// One hashed clock.
#[repr(C, align(32))]
pub struct Slot {
    lock: AtomicU32,
    /// The clock.
    pub clock: AtomicU32,
    /// The operand of the last operation that it has counted.
    last: AtomicU64,
    /// What that has left there.
    left: AtomicU64,
}

/// The hashed clock of an address (16-byte granules share one).
#[inline(always)]
pub fn of_address(address: u64) -> &'static Slot {
    let h = (layout().name(address) >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    &WALL[h as usize & (CLOCKS - 1)]
}

impl Slot {
    /// Leader: exclude other users of this clock.
    #[inline(always)]
    pub fn enter(&self) {
        let mut patience = Patience::new();
        while self.lock.swap(1, Ordering::Acquire) != 0 {
            while self.lock.load(Ordering::Relaxed) != 0 {
                if patience.spend() {
                    patience = Patience::new();
                }
            }
        }
    }

    /// Leader: let others in.
    #[inline(always)]
    pub fn leave(&self) {
        self.lock.store(0, Ordering::Release);
    }

    /// Leader: is somebody inside?
    #[inline(always)]
    pub fn is_held(&self) -> bool {
        self.lock.load(Ordering::Acquire) != 0
    }

    /// Where it is, for who reads all of it at once: nobody inside, and a tick.
    pub fn place(&self) -> u64 {
        self as *const Slot as u64
    }

    /// What is there when it shows this tick, and nobody is inside.
    pub const fn shows(tick: u32) -> u64 {
        (tick as u64) << 32
    }

    /// An operation on a word leaves this value there. Its tick is not yet over.
    #[inline(always)]
    pub fn leaves(&self, at: u64, value: u64) {
        self.last.store(at, Ordering::Relaxed);
        self.left.store(value, Ordering::Relaxed);
    }

    /// Was the last operation that was counted one on this word?
    pub fn is_last(&self, at: u64) -> bool {
        self.last.load(Ordering::Relaxed) == at
    }

    /// And has it left this value there?
    pub fn has_left(&self, at: u64, value: u64) -> bool {
        self.is_last(at) && self.left.load(Ordering::Relaxed) == value
    }
}

impl Section {
    const fn new() -> Section {
        Section {
            lock: AtomicU32::new(0),
            clock: AtomicU32::new(0),
            owner: AtomicU64::new(0),
        }
    }

    /// Leader: enter and read the clock. A thread may enter a section that it holds already.
    pub fn enter(&self, me: u64) -> u32 {
        if self.owner.load(Ordering::Relaxed) == me {
            return self.clock.load(Ordering::Relaxed);
        }
        let mut patience = Patience::new();
        while self
            .lock
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            if patience.spend() {
                private().sleepers.fetch_add(1, Ordering::SeqCst);
                barrier();
                if self.lock.load(Ordering::SeqCst) == 1 {
                    sleep_at(&self.lock as *const AtomicU32 as u64, 1, false);
                }
                private().sleepers.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.owner.store(me, Ordering::Relaxed);
        self.clock.load(Ordering::Relaxed)
    }

    /// Leader, inside: the clock.
    pub fn now(&self) -> u32 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Follower: which turn is next.
    pub fn next(&self) -> u32 {
        self.clock.load(Ordering::Acquire)
    }

    /// True when `me` is inside.
    pub fn held_by(&self, me: u64) -> bool {
        self.owner.load(Ordering::Relaxed) == me
    }

    /// Leader: add one to the clock (inside the section).
    pub fn tick(&self) {
        let now = self.clock.load(Ordering::Relaxed);
        self.clock.store(now.wrapping_add(1), Ordering::Relaxed);
    }

    /// Leader: leave.
    pub fn leave(&self) {
        self.owner.store(0, Ordering::Relaxed);
        self.lock.store(0, Ordering::Release);
        wake(&self.lock);
    }

    /// Follower: wait for the turn that the record just read, of its first word alone, says.
    pub fn await_turn(&self, b: Here, tick: u32) -> bool {
        await_tick(b, &self.clock, tick)
    }

    /// Follower: the same for the record that starts at `start`.
    pub fn await_turn_at(&self, b: Here, start: u64, tick: u32) -> bool {
        await_tick_at(b, start, &self.clock, tick)
    }

    /// Follower: the turn is over.
    pub fn turn_done(&self, tick: u32) {
        advance(&self.clock, tick.wrapping_add(1));
    }

    fn unlock(&self) {
        self.owner.store(0, Ordering::Relaxed);
        self.lock.store(0, Ordering::Relaxed);
    }
}

/// Nobody is inside any section, or uses a hashed clock.
pub fn unlock_all() {
    MEMORY.unlock();
    LIFE.unlock();
    for s in &WALL {
        s.lock.store(0, Ordering::Relaxed);
    }
}

/// In a forked child: they begin at zero. (How far the parent's other threads had come when it was forked differs from
/// replica to replica.)
pub fn begin_anew() {
    unlock_all();
    MEMORY.clock.store(0, Ordering::Relaxed);
    LIFE.clock.store(0, Ordering::Relaxed);
    for s in &WALL {
        s.clock.store(0, Ordering::Relaxed);
        s.leaves(0, 0);
    }
    // Those that slept in the parent are not here.
    private().sleepers.store(0, Ordering::Relaxed);
    for p in &PLACES {
        p.sleepers.store(0, Ordering::Relaxed);
    }
}

/// Follower: wait until `clock` shows `tick`, as the record just read, of its first word alone, says.
/// False when the log was cut off before that record meanwhile: it is to be read anew.
#[inline(always)]
pub fn await_tick(b: Here, clock: &AtomicU32, tick: u32) -> bool {
    await_tick_at(b, b.pos - 1, clock, tick)
}

/// Follower: the same for the record that starts at `start`.
#[inline(always)]
pub fn await_tick_at(b: Here, start: u64, clock: &AtomicU32, tick: u32) -> bool {
    let turn = |now| now == tick;
    turn(clock.load(Ordering::Acquire)) || await_slowly(b, start, clock, tick, turn)
}

/// Follower: wait until all that came before `tick` has been done here, as the record that starts at
/// `start` says. An operation that takes no turn of its own (a compare that failed) shares its tick with
/// the next one that does, which may be done already. False as for [`await_tick`].
#[inline(always)]
pub fn await_past_at(b: Here, start: u64, clock: &AtomicU32, tick: u32) -> bool {
    let past = |now| is_past(now, tick);
    past(clock.load(Ordering::Acquire)) || await_slowly(b, start, clock, tick, past)
}

/// Has a clock that shows `now` come to `tick`, or gone on from there? (It wraps.)
pub fn is_past(now: u32, tick: u32) -> bool {
    now.wrapping_sub(tick) <= u32::MAX / 2
}

#[cold]
fn await_slowly(
    mut b: Here,
    start: u64,
    clock: &AtomicU32,
    tick: u32,
    has_come: impl Fn(u32) -> bool,
) -> bool {
    b.standing = start;
    announce(wait::TURN, clock as *const AtomicU32 as u64, tick as u64);
    let mut patience = Patience::new();
    let came = loop {
        let now = clock.load(Ordering::Acquire);
        if has_come(now) {
            // It may come because the log was cut off: then the record is not in it any more.
            break !is_cut(b, start);
        }
        if patience.spend() {
            if is_cut(b, start) {
                break false;
            }
            sleep_until(clock, tick, now);
        }
    };
    announce_end();
    if !came {
        rewind(b, start);
    }
    came
}

/// How often whoever waits for a turn looks whether it still comes.
const LOOK_NS: u64 = 10_000_000;

/// Where threads sleep that wait for a tick: a place for each of many ticks of each clock, so that a tick wakes
/// the thread that it is the turn of, and not all that wait for later ones.
static PLACES: [Place; PLACE_COUNT] = [const {
    Place {
        events: AtomicU32::new(0),
        sleepers: AtomicU32::new(0),
    }
}; PLACE_COUNT];
const PLACE_COUNT: usize = 256;

struct Place {
    /// Changes with each tick that somebody may wait for here.
    events: AtomicU32,
    sleepers: AtomicU32,
}

fn place_of(clock: &AtomicU32, tick: u32) -> &'static Place {
    let name = (clock as *const AtomicU32 as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    &PLACES[(name as u32).wrapping_add(tick) as usize % PLACE_COUNT]
}

/// Follower: sleep until `clock`, which has just shown `now`, comes to `tick`, or for [`LOOK_NS`].
fn sleep_until(clock: &AtomicU32, tick: u32, now: u32) {
    let place = place_of(clock, tick);
    place.sleepers.fetch_add(1, Ordering::SeqCst);
    private().sleepers.fetch_add(1, Ordering::SeqCst);
    barrier();
    let seen = place.events.load(Ordering::SeqCst);
    let shows = clock.load(Ordering::SeqCst);
    if shows == now || !is_past(shows, tick) {
        sleep_at_most(&raw const place.events as u64, seen, LOOK_NS);
    }
    private().sleepers.fetch_sub(1, Ordering::SeqCst);
    place.sleepers.fetch_sub(1, Ordering::SeqCst);
}

/// Follower: set `clock` and wake whoever waits for that tick.
#[inline(always)]
pub fn advance(clock: &AtomicU32, value: u32) {
    clock.store(value, Ordering::Release);
    tell(clock, value);
}

/// Follower: `clock` shows `value`: wake whoever waits for that tick.
#[inline(always)]
pub fn tell(clock: &AtomicU32, value: u32) {
    compiler_fence(Ordering::SeqCst);
    if private().sleepers.load(Ordering::Relaxed) != 0 {
        tell_sleepers(clock, value);
    }
}

#[cold]
#[inline(never)]
fn tell_sleepers(clock: &AtomicU32, value: u32) {
    let place = place_of(clock, value);
    if place.sleepers.load(Ordering::SeqCst) != 0 {
        place.events.fetch_add(1, Ordering::SeqCst);
        wake_at(&raw const place.events as u64, false);
    }
}

const PRIVATE_EXPEDITED: u64 = 8;
const REGISTER_PRIVATE_EXPEDITED: u64 = 16;

/// Must have been called in a process before its second thread starts.
pub fn register_barrier() {
    crate::gate::real(nr::membarrier, [REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]);
}

/// A barrier on all threads of this process, issued by whoever goes to sleep: so that nobody
/// else has to issue one for each store.
fn barrier() {
    crate::gate::real(nr::membarrier, [PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]);
}

/// After a store to `word`: wake whoever sleeps on it. A sleeper raises the count and issues
/// the barrier before it looks at the word for the last time, so either it sees the store or we
/// see the count.
#[inline(always)]
fn wake(word: &AtomicU32) {
    compiler_fence(Ordering::SeqCst);
    if private().sleepers.load(Ordering::Relaxed) != 0 {
        wake_at(word as *const AtomicU32 as u64, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_past_what_it_shows_and_what_it_has_shown() {
        assert!(is_past(5, 5) && is_past(6, 5) && !is_past(4, 5));
        assert!(is_past(2, u32::MAX) && !is_past(u32::MAX, 2));
    }
}
