//! Processes: fork, exec, exit, wait, and the descriptors' lifetime.

mod gone;
mod newborn;

use crate::call::{self, begin, complete, finish_for_good, rendezvous};
use crate::children::adopt;
use crate::digest::{CONFIRMED, Digest};
use crate::diverge::diverged_for_good;
use crate::gate::{real, real_in_flight, rpc};
use crate::log::remember;
use crate::marshal::Before;
use crate::memory::await_file_maps;
use crate::promotion;
use crate::state::{block, block_at, leads, private};
use crate::thread::flags::{
    CLONE_CHILD_SETTID, CLONE_FILES, CLONE_FS, CLONE_PARENT_SETTID, CLONE_VFORK, CLONE_VM, traced,
};
use crate::thread::store_tid;
use crate::wait::{announce, announce_end};
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{rpc as number, vforked, wait, why};
use geryon_abi::record::{kind, kind_of, short_of, word};
use geryon_abi::row::Row;
use geryon_abi::table::nr;
pub use gone::{gone_child, wait};
use newborn::child;

const SIGCHLD: u64 = 17;
const SIGKILL: u64 = 9;
const EAGAIN: i64 = -11;
const WALL: u64 = 0x4000_0000;

/// vfork, and clone with CLONE_VM | CLONE_VFORK (posix_spawn): the child runs in its parent's
/// memory, on a slot of its own in the parent's log, until it execs or exits; the parent waits.
pub fn vfork(frame: &mut Frame, row: &'static Row) {
    let args = frame.args();
    let is_clone = row.nr as u64 == nr::clone;
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
        nr::clone => args[0],
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
        let own = real_in_flight(nr::clone, &[keep, 0, 0, args[3], args[4], sequence], false);
        if own == 0 {
            child(frame, sequence, flags, row.nr as u64 == nr::clone);
            return;
        }
        if parent(frame, row, executes, own, Birth::Fork { sequence }).is_some() {
            break;
        }
        // It leads by now.
        executes = true;
    }
    if flags & CLONE_PARENT_SETTID != 0 && (frame.rax as i64) > 0 && row.nr as u64 == nr::clone {
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
                    real(nr::wait4, [own as u64, 0, WALL, 0, 0, 0]);
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
        real(nr::kill, [own as u64, SIGKILL, 0, 0, 0, 0]);
        real(nr::wait4, [own as u64, 0, WALL, 0, 0, 0]);
        rpc(number::UNMADE, sequence, 0, 0);
    }
    match first {
        Some(first) => finish_for_good(b, frame, row, first),
        None => complete(b, frame, row, kind::END, None, shown, &Before::default()),
    }
    Some(())
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
                real(nr::pause, [0; 6]);
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
    real(nr::exit_group, [frame.rdi, 0, 0, 0, 0, 0]);
}
