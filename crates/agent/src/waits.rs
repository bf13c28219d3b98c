//! What a wait for children asks for. Followers and copies are children of the process they were made of, to the
//! kernel, and end without a signal: only a wait with `__WALL` or `__WCLONE` finds such children. A process of
//! the program that has none of its own is not to find those.

use crate::gate::real;
use crate::state::private;
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::layout::reap;
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const NR_WAIT4: u16 = nr::wait4 as u16;
const NR_WAITID: u16 = nr::waitid as u16;
const SIGCHLD: u64 = 17;
/// The signal at a child's end, in clone's flags.
const SIGNAL: u64 = 0xff;
const WNOHANG: u64 = 1;
const WUNTRACED: u64 = 2;
const WEXITED: u64 = 4;
const WCONTINUED: u64 = 8;
const WNOWAIT: u64 = 0x100_0000;
const WNOTHREAD: u64 = 0x2000_0000;
const WALL: u64 = 0x4000_0000;
const WCLONE: u64 = 0x8000_0000;
const ESRCH: i64 = -3;
const EINVAL: i64 = -22;

/// 1: the program has made children whose end is told by another signal than SIGCHLD, or by none.
static HAS_OTHERS: AtomicU32 = AtomicU32::new(0);

/// A child is made with these flags of clone.
pub fn makes(flags: u64) {
    if flags & SIGNAL != SIGCHLD {
        HAS_OTHERS.store(1, Ordering::SeqCst);
    }
}

fn options_of(row: &Row, args: &[u64; 6]) -> u64 {
    let at = if row.nr == NR_WAIT4 { 2 } else { 3 };
    args[at] as u32 as u64
}

/// May the kernel be asked for other children than the program has asked for?
#[inline(always)]
pub fn are_narrowed(row: &Row, args: &[u64; 6]) -> bool {
    (row.nr == NR_WAIT4 || row.nr == NR_WAITID) && options_of(row, args) & (WALL | WCLONE) != 0
}

/// The arguments for the kernel, so that it tells of none of Geryon's own.
pub fn narrowed(row: &Row, mut args: [u64; 6]) -> [u64; 6] {
    // (Above all ids of processes.)
    const NOBODY: u64 = 0x3fff_fff0;
    const P_PID: u64 = 1;
    if HAS_OTHERS.load(Ordering::SeqCst) != 0 {
        return args;
    }
    let is_all = options_of(row, &args) & WALL != 0;
    let (which, id, options) = match row.nr {
        NR_WAIT4 => (None, 0, 2),
        _ => (Some(0), 1, 3),
    };
    if is_all {
        args[options] &= !(WALL | WCLONE);
    } else if outcome_of_bad(row, &args).is_none() && !is_of_descriptor(row, &args) {
        // Of the children that it has told to be looked at it has none.
        args[options] &= !WCLONE;
        args[id] = NOBODY;
        if let Some(which) = which {
            args[which] = P_PID;
        }
    }
    args
}

/// Does it name a child by a descriptor?
pub fn is_of_descriptor(row: &Row, args: &[u64; 6]) -> bool {
    const P_PIDFD: u32 = 3;
    row.nr == NR_WAITID && args[0] as u32 == P_PIDFD
}

/// What the kernel says at once of a wait that asks for nothing that there is.
pub fn outcome_of_bad(row: &Row, args: &[u64; 6]) -> Option<i64> {
    const COMMON: u64 = WNOHANG | WUNTRACED | WCONTINUED | WNOTHREAD | WCLONE | WALL;
    const P_ALL: u32 = 0;
    const P_PID: u32 = 1;
    const P_PGID: u32 = 2;
    const P_PIDFD: u32 = 3;
    let options = options_of(row, args);
    if row.nr == NR_WAIT4 {
        return match args[0] as u32 as i32 {
            _ if options & !COMMON != 0 => Some(EINVAL),
            i32::MIN => Some(ESRCH),
            _ => None,
        };
    }
    let id = args[1] as u32 as i32;
    let known = options & !(COMMON | WEXITED | WNOWAIT) == 0;
    match args[0] as u32 {
        _ if !known || options & (WEXITED | WUNTRACED | WCONTINUED) == 0 => Some(EINVAL),
        P_ALL => None,
        P_PID if id > 0 => None,
        P_PGID if id >= 0 => None,
        P_PIDFD if id >= 0 => None,
        _ => Some(EINVAL),
    }
}

