//! `--order serial`: one thread of a replica runs at a time. It hands its *turn* over only where
//! it may block (a call, a futex wait, a yield), and the log holds the hand-overs. Whatever the
//! threads do to each other's memory, by locks, atomics or plain loads and stores, is then
//! repeated exactly; nothing else need be recorded. It costs parallelism inside a replica, which
//! is free where there are no more cores than replicas.
//!
//! The record TURN says which turn this is, and whose it was before, up to which position of that
//! thread's ring. A follower's thread takes the turn when the one before has come to that position.

use crate::diverge::diverged;
use crate::event::plain;
use crate::gate::rpc;
use crate::log::{append, get, is_cut, publish, put, remember, rewind, word_at};
use crate::state::{Here, block, block_anew, block_at, leads, private};
use crate::stop::broken;
use crate::thread::await_exits;
use crate::wait::{Patience, announce, announce_end, wake_at};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use geryon_abi::layout::commons::{
    self, COMMONS_BASE, COMMONS_BYTES, Commons, PLACES, Place, Turns,
    turn::{self, FREE, OFFERED, SHUT, TAKEN},
};
use geryon_abi::layout::{MAX_THREADS, repeat, rpc as number, wait, why};
use geryon_abi::record::{kind, seal, unseal, word};

/// The turns of this process alone.
static OWN: Turns = Turns {
    turn: AtomicU32::new(TAKEN),
    waiting: AtomicU32::new(0),
    owner: AtomicU32::new(0),
    number: AtomicU32::new(0),
    last: AtomicU64::new(0),
    last_pos: AtomicU64::new(0),
    next: [const {
        Place {
            events: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
        }
    }; PLACES],
};

/// Detail of a TURN record: it was taken away from who had it.
const FORCED: u8 = 1;
/// Detail of a TURN record: it is one of all processes that share memory.
const COMMON: u8 = 2;

/// Does this process take turns with others of its replica?
#[inline(always)]
pub fn is_joined() -> bool {
    private().joined.load(Ordering::Acquire) != 0
}

fn commons() -> &'static Commons {
    // SAFETY: `join` maps it before anybody asks; all of it is atomic.
    unsafe { &*(COMMONS_BASE as *const Commons) }
}

/// (Anew each time: a process may join others while its threads wait.)
#[inline(always)]
fn turns() -> &'static Turns {
    if is_joined() { &commons().turns } else { &OWN }
}

/// What a thread is called in records of turns.
#[inline(always)]
fn name_of(b: Here) -> u32 {
    if is_joined() {
        commons::name(private().row.get(), b.slot)
    } else {
        b.slot
    }
}

/// Only one thread can be next: nobody else need wake up.
fn place_of(t: &Turns, number: u32) -> &Place {
    &t.next[number as usize % PLACES]
}

fn sleep_there(t: &Turns, address: u64, seen: u32, ns: u64) {
    crate::wait::sleep_at_most_at(address, seen, ns, !core::ptr::eq(t, &OWN));
}

fn wake_there(t: &Turns, address: u64) {
    wake_at(address, !core::ptr::eq(t, &OWN));
}

/// What a thread that waits for its turn announces.
fn wait_of(t: &Turns) -> u32 {
    if core::ptr::eq(t, &OWN) {
        wait::TURN
    } else {
        wait::COMMON
    }
}

/// From here on this process takes turns with all others of its replica that share memory, whatever the
/// order of threads: nothing else says in which order they come to it. Its thread has the turn already where
/// it has several. (With clocks, a process whose threads run beside each other cannot.)
pub fn join() {
    let p = private();
    if is_joined()
        || p.replicas == 1
        || block().vforked != 0
        || (p.serial.get() == 0 && p.multi.get() != 0)
    {
        return;
    }
    let mut path = [0u8; 64];
    let row = rpc(number::COMMONS, path.as_mut_ptr() as u64, 0, 0);
    const FIXED_SHARED: u64 = 0x11;
    const READ_WRITE: u64 = 3;
    let a = [COMMONS_BASE, COMMONS_BYTES, READ_WRITE, FIXED_SHARED, 0, 0];
    if row < 0 || crate::shared::map_path(&path, a) != COMMONS_BASE as i64 {
        broken();
    }
    p.row.set(row as u32);
    p.serial.set(1);
    p.joined.store(1, Ordering::SeqCst);
    block().has_turn.store(0, Ordering::SeqCst);
    // A follower waits here, too: what it does next it does to memory that is shared by now.
    crate::thread::first_turn();
}

