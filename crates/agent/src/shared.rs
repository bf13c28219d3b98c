//! Files that the program maps to be shared and writable. The leader maps the file, so that others see it;
//! each other replica has an object of its own in its place, with the same content, which the monitor keeps
//! under the file's identity. The program's stores fill both alike.
//!
//! What is not a store keeps them alike, too: a mapping is agreed on like an output, so that all followers
//! have come there when the monitor copies the file, and a call that changes the file is confirmed, so that
//! they have come there when the monitor changes their objects, right behind the call and before it is logged.
//! Before such a mapping goes away or is synchronised, the monitor compares what all replicas have stored.

mod beside;
mod compare;
mod ranges;
pub mod segment;

use crate::gate::{real, rpc};
use crate::passage::Passage;
use crate::state::{block, header, is_kin, leads, private};
use crate::undo::{is_file, offset_of};
use compare::ask_to_compare;
pub use compare::{ends, stand};
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{enclosed, rpc as number, vforked};
use geryon_abi::layout::{kin, object};
use geryon_abi::row::{Property, Row};
use geryon_abi::table::content::{self, Changed};
use geryon_abi::table::{self, nr};
use ranges::RANGES;

const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const EAGAIN: i64 = -11;

/// 1: this process was forked by one that maps objects.
static INHERITED: AtomicU32 = AtomicU32::new(0);

/// Is what mmap maps with these flags to be shared? (All have to say the same, before the leader knows what
/// kind of file it is.)
pub fn is_shared(flags: u64) -> bool {
    const TYPE: u64 = 0xf;
    const SHARED: u64 = 1;
    const VALIDATED: u64 = 3;
    matches!(flags & TYPE, SHARED | VALIDATED)
}

/// May anybody store to the memory that this mmap, of a shared mapping, gives? (What is read from a file that is
/// written by calls is the same for all.)
fn may_be_stored_to(args: &[u64; 6]) -> bool {
    const PROT_WRITE: u64 = 2;
    const ANONYMOUS: u64 = 0x20;
    args[2] & PROT_WRITE != 0 || args[3] & ANONYMOUS != 0
}

/// Do all replicas come together for this call, which changes what is mapped?
pub fn is_agreed(nr: u64, args: &[u64; 6]) -> bool {
    const ANONYMOUS: u64 = 0x20;
    let maps = match nr {
        nr::mmap => args[3] & ANONYMOUS == 0 && is_shared(args[3]),
        _ => nr == nr::shmat,
    };
    private().replicas > 1 && (maps || gives_up(nr, args).is_some())
}

/// First address and length of what this process maps of objects and the call takes away.
fn gives_up(nr: u64, args: &[u64; 6]) -> Option<(u64, u64)> {
    const FIXED: u64 = 0x10;
    let (start, len) = match nr {
        nr::mmap if args[3] & FIXED != 0 => (args[0], args[1]),
        nr::munmap | nr::mremap => (args[0], args[1]),
        nr::shmdt => (args[0], segment::bytes_at(args[0])?),
        _ => return None,
    };
    RANGES.touch(start, len).then_some((start, len))
}

/// All, behind a call that has mapped an object: the process is one of those that may share memory.
pub fn is_mapped() {
    let p = private();
    if p.kin.get() == 0 {
        p.kin.set(kin::IS_TO_JOIN);
    }
}

/// Leader: all have come to the call.
pub fn agreed(nr: u64, args: &[u64; 6]) {
    if let Some((start, len)) = gives_up(nr, args) {
        ask_to_compare(start, len, 0);
    }
}

/// All, in the section in which what is mapped is changed: a call has done that; `of_object`: it has mapped
/// one.
pub fn changed(nr: u64, args: &[u64; 6], result: u64, of_object: bool) {
    let attaches = nr == nr::shmat && of_object;
    if attaches {
        private().related.set(1);
        private().shares.set(1);
        RANGES.add(result, segment::bytes_at(result).unwrap_or(0));
    }
    if nr == nr::mmap && is_shared(args[3]) && (of_object || may_be_stored_to(args)) {
        private().related.set(1);
        private().shares.set(1);
    }
    let given_up = gives_up(nr, args);
    if let Some((start, len)) = given_up {
        RANGES.remove(start, len);
        segment::forget(start, len);
        if leads() && private().replicas > 1 {
            rpc(number::UNMAPPED, 0, 0, 0);
        }
    }
    let moved = given_up.is_some() && nr == nr::mremap;
    if moved {
        RANGES.add(result, args[2]);
    } else if of_object && !attaches && is_shared(args[3]) {
        RANGES.add(result, args[1]);
    }
}

/// Leader, at a call that all have confirmed: is it one that synchronises what is mapped?
#[inline(always)]
pub fn confirmed(nr: u16, args: &[u64; 6]) {
    let nr = nr as u64;
    if nr == nr::msync && private().replicas > 1 && RANGES.touch(args[0], args[1]) {
        ask_to_compare(args[0], args[1], 0);
    } else if table::is(nr, Property::Synchronises) && maps_objects() && is_known(args[0]) {
        ask_to_compare(0, u64::MAX, 0);
    }
}

/// Leader: all are about to end, or to execute another program.
pub fn leaves(ends: bool) {
    if maps_objects() {
        let how = if ends { object::compare::LEAVES } else { 0 };
        ask_to_compare(0, u64::MAX, how);
    }
}

