//! The result of a call that the lost leader has made, and that is in no register any more: a flipped bit
//! in its instruction pointer has sent it through other code before it died.

use geryon_abi::frame::Frame;
use geryon_tracee::{Pid, RemoteMemory};
use std::mem::offset_of;

/// Pieces of a `writev` that are looked at; the kernel takes no more.
const MOST_PIECES: u64 = 1024;

/// Calls that do no more when they are made again, and return the same: syncs, what closes what is open
/// still, and what sets a length, a
/// mode, or bytes at a place that is given.
pub(super) fn is_repeatable(nr: u32) -> bool {
    matches!(
        i64::from(nr),
        libc::SYS_close
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_sync
            | libc::SYS_syncfs
            | libc::SYS_sync_file_range
            | libc::SYS_truncate
            | libc::SYS_ftruncate
            | libc::SYS_chmod
            | libc::SYS_fchmod
            | libc::SYS_fchmodat
            | libc::SYS_pwrite64
            | libc::SYS_pwritev
    )
}

/// What a call has returned, for certain: a write that waits until there is room has everything out when it
/// is over (write(2): less only for a signal or an error); a descriptor that is not there any more was
/// closed. `frame`: the program's registers at the call.
pub(super) fn result(nr: u32, frame: u64, pid: Pid, memory: &RemoteMemory) -> Option<i64> {
    let word = |offset: usize| memory.word(frame + offset as u64).ok();
    let fd = word(offset_of!(Frame, rdi))? as u32;
    let (buffer, count) = (word(offset_of!(Frame, rsi))?, word(offset_of!(Frame, rdx))?);
    let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}"));
    let bytes = match i64::from(nr) {
        libc::SYS_close => return info.is_err().then_some(0),
        libc::SYS_write => count,
        libc::SYS_writev if count <= MOST_PIECES => {
            let length = |i: u64| memory.word(buffer + 16 * i + 8).ok();
            (0..count).try_fold(0u64, |sum, i| sum.checked_add(length(i)?))?
        }
        _ => return None,
    };
    waits_for_room(&info.ok()?).then_some(bytes as i64)
}

/// Does a descriptor with this `fdinfo` wait?
fn waits_for_room(info: &str) -> bool {
    let flags = info.lines().find_map(|l| l.strip_prefix("flags:"));
    flags
        .and_then(|f| i32::from_str_radix(f.trim(), 8).ok())
        .is_some_and(|f| f & libc::O_NONBLOCK == 0)
}

#[cfg(test)]
mod tests {
    use super::waits_for_room;

    #[test]
    fn only_where_it_is_known_to_wait() {
        assert!(waits_for_room("pos:\t0\nflags:\t0100001\nmnt_id:\t15\n"));
        assert!(!waits_for_room("pos:\t0\nflags:\t04001\nmnt_id:\t15\n"));
        assert!(!waits_for_room("pos:\t0\n"));
    }
}
