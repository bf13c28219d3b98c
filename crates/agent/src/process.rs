//! Processes: fork, exec, exit, wait, and the descriptors' lifetime.

use crate::call::{self, begin, complete, finish_for_good, rendezvous};
use crate::children::{Gone, adopt, disown};
use crate::compare::same_kind;
use crate::digest::{CONFIRMED, Digest};
use crate::diverge::{diverged, diverged_for_good};
use crate::event;
use crate::gate::{real, real_in_flight, rpc};
use crate::log::{get, register_barrier, remember, resume_stream};
use crate::marshal::{self, Before};
use crate::memory::await_file_maps;
use crate::passage::Passage;
use crate::promotion;
use crate::raise;
use crate::state::{Here, block, block_at, header, is_kin, leads, private, tell_kin};
use crate::thread::flags::{
    CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, CLONE_FILES, CLONE_FS, CLONE_PARENT_SETTID,
    CLONE_VFORK, CLONE_VM, traced,
};
use crate::thread::{alone, greet, store_tid};
use crate::wait::{announce, announce_end};
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{
    Poll, SEGMENT_BASE, SHUT_BYTES, children, failed, flight, owes, promotion as promotion_state,
    role, rpc as number, segment_bytes, vforked, wait, why,
};
use geryon_abi::record::{kind, kind_of, short_of, word};
use geryon_abi::row::Row;

const NR_CLOSE: u64 = 3;
const NR_MMAP: u64 = 9;
const NR_MPROTECT: u64 = 10;
const NR_PAUSE: u64 = 34;
const NR_GETPID: u64 = 39;
const NR_CLONE: u64 = 56;
const NR_WAIT4: u64 = 61;
const NR_KILL: u64 = 62;
const NR_EXIT_GROUP: u64 = 231;
const NR_WAITID: u64 = 247;
const NR_CLOSE_RANGE: u64 = 436;
const SIGCHLD: u64 = 17;
const SIGKILL: u64 = 9;
const EAGAIN: i64 = -11;
const WNOHANG: u64 = 1;
const WALL: u64 = 0x4000_0000;

/// vfork, and clone with CLONE_VM | CLONE_VFORK (posix_spawn): the child runs in its parent's
/// memory, on a slot of its own in the parent's log, until it execs or exits; the parent waits.
pub fn vfork(frame: &mut Frame, row: &'static Row) {
    let args = frame.args();
    let is_clone = row.nr as u64 == NR_CLONE;
    let flags = if is_clone {
        args[0]
    } else {
        SIGCHLD | CLONE_VFORK | CLONE_VM
    };
    let mut d = Digest::new(row.nr as u64);
    d.number(flags);
    private().related.set(1);
    crate::waits::makes(flags);
    let executes = rendezvous(frame, row.nr, d.finish(), [flags, 0, 0, 0, 0, 0]);
    let Some(slot) = crate::thread::take_slot(frame) else {
        // No slot in the leader: the same answer everywhere.
        frame.rax = EAGAIN as u64;
        return;
    };
    let mut child = *frame;
    if is_clone && args[1] != 0 {
        child.rsp = args[1];
    }
    // Stored by the child, before the program runs in it: its maker's memory is its own.
    let tid = |flag, at| if flags & flag != 0 { at } else { 0 };
    block_at(slot).vfork_tids = [
        tid(CLONE_PARENT_SETTID, args[2]),
        tid(CLONE_CHILD_SETTID, args[3]),
    ];
    // (It may have come to lead since they agreed.)
    let executes = executes || leads();
    let keep = kept(flags, executes);
    if executes {
        call::take_off(block(), row.nr, CONFIRMED);
    }
    crate::log::delay();
    announce(wait::KERNEL, row.nr as u64, 0);
    let own = crate::thread::start_in(&child, slot, keep, true);
    announce_end();
    // The child is done with this memory.
    let name = block_at(slot).shown_tid;
    block_at(slot).free.store(1, Ordering::Release);
    promotion::settle();
    // (Its child is not made anew.)
    let _ = parent(frame, row, executes, own, Birth::Vfork { name });
}

