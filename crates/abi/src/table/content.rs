//! Calls that change what is in a file: where each of them does it. (A replica that maps the file has an
//! object of its own in its place, which has to change alike.)

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

/// Does the call move bytes between descriptor 0 of its arguments and memory?
pub const fn transfers(nr: u64) -> bool {
    // read, write, pread64, pwrite64, readv, writev, preadv, pwritev, preadv2, pwritev2
    matches!(nr, 0 | 1 | 17..=20 | 295 | 296 | 327 | 328)
}

/// Does the call bring to the disk what is in descriptor 0 of its arguments, and what is mapped of it?
pub const fn synchronises(nr: u64) -> bool {
    // fsync, fdatasync
    matches!(nr, 74 | 75)
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
        // write, writev, sendfile
        1 | 20 | 40 => Place::Before(0),
        // pwritev2, which appends if it is told so
        328 if args[5] & APPEND != 0 => Place::All(0),
        // pwrite64, pwritev, pwritev2
        18 | 296 | 328 => Place::At(0, 3),
        // splice, copy_file_range
        275 | 326 => Place::Pointed(2, 3),
        // fallocate
        285 if args[1] & MOVES != 0 => Place::All(0),
        285 => Place::Range(0, 2, 3),
        // ioctl
        16 if matches!(args[1] as u32, FICLONE | FICLONERANGE) => Place::All(0),
        // truncate, ftruncate, creat, openat2
        76 | 77 | 85 | 437 => Place::Length,
        // open, openat
        2 => Place::Truncating(1),
        257 => Place::Truncating(2),
        _ => return None,
    })
}
