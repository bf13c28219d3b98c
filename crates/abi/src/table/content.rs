//! Calls that change what is in a file: where each of them does it. (A replica that maps the file has an
//! object of its own in its place, which has to change alike.)

use super::nr;

/// Where in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// As many bytes as the result says, right before where descriptor `.0` stands afterwards.
    Before(u8),
    /// As many bytes as the result says, of descriptor `.0`, at argument `.1`; all ones: as [`Place::Before`].
    At(u8, u8),
    /// As many bytes as the result says, of descriptor `.0`, before the offset that argument `.1` points to;
    /// NULL: as [`Place::Before`].
    Pointed(u8, u8),
    /// Of descriptor `.0`, as many bytes as argument `.2` says, at argument `.1`.
    Range(u8, u8, u8),
    /// Anywhere in descriptor `.0`.
    All(u8),
    /// Its length.
    Length,
    /// Its length, if argument `.0` says `O_TRUNC`.
    Truncating(u8),
}

/// What a call that has succeeded has changed; None when it changes no file's content.
pub const fn place(nr: u64, args: &[u64; 6]) -> Option<Place> {
    /// FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE: all behind it moves.
    const MOVES: u64 = 0x28;
    /// RWF_APPEND
    const APPEND: u64 = 0x10;
    const FICLONE: u32 = 0x4004_9409;
    const FICLONERANGE: u32 = 0x4020_940d;
    Some(match nr {
        nr::write | nr::writev | nr::sendfile => Place::Before(0),
        nr::pwritev2 if args[5] & APPEND != 0 => Place::All(0),
        nr::pwrite64 | nr::pwritev | nr::pwritev2 => Place::At(0, 3),
        nr::splice | nr::copy_file_range => Place::Pointed(2, 3),
        nr::fallocate if args[1] & MOVES != 0 => Place::All(0),
        nr::fallocate => Place::Range(0, 2, 3),
        nr::ioctl if matches!(args[1] as u32, FICLONE | FICLONERANGE) => Place::All(0),
        nr::truncate | nr::ftruncate | nr::creat | nr::openat2 => Place::Length,
        nr::open => Place::Truncating(1),
        nr::openat => Place::Truncating(2),
        _ => return None,
    })
}

/// What a call has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// So many bytes of a descriptor's file; [`ALL`]: any of them.
    Bytes {
        /// The descriptor.
        fd: u64,
        /// The first of them.
        at: u64,
        /// How many.
        len: u64,
    },
    /// A file's length, nobody says of which one.
    Length,
}

/// All bytes of a file.
pub const ALL: u64 = u64::MAX;

/// What a call that has returned `result`, which is no error, has changed; None: no file's content. `stands` says at
/// which byte a descriptor stands now, `word` what is at an address of the program, if it is still there.
pub fn changed(
    nr: u64,
    args: &[u64; 6],
    result: u64,
    stands: impl Fn(u64) -> u64,
    word: impl Fn(u64) -> Option<u64>,
) -> Option<Changed> {
    const O_TRUNC: u64 = 0o1000;
    let arg = |i: u8| args[i as usize];
    let before = |fd: u8| (arg(fd), stands(arg(fd)).wrapping_sub(result), result);
    let (fd, at, len) = match place(nr, args)? {
        Place::Before(fd) => before(fd),
        Place::At(fd, at) if arg(at) == u64::MAX => before(fd),
        Place::At(fd, at) => (arg(fd), arg(at), result),
        Place::Pointed(fd, at) if arg(at) == 0 => before(fd),
        // (If another thread has taken the word away meanwhile.)
        Place::Pointed(fd, at) => match word(arg(at)) {
            Some(end) => (arg(fd), end.wrapping_sub(result), result),
            None => (arg(fd), 0, ALL),
        },
        Place::Range(fd, at, len) => (arg(fd), arg(at), arg(len)),
        Place::All(fd) => (arg(fd), 0, ALL),
        Place::Truncating(flags) if arg(flags) & O_TRUNC == 0 => return None,
        Place::Length | Place::Truncating(_) => return Some(Changed::Length),
    };
    Some(Changed::Bytes { fd, at, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nr: u64, args: [u64; 6], result: u64) -> Option<Changed> {
        changed(
            nr,
            &args,
            result,
            |fd| 1000 + fd,
            |at| (at == 64).then_some(500),
        )
    }

    fn bytes(fd: u64, at: u64, len: u64) -> Option<Changed> {
        Some(Changed::Bytes { fd, at, len })
    }

    #[test]
    fn a_write_ends_where_its_descriptor_stands() {
        assert_eq!(of(1, [3, 0, 9, 0, 0, 0], 9), bytes(3, 994, 9));
        assert_eq!(of(18, [3, 0, 9, 70, 0, 0], 4), bytes(3, 70, 4));
        assert_eq!(of(328, [3, 0, 1, u64::MAX, 0, 0], 4), bytes(3, 999, 4));
    }

    #[test]
    fn a_copy_ends_where_its_pointer_says() {
        assert_eq!(of(326, [1, 0, 2, 64, 9, 0], 100), bytes(2, 400, 100));
        assert_eq!(of(326, [1, 0, 2, 0, 9, 0], 100), bytes(2, 902, 100));
        assert_eq!(of(326, [1, 0, 2, 8, 9, 0], 100), bytes(2, 0, ALL));
    }

    #[test]
    fn lengths_are_told_of_without_a_descriptor() {
        assert_eq!(of(77, [3, 10, 0, 0, 0, 0], 0), Some(Changed::Length));
        assert_eq!(of(257, [0, 0, 0o1001, 0, 0, 0], 5), Some(Changed::Length));
        assert_eq!(of(257, [0, 0, 1, 0, 0, 0], 5), None);
        assert_eq!(of(0, [3, 0, 9, 0, 0, 0], 9), None);
    }
}