/// fork, and clone without shared memory.
pub fn fork(frame: &mut Frame, row: &'static Row) {
    let args = frame.args();
    let flags = match row.nr as u64 {
        NR_CLONE => args[0],
        _ => SIGCHLD,
    };
    let mut d = Digest::new(row.nr as u64);
    d.number(flags);
    private().related.set(1);
    crate::waits::makes(flags);
    if private().shares.get() != 0 {
        crate::thread::kin::join(block());
    }
    let executes = rendezvous(frame, row.nr, d.finish(), [flags, 0, 0, 0, 0, 0]);
    let sequence = private().forks.get();
    private().forks.set(sequence + 1);
    crate::log::delay();
    let mut executes = executes;
    loop {
        let keep = kept(flags, executes);
        if executes {
            call::take_off(block(), row.nr, CONFIRMED);
        }
        // clone has five arguments: the sixth tells the monitor which fork this is.
        let own = real_in_flight(NR_CLONE, &[keep, 0, 0, args[3], args[4], sequence], false);
        if own == 0 {
            child(frame, sequence, flags, row.nr as u64 == NR_CLONE);
            return;
        }
        if parent(frame, row, executes, own, Birth::Fork { sequence }).is_some() {
            break;
        }
        // It leads by now.
        executes = true;
    }
    if flags & CLONE_PARENT_SETTID != 0 && (frame.rax as i64) > 0 && row.nr as u64 == NR_CLONE {
        store_tid(args[2], frame.rax as u32);
    }
}

/// What the kernel is asked for. Ids are those that the program sees: they are stored here. A follower's child
/// has none of the program's descriptors, which it would close in its parent if they were shared. (And in a
/// process whose descriptors and directory are its own, what its leader's child shares with it a follower
/// could not share, should it lead.)
fn kept(flags: u64, executes: bool) -> u64 {
    let p = private();
    let keep = traced(flags) & !(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID);
    let shares = flags & CLONE_FILES
        | if p.shares_files.get() == 0 {
            flags & CLONE_FS
        } else {
            0
        };
    if executes || shares == 0 {
        return keep;
    }
    p.common.set(1);
    keep & !shares
}

/// What a child was born by.
#[derive(Clone, Copy)]
enum Birth {
    /// It has its own memory and may run still: which fork it comes from.
    Fork { sequence: u64 },
    /// It has ended, or has another program: it was known by this name while it was in this memory.
    Vfork { name: u32 },
}

impl Birth {
    /// The id of a child whose birth the former leader has not logged. None: this replica's own was lost before it had
    /// said who it is, and there is none.
    fn shown(self, own: i64) -> Option<i64> {
        match self {
            Birth::Vfork { name } if name != 0 && own > 0 => Some(i64::from(name)),
            // Another replica's may have led from its birth on, and be lost already.
            Birth::Fork { sequence } if own > 0 => match rpc(number::NAMED, sequence, 0, 0) {
                0 => Some(own),
                EAGAIN => None,
                name => Some(name),
            },
            _ => Some(own),
        }
    }
}

/// The parent's end of fork and vfork: the leader shows its child's id, a follower notes which of
/// its own that is. None: this replica leads by now, and is to fork once more.
fn parent(frame: &mut Frame, row: &Row, executes: bool, own: i64, birth: Birth) -> Option<()> {
    let b = block();
    point!(ForkUnlogged);
    if executes {
        if own > 0 {
            adopt(own as u32, own as u32);
        }
        complete(b, frame, row, kind::END, None, own, &Before::default());
        return Some(());
    }
    let first = call::expect_end(b, frame, row.nr);
    let given = || promotion::given(b, row, &frame.args(), CONFIRMED);
    let shown = match first {
        Some(_) => crate::log::get_ahead(b) as i64,
        // Its predecessor's child, or if there was none, its own.
        None => match given() {
            Some(given) => given,
            None => {
                let Some(shown) = birth.shown(own) else {
                    real(NR_WAIT4, [own as u64, 0, WALL, 0, 0, 0]);
                    return None;
                };
                call::made(b, row.nr, CONFIRMED, shown);
                shown
            }
        },
    };
    if shown > 0 && own < 0 {
        // Its replica lacks a process from now on.
        let ours = [
            word(kind::END, 0, row.nr, 0),
            own as u64,
            shown as u64,
            0,
            0,
            0,
            0,
            0,
        ];
        diverged_for_good(why::LOCAL, b.pos - 1, ours);
    }
    if shown > 0 && own > 0 {
        adopt(shown as u32, own as u32);
    } else if own > 0
        && let Birth::Fork { sequence } = birth
    {
        // The leader's fork failed: take ours back.
        real(NR_KILL, [own as u64, SIGKILL, 0, 0, 0, 0]);
        real(NR_WAIT4, [own as u64, 0, WALL, 0, 0, 0]);
        rpc(number::UNMADE, sequence, 0, 0);
    }
    match first {
        Some(first) => finish_for_good(b, frame, row, first),
        None => complete(b, frame, row, kind::END, None, shown, &Before::default()),
    }
    Some(())
}

