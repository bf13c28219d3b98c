//! What the kernel says of other processes' descriptors.

use geryon_abi::table::content::ALL;
use geryon_tracee::Pid;
use std::os::unix::fs::MetadataExt;

/// Which file a process's descriptor names: device and inode.
pub(crate) fn identity_of(pid: Pid, fd: u64) -> Option<(u64, u64)> {
    let status = std::fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some((status.dev(), status.ino()))
}

/// Where bytes are that a call has written there: what is appended to a file is not where the call says.
pub(crate) fn written(pid: Pid, fd: u64, at: u64, len: u64) -> (u64, u64) {
    match flags_of(pid, fd).is_some_and(|f| f & libc::O_APPEND != 0) {
        true => (0, ALL),
        false => (at, len),
    }
}

/// At which byte of its file it stands.
pub(crate) fn position_of(pid: Pid, fd: u64) -> Option<u64> {
    said_of(pid, fd, "pos:")?.parse().ok()
}

/// Its flags: how it was opened.
pub(crate) fn flags_of(pid: Pid, fd: u64) -> Option<i32> {
    i32::from_str_radix(&said_of(pid, fd, "flags:")?, 8).ok()
}

/// What the kernel says of a descriptor.
fn said_of(pid: Pid, fd: u64, what: &str) -> Option<String> {
    let text = geryon_tracee::text(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(what))?;
    Some(line.trim().to_owned())
}
