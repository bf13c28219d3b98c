//! The descriptors of a forked process, its working directory and its umask: only its leader has them.
//! Who takes over fetches them.

use crate::gate::{real, rpc};
use crate::passage::Passage;
use crate::state::{block, block_anew, private};
use geryon_abi::layout::{enclosed, failed, rpc as number, vforked, why};
use geryon_abi::table::nr;

const CLOSE_ON_EXEC: u64 = 1 << 32;
/// Words before the list of descriptors.
const FIRST: usize = 4;
const O_CLOEXEC: u64 = 0o2_000_000;
const EPERM: i64 = -1;

/// New leader: take over the former one's descriptors under the same numbers, unless its table is
/// shared.
pub fn inherit() {
    if private().shares_files.get() == 0 {
        fetch_all();
    }
    watch_again();
    crate::proc_files::reopen();
}

/// What an epoll instance waits for at a descriptor of signals are those of the process that has added it: that was the
/// former leader, and is this one from now on. One of a process is to name another one from now on.
fn watch_again() {
    const ADD: u64 = 1;
    const DELETE: u64 = 2;
    const ROOM: usize = 32;
    let mut known = 0;
    loop {
        let mut found = [[0u64; 4]; ROOM];
        let n = rpc(
            number::WATCHES,
            found.as_mut_ptr() as u64,
            ROOM as u64,
            known,
        );
        // SAFETY: the monitor has written them.
        let found = unsafe { (&raw const found).read_volatile() };
        let n = usize::try_from(n).unwrap_or(0).min(ROOM);
        for [instance, fd, events, data] in &found[..n] {
            // As the kernel has struct epoll_event, without padding.
            let event = [*events as u32, *data as u32, (*data >> 32) as u32];
            let at = event.as_ptr() as u64;
            real(nr::epoll_ctl, [*instance, DELETE, *fd, at, 0, 0]);
            crate::proc_files::reopen_one(*fd);
            real(nr::epoll_ctl, [*instance, ADD, *fd, at, 0, 0]);
        }
        known += n as u64;
        if n < ROOM {
            return;
        }
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
    if private().common.get() != 0 {
        rpc(number::FAILED, failed::COMMON, 0, 0);
        lost(EPERM);
    }
    let mut list = [0u64; 128];
    let mut passage = Passage::open().unwrap_or_else(|e| lost(e));
    let mut first = 0;
    loop {
        // The first word is the highest descriptor, the second its umask, the others say whether its root and its
        // working directory are other ones.
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
            real(nr::umask, [list[1], 0, 0, 0, 0, 0]);
            if list[2] != 0
                && let Err(error) = enter_root(&passage, enclosed::FORMERS)
            {
                rpc(number::FAILED, failed::ROOT, error as u64, 0);
                lost(error);
            }
            enter_directory(&passage, list[3] != 0);
            // One more than where a descriptor comes before it has its number.
            passage.beyond(list[0] + 1).unwrap_or_else(|e| lost(e));
            FIRST
        } else {
            0
        };
        for word in list.iter().take(n as usize).skip(skip) {
            fetch(&passage, *word);
        }
        first += n as u64;
    }
    passage.close();
}

/// Behind a chroot: a follower with a directory of its own changes its root as well, while it may. (If it cannot,
/// that is said when it has to lead.)
pub fn follow_root() {
    if let Ok(passage) = Passage::open() {
        let _ = enter_root(&passage, enclosed::LEADERS);
        passage.close();
    }
}

/// Another process's root becomes this one's, and its working directory.
fn enter_root(passage: &Passage, whose: u64) -> Result<(), i64> {
    let fd = passage.fetch(u64::from(enclosed::ROOT), whose)?;
    let mut done = real(nr::fchdir, [fd, 0, 0, 0, 0, 0]);
    if done == 0 {
        done = real(nr::chroot, [c".".as_ptr() as u64, 0, 0, 0, 0, 0]);
    }
    real(nr::close, [fd, 0, 0, 0, 0, 0]);
    if done < 0 { Err(done) } else { Ok(()) }
}

/// The former leader's working directory, also one that was removed. `differs`: it is not this one's already, who may have
/// been forked there by a process that had more privileges when it came there.
fn enter_directory(passage: &Passage, differs: bool) {
    let directory = u64::from(enclosed::DIRECTORY);
    let got = passage.fetch(directory, enclosed::FORMERS);
    let fd = got.unwrap_or_else(|e| lost(e));
    let entered = real(nr::fchdir, [fd, 0, 0, 0, 0, 0]);
    if entered < 0 && differs {
        rpc(number::FAILED, failed::DIRECTORY, entered as u64, 0);
        lost(entered);
    }
    real(nr::close, [fd, 0, 0, 0, 0, 0]);
}

/// Without its descriptors nobody can lead.
fn lost(error: i64) -> ! {
    let b = block();
    crate::diverge::diverged_for_good(why::LOCAL, b.pos, [0, error as u64, 0, 0, 0, 0, 0, 0])
}

/// They come in ascending order: the lowest free number is never above the one wanted.
fn fetch(passage: &Passage, word: u64) {
    const F_SETFD: u64 = 2;
    let (to, stays) = (word as u32 as u64, word & CLOSE_ON_EXEC == 0);
    let got = passage.fetch(to, enclosed::FORMERS);
    let got = got.unwrap_or_else(|e| lost(e));
    if got != to {
        let flags = if stays { 0 } else { O_CLOEXEC };
        real(nr::dup3, [got, to, flags, 0, 0, 0]);
        real(nr::close, [got, 0, 0, 0, 0, 0]);
    } else if stays {
        real(nr::fcntl, [to, F_SETFD, 0, 0, 0, 0]);
    }
}
