//! Process and thread ids. The program knows those of its first leader; the kernel calls the processes and
//! threads of each other replica by other names, also of one that has taken over. Here stands who is who;
//! `args` gives the kernel a call's arguments, `path` paths below /proc.

pub mod args;
pub mod content;
mod credentials;
pub mod descriptor;
mod list;
pub mod path;

use crate::gate::{guarded, real, rpc};
use crate::jobs;
use crate::state::{block, block_at, header, private};
use crate::waits;
use core::sync::atomic::Ordering;
use geryon_abi::layout::{MAX_THREADS, rpc as number, vforked, waited, who};
use geryon_abi::row::{Class, Property, Row};
use geryon_abi::table::nr;

const FCNTL: u16 = nr::fcntl as u16;
const KILL: u16 = nr::kill as u16;
const GETDENTS64: u16 = nr::getdents64 as u16;
const GETPID: u16 = nr::getpid as u16;
const GETPPID: u16 = nr::getppid as u16;
const GETPGRP: u16 = nr::getpgrp as u16;
const GETPGID: u16 = nr::getpgid as u16;
const GETSID: u16 = nr::getsid as u16;
const GETTID: u16 = nr::gettid as u16;
const SET_TID_ADDRESS: u16 = nr::set_tid_address as u16;
const RT_SIGTIMEDWAIT: u16 = nr::rt_sigtimedwait as u16;
const SIGKILL: u64 = 9;
const SI_USER: i32 = 0;
const SI_QUEUE: i32 = -1;
const SI_TKILL: i32 = -6;

/// Has any process of the run been taken over by another replica?
#[inline(always)]
pub fn differ() -> bool {
    header().taken_over.load(Ordering::Relaxed) != 0
}

/// Leader: the arguments for the kernel. Announces what ends another process by force: the monitor
/// could not tell it from a fault.
#[inline(always)]
pub fn translated(row: &Row, args: [u64; 6]) -> [u64; 6] {
    if row.is(Property::Signals) {
        announce_kill(row.nr, &args);
    }
    let args = if waits::are_narrowed(row, &args) {
        waits::narrowed(row, args)
    } else {
        args
    };
    if are_ids_translated(row, &args) {
        translate(row, args)
    } else {
        args
    }
}

/// May the kernel be given other arguments than the program has given? (Or it is asked for no children but the
/// program's.)
#[inline(always)]
pub fn are_translated(row: &Row, args: &[u64; 6]) -> bool {
    are_ids_translated(row, args) || waits::are_narrowed(row, args)
}

/// May the kernel be given other ids than the program has given? (In a process group that the program knows may also be
/// followers, which are not its.)
#[inline(always)]
fn are_ids_translated(row: &Row, args: &[u64; 6]) -> bool {
    are_ids_in(row) || row.nr == KILL && (args[0] as u32 as i32) < -1 && private().replicas > 1
}

/// May the kernel be given other arguments than the program has given?
#[inline(always)]
pub fn are_ids_in(row: &Row) -> bool {
    differ() && args::has_ids(row)
}

/// Leader, behind a call that may have been given a copy of a structure.
#[inline(always)]
pub fn give_back(row: &Row, shown: &[u64; 6], given: &[u64; 6]) {
    if are_ids_in(row) {
        args::give_back(row, shown, given);
    }
}

/// Leader, behind a call that may have written ids: the program is to see those that it knows. The result,
/// which the gate has noted, may be another then.
#[inline(always)]
pub fn rewritten(row: &Row, args: &[u64; 6], result: i64) -> i64 {
    let tells = is_read(row) || credentials::are_told(row.nr);
    let writes = are_ids_in(row) || tells && differ() || waits_for_signal(row, result);
    if result >= 0 && writes {
        rewrite(row, args, result)
    } else {
        result
    }
}

/// New leader, for a call that its predecessor has made: is what that has waited for told the program? It may have been lost before
/// it asked.
pub fn is_the_programs(row: &Row, args: &[u64; 6], result: i64) -> bool {
    // (A wait that has taken none has nothing to show, and what stands there is an older one's.)
    result <= 0
        || !waits_for_signal(row, result)
        || rpc(number::WAITED_FOR, args[1], result as u64, waited::GIVEN) != waited::NONE
}

/// New leader: what its predecessor's call has told was fetched. That one may have been lost before it had put ids in it
/// right.
pub fn inherited(row: &Row, args: &[u64; 6], result: i64) {
    if result >= 0 && credentials::are_told(row.nr) {
        credentials::show(row.nr, args, result, shown_as);
    }
}

