//! The descriptors of a forked process, its working directory and its umask: only its leader has them.
//! Who takes over fetches them.

use crate::gate::{real, rpc};
use crate::state::{block, block_anew, private};
use geryon_abi::layout::{rpc as number, vforked, why};

const NR_CLOSE: u64 = 3;
const NR_FCNTL: u64 = 72;
const NR_CHDIR: u64 = 80;
const NR_DUP3: u64 = 292;
const NR_PIDFD_OPEN: u64 = 434;
const NR_PIDFD_GETFD: u64 = 438;
const NR_UMASK: u64 = 95;
const CLOSE_ON_EXEC: u64 = 1 << 32;
/// Words before the list of descriptors.
const FIRST: usize = 3;
const O_CLOEXEC: u64 = 0o2_000_000;

/// New leader: take over the former one's descriptors under the same numbers, unless its table is
/// shared.
pub fn inherit() {
    if private().shares_files.get() == 0 {
        fetch_all();
    }
}

/// A vfork's child that was born to follow and leads by now: it fetches those of its predecessor, which
/// was such a child, too.
#[inline(always)]
pub fn clothe() {
    if block_anew().vforked == vforked::NAKED {
        fetch_own();
    }
}

#[cold]
fn fetch_own() {
    fetch_all();
    // Not before: as long as it has none of its own the former leader's remains are kept.
    block_anew().vforked = vforked::YES;
}

fn fetch_all() {
    let mut list = [0u64; 128];
    let mut first = 0;
    let mut pidfd = -1i64;
    loop {
        // The first word names the process, the second the highest descriptor, the third its umask.
        let n = rpc(
            number::DESCRIPTORS,
            list.as_mut_ptr() as u64,
            first,
            list.len() as u64,
        );
        if n < 0 || (n == 0 && first == 0) {
            lost(n);
        }
        if n == 0 {
            break;
        }
        let skip = if first == 0 {
            real(NR_UMASK, [list[2], 0, 0, 0, 0, 0]);
            let entered = real(NR_CHDIR, [cwd_of(list[0]).as_ptr() as u64, 0, 0, 0, 0, 0]);
            if entered < 0 {
                lost(entered);
            }
            pidfd = beyond(real(NR_PIDFD_OPEN, [list[0], 0, 0, 0, 0, 0]), list[1]);
            if pidfd < 0 {
                lost(pidfd);
            }
            FIRST
        } else {
            0
        };
        for word in list.iter().take(n as usize).skip(skip) {
            fetch(pidfd as u64, *word);
        }
        first += n as u64;
    }
    if pidfd >= 0 {
        real(NR_CLOSE, [pidfd as u64, 0, 0, 0, 0, 0]);
    }
}

/// The kernel's link to a process's working directory, also to one that was removed.
fn cwd_of(pid: u64) -> [u8; 32] {
    const BEFORE: &[u8] = b"/proc/";
    const BEHIND: &[u8] = b"/cwd";
    let mut path = [0; 32];
    path[..BEFORE.len()].copy_from_slice(BEFORE);
    let digits = pid.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = pid;
    for digit in path[BEFORE.len()..][..digits].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    path[BEFORE.len() + digits..][..BEHIND.len()].copy_from_slice(BEHIND);
    path
}

/// Without its descriptors nobody can lead.
fn lost(error: i64) -> ! {
    let b = block();
    crate::diverge::diverged_for_good(why::LOCAL, b.pos, [0, error as u64, 0, 0, 0, 0, 0, 0])
}

/// The descriptor under a number that none of those to come has.
fn beyond(fd: i64, highest: u64) -> i64 {
    const F_DUPFD_CLOEXEC: u64 = 1030;
    if fd < 0 {
        return fd;
    }
    let moved = real(NR_FCNTL, [fd as u64, F_DUPFD_CLOEXEC, highest + 2, 0, 0, 0]);
    real(NR_CLOSE, [fd as u64, 0, 0, 0, 0, 0]);
    moved
}

/// They come in ascending order: the lowest free number is never above the one wanted.
fn fetch(pidfd: u64, word: u64) {
    const F_SETFD: u64 = 2;
    let (to, stays) = (word as u32 as u64, word & CLOSE_ON_EXEC == 0);
    let got = real(NR_PIDFD_GETFD, [pidfd, to, 0, 0, 0, 0]);
    if got < 0 {
        lost(got);
    }
    if got as u64 != to {
        let flags = if stays { 0 } else { O_CLOEXEC };
        real(NR_DUP3, [got as u64, to, flags, 0, 0, 0]);
        real(NR_CLOSE, [got as u64, 0, 0, 0, 0, 0]);
    } else if stays {
        real(NR_FCNTL, [to, F_SETFD, 0, 0, 0, 0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_by_its_process() {
        assert!(cwd_of(4_194_303).starts_with(b"/proc/4194303/cwd\0"));
        assert!(cwd_of(10).starts_with(b"/proc/10/cwd\0"));
        assert!(cwd_of(7).starts_with(b"/proc/7/cwd\0"));
    }
}
