//! Threads: birth, death, and the calls that concern one thread. Births and deaths have one
//! order in the process, because glibc's cache of stacks depends on it.

use crate::call::{begin_record, complete, input};
use crate::clock::LIFE;
use crate::gate::{self, clone_thread, guarded, real, rpc};
use crate::log::{first as first_word, get, publish, put, remember, resume_stream, tell_tail};
use crate::marshal::Before;
use crate::raise;
use crate::state::{Here, block, block_at, leads, private};
use crate::stop::diverged;
use crate::wait::{Patience, announce, announce_end};
use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::frame::{FRAME_BYTES, Frame};
use geryon_abi::layout::{
    BLOCK_BYTES, MAX_EXITING, MAX_THREADS, block_address, rpc as number, wait, why,
};
use geryon_abi::record::{kind, kind_of, low_of, word};
use geryon_abi::row::Row;

const NR_GETTID: u64 = 186;
const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x10000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
const EAGAIN: i64 = -11;
const EINVAL: i64 = -22;

/// Threads alive (changed inside LIFE).
static ALIVE: AtomicU32 = AtomicU32::new(1);
/// One past the highest slot used so far.
static HIGH: AtomicU32 = AtomicU32::new(1);
/// Clear-tid words of threads that have announced their exit (changed inside LIFE).
static EXITING: [AtomicU64; MAX_EXITING] = [const { AtomicU64::new(0) }; MAX_EXITING];
static EXITING_COUNT: AtomicU32 = AtomicU32::new(0);

/// Are locks and atomics recorded? Not where one thread runs at a time, nor where nobody follows.
fn orders() -> bool {
    let p = private();
    p.serial == 0 && p.replicas > 1
}

fn is_free(slot: usize) -> bool {
    let b = block_at(slot);
    b.this == 0 || b.free.load(Ordering::Acquire) == 1
}

/// clone.
pub fn clone(frame: &mut Frame, row: &'static Row) {
    let flags = frame.rdi;
    if flags & CLONE_VM == 0 {
        return crate::process::fork(frame, row);
    }
    if flags & CLONE_VFORK != 0 {
        return crate::process::vfork(frame, row);
    }
    if flags & CLONE_THREAD == 0 {
        crate::stop::refused(row.nr as u64, flags);
        frame.rax = EINVAL as u64;
        return;
    }
    let mut b = block();
    let p = private();
    if p.multi == 0 {
        crate::clock::register_barrier();
        p.multi = 1;
        crate::serial::begin(b);
    }
    if b.suspend == 0 {
        b.ordered = orders() as u64;
    }
    if leads() {
        lead_birth(b, frame)
    } else {
        follow_birth(b, frame)
    }
}

fn lead_birth(b: Here, frame: &mut Frame) {
    raise::lead_signal_before(b, frame);
    let inside = LIFE.held_by(b.this);
    let tick = LIFE.enter(b.this);
    let slot = (0..MAX_THREADS).find(|s| is_free(*s));
    let result = slot.map_or(EAGAIN, |s| start(frame, s));
    LIFE.tick();
    let first = word(kind::BIRTH, 0, 0, tick);
    put(b, first);
    put(b, slot.unwrap_or(0) as u64);
    put(b, result as u64);
    remember(b, first);
    publish(b);
    if !inside {
        LIFE.leave();
    }
    frame.rax = result as u64;
}

