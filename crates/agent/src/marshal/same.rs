//! What one program says otherwise than another one (`--tolerate`): its version, say. A piece of text of the one and that of the
//! other are digested as the same number, and the length of what they stand in is not compared.

use super::IOVEC_MAX;
use crate::access::word64;
use crate::digest::Digest;
use crate::gate::guarded;
use crate::state::{Here, have_own_programs};
use geryon_abi::layout::same::{SAME_BASE, SAME_BYTES, Text, pieces, texts};
use geryon_abi::row::{Arg, Kind, Len, Row};

/// Where a struct msghdr has its vector, and behind that how long it is.
const MSGHDR_IOV: u64 = 16;

/// This replica's.
fn own() -> impl Iterator<Item = Text<'static>> {
    // SAFETY: part of the private structure's memory, which the monitor has filled before any agent code runs.
    let memory =
        unsafe { core::slice::from_raw_parts(SAME_BASE as *const u8, SAME_BYTES as usize) };
    texts(memory)
}

/// Are there any?
#[inline(always)]
pub fn are_there() -> bool {
    have_own_programs() && own().next().is_some()
}

/// Add bytes that are given to the kernel.
pub fn digest(d: &mut Digest, bytes: &[u8]) {
    for piece in pieces(bytes, own) {
        d.bytes(piece.bytes);
        if let Some(number) = piece.text {
            d.number(number);
        }
    }
}

/// The pieces of memory that this call is given to write: addresses and lengths.
fn each_piece(row: &Row, args: &[u64; 6], mut each: impl FnMut(u64, u64)) {
    let mut of_vector = |at: u64, count: u64| {
        for k in 0..count.min(IOVEC_MAX) {
            let word = |offset| word64(at.wrapping_add(16 * k + offset)).unwrap_or(0);
            each(word(0), word(8));
        }
    };
    for (i, a) in row.args.iter().enumerate() {
        match a.kind {
            Kind::IovecIn(n) => of_vector(args[i], args[n as usize]),
            Kind::MsghdrIn => {
                let word = |offset| word64(args[i].wrapping_add(offset)).unwrap_or(0);
                of_vector(word(MSGHDR_IOV), word(MSGHDR_IOV + 8));
            }
            _ => {}
        }
    }
    if let Some(len) = length_of(row) {
        let is_buffer = |a: &Arg| a.kind == Kind::In(Len::Arg(len as u8));
        let at = row.args.iter().position(is_buffer).map_or(0, |i| args[i]);
        each(at, args[len]);
    }
}

/// Does this program alone write that?
pub fn is_written_alone(row: &Row, args: &[u64; 6]) -> bool {
    let mut found = false;
    if are_there() {
        each_piece(row, args, |at, len| {
            guarded(|| {
                // SAFETY: inside `guarded`.
                let bytes = unsafe { super::bytes(at, len) };
                let contains = |text: &[u8]| bytes.windows(text.len()).any(|w| w == text);
                found |= own().any(|t| matches!(t, Text::Alone(text) if contains(text)));
            });
        });
    }
    found
}

/// How long is all that this call is given? (A program that has written all of it is told so.)
pub fn all_of(row: &Row, args: &[u64; 6]) -> u64 {
    let mut all = 0;
    each_piece(row, args, |_, len| all += len);
    all
}

/// The argument that is the length of what this call is given.
fn length_of(row: &Row) -> Option<usize> {
    row.args.iter().find_map(|a| match a.kind {
        Kind::In(Len::Arg(i)) => Some(i as usize),
        _ => None,
    })
}

/// Is this argument such a length?
pub fn is_length(row: &Row, i: usize) -> bool {
    length_of(row) == Some(i)
}

/// Leader: the arguments as the log has them: where none says how long it is, and there is room, the last one does.
pub fn logged(row: &Row, mut args: [u64; 6]) -> [u64; 6] {
    if length_of(row).is_none() && row.args.len() < args.len() {
        args[5] = all_of(row, &args);
    }
    args
}

/// Follower, which has confirmed a call: the log has these arguments.
pub fn note(mut b: Here, row: &Row, theirs: &[u64; 6]) {
    b.their_length = theirs[length_of(row).unwrap_or(5)];
}

/// What came of it here: all of it, if all of the leader's was taken.
pub fn result(b: Here, row: &Row, args: &[u64; 6], result: i64) -> i64 {
    match result > 0 && result as u64 == b.their_length {
        true => all_of(row, args) as i64,
        false => result,
    }
}