/// This process, and with it its replica, is lost: the monitor says why. It must not exit: that would be
/// the program's.
fn die(step: u64, error: i64) {
    rpc(number::FAILED, step, error as u64, 0);
    end();
}

fn end() {
    let own = real(NR_GETPID, [0; 6]);
    real(NR_KILL, [own as u64, SIGKILL, 0, 0, 0, 0]);
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
        real(NR_MMAP, [SEGMENT_BASE, bytes, RW, SHARED_FIXED, fd, 0])
    );
    if at < 0 {
        return die(failed::MAP, at);
    }
    let shut = real(NR_MPROTECT, [SEGMENT_BASE, SHUT_BYTES, READ, 0, 0, 0]);
    if shut < 0 {
        return die(failed::MAP, shut);
    }
    real(NR_CLOSE, [fd, 0, 0, 0, 0, 0]);
}

/// First steps of a forked child: its own group's segment, its own identity.
fn child(frame: &mut Frame, sequence: u64, flags: u64, is_clone: bool) {
    let p = private();
    block().flight.store(flight::NONE, Ordering::Relaxed);
    p.promotion.store(promotion_state::NONE, Ordering::Relaxed);
    p.owes.store(owes::NOTHING, Ordering::Relaxed);
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
    p.own_pid.set(real(NR_GETPID, [0; 6]) as u32);
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
        real(NR_CLOSE_RANGE, [0, u32::MAX as u64, 0, 0, 0, 0]);
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

/// execve, execveat: confirmed; on success the monitor replaces the followers.
pub fn exec(frame: &mut Frame, row: &'static Row) {
    let executes = begin(frame, row);
    let b = block();
    if !executes && let Some(next) = crate::thread::kin::peek(b) {
        if kind_of(next) != kind::END || short_of(next) != row.nr {
            // The exec has succeeded, and this slot has another user already: the monitor is about
            // to end this process, which must not read what is not its own.
            loop {
                real(NR_PAUSE, [0; 6]);
            }
        }
        crate::log::take(b, 1);
        remember(b, next);
        return finish_for_good(b, frame, row, next);
    }
    if !executes {
        call::led_behind(row.nr, &frame.args());
    }
    await_file_maps();
    crate::shared::leaves(false);
    point!(ExecConfirmed);
    if b.vforked != vforked::NOT {
        // As soon as it has another program its slot may be another child's.
        rpc(number::EXEC, b.shown_tid as u64, 0, 0);
    }
    if private().filters_end.load(Ordering::Relaxed) != 0 {
        // Its new program has them, too, and another memory.
        rpc(number::FILTERS, b.filter, 0, 0);
    }
    crate::orphan::executes(b);
    // Not `execute`: the turn must not go to another thread of a program that is about to end. (But to another
    // process.)
    crate::thread::kin::leaves(b);
    let result = real(row.nr as u64, frame.args());
    crate::thread::kin::stays(b);
    complete(b, frame, row, kind::END, None, result, &Before::default());
}

/// exit_group, and exit of the last thread.
pub fn exit_group(frame: &mut Frame, row: &'static Row) {
    begin(frame, row);
    if leads() {
        await_file_maps();
        crate::shared::leaves(true);
    }
    if !leads() {
        crate::shared::ends();
        crate::log::tell_tail(block());
        if block().vforked == vforked::NOT {
            crate::diverge::ends();
            crate::memory::maps_no_more();
        }
    }
    point!(ExitConfirmed);
    real(NR_EXIT_GROUP, [frame.rdi, 0, 0, 0, 0, 0]);
}

/// wait4, waitid: the leader waits; a follower then reaps its own copy of that child.
pub fn wait(frame: &mut Frame, row: &'static Row) {
    /// The child is gone (not just stopped or continued).
    const GONE: u8 = 4;
    let args = frame.args();
    let mut b = block();
    let digest = marshal::digest(row, &args);
    if !leads()
        && let Some((first, gone)) = expect_wait(b, frame, row, digest)
    {
        if gone != 0 {
            match disown(gone) {
                Gone::Other(own) => drop(real(NR_WAIT4, [own as u64, 0, WALL, 0, 0, 0])),
                Gone::Same => {}
                Gone::Orphan => {
                    crate::orphan::finds(b, gone);
                    finish_for_good(b, frame, row, first);
                    return crate::orphan::reaped(b);
                }
            }
        }
        return finish_for_good(b, frame, row, first);
    }
    raise::lead_signal_before(b, frame);
    b.call_start = b.pos;
    let by_monitor =
        promotion::has_taken_over() || private().children.get() == children::BY_MONITOR;
    let (result, gone) = if by_monitor {
        crate::reap::wait(b, row, args, digest)
    } else {
        let result = call::execute(row, args, digest, &Before::default());
        let gone = gone_child(row.nr as u64, &args, result);
        if private().children.get() != children::BY_KERNEL {
            crate::reap::forget(gone);
        }
        (result, gone)
    };
    if gone == 0 && private().replicas > 1 && !by_monitor {
        crate::reap::told(row, &args, result);
    }
    let mut is_orphan = false;
    if gone != 0 {
        // What the kernel knows as a child of this process: one that has followed, or its own.
        let whose = disown(gone);
        is_orphan = whose == Gone::Orphan;
        match whose {
            _ if !by_monitor => 0,
            Gone::Other(own) => real(NR_WAIT4, [own as u64, 0, WALL, 0, 0, 0]),
            _ => real(NR_WAIT4, [gone as u64, 0, WALL | WNOHANG, 0, 0, 0]),
        };
    }
    let detail = if gone != 0 { GONE } else { 0 };
    crate::log::put(b, word(kind::VALUE, detail, row.nr, gone));
    let k = kind::CALL;
    if is_orphan {
        crate::orphan::finds(b, gone);
    }
    complete(b, frame, row, k, Some(digest), result, &Before::default());
    if is_orphan {
        crate::orphan::reaped(b);
    }
}

/// Follower: the record of a wait: its first word behind the note, and the child that is gone, or 0.
fn expect_wait(b: Here, frame: &mut Frame, row: &Row, digest: u64) -> Option<(u64, u32)> {
    let a = frame.args();
    let shown = [a[0], a[1], a[2], a[3], 0, 0];
    let ours = event::call(kind::CALL, row.nr, digest, &shown);
    loop {
        let note = raise::begin_record(b, frame)?;
        let at = b.pos - 1;
        if !same_kind(at, note, word(kind::VALUE, 0, row.nr, 0), ours) {
            continue;
        }
        let (first, theirs) = (get(b), get(b));
        if theirs == digest {
            return Some((first, geryon_abi::record::low_of(note)));
        }
        diverged(why::DIGEST, at, ours);
    }
}

/// The id of the child that this successful wait has reaped, or 0.
pub fn gone_child(nr: u64, args: &[u64; 6], result: i64) -> u32 {
    if result < 0 {
        return 0;
    }
    if nr == NR_WAITID {
        const WNOWAIT: u64 = 0x100_0000;
        if args[2] == 0 || args[3] & WNOWAIT != 0 {
            return 0;
        }
        // SAFETY: the call succeeded and has written the siginfo.
        let (code, pid) = unsafe {
            (
                ((args[2] + 8) as *const u32).read_unaligned(),
                ((args[2] + 16) as *const u32).read_unaligned(),
            )
        };
        // CLD_EXITED, CLD_KILLED, CLD_DUMPED.
        return if (1..=3).contains(&code) { pid } else { 0 };
    }
    if result == 0 {
        return 0;
    }
    if args[1] != 0 {
        // SAFETY: the call succeeded and has written the status.
        let status = unsafe { (args[1] as *const u32).read_unaligned() };
        return if crate::reap::lives(status) {
            0
        } else {
            result as u32
        };
    }
    // WUNTRACED and WCONTINUED report children that live on: those answer kill(pid, 0).
    if args[2] & !(WNOHANG | WALL) != 0 && real(NR_KILL, [result as u64, 0, 0, 0, 0, 0]) == 0 {
        return 0;
    }
    result as u32
}