#[cold]
fn rewrite(row: &Row, args: &[u64; 6], result: i64) -> i64 {
    if row.nr == RT_SIGTIMEDWAIT {
        const EINTR: i64 = -4;
        match rpc(number::WAITED_FOR, args[1], result as u64, waited::MADE) {
            waited::NONE => {
                block().flight_result = [EINTR as u64; 2];
                return EINTR;
            }
            waited::KNOWN if args[1] != 0 => show_sender(args[1]),
            _ => {}
        }
        return result;
    }
    if row.nr == jobs::SETPGID {
        jobs::moved(args[0]);
    }
    let new = match row.nr {
        FCNTL => owner_shown(args, result),
        GETPGID => group_shown(args[0], result),
        GETDENTS64 if content::may_be_open() => {
            list::shown(args, result, shown_as).unwrap_or(result)
        }
        _ if is_read(row) => content::shown(row.nr, args, result, in_file).unwrap_or(result),
        nr if credentials::are_told(nr) => {
            credentials::show(nr, args, result, shown_as);
            result
        }
        _ if result == 0 => result,
        _ => path::shown_link(row, args, result, shown_as).unwrap_or(result),
    };
    if new != result {
        block().flight_result = [new as u64; 2];
    }
    new
}

/// Does the call wait for signals, and is it one that the monitor is to know of, or to be asked about? (That a child has ended is
/// told once, and a new leader's kernel knows other children than the program.)
#[inline(always)]
fn waits_for_signal(row: &Row, result: i64) -> bool {
    const SIGCHLD: i64 = 17;
    row.nr == RT_SIGTIMEDWAIT && (differ() || result == SIGCHLD && private().replicas > 1)
}

/// Does the call read where what files below /proc say may be read?
#[inline(always)]
fn is_read(row: &Row) -> bool {
    matches!(row.nr, 0 | 17 | GETDENTS64)
}

/// What the program calls whom such a file names.
fn in_file(whom: content::Whom, id: u32) -> u32 {
    let shown = match whom {
        content::Whom::Itself => shown_as(id).into(),
        content::Whom::Group => rpc(number::WHO, id.into(), who::SHOWN_GROUP, 0),
        content::Whom::Parent => match shown_as(id) {
            // Of the program's first process it is the leader's parent that is meant.
            same if same == id => rpc(number::WHO, 0, who::PARENT, 0),
            shown => shown.into(),
        },
    };
    match shown {
        0 => id,
        shown => shown as u32,
    }
}

/// Who gets a descriptor's signals, or holds a lock: the id that the kernel has returned or written.
fn owner_shown(args: &[u64; 6], result: i64) -> i64 {
    const F_GETLK: u32 = 5;
    const F_GETOWN: u32 = 9;
    const F_GETOWN_EX: u32 = 16;
    const F_UNLCK: u16 = 2;
    /// Of struct flock.
    const LOCK_PID: u64 = 24;
    let half = |at: u64| {
        let mut value = 0u32;
        // SAFETY: inside `guarded`.
        guarded(|| value = unsafe { (at as *const u32).read_unaligned() });
        value
    };
    let write = |at: u64, is_group: bool| {
        let own = half(at);
        let shown = match is_group {
            true => rpc(number::WHO, own.into(), who::SHOWN_GROUP, 0) as u32,
            false => shown_as(own),
        };
        // SAFETY: inside `guarded`; the kernel has just written it.
        guarded(|| unsafe { (at as *mut u32).write_unaligned(shown) });
    };
    match args[1] as u32 {
        F_GETOWN if result > 0 => return i64::from(shown_as(result as u32)),
        F_GETOWN_EX => {
            const F_OWNER_PGRP: u32 = 2;
            write(args[2] + 4, half(args[2]) == F_OWNER_PGRP);
        }
        F_GETLK if half(args[2]) as u16 != F_UNLCK => write(args[2] + LOCK_PID, false),
        _ => {}
    }
    result
}

/// What the program calls the process group of the process that it calls `id`, which is `group` here. (One that has still
/// to lead is in that of its predecessor.)
fn group_shown(id: u64, group: i64) -> i64 {
    let known = match id as u32 {
        0 => 0,
        id => rpc(number::WHO, id.into(), who::GROUP_OF, 0),
    };
    match known {
        0 => rpc(number::WHO, group as u64, who::SHOWN_GROUP, 0),
        known => known,
    }
}

/// The signal that was waited for says who has sent it.
fn show_sender(at: u64) {
    const SI_PID: usize = 4;
    const SIGCHLD: u32 = 17;
    let info = at as *mut u32;
    guarded(|| {
        // SAFETY: inside `guarded`; the kernel has just written it, if it is there.
        unsafe {
            let [signal, code] = [0, 2].map(|i| info.add(i).read_unaligned());
            let sender = info.add(SI_PID);
            // (Of a timer that is its number.)
            if matches!(code as i32, SI_USER | SI_QUEUE | SI_TKILL) || signal == SIGCHLD {
                sender.write_unaligned(shown_as(sender.read_unaligned()));
            }
        }
    });
}