/// What the monitor is asked for (`reap`).
pub fn asked(row: &Row, args: &[u64; 6]) -> u64 {
    let options = options_of(row, args);
    let mut asked = 0;
    if row.nr == NR_WAIT4 || options & WEXITED != 0 {
        asked |= reap::ENDED;
    }
    if options & WUNTRACED != 0 {
        asked |= reap::STOPPED;
    }
    if options & WCONTINUED != 0 {
        asked |= reap::CONTINUED;
    }
    if options & WNOWAIT != 0 {
        asked |= reap::KEEPS;
    }
    if options & WCLONE != 0 {
        asked |= reap::CLONES;
    }
    if options & WALL != 0 {
        asked |= reap::ALL;
    }
    if private().discards.get() != 0 {
        asked |= reap::DISCARDS;
    }
    asked
}

/// Does the process want to hear nothing of its children's ends? (It has just said so, or begins.)
pub fn note_discards() {
    const IGNORED: u64 = 1;
    const NOCLDWAIT: u64 = 2;
    let mut action = [0u64; 4];
    let to = action.as_mut_ptr() as u64;
    let is_known = real(nr::rt_sigaction, [SIGCHLD, 0, to, 8, 0, 0]) == 0;
    let discards = is_known && (action[0] == IGNORED || action[1] & NOCLDWAIT != 0);
    private().discards.set(discards.into());
}

/// A wait that a kernel has answered: which child has ended, was stopped or goes on (0: none), and its status as wait4 shows
/// it (0: there is no place to say so).
pub fn told(row: &Row, args: &[u64; 6], result: i64) -> (u32, u32) {
    const STOPPED: u32 = 5;
    const CONTINUED: u32 = 6;
    const GOES_ON: u32 = 0xffff;
    let word = |at: u64| {
        // SAFETY: the call has succeeded and has written there.
        unsafe { (at as *const u32).read_unaligned() }
    };
    if row.nr == NR_WAIT4 {
        return match (result.max(0) as u32, args[1]) {
            (0, _) => (0, 0),
            (child, 0) => (child, 0),
            (child, at) => (child, word(at)),
        };
    }
    let info = args[2];
    if result < 0 || info == 0 || options_of(row, args) & WNOWAIT != 0 {
        return (0, 0);
    }
    let (code, child, value) = (word(info + 8), word(info + 16), word(info + 24));
    match code {
        STOPPED => (child, value << 8 | 0x7f),
        CONTINUED => (child, GOES_ON),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::table::row;

    fn of(nr: u64, args: [i64; 4]) -> Option<i64> {
        let [a, b, c, d] = args.map(|v| v as u64);
        outcome_of_bad(row(nr).expect("it is in the table"), &[a, b, c, d, 0, 0])
    }

    #[test]
    fn what_the_kernel_refuses_at_once() {
        assert_eq!(of(61, [-1, 0, 0, 0]), None);
        assert_eq!(of(61, [-1, 0, 0x100, 0]), Some(EINVAL));
        assert_eq!(of(61, [i32::MIN as i64, 0, 0, 0]), Some(ESRCH));
        assert_eq!(of(61, [-1, 0, WALL as i64, 0]), None);
        assert_eq!(of(247, [0, 0, 0, 0]), Some(EINVAL));
        assert_eq!(of(247, [0, 0, 0, WNOHANG as i64]), Some(EINVAL));
        assert_eq!(of(247, [1, 0, 0, WEXITED as i64]), Some(EINVAL));
        assert_eq!(of(247, [1, 7, 0, (WEXITED | WNOWAIT) as i64]), None);
        assert_eq!(of(247, [9, 7, 0, WEXITED as i64]), Some(EINVAL));
    }

    #[test]
    fn no_child_is_found_that_is_not_the_programs() {
        let wait4 = row(61).expect("it is in the table");
        let all = [u64::MAX, 0, WALL | WNOHANG, 0, 0, 0];
        assert!(are_narrowed(wait4, &all) && !are_narrowed(wait4, &[1, 0, WNOHANG, 0, 0, 0]));
        assert_eq!(narrowed(wait4, all), [u64::MAX, 0, WNOHANG, 0, 0, 0]);
        let others = narrowed(wait4, [u64::MAX, 0, WCLONE, 0, 0, 0]);
        assert!(others[0] > 1 << 22 && others[2] == 0);
    }
}
