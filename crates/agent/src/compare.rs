//! A follower's comparisons: what its thread is about to do, against what the log says that the
//! leader's did. The first difference is reported, and the thread stays there; it goes on only when
//! the leader was found to be wrong, with another record at the same place.
//!
//! What is expected here is None where this replica leads by now and is to make the record itself.

use crate::diverge::diverged;
use crate::event::{Event, call, plain};
use crate::log::get;
use crate::raise::begin_record;
use crate::state::Here;
use crate::wait::{intend, intend_call};
use core::array::from_fn;
use geryon_abi::frame::Frame;
use geryon_abi::layout::why;
use geryon_abi::record::{kind_of, short_of, word};

/// The record at `at` starts with `first`: kind and number must be those of `like`. If not, the
/// record is to be read anew.
#[inline(always)]
pub fn same_kind(at: u64, first: u64, like: u64, ours: Event) -> bool {
    const KIND_AND_NUMBER: u64 = word(0xff, 0, 0xffff, 0);
    let same = (first ^ like) & KIND_AND_NUMBER == 0;
    if !same {
        diverged(why::KIND, at, ours);
    }
    same
}

/// The next record, after signals that come first, must be of this kind, number and digest. Its
/// first word, and the `N` words behind the digest.
#[inline(always)]
pub fn expect<const N: usize>(
    b: Here,
    frame: &mut Frame,
    k: u8,
    nr: u16,
    digest: u64,
    args: &[u64; 6],
) -> Option<(u64, [u64; N])> {
    loop {
        intend_call(b, nr, digest);
        let first = begin_record(b, frame)?;
        let at = b.pos - 1;
        // Before anything more is read: another kind of record may have nothing more.
        if kind_of(first) != k || short_of(first) != nr {
            differs(why::KIND, at, k, nr, digest, args);
            continue;
        }
        let theirs = get(b);
        let rest = from_fn(|_| get(b));
        if theirs == digest {
            return Some((first, rest));
        }
        differs(why::DIGEST, at, k, nr, digest, args);
    }
}

/// Out of line, so that only who differs puts the event together.
#[cold]
#[inline(never)]
fn differs(code: u32, at: u64, k: u8, nr: u16, digest: u64, args: &[u64; 6]) {
    diverged(code, at, call(k, nr, digest, args));
}

/// The same for a record without number and digest. Its first word.
#[inline(always)]
pub fn expect_plain(b: Here, frame: &mut Frame, ours: u64) -> Option<u64> {
    loop {
        intend(b, ours, 0);
        let first = begin_record(b, frame)?;
        if same_kind(b.pos - 1, first, ours, plain(ours)) {
            return Some(first);
        }
    }
}
