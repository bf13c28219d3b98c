//! A call of the lost leader that slept, and returned with other argument registers than it began with:
//! the kernel may have taken it up again with them. What it has taken from a pipe is taken.

use super::undo::{is_file, makes_descriptors};
use geryon_abi::outcome::changes;
use geryon_abi::row::{Kind, Len, Row};
use geryon_tracee::Pid;

/// Neither as it was asked for, nor to be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost;

/// Does the kernel make this call without sleeping in a way that a stop ends? Then what has changed since
/// has changed behind it. (A file's reads wait for its device only.)
pub(super) fn is_made_at_once(row: &Row, asked: &[u64; 6], pid: Pid) -> bool {
    /// fcntl, flock: locks.
    const WAIT_FOR_OTHERS: [u16; 2] = [72, 73];
    row.args[0].kind == Kind::Fd
        && !WAIT_FOR_OTHERS.contains(&row.nr)
        && geryon_tracee::descriptor_of(pid, asked[0] as i32).is_ok_and(|fd| is_file(&fd))
}

/// The result of a call that was begun with the arguments `asked` and found with `seen`, if it is as good
/// as the one that was asked for; None: it is as good as not made. `at_once`: see [`is_made_at_once`].
///
/// # Errors
/// It has taken what nobody can give back.
pub(super) fn result(
    row: &Row,
    asked: &[u64; 6],
    seen: &[u64; 6],
    result: i64,
    at_once: bool,
) -> Result<Option<i64>, Lost> {
    /// wait4, waitid: the child is known.
    const WAITS: [u16; 2] = [61, 247];
    let differs = |i: &usize| match row.args[*i].kind {
        Kind::Fd | Kind::Int32 => asked[*i] as u32 != seen[*i] as u32,
        Kind::Unused => false,
        _ => asked[*i] != seen[*i],
    };
    let mut spoilt = (0..row.args.len()).filter(differs);
    let (first, second) = (spoilt.next(), spoilt.next());
    let room = row.args.iter().find_map(|a| match a.kind {
        Kind::Out(Len::Ret(i)) => Some(i as usize),
        _ => None,
    });
    match first {
        // The kernel looks at none of those that changed.
        None => Ok(Some(result)),
        Some(_) if at_once => Ok(Some(result)),
        Some(_) if WAITS.contains(&row.nr) || !changes(row, seen, result) => Ok(None),
        Some(_) if makes_descriptors(u32::from(row.nr)) => Ok(None),
        // The end of a file.
        Some(_) if room.is_some() && result == 0 => Ok(None),
        // Not more than there was room for.
        Some(i) if second.is_none() && room == Some(i) && result as u64 <= asked[i] => {
            Ok(Some(result))
        }
        Some(_) => Err(Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    const ASKED: [u64; 6] = [3, 0x7000, 100, 0, 0, 0];

    fn of(nr: u64, changed: usize, to: u64, result: i64) -> Result<Option<i64>, Lost> {
        let mut seen = ASKED;
        seen[changed] = to;
        super::result(
            geryon_abi::table::row(nr).expect("a row"),
            &ASKED,
            &seen,
            result,
            false,
        )
    }

    #[test]
    fn what_was_made_at_once_was_made_as_asked() {
        let row = geryon_abi::table::row(0).expect("a row");
        let seen = [3, 0, 100, 0, 0, 0];
        assert_eq!(result(row, &ASKED, &seen, 20, false), Err(Lost));
        assert_eq!(result(row, &ASKED, &seen, 20, true), Ok(Some(20)));
    }

    #[test]
    fn what_nobody_else_knows_is_made_again() {
        let [socket, dup, pipe2] = [41, 32, 293];
        assert_eq!(of(socket, 1, 0x7008, 5), Ok(None));
        assert_eq!(of(pipe2, 1, 0x7008, 0), Ok(None));
        assert_eq!(of(dup, 0, 7, 5), Err(Lost));
    }

    #[test]
    fn a_file_answers_at_once_and_a_pipe_does_not() {
        let own = std::process::id() as Pid;
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let file = std::fs::File::open("/proc/self/exe").expect("a file");
        let at_once = |nr: u64, fd: i32| {
            let row = geryon_abi::table::row(nr).expect("a row");
            is_made_at_once(row, &[fd as u64, 0, 0, 0, 0, 0], own)
        };
        assert!(at_once(0, file.as_raw_fd()));
        assert!(!at_once(0, reader.as_raw_fd()));
        // fcntl
        assert!(!at_once(72, file.as_raw_fd()));
    }

    #[test]
    fn what_the_kernel_does_not_look_at_spoils_nothing() {
        assert_eq!(of(0, 3, 9, 20), Ok(Some(20)));
        assert_eq!(of(0, 0, 3 | 1 << 40, 20), Ok(Some(20)));
    }

    #[test]
    fn what_was_read_to_elsewhere_or_from_elsewhere_is_lost() {
        assert_eq!(of(0, 1, 0x7008, 20), Err(Lost));
        assert_eq!(of(0, 0, 7, 20), Err(Lost));
    }

    #[test]
    fn a_short_read_is_a_read() {
        assert_eq!(of(0, 2, 1 << 30, 100), Ok(Some(100)));
        assert_eq!(of(0, 2, 1 << 30, 101), Err(Lost));
    }

    #[test]
    fn what_has_taken_nothing_is_made_again() {
        assert_eq!(of(0, 1, 0x7008, -14), Ok(None));
        assert_eq!(of(0, 1, 0x7008, 0), Ok(None));
        // poll, wait4
        assert_eq!(of(7, 1, 0x7008, 1), Ok(None));
        assert_eq!(of(61, 1, 0x7008, 1234), Ok(None));
    }
}
