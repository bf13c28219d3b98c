//! Files that the program maps to be shared and writable. The leader maps the file, so that others see it;
//! each other replica has an object of its own in its place, with the same content, which the monitor keeps
//! under the file's identity and every process of that replica maps. The program's stores fill both alike.
//!
//! What is not a store keeps them alike, too: a mapping is agreed on like an output, so that all followers
//! have come there when the monitor copies the file, and a call that changes the file is confirmed, so that
//! they have come there when the monitor changes their objects, right behind the call and before it is logged.

use crate::gate::{real, rpc};
use crate::state::{header, leads, private};
use crate::undo::offset_of;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI64, Ordering};
use geryon_abi::layout::{object, rpc as number};
use geryon_abi::table::content::{self, Place};

const NR_CLOSE: u64 = 3;
const NR_FSTAT: u64 = 5;
const NR_MMAP: u64 = 9;
const NR_MUNMAP: u64 = 11;
const NR_SIGPROCMASK: u64 = 14;
const NR_CLONE: u64 = 56;
const NR_EXIT: u64 = 60;
const NR_WAIT4: u64 = 61;
const NR_SHMDT: u64 = crate::enter::nr::SHMDT;
const NR_OPENAT: u64 = 257;
const AT_FDCWD: u64 = -100i64 as u64;
const O_RDWR: u64 = 2;
const O_CLOEXEC: u64 = 0o2_000_000;
const EINTR: i64 = -4;

/// Is what mmap maps with these flags to be shared? (All have to say the same, before the leader knows what
/// kind of file it is.)
pub fn is_shared(flags: u64) -> bool {
    const TYPE: u64 = 0xf;
    const SHARED: u64 = 1;
    const VALIDATED: u64 = 3;
    matches!(flags & TYPE, SHARED | VALIDATED)
}

/// Leader, about to map a file: which object is it for the others? 0: the file itself; negative: an errno.
pub fn ask(args: &[u64; 6]) -> i64 {
    let fd = args[4];
    if private().replicas == 1 || (!is_shared(args[3]) && !is_known(fd)) {
        return 0;
    }
    rpc(number::SHARE, fd as u32 as u64, args[3], args[1])
}

/// Leader, which has attached a segment: the same.
pub fn ask_segment(args: &[u64; 6], at: i64) -> i64 {
    if private().replicas == 1 {
        return 0;
    }
    let id = object::SEGMENT | args[0] as u32 as u64;
    rpc(number::SHARE, id, args[2], at as u64)
}

/// Follower: map this replica's own in place of a segment, where the leader has attached it.
pub fn attach(args: [u64; 6], at: u64, object: u32) -> i64 {
    const RDONLY: u64 = 0o10_000;
    const EXEC: u64 = 0o100_000;
    const FIXED_SHARED: u64 = 0x11;
    let mut prot = 1;
    if args[2] & RDONLY == 0 {
        prot |= 2;
    }
    if args[2] & EXEC != 0 {
        prot |= 4;
    }
    map([at, 0, prot, FIXED_SHARED, 0, 0], object)
}

/// Follower: the segment that is attached there is detached.
pub fn detach(at: u64) -> i64 {
    if private().replicas == 1 {
        return real(NR_SHMDT, [at, 0, 0, 0, 0, 0]);
    }
    let length = rpc(number::ATTACHED, at, 0, 0);
    if length < 0 {
        return length;
    }
    real(NR_MUNMAP, [at, length as u64, 0, 0, 0, 0])
}

/// May this descriptor's file be one of which each replica has its own?
fn is_known(fd: u64) -> bool {
    const INODE_WORD: usize = 1;
    let known = header().shared.load(Ordering::SeqCst);
    if known == 0 {
        return false;
    }
    let mut status = [0u64; 18];
    real(NR_FSTAT, [fd, status.as_mut_ptr() as u64, 0, 0, 0, 0]) == 0
        && known & object::bit(status[INODE_WORD]) != 0
}

/// Leader, behind a call and before it is logged: what it has put into a file has to come into the objects.
#[inline(always)]
pub fn mirror(nr: u16, args: &[u64; 6], result: i64) {
    if header().shared.load(Ordering::SeqCst) != 0 && result >= 0 {
        mirror_change(nr, args, result as u64);
    }
}

#[cold]
fn mirror_change(nr: u16, args: &[u64; 6], result: u64) {
    const O_TRUNC: u64 = 0o1000;
    let arg = |i: u8| args[i as usize];
    let before = |fd: u8| (offset_of(arg(fd)) as u64).wrapping_sub(result);
    let Some(place) = content::place(nr as u64, args) else {
        return;
    };
    let (fd, at, len) = match place {
        Place::Before(fd) => (arg(fd), before(fd), result),
        Place::At(fd, at) if arg(at) == u64::MAX => (arg(fd), before(fd), result),
        Place::At(fd, at) => (arg(fd), arg(at), result),
        Place::Pointed(fd, at) if arg(at) == 0 => (arg(fd), before(fd), result),
        // SAFETY: the kernel has just read and written the word.
        Place::Pointed(fd, at) => unsafe {
            let end = (arg(at) as *const u64).read_unaligned();
            (arg(fd), end.wrapping_sub(result), result)
        },
        Place::Range(fd, at, len) => (arg(fd), arg(at), arg(len)),
        Place::All(fd) => (arg(fd), 0, u64::MAX),
        Place::Truncating(flags) if arg(flags) & O_TRUNC == 0 => return,
        Place::Length | Place::Truncating(_) => return length_changed(),
    };
    if is_known(fd) {
        rpc(number::WROTE, fd as u32 as u64, at, len);
    }
}

