//! Descriptors of processes (pidfd_open): which process of the program one names. The kernel's names one of the replica that
//! led when it was made: who takes over opens it again, as that of its own.

use crate::children;
use crate::gate::{real, rpc};
use crate::ids::{mine, shown_as};
use geryon_abi::layout::rpc as number;
use geryon_abi::table::nr;

const F_GETFD: u64 = 1;
const F_GETFL: u64 = 3;
const NONBLOCK: u64 = 0o4000;
const CLOEXEC: u64 = 0o2_000_000;
const ECHILD: i64 = -10;

/// The process that a descriptor names, as the program calls it; or why it names none that could be waited for.
pub fn named(fd: u64) -> Result<u32, i64> {
    match rpc(number::PIDFD, fd, 0, 0) {
        error if error < 0 => Err(error),
        0 => Err(ECHILD),
        own => Ok(shown(own as u32)),
    }
}

/// Does a wait for it not sleep?
pub fn is_nonblocking(fd: u64) -> bool {
    let flags = real(nr::fcntl, [fd, F_GETFL, 0, 0, 0, 0]);
    flags >= 0 && flags as u64 & NONBLOCK != 0
}

/// (A child that has ended is known to its parent alone.)
fn shown(own: u32) -> u32 {
    children::shown(own).unwrap_or_else(|| shown_as(own))
}

/// New leader, before anybody leads: the descriptor, if it is one of a process, is to name this replica's. (What is gone here
/// it goes on to name as it did.)
pub fn reopen(fd: u64, link: &[u8]) -> Option<()> {
    // (As newer kernels call them, too.)
    if !link.starts_with(b"anon_inode:[pidfd]") && !link.starts_with(b"pidfd:[") {
        return None;
    }
    let theirs = u32::try_from(rpc(number::PIDFD, fd, 0, 0)).ok()?;
    let own = mine(shown(theirs)).filter(|own| theirs != 0 && *own != theirs)?;
    let keeps = |nr, flag| real(nr::fcntl, [fd, nr, 0, 0, 0, 0]).max(0) as u64 & flag;
    let new = real(
        nr::pidfd_open,
        [own.into(), keeps(F_GETFL, NONBLOCK), 0, 0, 0, 0],
    );
    let new = u64::try_from(new).ok()?;
    let closes = keeps(F_GETFD, 1) * CLOEXEC;
    real(nr::dup3, [new, fd, closes, 0, 0, 0]);
    real(nr::close, [new, 0, 0, 0, 0, 0]);
    Some(())
}
