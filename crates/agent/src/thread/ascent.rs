//! From serial order to clocks, and back, where the user has chosen neither (`--order auto`). A process begins in serial order.
//! When it gets its second thread it goes over to clocks ([`begin`]), unless it has done by then what clocks do not repeat:
//! each replica finds that out by itself, at the same place of its log. Later such a call is the leader's reason to ask for serial
//! order ([`before`]): it is made when the leader is there, and others follow it again.

use super::flags::{Birth, judge};
use crate::gate::{real, rpc};
use crate::serial;
use crate::state::{Here, block, header, leads, private};
use crate::wait::{announce, announce_end};
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::ascent::{ABOUT_TO_CANCEL, NR_TIMES};
use geryon_abi::layout::{ascent, repeat, rpc as number, vforked, wait};
use geryon_abi::table::nr;

/// Between two looks whether it is time.
const NAP_NS: u64 = 100_000;

/// Before a call of the program's of which nothing is logged yet.
#[inline(always)]
pub fn before(frame: &Frame) {
    let state = private().ascent.get();
    if state != ascent::NEVER || frame.rax == NR_TIMES {
        look(state, frame.rax, &frame.args());
    }
}

#[inline(never)]
fn look(state: u32, nr: u64, args: &[u64; 6]) {
    let Some(what) = needs_serial(nr, args) else {
        return;
    };
    // (With clocks that the user has chosen all else is repeated as far as it goes.)
    let is_chosen = state == ascent::NEVER;
    if is_chosen && (what != ascent::CANCELS || serial::active() || private().replicas == 1) {
        return;
    }
    if state == ascent::OPEN {
        private().ascent.set(ascent::NEVER);
    } else if leads() && block().vforked == vforked::NOT {
        descend(what);
    }
}

/// Leader: wait for serial order, for others to follow, and for the turn. (A copy made meanwhile comes to the call, and finds the turn in the log.)
fn descend(what: u64) {
    if rpc(number::DESCENT, what, 0, 0) != 0 {
        return;
    }
    let mut b = block();
    announce(wait::DESCENT, what, 0);
    let is_there =
        || private().ascent.get() != ascent::DONE && header().ascended.load(Ordering::Acquire) != 0;
    while !is_there() {
        nap();
    }
    announce_end();
    if serial::active() {
        b.repeatable = repeat::CALL;
        b.call_start = b.pos;
        serial::acquire(b);
        b.repeatable = repeat::NOTHING;
    }
}

/// The process is about to get its second thread. It waits until all have been copied: as long as there is one thread nothing
/// has gone astray, and of each its memory is the same.
pub fn begin(mut b: Here) {
    let p = private();
    if p.ascent.get() == ascent::OPEN {
        p.ascent.set(ascent::DONE);
        p.serial.set(0);
        p.stamps.set(1);
        if !leads() {
            // (What it has seen of the log it was admitted to without order, should it be strict.)
            b.limit = b.pos;
        }
        // (Each replica says so: the leader may be lost before.)
        rpc(number::ASCENT, 0, 0, 0);
    }
    // (A copy comes here once more.)
    if p.ascent.get() == ascent::DONE && p.multi.get() == 0 {
        announce(wait::ASCENT, 0, 0);
        while header().ascended.load(Ordering::Acquire) == 0 {
            nap();
        }
        announce_end();
    }
}

fn nap() {
    let time = [0, NAP_NS];
    real(nr::nanosleep, [&raw const time as u64, 0, 0, 0, 0, 0]);
}

/// What about this call do clocks not repeat, or see?
fn needs_serial(nr: u64, args: &[u64; 6]) -> Option<u64> {
    const WRITE: u64 = 2;
    const EXEC: u64 = 4;
    const ANONYMOUS: u64 = 0x20;
    const SET_MODE_FILTER: u64 = 1;
    const TSYNC: u64 = 1;
    const SIGSETXID: u32 = 33;
    let what = match nr {
        nr::mmap => {
            let is_shared = crate::shared::is_shared(args[3]);
            let has_file = args[3] & ANONYMOUS == 0;
            if args[2] & EXEC != 0 && (is_shared || !has_file) {
                ascent::CODE
            } else if is_shared && args[2] & WRITE != 0 {
                ascent::SHARES
            } else {
                return None;
            }
        }
        nr::mprotect | nr::pkey_mprotect if args[2] & EXEC != 0 => ascent::CODE,
        nr::shmat => ascent::SHARES,
        nr::fork | nr::vfork => ascent::PROCESS,
        nr::clone if matches!(judge(args[0]), Ok(Birth::Fork | Birth::Vfork)) => ascent::PROCESS,
        nr::seccomp if args[0] as u32 as u64 == SET_MODE_FILTER && args[1] & TSYNC != 0 => {
            ascent::FILTERS
        }
        NR_TIMES if args[0] == 0 && args[1] == ABOUT_TO_CANCEL => ascent::CANCELS,
        nr::tgkill if args[2] as u32 == SIGSETXID => ascent::IDS,
        _ => return None,
    };
    Some(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: u64 = 1;
    const PRIVATE: u64 = 2;
    const ANONYMOUS: u64 = 0x20;
    const READ: u64 = 1;
    const WRITE: u64 = 2;
    const EXEC: u64 = 4;

    fn mmap(protection: u64, flags: u64) -> Option<u64> {
        needs_serial(nr::mmap, &[0, 4096, protection, flags, 3, 0])
    }

    #[test]
    fn libraries_and_memory_of_its_own_need_nothing() {
        assert_eq!(mmap(READ | EXEC, PRIVATE), None, "a library's code");
        assert_eq!(mmap(READ | WRITE, PRIVATE | ANONYMOUS), None);
        assert_eq!(mmap(READ, SHARED), None, "a file that is only read");
        assert_eq!(needs_serial(nr::mprotect, &[0, 4096, READ, 0, 0, 0]), None);
    }

    #[test]
    fn code_made_while_it_runs_is_seen() {
        assert_eq!(
            mmap(READ | WRITE | EXEC, PRIVATE | ANONYMOUS),
            Some(ascent::CODE)
        );
        assert_eq!(
            mmap(READ | EXEC, SHARED),
            Some(ascent::CODE),
            "mapped twice"
        );
        let protect = [0, 4096, READ | EXEC, 0, 0, 0];
        assert_eq!(needs_serial(nr::mprotect, &protect), Some(ascent::CODE));
    }

    #[test]
    fn a_thread_is_no_process() {
        const THREAD: u64 = 0x3d0f00;
        const SPAWN: u64 = 0x4100 | 17;
        let clone = |flags| needs_serial(nr::clone, &[flags, 0, 0, 0, 0, 0]);
        assert_eq!(clone(THREAD), None);
        assert_eq!(clone(SPAWN), Some(ascent::PROCESS));
        assert_eq!(clone(17), Some(ascent::PROCESS));
        assert_eq!(needs_serial(nr::fork, &[0; 6]), Some(ascent::PROCESS));
    }

    #[test]
    fn what_others_store_to_is_seen() {
        assert_eq!(mmap(READ | WRITE, SHARED), Some(ascent::SHARES));
        let of_children = mmap(READ | WRITE, SHARED | ANONYMOUS);
        assert_eq!(of_children, Some(ascent::SHARES), "no copy has its own");
        assert_eq!(needs_serial(nr::shmat, &[0; 6]), Some(ascent::SHARES));
    }
}
