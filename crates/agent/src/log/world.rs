//! A replica's thread, as the log's protocol (`geryon_ring`) asks of it: its block, and the kernel's ways
//! to wait.

use super::TAIL_EVERY;
use crate::gate::{real, rpc};
use crate::state::{Here, block_anew, header, is_own, leads, private};
use crate::wait::{
    Patience, announce, announce_end, core_now, sleep_at_most_shared, sleep32, sleep64, wake_at,
};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
use geryon_abi::layout::{Header, MAX_REPLICAS, rpc as number};
use geryon_abi::table::nr;
use geryon_ring::Ring;
use geryon_ring::memory::Log;
use geryon_ring::world::{Thread, Waits};

const MEMBARRIER_GLOBAL_EXPEDITED: u64 = 2;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: u64 = 4;

/// How often who waits for what wakes nobody looks whether it has come.
const LOOK_NS: u64 = 5_000_000;

/// Must have been called once in a process before it leads: its stores are then ordered by
/// the barrier that a follower issues before it sleeps.
pub fn register_barrier() {
    real(
        nr::membarrier,
        [MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0],
    );
}

/// Was another replica's thread of this group on this one's core when it last waited? (Says where this one is.)
fn shares_core(b: Here) -> bool {
    let Some(core) = core_now() else {
        return true;
    };
    let (core, me) = (core + 1, b.replica());
    let ring = b.ring();
    let cores = &ring.control().cores.0;
    if cores[me].load(Ordering::Relaxed) != core {
        cores[me].store(core, Ordering::Relaxed);
    }
    let others = b.group().alive.load(Ordering::Relaxed) & !(1 << me);
    (0..MAX_REPLICAS).any(|i| others & (1 << i) != 0 && cores[i].load(Ordering::Relaxed) == core)
}

impl Waits for Here {
    type Patience = Patience;

    #[inline(always)]
    fn patience(self) -> Patience {
        Patience::for_replica(shares_core(self))
    }

    #[inline(always)]
    fn spend(self, patience: &mut Patience) -> bool {
        patience.spend()
    }

    #[inline(always)]
    fn announce(self, why: u32, what: u64, value: u64) {
        announce(why, what, value);
    }

    #[inline(always)]
    fn announce_end(self) {
        announce_end();
    }

    #[inline(always)]
    fn passes<const POINT: u32>(self) {
        point!(number POINT);
    }

    #[inline(always)]
    fn fence(self) {
        fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn broken(self) -> ! {
        crate::stop::broken()
    }
}

impl Thread for Here {
    type Ring = Ring;
    type Group = Header;
    const TAIL_EVERY: u64 = TAIL_EVERY;

    #[inline(always)]
    fn ring(self) -> Ring {
        // SAFETY: the segment is mapped at its fixed address, and a block's slot is below MAX_THREADS.
        unsafe { Ring::of_slot(self.slot as usize) }
    }

    #[inline(always)]
    fn group(&self) -> &Header {
        header()
    }

    #[inline(always)]
    fn replica(self) -> usize {
        private().replica.get() as usize
    }

    #[inline(always)]
    fn anew(self) -> Here {
        block_anew()
    }

    #[inline(always)]
    fn is_own_and_leads(self) -> bool {
        is_own(self) && leads()
    }

    #[inline(always)]
    fn pos(self) -> u64 {
        self.pos
    }

    #[inline(always)]
    fn set_pos(mut self, pos: u64) {
        self.pos = pos;
    }

    #[inline(always)]
    fn limit(self) -> u64 {
        self.limit
    }

    #[inline(always)]
    fn set_limit(mut self, limit: u64) {
        self.limit = limit;
    }

    #[inline(always)]
    fn set_published(mut self, pos: u64) {
        self.published = pos;
    }

    #[inline(always)]
    fn set_verified(mut self, pos: u64) {
        self.verified = pos;
    }

    #[inline(always)]
    fn begins_telling(self) {
        self.publishing.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn ends_telling(self) {
        compiler_fence(Ordering::SeqCst);
        self.publishing.store(0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn sleep(self, word: &AtomicU64, seen: u64) {
        sleep64(word, seen, true);
    }

    #[inline(always)]
    fn sleep_shortly(self, word: &AtomicU64, seen: u64) {
        sleep_at_most_shared(word.as_ptr() as u64, seen as u32, LOOK_NS);
    }

    #[inline(always)]
    fn wake(self, word: &AtomicU64) {
        wake_at(word as *const AtomicU64 as u64, true);
    }

    #[inline(always)]
    fn sleep_flagged(self, flags: &AtomicU32) {
        sleep32(flags, 1, true);
    }

    #[inline(always)]
    fn wake_flagged(self, flags: &AtomicU32) {
        wake_at(flags.as_ptr() as u64, true);
    }

    #[inline(always)]
    fn heavy_barrier(self) {
        real(nr::membarrier, [MEMBARRIER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0]);
    }

    #[inline(always)]
    fn light_barrier(self) {
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn admitted(self, at: u64, head: u64) -> u64 {
        match super::stamps::are_followed() {
            true => super::strict::admitted(self, at, head),
            false => head,
        }
    }

    #[inline(always)]
    fn promoted(self) -> bool {
        crate::promotion::promoted()
    }

    #[inline(always)]
    fn stands_at_end(self) {
        if crate::serial::active() {
            crate::serial::pause(self);
        }
    }

    #[inline(always)]
    fn outdated(self, how: u64) {
        rpc(number::OUTDATED, how, 0, 0);
    }
}
