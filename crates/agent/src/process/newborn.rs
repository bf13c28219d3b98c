//! The first steps of a forked child.

use super::SIGKILL;
use crate::call;
use crate::gate::{real, rpc};
use crate::log::{register_barrier, resume_stream};
use crate::passage::Passage;
use crate::state::{block, header, is_kin, leads, private, tell_kin};
use crate::thread::flags::{CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, CLONE_FILES, CLONE_FS};
use crate::thread::{alone, greet, store_tid};
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{
    Poll, SEGMENT_BASE, SHUT_BYTES, children, failed, flight, owes, promotion, role, rpc as number,
    segment_bytes,
};
use geryon_abi::table::nr;

/// This process, and with it its replica, is lost: the monitor says why. It must not exit: that would be
/// the program's.
fn die(step: u64, error: i64) {
    rpc(number::FAILED, step, error as u64, 0);
    end();
}

fn end() {
    let own = real(nr::getpid, [0; 6]);
    real(nr::kill, [own as u64, SIGKILL, 0, 0, 0, 0]);
}

/// Map the log that the monitor has sent over that of the parent.
fn map_segment(passage: Result<Passage, i64>) {
    const READ: u64 = 1;
    const RW: u64 = 3;
    const SHARED_FIXED: u64 = 0x11;
    let got = passage.and_then(|p| {
        let fd = p.receive_log();
        p.close();
        fd
    });
    let fd = match got {
        Ok(fd) => fd,
        Err(error) => return die(failed::SEND, error),
    };
    // The same as its parent's.
    let bytes = segment_bytes(header().ring_words as usize);
    let at = point!(
        SegmentFails,
        real(nr::mmap, [SEGMENT_BASE, bytes, RW, SHARED_FIXED, fd, 0])
    );
    if at < 0 {
        return die(failed::MAP, at);
    }
    let shut = real(nr::mprotect, [SEGMENT_BASE, SHUT_BYTES, READ, 0, 0, 0]);
    if shut < 0 {
        return die(failed::MAP, shut);
    }
    real(nr::close, [fd, 0, 0, 0, 0, 0]);
}

/// First steps of a forked child: its own group's segment, its own identity.
pub(super) fn child(frame: &mut Frame, sequence: u64, flags: u64, is_clone: bool) {
    let p = private();
    block().flight.store(flight::NONE, Ordering::Relaxed);
    p.promotion.store(promotion::NONE, Ordering::Relaxed);
    p.owes.store(owes::NOTHING, Ordering::Relaxed);
    crate::diverge::begins();
    crate::timer::forget();
    crate::sent::forget(block());
    block().at_parents_end = 0;
    block().poll = Poll::default();
    block().orphan = 0;
    p.reaps_orphans.set(0);
    p.children.set(children::BY_KERNEL);
    if p.multi.get() != 0 {
        crate::clock::begin_anew();
    }
    crate::hook::carried::reset();
    call::copied::forget();
    alone();
    p.forks.set(0);
    p.file_maps.set(0);
    if flags & (CLONE_FILES | CLONE_FS) == 0 {
        p.common.set(0);
    }
    crate::children::forget();
    p.own_pid.set(real(nr::getpid, [0; 6]) as u32);
    // Not to be copied until it follows its own log: the two would share a socket, and a table of descriptors
    // that one of them closes.
    block().publishing.store(1, Ordering::SeqCst);
    point!(ChildNew);
    crate::log::delay();
    let passage = Passage::open();
    // The monitor looks whether its parent had descriptors of its own.
    let followed = !leads();
    let name = passage.as_ref().map_or(0, Passage::name);
    let answer = rpc(number::CHILD, sequence, name, 0);
    if !(0..=2).contains(&answer) {
        // Nobody misses it.
        end();
    }
    crate::log::delay();
    crate::thread::kin::born();
    p.shares_files.set(0);
    point!(ChildUnmapped);
    map_segment(passage);
    if is_kin() {
        tell_kin();
    }
    crate::shared::born();
    if flags & CLONE_FILES != 0 {
        rpc(number::BEGUN, 0, 0, 0);
    }
    if answer != 1 {
        // This copy of the descriptor table would keep pipes open that the program closes.
        real(nr::close_range, [0, u32::MAX as u64, 0, 0, 0, 0]);
    }
    if answer != 0 {
        // Its parent may have followed when it was forked.
        p.role.set(role::LEADER);
    }
    if answer == 2 {
        // Without descriptors of its own: this process is to have those of the leader that was lost.
        crate::files::inherit();
    }
    if followed && leads() {
        crate::proc_files::give_names();
        crate::settings::apply();
        crate::jobs::join();
    }
    // Whoever follows may lead one day.
    register_barrier();
    let mut b = block();
    b.shown_tid = 0;
    resume_stream(leads());
    b.publishing.store(0, Ordering::SeqCst);
    point!(ChildUngreeted);
    greet(b);
    p.shown_pid.set(b.shown_tid);
    b.clear_tid = 0;
    if flags & CLONE_CHILD_CLEARTID != 0 && is_clone {
        b.clear_tid = frame.r10;
    }
    if flags & CLONE_CHILD_SETTID != 0 && is_clone {
        store_tid(frame.r10, b.shown_tid);
    }
    if is_clone && frame.rsi != 0 {
        frame.rsp = frame.rsi;
    }
    frame.rax = 0;
    crate::thread::kin::first_turn(b);
}
