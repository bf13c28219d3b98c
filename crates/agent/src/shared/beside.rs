//! Maps an object in a follower whose descriptor table is the leader's, too: the program would see a number
//! taken in it. A process that has this memory and a copy of the table does it; nobody traces it, and it ends
//! at once. What it needs of the monitor this one asks for it.

use super::map_and_close;
use crate::gate::{real, rpc};
use crate::passage::Passage;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use geryon_abi::layout::{enclosed, rpc as number};
use geryon_abi::table::nr;

const EINTR: i64 = -4;
/// It has gone before it could say what came of it: EIO.
const LOST: i64 = -5;
/// Between two looks.
const MOMENT: u64 = 50_000;

/// How far they are.
mod step {
    /// It is being made.
    pub const BEGUN: u32 = 0;
    /// Its socket has a name.
    pub const NAMED: u32 = 1;
    /// The letter is there.
    pub const SENT: u32 = 2;
    /// It is over.
    pub const DONE: u32 = 3;
}

/// What it is to map. One thread at a time comes here: memory calls have an order.
struct Order {
    args: UnsafeCell<[u64; 6]>,
    object: AtomicU32,
    step: AtomicU32,
    name: AtomicU64,
    answer: AtomicI64,
    parent: AtomicI64,
}
// SAFETY: see above; the process beside runs while the thread waits for it.
unsafe impl Sync for Order {}
static ORDER: Order = Order {
    args: UnsafeCell::new([0; 6]),
    object: AtomicU32::new(0),
    step: AtomicU32::new(0),
    name: AtomicU64::new(0),
    answer: AtomicI64::new(0),
    parent: AtomicI64::new(0),
};

#[repr(align(16))]
struct Stack(UnsafeCell<[u64; STACK_WORDS]>);
// SAFETY: as for `Order`.
unsafe impl Sync for Stack {}
const STACK_WORDS: usize = 2048;
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_WORDS]));

/// See `super::map`.
pub fn map(a: [u64; 6], object: u32) -> i64 {
    const VM: u64 = 0x100;
    const UNTRACED: u64 = 0x80_0000;
    const SETMASK: u64 = 2;
    const ALL: u64 = 0x4000_0000;
    const NOHANG: u64 = 1;
    let (every, mut before) = (u64::MAX, 0u64);
    let mask = |new: *const u64, old: *mut u64| {
        real(
            nr::rt_sigprocmask,
            [SETMASK, new as u64, old as u64, 8, 0, 0],
        )
    };
    // Its copies of the program's handlers are not to run.
    mask(&raw const every, &raw mut before);
    ORDER
        .parent
        .store(real(nr::getpid, [0; 6]), Ordering::SeqCst);
    ORDER.object.store(object, Ordering::SeqCst);
    ORDER.step.store(step::BEGUN, Ordering::SeqCst);
    ORDER.answer.store(LOST, Ordering::SeqCst);
    // SAFETY: see `Order`. The gate returns to the word at the top of the new process's stack.
    let top = unsafe {
        *ORDER.args.get() = a;
        let top = STACK.0.get().cast::<u64>().add(STACK_WORDS - 2);
        top.write(run as *const () as u64);
        top as u64
    };
    let pid = real(nr::clone, [VM | UNTRACED, top, 0, 0, 0, 0]);
    let mut result = pid;
    if pid > 0 {
        let wait = |how| real(nr::wait4, [pid as u64, 0, ALL | how, 0, 0, 0]);
        let mut gone = false;
        while !gone && ORDER.step.load(Ordering::SeqCst) == step::BEGUN {
            crate::wait::pause(MOMENT);
            gone = wait(NOHANG) == pid;
        }
        if ORDER.step.load(Ordering::SeqCst) == step::NAMED {
            let name = ORDER.name.load(Ordering::SeqCst);
            let sent = rpc(number::FETCH, object as u64, name, enclosed::OBJECTS);
            ORDER.answer.store(sent, Ordering::SeqCst);
            ORDER.step.store(step::SENT, Ordering::SeqCst);
        }
        while !gone && wait(0) == EINTR {}
        result = match ORDER.step.load(Ordering::SeqCst) {
            step::DONE => ORDER.answer.load(Ordering::SeqCst),
            _ => LOST,
        };
    }
    mask(&raw const before, core::ptr::null_mut());
    result
}

extern "C" fn run() -> ! {
    let answer = fetch_and_map();
    ORDER.answer.store(answer, Ordering::SeqCst);
    ORDER.step.store(step::DONE, Ordering::SeqCst);
    loop {
        real(nr::exit, [0; 6]);
    }
}

fn fetch_and_map() -> i64 {
    let passage = match Passage::open() {
        Ok(passage) => passage,
        Err(error) => return error,
    };
    ORDER.name.store(passage.name(), Ordering::SeqCst);
    ORDER.step.store(step::NAMED, Ordering::SeqCst);
    while ORDER.step.load(Ordering::SeqCst) != step::SENT {
        // It is not to outlive who waits for it, whenever that was killed.
        if real(nr::getppid, [0; 6]) != ORDER.parent.load(Ordering::SeqCst) {
            return LOST;
        }
        crate::wait::pause(MOMENT);
    }
    let sent = ORDER.answer.load(Ordering::SeqCst);
    if sent < 0 {
        return sent;
    }
    let object = ORDER.object.load(Ordering::SeqCst);
    // SAFETY: see `Order`.
    let args = unsafe { *ORDER.args.get() };
    // (Its table ends with it, and with that the socket.)
    passage
        .take(object, enclosed::OBJECTS)
        .map_or_else(|e| e, |fd| map_and_close(args, fd))
}
