//! seccomp(2), and what prctl(2) has of it: each replica installs the filter by itself, and the kernel none.

use super::synchronise::synchronise;
use super::{chain, synchronise};
use crate::access::{word32, word64};
use crate::gate::real;
use crate::state::block;
use crate::stop::refused;
use geryon_abi::frame::Frame;
use geryon_abi::layout::filter::{FIRST_ADDRESS, MAX_INSTRUCTIONS, NONE, STRICT};
use geryon_abi::table::nr;

const EACCES: i64 = -13;
const EFAULT: i64 = -14;
const EINVAL: i64 = -22;
const EOPNOTSUPP: i64 = -95;

mod flag {
    pub const TSYNC: u32 = 1;
    pub const LOG: u32 = 2;
    pub const SPEC_ALLOW: u32 = 4;
    pub const NEW_LISTENER: u32 = 8;
    pub const TSYNC_ESRCH: u32 = 16;
}

/// A prctl(2) that concerns filters; false for any other one.
pub fn prctl(frame: &mut Frame) -> bool {
    const PR_GET_SECCOMP: u32 = 21;
    const PR_SET_SECCOMP: u32 = 22;
    const MODE_STRICT: u64 = 1;
    const MODE_FILTER: u64 = 2;
    let args = frame.args();
    // The kernel looks at 32 bits of the option.
    let result = match args[0] as u32 {
        PR_GET_SECCOMP => mode(block().filter),
        PR_SET_SECCOMP => match args[1] {
            MODE_STRICT => set_strict(),
            MODE_FILTER => set_filter(0, args[2]),
            _ => EINVAL,
        },
        _ => return false,
    };
    frame.rax = result as u64;
    true
}

/// seccomp(2).
pub fn seccomp(frame: &mut Frame) {
    const SET_MODE_STRICT: u32 = 0;
    const SET_MODE_FILTER: u32 = 1;
    const GET_ACTION_AVAIL: u32 = 2;
    const GET_NOTIF_SIZES: u32 = 3;
    const USER_NOTIF: u32 = 0x7fc0_0000;
    let args = frame.args();
    let (operation, flags) = (args[0] as u32, args[1] as u32);
    let result = match operation {
        SET_MODE_STRICT if flags != 0 || args[2] != 0 => EINVAL,
        SET_MODE_STRICT => set_strict(),
        SET_MODE_FILTER => set_filter(flags, args[2]),
        // A filter that says so has nobody to ask.
        GET_ACTION_AVAIL if flags == 0 && word32(args[2]) == Some(USER_NOTIF) => EOPNOTSUPP,
        GET_ACTION_AVAIL | GET_NOTIF_SIZES => real(nr::seccomp, args),
        _ => EINVAL,
    };
    frame.rax = result as u64;
}

/// As PR_GET_SECCOMP shows it. (Who is strict cannot ask.)
fn mode(filter: u64) -> i64 {
    if filter == NONE { 0 } else { 2 }
}

fn set_strict() -> i64 {
    let mut b = block();
    if b.filter >= FIRST_ADDRESS {
        return EINVAL;
    }
    b.filter = STRICT;
    0
}

/// The order in which things are found to be wrong is the kernel's.
fn set_filter(flags: u32, program: u64) -> i64 {
    const KNOWN: u32 = flag::TSYNC | flag::LOG | flag::SPEC_ALLOW | flag::TSYNC_ESRCH;
    if flags & flag::NEW_LISTENER != 0 && program != 0 {
        refused(nr::seccomp, 0);
    }
    if flags & !KNOWN != 0 {
        return EINVAL;
    }
    let Some((count, from)) = header(program) else {
        return EFAULT;
    };
    if count == 0 || count as usize > MAX_INSTRUCTIONS {
        return EINVAL;
    }
    if !is_privileged() {
        return EACCES;
    }
    let before = block().filter;
    let synchronises = flags & flag::TSYNC != 0;
    if synchronises && !synchronise::is_possible() {
        refused(nr::seccomp, 0);
        return EINVAL;
    }
    let filter = match chain::add(before, from, count) {
        Ok(filter) => filter,
        Err(errno) => return errno,
    };
    if synchronises && let Err(stray) = synchronise(before, filter) {
        const ESRCH: i64 = -3;
        return match flags & flag::TSYNC_ESRCH {
            0 => i64::from(stray),
            _ => ESRCH,
        };
    }
    block().filter = filter;
    0
}

/// struct sock_fprog: how many instructions, and where.
fn header(program: u64) -> Option<(u32, u64)> {
    // (The number is followed by padding.)
    let count = word32(program)? & 0xffff;
    let at = word64(program.checked_add(8)?)?;
    Some((count, crate::nowhere::seen(at)))
}

/// May this thread install a filter?
fn is_privileged() -> bool {
    const PR_GET_NO_NEW_PRIVS: u64 = 39;
    const VERSION_3: u64 = 0x2008_0522;
    const SYS_ADMIN: u32 = 1 << 21;
    if real(nr::prctl, [PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0]) == 1 {
        return true;
    }
    let head = VERSION_3;
    let mut sets = [0u32; 6];
    let at = sets.as_mut_ptr() as u64;
    let got = real(nr::capget, [&raw const head as u64, at, 0, 0, 0, 0]);
    // SAFETY: a local variable, which the kernel has written.
    let effective = unsafe { (&raw const sets[0]).read_volatile() };
    got == 0 && effective & SYS_ADMIN != 0
}