/// First steps of a forked child whose parent takes turns with others: so does it, in a row of its own. It
/// has no turn yet.
pub fn born(b: Here) {
    if is_joined() {
        private().row.set(rpc(number::COMMONS, 0, 0, 0) as u32);
        b.has_turn.store(0, Ordering::SeqCst);
    }
}

/// Is this process run serially, and does this thread take turns? A vfork's child does not: its parent
/// keeps the turn until it is gone.
#[inline(always)]
pub fn active() -> bool {
    is_serial() && block().vforked == 0
}

/// Is this process run serially?
#[inline(always)]
pub fn is_serial() -> bool {
    let p = private();
    p.serial.get() != 0 && (p.multi.get() != 0 || is_joined())
}

/// The first thread has the first turn (before its second thread is made; and in a forked child).
pub fn begin(b: Here) {
    if is_joined() {
        // They go on as they are.
        return;
    }
    b.has_turn.store(1, Ordering::Relaxed);
    OWN.owner.store(b.slot, Ordering::Relaxed);
    OWN.turn.store(TAKEN, Ordering::Relaxed);
    OWN.waiting.store(0, Ordering::Relaxed);
    OWN.number.store(0, Ordering::Relaxed);
}

/// The turn when this thread has it. Among processes it says who that is: between the two stores that
/// say so one after the other, whoever had it before would believe that it still has.
fn taken_by(b: Here) -> u32 {
    if is_joined() {
        turn::taken_by(name_of(b))
    } else {
        TAKEN
    }
}

/// Leader: has the thread the turn? Among processes the common word says so.
fn holds(b: Here) -> bool {
    if !is_joined() {
        return b.has_turn.load(Ordering::SeqCst) != 0;
    }
    let t = turns();
    while t.turn.load(Ordering::SeqCst) == SHUT {
        // Not all processes of a new leader have replayed what there is.
        pause(b);
        sleep_there(t, &raw const t.turn as u64, SHUT, LOOK_NS);
    }
    t.turn.load(Ordering::SeqCst) == taken_by(b)
}

/// Leader: about to block; let others run.
pub fn release(b: Here) {
    if !holds(b) {
        return;
    }
    b.has_turn.store(0, Ordering::SeqCst);
    b.starves.store(0, Ordering::Relaxed);
    let t = turns();
    t.last.store(name_of(b) as u64, Ordering::Relaxed);
    t.last_pos.store(b.pos, Ordering::Relaxed);
    let next = if t.waiting.load(Ordering::SeqCst) != 0 {
        OFFERED
    } else {
        FREE
    };
    // Whoever takes it next tells the others.
    let kept = block_anew();
    if !was_last(kept) || kept.slot != b.slot {
        broken();
    }
    point!(TurnReleased);
    t.turn.swap(next, Ordering::SeqCst);
    if t.waiting.load(Ordering::SeqCst) != 0 {
        wake_there(t, &raw const t.turn as u64);
    }
}

