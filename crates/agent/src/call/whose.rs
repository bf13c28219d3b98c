//! Whose confirmation an output waits for: everybody's, or a majority's.
//!
//! Of three replicas the leader and one follower are enough to know what is right; who is slower and differs is
//! outvoted later. But a confirmation by all also says that all have *come* to the call, and there is an order that
//! nothing else says:
//!
//! - What a thread or process stores before it writes to a pipe, another one loads behind what it has read of that. In
//!   a follower the one reads from the log, whether the other one has stored or not. (Threads that have turns come in
//!   their order.)
//! - What a file holds that is mapped, a follower finds when it looks: all must have looked before it is changed.
//!
//! So it is a majority's only in a program of one process with one thread or with turns, and for what changes no file.
//! (What another program does to a mapped file when it has been told so over a socket is not among that: it was never
//! the same for all by anything but the pace of the replicas.)

use crate::gate::real;
use crate::log::confirmed;
use crate::state::{Here, block, private};
use geryon_abi::layout::{verify, vforked};
use geryon_abi::outcome::{ChangesFile, changes_file};
use geryon_abi::table::nr;
use geryon_ring::roll::By;

/// Does an output wait for anybody? A vfork's child always does, whatever it is compared by: when it leaves its parent's
/// memory for a program of its own, the children of the followers are ended. Each has to be there by then, and to have
/// stored all that its parent goes on with.
#[inline(always)]
pub fn waits(b: Here) -> bool {
    private().verify != verify::ASYNC || b.vforked != vforked::NOT
}

/// Leader: wait until this call, whose beginning has been published up to `logged`, is confirmed.
pub fn wait(nr: u16, args: &[u64; 6], logged: u64) {
    // (Asked while the others are on their way.)
    let by = match changes_file(nr.into()) {
        _ if !is_majority_enough() => By::All,
        ChangesFile::Perhaps => By::All,
        ChangesFile::IfNamed if is_file(args[0]) => By::All,
        ChangesFile::IfNamed | ChangesFile::Never => By::Majority,
    };
    confirmed(block(), logged, by);
}

/// Those who have confirmed a call of this kind, at least, when it is made.
pub fn at_least(nr: u16) -> By {
    match changes_file(nr.into()) {
        ChangesFile::Perhaps => By::All,
        _ if !is_majority_enough() => By::All,
        ChangesFile::IfNamed | ChangesFile::Never => By::Majority,
    }
}

#[inline(always)]
fn is_majority_enough() -> bool {
    let p = private();
    let has_order = p.serial.get() != 0 || p.multi.get() == 0;
    // (Of two the majority are both.)
    p.verify == verify::MAJORITY && p.replicas > 2 && has_order && p.related.get() == 0
}

/// Does the descriptor name something that can be mapped, or nothing?
fn is_file(fd: u64) -> bool {
    const MODE_WORD: usize = 3;
    const TYPE: u32 = 0o170_000;
    const PIPE: u32 = 0o010_000;
    const SOCKET: u32 = 0o140_000;
    let mut status = [0u64; 18];
    let asked = real(nr::fstat, [fd, status.as_mut_ptr() as u64, 0, 0, 0, 0]);
    let kind = status[MODE_WORD] as u32 & TYPE;
    asked != 0 || !matches!(kind, PIPE | SOCKET)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::is_file;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_can_be_mapped_is_a_file() {
        let (_, socket) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let null = File::open("/dev/null").expect("it is there");
        let own = File::open("/proc/self/exe").expect("it is there");
        assert!(!is_file(socket.as_raw_fd() as u64));
        assert!(is_file(null.as_raw_fd() as u64));
        assert!(is_file(own.as_raw_fd() as u64));
        assert!(is_file(u32::MAX.into()), "no descriptor");
    }
}
