//! What a leader has done outside its memory and the others have not followed yet. Most calls whose
//! result is an input only look, and a successor simply makes them again. The others are noted, so
//! that a leader that turns out to have been wrong can be undone, or is known to be past undoing.

use crate::gate::real;
use crate::state::{Here, private};
use geryon_abi::layout::{MAX_TAKEN, Taken};
use geryon_abi::outcome::changes;
use geryon_abi::record::kind;
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const READ: u16 = nr::read as u16;
const WRITE: u16 = nr::write as u16;
const LSEEK: u16 = nr::lseek as u16;
const PREAD: u16 = nr::pread64 as u16;
const PWRITE: u16 = nr::pwrite64 as u16;
const READV: u16 = nr::readv as u16;
const WRITEV: u16 = nr::writev as u16;
const FCNTL: u16 = nr::fcntl as u16;
const GETDENTS: u16 = nr::getdents as u16;
const GETDENTS64: u16 = nr::getdents64 as u16;
const PWRITEV: u16 = nr::pwritev as u16;
const SEEK_CUR: u64 = 1;
const F_GETFL: u64 = 3;
const F_SETFL: u64 = 4;

/// Leader, before a call after which nothing tells how it was: a file's offset, its flags.
pub fn before(mut b: Here, nr: u16, args: &[u64; 6]) {
    if private().replicas == 1 {
        return;
    }
    let fd = args[0];
    match nr {
        LSEEK | GETDENTS | GETDENTS64 => {
            b.was_before = offset_of(fd);
        }
        FCNTL if args[1] == F_SETFL => {
            b.was_before = real(FCNTL as u64, [fd, F_GETFL, 0, 0, 0, 0]);
        }
        // Another one of its commands.
        FCNTL => b.was_before = -1,
        _ => {}
    }
}

/// Leader: the record of a call's completion is about to be seen.
#[inline(always)]
pub fn note(b: Here, k: u8, row: &Row, args: &[u64; 6], digest: Option<u64>, result: i64) {
    if private().replicas > 1 && (k == kind::END || changes(row, args, result)) {
        keep(b, k, row.nr, args[0], digest, result);
    }
}

#[inline(never)]
fn keep(mut b: Here, k: u8, nr: u16, first: u64, digest: Option<u64>, result: i64) {
    let at = (b.taken_count % MAX_TAKEN as u64) as usize;
    b.taken[at] = Taken {
        start: b.flight_start,
        end: b.pos,
        result,
        first,
        was: b.was_before,
        digest: digest.unwrap_or(crate::digest::CONFIRMED),
        nr: nr as u32,
        confirmed: (k == kind::END) as u32,
    };
    b.taken_count += 1;
}

/// Leader, before a call that writes: where in its file.
pub fn place_of(nr: u16, args: &[u64; 6]) -> u64 {
    match nr {
        PWRITE | PWRITEV => args[3],
        _ => offset_of(args[0]).max(0) as u64,
    }
}

/// Leader, behind a call that all had agreed on, whose buffer has changed since: where in a file it has
/// written so much. None where it has not, or nobody could write it once more.
pub fn written_to(nr: u16, args: &[u64; 6], result: i64) -> Option<u64> {
    const O_APPEND: i64 = 0o2000;
    let fd = args[0];
    let at = match nr {
        WRITE | WRITEV => offset_of(fd) - result,
        PWRITE | PWRITEV => args[3] as i64,
        _ => return None,
    };
    let appends = real(FCNTL as u64, [fd, F_GETFL, 0, 0, 0, 0]) & O_APPEND != 0;
    (at >= 0 && is_file(fd) && !appends).then_some(at as u64)
}

/// Write what a predecessor has written, in whose buffer a bit had changed while the kernel took it.
/// False where that cannot be done.
pub fn write_again(nr: u16, args: &[u64; 6], result: i64, at: u64) -> bool {
    let [fd, buffer, buffers, ..] = *args;
    let again = match nr {
        WRITEV | PWRITEV => real(PWRITEV as u64, [fd, buffer, buffers, at, 0, 0]),
        _ => real(PWRITE as u64, [fd, buffer, result as u64, at, 0, 0]),
    };
    again == result
}

/// Set the offset of a file back to before a call that has read from it. False where that cannot be done.
pub fn give_back(nr: u16, fd: u64, result: i64) -> bool {
    matches!(nr, READ | READV)
        && is_file(fd)
        && real(LSEEK as u64, [fd, -result as u64, SEEK_CUR, 0, 0, 0]) >= 0
}

/// Fill the buffer of a call that has read from a file once more. False where that cannot be done.
pub fn read_again(nr: u16, args: &[u64; 6], result: i64) -> bool {
    let [fd, buffer, _, at, ..] = *args;
    let offset = match nr {
        READ => offset_of(fd) - result,
        PREAD => at as i64,
        _ => return false,
    };
    is_file(fd)
        && offset >= 0
        && real(
            PREAD as u64,
            [fd, buffer, result as u64, offset as u64, 0, 0],
        ) == result
}

/// The length of a file, whose bytes can be read and written more than once. None of anything else.
pub fn file_bytes(fd: u64) -> Option<u64> {
    const FSTAT: u64 = nr::fstat;
    const MODE_WORD: usize = 3;
    const SIZE_WORD: usize = 6;
    const S_IFMT: u64 = 0o170_000;
    const S_IFREG: u64 = 0o100_000;
    let mut status = [0u64; 18];
    let known = real(FSTAT, [fd, status.as_mut_ptr() as u64, 0, 0, 0, 0]) == 0;
    (known && status[MODE_WORD] & S_IFMT == S_IFREG).then_some(status[SIZE_WORD])
}

/// Is it such a file?
pub fn is_file(fd: u64) -> bool {
    file_bytes(fd).is_some()
}

/// Where a descriptor stands; negative where it has no offset.
pub fn offset_of(fd: u64) -> i64 {
    real(LSEEK as u64, [fd, 0, SEEK_CUR, 0, 0, 0])
}