/// Leader: go on running the program's code. Logs the turn if somebody else had it meanwhile.
pub fn acquire(b: Here) {
    if holds(b) {
        return;
    }
    let mut forced = 0;
    let (mut holder, mut same) = (Holder::default(), Holder::default());
    let mut t = turns();
    t.waiting.fetch_add(1, Ordering::SeqCst);
    let mut patience = Patience::long();
    announce(wait_of(t), &raw const t.turn as u64, 0);
    loop {
        if !core::ptr::eq(t, turns()) {
            // The process has joined others meanwhile.
            t.waiting.fetch_sub(1, Ordering::SeqCst);
            t = turns();
            t.waiting.fetch_add(1, Ordering::SeqCst);
            announce(wait_of(t), &raw const t.turn as u64, 0);
        }
        let now = t.turn.load(Ordering::SeqCst);
        let name = name_of(b);
        let mine = t.last.load(Ordering::SeqCst) == name as u64;
        let others = t.waiting.load(Ordering::SeqCst) > 1;
        let may = now == FREE || (now == OFFERED && (!mine || !others));
        if may
            && t.turn
                .compare_exchange(now, taken_by(b), Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        {
            break;
        }
        if !may && patience.spend() {
            let alone = core::ptr::eq(t, &OWN);
            sleep_there(t, &raw const t.turn as u64, now, holder.look_again());
            if alone {
                holder.complain();
            }
            // Seen twice, and each for itself: a wrong register does not take anybody's turn away.
            if alone && now == TAKEN && holder.spins() & same.spins() && holder.rob() {
                forced = FORCED;
                break;
            }
        }
    }
    t.waiting.fetch_sub(1, Ordering::SeqCst);
    announce_end();
    // A register that held it while the thread slept may name another one by now.
    let b = block_anew();
    let t = turns();
    let name = name_of(b);
    t.owner.store(name, Ordering::SeqCst);
    b.has_turn.store(1, Ordering::SeqCst);
    b.robbed.store(0, Ordering::Relaxed);
    let (last, pos) = (
        t.last.load(Ordering::Relaxed),
        t.last_pos.load(Ordering::Relaxed),
    );
    if last != name as u64 || pos != b.pos {
        let number = t.number.load(Ordering::Relaxed).wrapping_add(1);
        t.number.store(number, Ordering::Relaxed);
        let common = if is_joined() { COMMON } else { 0 };
        let w = word(kind::TURN, forced | common, 0, number);
        append(b, [w, seal(w, last as u32, pos), pos]);
        if !is_as_kept(b) {
            broken();
        }
        remember(b, w);
        point!(TurnUnpublished);
        // At once: followers run what comes now while we do, not when we come to the next record.
        publish(b);
    } else if !was_last(block_anew()) {
        broken();
    }
    // A thread whose death came before this turn is really gone for whoever looks at its id word.
    await_exits();
}

/// Leader: was this thread the last one to have the turn, and has it been nowhere since?
fn was_last(b: Here) -> bool {
    let t = turns();
    t.last.load(Ordering::SeqCst) == name_of(b) as u64 && t.last_pos.load(Ordering::SeqCst) == b.pos
}

/// Leader: does the log's last record say whose the turn was, and which one this is? Registers have held
/// that since it was looked up, and a turn that never comes stops all followers.
fn is_as_kept(b: Here) -> bool {
    let t = turns();
    let [w, second, pos] = [3, 2, 1].map(|n| word_at(b, b.pos - n));
    unseal(w, second, pos).map(u64::from) == Some(t.last.load(Ordering::SeqCst))
        && pos == t.last_pos.load(Ordering::SeqCst)
        && geryon_abi::record::low_of(w) == t.number.load(Ordering::SeqCst)
}

/// How often a waiting thread looks at the one that has the turn.
const LOOK_NS: u64 = 50_000_000;
/// The same at first.
const FIRST_LOOK_NS: u64 = 20_000_000;
/// Processor time after which a thread that has the turn, and that others wait for, loses it
/// although it has come to no hand-over: it may be spinning on a word that another thread is to
/// change. From there to its next call it runs beside the others, in every replica; what it shares
/// with them in that time is not repeated exactly. So long, because a compressor's thread may well
/// compute for half a minute between two calls; programs whose threads spin want `--order clocks`.
const SPIN_NS: u64 = 60_000_000_000;

/// The thread that has the turn, as a waiting one sees it.
#[derive(Default)]
struct Holder {
    slot: u32,
    events: u64,
    used: u64,
    /// The monitor knows that it computes while others wait.
    told: bool,
}

impl Holder {
    /// For how many nanoseconds it is left alone.
    fn look_again(&self) -> u64 {
        if self.told { LOOK_NS } else { FIRST_LOOK_NS }
    }

    /// It has had the turn since the last look, and has come to no event: the monitor is to interrupt it where
    /// all replicas' threads are in the same state, which those that spin are at any time.
    fn complain(&mut self) {
        let slot = OWN.owner.load(Ordering::SeqCst);
        let h = block_at(slot as usize);
        let computes = h.frame == 0 && h.has_turn.load(Ordering::SeqCst) != 0;
        if self.told || self.used == 0 || slot != self.slot || h.events != self.events || !computes
        {
            return;
        }
        self.told = true;
        h.starves.store(1, Ordering::SeqCst);
        crate::gate::rpc(geryon_abi::layout::rpc::STARVES, slot as u64, 0, 0);
    }

    /// Has it used much processor time without an event since we first saw it?
    fn spins(&mut self) -> bool {
        let slot = OWN.owner.load(Ordering::SeqCst);
        let h = block_at(slot as usize);
        let (events, used) = (h.events, thread_time(h.own_tid));
        if slot != self.slot || events != self.events || self.used == 0 {
            *self = Holder {
                slot,
                events,
                used,
                told: false,
            };
        }
        used.saturating_sub(self.used) > SPIN_NS
    }

    /// Take its turn away, if it is still running the program's code.
    fn rob(&self) -> bool {
        let h = block_at(self.slot as usize);
        if h.has_turn.swap(0, Ordering::SeqCst) == 0 {
            return false;
        }
        let in_kernel = h.waiting.load(Ordering::SeqCst) == wait::KERNEL;
        if (h.frame != 0 && !in_kernel) || h.events != self.events {
            // It is just coming to an event: let it.
            h.has_turn.store(1, Ordering::SeqCst);
            return false;
        }
        h.robbed.store(1, Ordering::SeqCst);
        OWN.last.store(h.slot as u64, Ordering::SeqCst);
        OWN.last_pos.store(h.pos, Ordering::SeqCst);
        true
    }
}

/// Processor time of a thread of this process, in nanoseconds.
fn thread_time(tid: u32) -> u64 {
    const NR_CLOCK_GETTIME: u64 = 228;
    const PER_THREAD_SCHED: u64 = 6;
    let clock = (!(tid as u64) << 3) | PER_THREAD_SCHED;
    let mut t = [0u64; 2];
    crate::gate::real(
        NR_CLOCK_GETTIME,
        [
            clock as u32 as i32 as u64,
            t.as_mut_ptr() as u64,
            0,
            0,
            0,
            0,
        ],
    );
    t[0] * 1_000_000_000 + t[1]
}

/// Follower: this thread stands at its present position and holds nothing back.
pub fn pause(mut b: Here) {
    b.released = b.pos;
    show_place(b, b.pos);
    changed();
}

/// The others of its replica cannot look into its block.
fn show_place(b: Here, pos: u64) {
    if is_joined() {
        let row = &commons().released[private().row.get() as usize % commons::ROWS];
        row[b.slot as usize].store(pos, Ordering::SeqCst);
    }
}

/// (A turn taken meanwhile says so itself, to the thread behind it: a number that is out of date
/// here wakes nobody who would have to see this change.)
fn changed() {
    fence(Ordering::SeqCst);
    let t = turns();
    let next = place_of(t, t.number.load(Ordering::SeqCst).wrapping_add(1));
    next.events.fetch_add(1, Ordering::SeqCst);
    if next.sleepers.load(Ordering::SeqCst) != 0 {
        wake_there(t, &raw const next.events as u64);
    }
}

/// Who had a turn before the one that is to be taken.
#[derive(Clone, Copy)]
enum Before {
    /// A thread of this process.
    Own(Here),
    /// One of any process that has joined; none yet.
    Common(Option<&'static AtomicU64>),
}

impl Before {
    fn named(name: u32, common: bool) -> Option<Before> {
        if !common {
            return ((name as usize) < MAX_THREADS).then(|| Before::Own(block_at(name as usize)));
        }
        if name == commons::NOBODY {
            return Some(Before::Common(None));
        }
        let (row, slot) = commons::place_of(name)?;
        Some(Before::Common(Some(&commons().released[row][slot])))
    }

    fn has_released(self, pos: u64, forced: bool) -> bool {
        match self {
            Before::Own(b) => released_at(b) == pos || (forced && position(b) == pos),
            Before::Common(None) => true,
            Before::Common(Some(at)) => {
                let at = at.load(Ordering::SeqCst);
                at == pos || at == commons::GONE
            }
        }
    }
}

/// Follower: a TURN record was read (its first word is `w`): wait for it. False when the log was cut
/// off before it meanwhile.
pub fn take(mut b: Here, w: u64) -> bool {
    let start = b.pos - 1;
    remember(b, w);
    let number = geryon_abi::record::low_of(w);
    let detail = geryon_abi::record::detail_of(w);
    let (forced, common) = (detail & FORCED != 0, detail & COMMON != 0);
    let (second, pos) = (get(b), get(b));
    while common && !is_joined() {
        // Another thread is about to join.
        crate::wait::pause(JOINING_NS);
    }
    let before = unseal(w, second, pos).and_then(|name| Before::named(name, common));
    let Some(before) = before.filter(|_| common == is_joined()) else {
        diverged(why::DAMAGED, start, plain(w));
        return false;
    };
    let t = turns();
    // Only now: a record that the leader published in two parts (its ring was full) makes `get`
    // wait, and that notes another position.
    b.released = start;
    b.standing = start;
    show_place(b, start);
    changed();
    let mut patience = Patience::long();
    announce(wait_of(t), &raw const t.number as u64, number as u64);
    let place = place_of(t, number);
    loop {
        let seen = place.events.load(Ordering::SeqCst);
        // First: that the turn is there may be because the log was cut off, and others went back.
        if is_cut(b, start) {
            announce_end();
            rewind(b, start);
            return false;
        }
        let ready = t.number.load(Ordering::SeqCst) == number.wrapping_sub(1)
            && before.has_released(pos, forced);
        if ready {
            break;
        }
        if patience.spend() {
            place.sleepers.fetch_add(1, Ordering::SeqCst);
            if place.events.load(Ordering::SeqCst) == seen {
                // Who is robbed of its turn tells nobody where it is.
                let limit = if forced { LOOK_NS / 50 } else { LOOK_NS };
                sleep_there(t, &raw const place.events as u64, seen, limit);
            }
            place.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
    announce_end();
    crate::log::verified(b);
    if let Before::Own(before) = before {
        before.robbed.store(forced as u32, Ordering::SeqCst);
    }
    b.robbed.store(0, Ordering::SeqCst);
    t.number.store(number, Ordering::SeqCst);
    t.owner.store(name_of(b), Ordering::SeqCst);
    point!(TurnTaken);
    changed();
    await_exits();
    true
}

/// Between two looks whether the process has joined others.
const JOINING_NS: u64 = 1_000_000;

/// Follower: may this thread run, as the log has it? Where another one has taken the turn that this one
/// stood waiting with, the next that is logged of it is a turn again, or the leader has let two run.
#[inline(always)]
pub fn runs(b: Here) -> bool {
    turns().owner.load(Ordering::SeqCst) == name_of(b) || b.robbed.load(Ordering::SeqCst) != 0
}

/// The process leads from now on: the turn is with whom its former leader has last given it to, unless
/// that thread has ended.
pub fn promoted() {
    if is_joined() {
        // The monitor says so for all of them at once.
        return;
    }
    let owner = OWN.owner.load(Ordering::SeqCst);
    let o = block_at(owner as usize);
    let ended = o.this == 0 || o.free.load(Ordering::SeqCst) != 0;
    OWN.waiting.store(0, Ordering::SeqCst);
    OWN.last.store(owner as u64, Ordering::SeqCst);
    OWN.last_pos.store(position(o), Ordering::SeqCst);
    for slot in 0..MAX_THREADS {
        let b = block_at(slot);
        if b.this != 0 && b.vforked == 0 {
            b.has_turn.store(0, Ordering::SeqCst);
        }
    }
    if ended {
        OWN.turn.store(FREE, Ordering::SeqCst);
    } else {
        o.has_turn.store(1, Ordering::SeqCst);
        OWN.turn.store(TAKEN, Ordering::SeqCst);
    }
}

fn position(b: Here) -> u64 {
    // SAFETY: a word of another thread's block, written whole.
    unsafe { core::ptr::from_ref(&b.pos).read_volatile() }
}

fn released_at(b: Here) -> u64 {
    // SAFETY: a word of another thread's block, written whole.
    unsafe { core::ptr::from_ref(&b.released).read_volatile() }
}

/// The record of a yield.
pub(crate) const YIELDED: u64 = word(kind::CALL, 0, NR_SCHED_YIELD, 1);
const NR_SCHED_YIELD: u16 = 24;

/// Give the others a chance, at a place that every replica comes to (a spinning thread).
pub fn yield_turn(mut b: Here) {
    while !leads()
        && let Some(theirs) = crate::log::first(b)
    {
        if theirs == YIELDED {
            return;
        }
        let at = b.pos - 1;
        diverged(why::KIND, at, plain(YIELDED));
    }
    b.call_start = b.pos;
    b.repeatable = repeat::CALL;
    release(b);
    acquire(b);
    b.repeatable = repeat::NOTHING;
    log_yield(b);
}

/// Leader: the same for a thread in the midst of computation, of which a copy could not begin anything anew.
pub(crate) fn give_way(b: Here) {
    release(b);
    acquire(b);
    log_yield(b);
}

/// Leader: log a yield that is over.
pub(crate) fn log_yield(b: Here) {
    put(b, YIELDED);
    publish(b);
}