/// Does this process map any? (A vfork's child leaves its parent's memory as it is.)
fn maps_objects() -> bool {
    private().replicas > 1 && block().vforked == vforked::NOT && RANGES.touch(0, u64::MAX)
}

/// Leader, about to map a file: which object is it for the others? 0: the file itself; negative: an errno.
pub fn ask(args: &[u64; 6]) -> i64 {
    const MOMENT: u64 = 5_000_000;
    let fd = args[4];
    if private().replicas == 1 || (!is_shared(args[3]) && !is_known(fd)) {
        return 0;
    }
    loop {
        let answer = rpc(number::SHARE, fd as u32 as u64, args[3], args[2]);
        if answer != EAGAIN {
            return answer;
        }
        crate::wait::pause(MOMENT);
    }
}

/// May this descriptor's file be one of which each replica has its own?
fn is_known(fd: u64) -> bool {
    const INODE_WORD: usize = 1;
    let known = header().shared.load(Ordering::SeqCst);
    if known == 0 {
        return false;
    }
    let mut status = [0u64; 18];
    real(nr::fstat, [fd, status.as_mut_ptr() as u64, 0, 0, 0, 0]) == 0
        && known & object::bit(status[INODE_WORD]) != 0
}

/// A transfer between a file and memory, which may be what a file is mapped to: in serial order no other
/// thread stores there meanwhile.
pub fn keeps_turn(row: &Row, args: &[u64; 6]) -> bool {
    let may_share = header().shared.load(Ordering::SeqCst) != 0 || is_kin();
    may_share && row.is(Property::Transfers) && is_file(args[0])
}

/// Leader, behind a call and before it is logged: what it has put into a file has to come into the objects.
#[inline(always)]
pub fn mirror(nr: u16, args: &[u64; 6], result: i64) {
    const EFAULT: i64 = -14;
    if result == EFAULT && INHERITED.load(Ordering::SeqCst) != 0 {
        rpc(number::FAULTED, 0, 0, 0);
    }
    if header().shared.load(Ordering::SeqCst) != 0 && result >= 0 {
        mirror_change(nr, args, result as u64);
    }
}

#[cold]
fn mirror_change(nr: u16, args: &[u64; 6], result: u64) {
    let stands = |fd| offset_of(fd) as u64;
    match content::changed(nr as u64, args, result, stands, crate::access::word64) {
        Some(Changed::Bytes { fd, at, len }) if is_known(fd) => {
            rpc(number::WROTE, fd as u32 as u64, at, len);
        }
        Some(Changed::Length) => {
            rpc(number::WROTE, content::ALL, 0, 0);
        }
        Some(Changed::Bytes { .. }) | None => {}
    }
}

/// Follower: map this replica's own object as the leader has mapped the file. `a` are mmap's arguments, with
/// the address.
pub fn map(a: [u64; 6], object: u32) -> i64 {
    // A copy would wait for a process, or for a letter, of its source's.
    block().publishing.store(1, Ordering::SeqCst);
    let result = map_own(a, object);
    block().publishing.store(0, Ordering::SeqCst);
    result
}

fn map_own(a: [u64; 6], object: u32) -> i64 {
    // A forked process that follows has no descriptors, and nobody counts its own.
    if private().shares_files.get() != 0 || leads() {
        return beside::map(a, object);
    }
    let fetched = Passage::open().and_then(|p| {
        let got = p.fetch(object as u64, enclosed::OBJECTS);
        p.close();
        got
    });
    fetched.map_or_else(|e| e, |fd| map_and_close(a, fd))
}

/// (A length of 0: all of it.)
fn map_and_close(mut a: [u64; 6], fd: u64) -> i64 {
    if a[1] == 0 {
        a[1] = segment::bytes_of(fd);
    }
    let mapped = real(nr::mmap, [a[0], a[1], a[2], a[3], fd, a[5]]);
    real(nr::close, [fd, 0, 0, 0, 0, 0]);
    mapped
}

/// First steps of a forked child: what it has inherited it may read.
pub fn born() {
    const PAIRS: usize = 32;
    if !RANGES.touch(0, u64::MAX) || private().replicas == 1 || is_kin() {
        return;
    }
    RANGES.clear();
    compare::born();
    INHERITED.store(1, Ordering::SeqCst);
    loop {
        let mut found = [[0u64; 2]; PAIRS];
        let to = found.as_mut_ptr() as u64;
        let n = rpc(number::INHERITED, to, PAIRS as u64, 0);
        if n <= 0 {
            return;
        }
        // SAFETY: the monitor has written them.
        let found = unsafe { (&raw const found).read_volatile() };
        for [start, len] in &found[..(n as usize).min(PAIRS)] {
            real(nr::mprotect, [*start, *len, PROT_READ, 0, 0, 0]);
        }
    }
}

/// mprotect, where a forked child must not make writable what it has inherited. True: it was refused.
pub fn is_protected(frame: &mut Frame) -> bool {
    if INHERITED.load(Ordering::SeqCst) == 0 || frame.rdx & PROT_WRITE == 0 {
        return false;
    }
    let answer = rpc(number::MAY_WRITE, frame.rdi, frame.rsi, 0);
    if answer < 0 {
        frame.rax = answer as u64;
    }
    answer < 0
}