fn follow_birth(b: Here, frame: &mut Frame) {
    let at = b.pos;
    let first = begin_record(b, frame);
    if kind_of(first) != kind::BIRTH {
        diverged(
            why::KIND,
            at,
            [word(kind::BIRTH, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0],
        );
    }
    let (slot, result) = (get(b) as usize, get(b) as i64);
    crate::log::verified(b);
    let tick = low_of(first);
    LIFE.await_turn(tick);
    if result > 0 {
        await_free(slot);
        let own = start(frame, slot);
        if own < 0 {
            diverged(
                why::LOCAL,
                at,
                [
                    word(kind::BIRTH, 0, 0, tick),
                    own as u64,
                    result as u64,
                    0,
                    0,
                    0,
                    0,
                    0,
                ],
            );
        }
        if frame.rdi & CLONE_PARENT_SETTID != 0 {
            store_tid(frame.rdx, result as u32);
        }
    }
    LIFE.turn_done(tick);
    frame.rax = result as u64;
}

fn store_tid(address: u64, tid: u32) {
    guarded(|| {
        // SAFETY: inside `guarded`.
        unsafe { (address as *mut u32).write_volatile(tid) }
    });
}

/// Agree on a free slot for a process that will run in this memory.
pub fn take_slot(frame: &mut Frame) -> Option<usize> {
    let b = block();
    if leads() {
        let tick = LIFE.enter(b.this);
        let slot = (0..MAX_THREADS).find(|s| is_free(*s));
        if let Some(s) = slot {
            claim(s);
        }
        LIFE.tick();
        let first = word(kind::BIRTH, 1, 0, tick);
        put(b, first);
        put(b, slot.map_or(u64::MAX, |s| s as u64));
        put(b, 0);
        remember(b, first);
        publish(b);
        LIFE.leave();
        return slot;
    }
    let at = b.pos;
    let first = begin_record(b, frame);
    if kind_of(first) != kind::BIRTH {
        diverged(
            why::KIND,
            at,
            [word(kind::BIRTH, 1, 0, 0), 0, 0, 0, 0, 0, 0, 0],
        );
    }
    let (slot, _) = (get(b) as usize, get(b));
    crate::log::verified(b);
    let tick = low_of(first);
    LIFE.await_turn(tick);
    if slot < MAX_THREADS {
        await_free(slot);
        claim(slot);
    }
    LIFE.turn_done(tick);
    (slot < MAX_THREADS).then_some(slot)
}

fn claim(slot: usize) {
    let mut b = block_at(slot);
    b.this = block_address(slot);
    b.free.store(0, Ordering::Release);
}

/// Its last owner executes its last instructions.
fn await_free(slot: usize) {
    let mut patience = Patience::new();
    while !is_free(slot) {
        if patience.spend() {
            patience = Patience::new();
        }
    }
}

/// Really create the thread, in every replica.
fn start(frame: &Frame, slot: usize) -> i64 {
    let mut child = *frame;
    child.rsp = frame.rsi;
    crate::wait::adapt(ALIVE.fetch_add(1, Ordering::Relaxed) + 1);
    let keep = frame.rdi & !(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID);
    let result = start_in(&child, slot, keep, false);
    if result < 0 {
        block_at(slot).free.store(1, Ordering::Release);
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
    if result > 0 && leads() && frame.rdi & CLONE_PARENT_SETTID != 0 {
        store_tid(frame.rdx, result as u32);
    }
    result
}

/// Clone with the slot's block and agent stack; `state` is what the child starts from.
pub fn start_in(state: &Frame, slot: usize, flags: u64, vforked: bool) -> i64 {
    let parent = block();
    let mut new = block_at(slot);
    let address = block_address(slot);
    let top = address + BLOCK_BYTES;
    let copy = top - FRAME_BYTES as u64;
    new.this = address;
    new.slot = slot as u32;
    new.stack_top = top;
    new.frame = copy;
    new.free.store(0, Ordering::Relaxed);
    new.ordered = if vforked {
        parent.ordered
    } else {
        orders() as u64
    };
    new.has_turn.store(vforked as u32, Ordering::Relaxed);
    new.suspend = 0;
    new.fault_rip = 0;
    new.vforked = vforked as u32;
    new.pending_count.store(0, Ordering::Relaxed);
    new.clear_tid = if state.rdi & CLONE_CHILD_CLEARTID != 0 && !vforked {
        state.r10
    } else {
        0
    };
    let mut child = *state;
    child.rax = 0;
    child.pad = child.rflags();
    // SAFETY: the top of the unused block's stack.
    unsafe { (copy as *mut Frame).write(child) };
    HIGH.fetch_max(slot as u32 + 1, Ordering::Relaxed);
    clone_thread([flags, copy, 0, state.r10, state.r8], address, copy)
}

/// First Rust code of a new thread, on its agent stack.
#[unsafe(no_mangle)]
extern "C" fn geryon_thread_started(_block: u64) {
    let b = block();
    if b.vforked != 0 {
        if !leads() {
            // A copy of the descriptor table would keep pipes open that the program closes.
            const NR_CLOSE_RANGE: u64 = 436;
            real(NR_CLOSE_RANGE, [0, u32::MAX as u64, 0, 0, 0, 0]);
        }
        rpc(number::VFORKED, b.slot as u64, 0, 0);
        resume_stream(leads());
        greet(b);
        return;
    }
    resume_stream(leads());
    greet(b);
    // SAFETY: the creator put the frame there.
    let frame = unsafe { &*(b.frame as *const Frame) };
    if frame.rdi & CLONE_PARENT_SETTID != 0 {
        store_tid(frame.rdx, b.shown_tid);
    }
    if frame.rdi & CLONE_CHILD_SETTID != 0 {
        store_tid(frame.r10, b.shown_tid);
    }
    if crate::serial::active() {
        if leads() {
            crate::serial::acquire(b);
            publish(b);
        } else {
            // A new thread always begins with a turn.
            let w = get(b);
            if kind_of(w) != kind::TURN {
                diverged(
                    why::KIND,
                    b.pos - 1,
                    [word(kind::TURN, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0],
                );
            }
            crate::serial::take(b, w);
        }
    }
}

/// The first record of a thread or process carries the id that the program sees.
pub fn greet(mut b: Here) {
    b.own_tid = real(NR_GETTID, [0; 6]) as u32;
    if leads() {
        b.shown_tid = b.own_tid;
        let first = word(kind::HELLO, 0, 0, b.own_tid);
        put(b, first);
        remember(b, first);
        publish(b);
    } else {
        let at = b.pos;
        let first = first_word(b);
        remember(b, first);
        if kind_of(first) != kind::HELLO {
            diverged(
                why::KIND,
                at,
                [word(kind::HELLO, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0],
            );
        }
        b.shown_tid = low_of(first);
    }
}

/// exit: the end of one thread.
pub fn exit(frame: &mut Frame, row: &'static Row) {
    if ALIVE.load(Ordering::Acquire) == 1 || block().vforked != 0 {
        return crate::process::exit_group(frame, row);
    }
    let b = block();
    if leads() {
        raise::lead_signal_before(b, frame);
        let tick = LIFE.enter(b.this);
        announce_exit(b);
        LIFE.tick();
        let first = word(kind::DEATH, 0, 0, tick);
        put(b, first);
        remember(b, first);
        publish(b);
        LIFE.leave();
        if crate::serial::active() {
            crate::serial::release(b);
        }
    } else {
        let at = b.pos;
        let first = begin_record(b, frame);
        if kind_of(first) != kind::DEATH {
            diverged(
                why::KIND,
                at,
                [word(kind::DEATH, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0],
            );
        }
        crate::log::verified(b);
        let tick = low_of(first);
        LIFE.await_turn(tick);
        announce_exit(b);
        tell_tail(b);
        LIFE.turn_done(tick);
        if crate::serial::active() {
            crate::serial::pause(b);
        }
    }
    gate::exit(b.this, frame.rdi)
}

fn announce_exit(b: Here) {
    crate::wait::adapt(ALIVE.fetch_sub(1, Ordering::AcqRel) - 1);
    if b.clear_tid == 0 {
        return;
    }
    let n = EXITING_COUNT.load(Ordering::Relaxed) as usize;
    let n = if n == MAX_EXITING {
        await_exits();
        0
    } else {
        n
    };
    EXITING[n].store(b.clear_tid, Ordering::Relaxed);
    EXITING_COUNT.store(n as u32 + 1, Ordering::Relaxed);
}

/// Inside LIFE: wait until every thread that has announced its exit is really gone, that is,
/// the kernel has cleared its tid word, so that glibc's stack cache decides alike everywhere.
pub fn await_exits() {
    let n = EXITING_COUNT.load(Ordering::Relaxed) as usize;
    if n == 0 {
        return;
    }
    for e in EXITING.iter().take(n) {
        let address = e.load(Ordering::Relaxed);
        let mut patience = Patience::new();
        loop {
            let mut tid = 0;
            // A word that is not mapped any more belongs to a thread that is gone.
            let there = guarded(|| {
                // SAFETY: inside `guarded`.
                tid = unsafe { (address as *const u32).read_volatile() };
            });
            // glibc counts a descriptor as free from 0 downwards (-1: joined).
            if !there || tid as i32 <= 0 {
                break;
            }
            announce(wait::VALUE, address, 0);
            if patience.spend() {
                patience = Patience::new();
            }
        }
    }
    announce_end();
    EXITING_COUNT.store(0, Ordering::Relaxed);
}

/// In a forked child: this thread is the only one, and every ring is new.
pub fn alone() {
    ALIVE.store(1, Ordering::Relaxed);
    crate::wait::adapt(1);
    EXITING_COUNT.store(0, Ordering::Relaxed);
    let mut me = block();
    for s in 0..HIGH.load(Ordering::Relaxed) as usize {
        let mut b = block_at(s);
        b.pos = 0;
        b.limit = 0;
        if s as u32 != me.slot {
            b.this = 0;
        }
    }
    me.events = 0;
    me.vforked = 0;
    if private().multi != 0 {
        crate::clock::register_barrier();
        crate::serial::begin(me);
    }
    me.pending_count.store(0, Ordering::Relaxed);
}

/// set_tid_address: local effect everywhere, the leader's id as the result.
pub fn set_tid_address(frame: &mut Frame, row: &'static Row) {
    let mut b = block();
    b.clear_tid = frame.rdi;
    if private().tid_offset == 0 && b.slot == 0 {
        let base: u64;
        // SAFETY: reads a register.
        unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
        let offset = frame.rdi.wrapping_sub(base);
        if base != 0 && offset < 4096 {
            private().tid_offset = offset;
        }
    }
    if !leads() {
        real(row.nr as u64, frame.args());
    }
    input(frame, row);
}

/// rt_sigprocmask: executed everywhere, but logged, for it may let a signal in.
pub fn sigprocmask(frame: &mut Frame, row: &'static Row) {
    let args = frame.args();
    if args[1] == 0 {
        frame.rax = real(row.nr as u64, args) as u64;
        return;
    }
    let b = block();
    if leads() {
        raise::lead_signal_before(b, frame);
        let digest = crate::marshal::digest(row, &args);
        let result = real(row.nr as u64, args);
        complete(
            b,
            frame,
            row,
            kind::CALL,
            Some(digest),
            result,
            &Before::default(),
        );
    } else {
        // The order matters only for signals, and those come from the log.
        let digest_row = row;
        let digest = crate::marshal::digest(digest_row, &args);
        let at = b.pos;
        let first = begin_record(b, frame);
        let theirs = get(b);
        if kind_of(first) != kind::CALL || geryon_abi::record::short_of(first) != row.nr {
            diverged(
                why::KIND,
                at,
                [
                    word(kind::CALL, 0, row.nr, 0),
                    digest,
                    args[0],
                    args[1],
                    args[2],
                    args[3],
                    0,
                    0,
                ],
            );
        }
        if theirs != digest {
            diverged(
                why::DIGEST,
                at,
                [
                    word(kind::CALL, 0, row.nr, 0),
                    digest,
                    args[0],
                    args[1],
                    args[2],
                    args[3],
                    0,
                    0,
                ],
            );
        }
        real(row.nr as u64, args);
        crate::call::finish(b, frame, row, first);
    }
}

/// futex: never matched one to one (design, section 4). What it returns matters only to code
/// that loops on its word; timeouts of code that is not hooked are inputs.
pub fn futex(frame: &mut Frame, row: &'static Row) {
    const CMD_MASK: u64 = 0x7f;
    const WAIT: u64 = 0;
    const WAIT_BITSET: u64 = 9;
    const LOCK_PI: u64 = 6;
    const WAIT_REQUEUE_PI: u64 = 11;
    const LOCK_PI2: u64 = 13;
    let args = frame.args();
    let b = block();
    let command = args[1] & CMD_MASK;
    let waits = matches!(
        command,
        WAIT | WAIT_BITSET | LOCK_PI | WAIT_REQUEUE_PI | LOCK_PI2
    );
    let timed = waits && args[3] != 0;
    if crate::serial::active() {
        // Every result is logged; a follower's threads never sleep here, they wait for their turns.
        if !leads() && !waits {
            real(row.nr as u64, args);
        }
        return input(frame, row);
    }
    if !waits {
        frame.rax = real(row.nr as u64, args) as u64;
        return;
    }
    if b.suspend != 0 {
        wait_in_kernel(b, frame, row, args);
    } else if timed {
        input(frame, row);
    } else if leads() {
        wait_in_kernel(b, frame, row, args);
    } else if crate::log::signal_is_next(b) {
        // The leader's handler ran while it waited here.
        let first = get(b);
        raise::follow_signal_before(b, first, frame);
    } else {
        // A follower must not sleep for ever on a wake-up that its own history may not have:
        // it wakes by itself now and then, which futex(2) allows.
        const NAP: [u64; 2] = [0, 3_000_000];
        let mut nap = args;
        nap[3] = NAP.as_ptr() as u64;
        if command == WAIT_BITSET {
            // The plain form takes a relative time, and no flag for another clock.
            const PRIVATE: u64 = 128;
            nap[1] = args[1] & PRIVATE;
        }
        announce(wait::KERNEL, row.nr as u64, args[0]);
        let r = real(row.nr as u64, nap);
        announce_end();
        frame.rax = if r == -110 { 0 } else { r as u64 };
    }
}

/// A futex wait that is not logged. A signal that ends it is: its handler runs on top of the
/// hooked function, and what the wait returns then is as the kernel would have it.
fn wait_in_kernel(mut b: Here, frame: &mut Frame, row: &Row, args: [u64; 6]) {
    loop {
        announce(wait::KERNEL, row.nr as u64, args[0]);
        let r = gate::real_blocking(row.nr as u64, args);
        announce_end();
        let stopped = (-516..=-512).contains(&r) || r == -4;
        if !stopped {
            frame.rax = r as u64;
            return;
        }
        if !raise::pending(b) {
            continue;
        }
        if !leads() {
            continue;
        }
        if b.suspend != 0 {
            b.interrupted_rsp = frame.rsp;
            b.interrupted_suspend = b.suspend;
            b.suspend = 0;
            b.ordered = 1;
        }
        match raise::interrupted(b, r) {
            Some(shown) => frame.rax = shown as u64,
            None => {
                frame.rax = row.nr as u64;
                raise::reissue(frame);
            }
        }
        raise::lead_signal_in_hook(b, frame);
    }
}