#[cold]
fn translate(row: &Row, args: [u64; 6]) -> [u64; 6] {
    let own = args::with(row, &args, &mut block(), |id| Some(own(id)));
    let mut given = own.unwrap_or(args);
    if row.nr == jobs::SETPGID && args[1] as u32 == 0 {
        // The group that is called as the process: its predecessor may be in it.
        let process = match args[0] as u32 {
            0 => private().shown_pid.get(),
            id => id,
        };
        given[1] = args::group_there(process).into();
    }
    given
}

/// Follower: the leader has changed an attribute of a process or thread. The one that the id names here, if
/// there is one, gets it, too. (It may have ended here and not in the leader: then it needs none.)
#[inline(always)]
pub fn repeat(row: &Row, args: &[u64; 6], result: i64) {
    if row.class == Class::Each && result >= 0 {
        repeat_here(row, args);
    }
}

#[cold]
fn repeat_here(row: &Row, args: &[u64; 6]) {
    if matches!(row.nr, jobs::SETPGID | jobs::SETSID) {
        return jobs::follow(row.nr, args, mine);
    }
    if let Some(args) = args::with(row, args, &mut block(), mine) {
        real(row.nr as u64, args);
    }
}

/// The third word of a struct sigevent: the thread that is to be signalled, if one is named.
pub fn thread_of(event: &[u64]) -> u64 {
    const SIGEV_THREAD_ID: u64 = 4;
    match event[1] >> 32 {
        SIGEV_THREAD_ID => u64::from(own(event[2] as u32)),
        _ => event[2],
    }
}

/// Which process or thread of the leading replica the id that the program knows names now.
pub fn own(id: u32) -> u32 {
    here(id).unwrap_or_else(|| match rpc(number::WHO, id as u64, who::OWN, 0) as u32 {
        // A child that the monitor has not heard of yet: it comes to its log later than its parent leads.
        unknown if unknown == id => crate::children::called(id).unwrap_or(id),
        own => own,
    })
}

/// Which one of this replica it names, if any.
pub fn mine(id: u32) -> Option<u32> {
    let known = || match rpc(number::WHO, id as u64, who::MINE, 0) as u32 {
        0 => None,
        mine => Some(mine),
    };
    // (What a copy knows of its children itself its source has known of its own.)
    let mine = here(id).or_else(known);
    mine.or_else(|| crate::children::called(id))
}

/// Which one of this process.
fn here(id: u32) -> Option<u32> {
    if id == private().shown_pid.get() {
        return Some(private().own_pid.get());
    }
    slot_of(id).map(|slot| block_at(slot).own_tid.load(Ordering::Relaxed))
}

/// The slot of this process's thread that the program calls so.
pub fn slot_of(id: u32) -> Option<usize> {
    living(|b| b.shown_tid == id)
}

/// What the program calls a process or thread that the kernel of this replica calls so.
pub fn shown_as(own: u32) -> u32 {
    if own == private().own_pid.get() {
        return private().shown_pid.get();
    }
    match living(|b| b.own_tid.load(Ordering::Relaxed) == own) {
        Some(slot) => block_at(slot).shown_tid,
        None => rpc(number::WHO, own as u64, who::SHOWN, 0) as u32,
    }
}

/// The slot of the living thread of which that is true.
fn living(is: impl Fn(&geryon_abi::layout::Block) -> bool) -> Option<usize> {
    (0..MAX_THREADS).find(|slot| {
        let b = block_at(*slot);
        b.this != 0 && b.free.load(Ordering::Acquire) == 0 && is(&b)
    })
}

/// Leader: the result as the program knows it.
#[inline(always)]
pub fn shown(row: &Row, result: i64) -> i64 {
    if differ() && result > 0 {
        show(row, result)
    } else {
        result
    }
}

#[cold]
fn show(row: &Row, result: i64) -> i64 {
    // A vfork's child is a process of its own, in its parent's memory.
    let guest = block().vforked != vforked::NOT;
    match row.nr {
        GETPID if guest => block().shown_tid as i64,
        GETPPID if guest => private().shown_pid.get() as i64,
        GETPID => private().shown_pid.get() as i64,
        GETTID | SET_TID_ADDRESS => block().shown_tid as i64,
        GETPPID => match rpc(number::WHO, 0, who::PARENT, 0) {
            0 => result,
            parent => parent,
        },
        GETPGID => result,
        GETPGRP | GETSID => rpc(number::WHO, result as u64, who::SHOWN_GROUP, 0),
        _ if row.gives_id => i64::from(shown_as(result as u32)),
        _ => result,
    }
}

fn announce_kill(nr: u16, args: &[u64; 6]) {
    let signal = if matches!(nr, 234 | 297) {
        args[2]
    } else {
        args[1]
    };
    if signal as u32 as u64 == SIGKILL {
        let target = if nr == 234 || nr == 297 {
            args[1]
        } else {
            args[0]
        };
        rpc(number::KILLS, nr as u64, target, 0);
    }
}