fn length_changed() {
    rpc(number::WROTE, u64::MAX, 0, 0);
}

/// Follower: map this replica's own object as the leader has mapped the file. `a` are mmap's arguments, with
/// the address.
pub fn map(mut a: [u64; 6], object: u32) -> i64 {
    let mut path = [0u8; 64];
    let length = rpc(number::OBJECT, object as u64, path.as_mut_ptr() as u64, 0);
    if length < 0 {
        return length;
    }
    if a[1] == 0 {
        // All of it, as segments are.
        a[1] = length as u64;
    }
    let flags = match object & object::READ_ONLY {
        0 => O_RDWR | O_CLOEXEC,
        _ => O_CLOEXEC,
    };
    map_with(&path, flags, a)
}

/// Map what the monitor has named, for reading and writing.
pub fn map_path(path: &[u8; 64], a: [u64; 6]) -> i64 {
    map_with(path, O_RDWR | O_CLOEXEC, a)
}

fn map_with(path: &[u8; 64], flags: u64, a: [u64; 6]) -> i64 {
    // A forked process that follows has no descriptors, and nobody counts its own.
    if private().shares_files.get() == 0 && !leads() {
        return open_and_map(path, flags, a);
    }
    beside(path, flags, a)
}

fn open_and_map(path: &[u8; 64], flags: u64, a: [u64; 6]) -> i64 {
    let fd = real(NR_OPENAT, [AT_FDCWD, path.as_ptr() as u64, flags, 0, 0, 0]);
    if fd < 0 {
        return fd;
    }
    let mapped = real(NR_MMAP, [a[0], a[1], a[2], a[3], fd as u64, a[5]]);
    real(NR_CLOSE, [fd as u64, 0, 0, 0, 0, 0]);
    mapped
}

/// What the process beside this one is to map. One thread at a time comes here: memory calls have an order.
struct Order(UnsafeCell<([u8; 64], u64, [u64; 6])>);
// SAFETY: see above; the process beside runs while the thread waits for it.
unsafe impl Sync for Order {}
static ORDER: Order = Order(UnsafeCell::new(([0; 64], 0, [0; 6])));
static ANSWER: AtomicI64 = AtomicI64::new(0);

#[repr(align(16))]
struct Stack(UnsafeCell<[u64; STACK_WORDS]>);
// SAFETY: as for `Order`.
unsafe impl Sync for Stack {}
const STACK_WORDS: usize = 1024;
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_WORDS]));

/// The same where the descriptor table is the leader's, too: the program would see a number taken in it. A
/// process that has this memory and a table of its own does it; nobody traces it, and it ends at once.
fn beside(path: &[u8; 64], flags: u64, a: [u64; 6]) -> i64 {
    const VM: u64 = 0x100;
    const UNTRACED: u64 = 0x80_0000;
    const SETMASK: u64 = 2;
    const ALL: u64 = 0x4000_0000;
    const LOST: i64 = -1;
    let (every, mut before) = (u64::MAX, 0u64);
    let mask = |new: *const u64, old: *mut u64| {
        real(NR_SIGPROCMASK, [SETMASK, new as u64, old as u64, 8, 0, 0])
    };
    // Its copies of the program's handlers are not to run.
    mask(&raw const every, &raw mut before);
    ANSWER.store(LOST, Ordering::SeqCst);
    // SAFETY: see `Order`. The gate returns to the word at the top of the new process's stack.
    let top = unsafe {
        *ORDER.0.get() = (*path, flags, a);
        let top = STACK.0.get().cast::<u64>().add(STACK_WORDS - 2);
        top.write(map_beside as *const () as u64);
        top as u64
    };
    let pid = real(NR_CLONE, [VM | UNTRACED, top, 0, 0, 0, 0]);
    let mut result = pid;
    if pid > 0 {
        while real(NR_WAIT4, [pid as u64, 0, ALL, 0, 0, 0]) == EINTR {}
        result = ANSWER.load(Ordering::SeqCst);
    }
    mask(&raw const before, core::ptr::null_mut());
    result
}

extern "C" fn map_beside() -> ! {
    // SAFETY: see `Order`.
    let (path, flags, a) = unsafe { &*ORDER.0.get() };
    ANSWER.store(open_and_map(path, *flags, *a), Ordering::SeqCst);
    loop {
        real(NR_EXIT, [0; 6]);
    }
}
