//! What a leader has done outside its memory and the others have not followed yet. Most calls whose
//! result is an input only look, and a successor simply makes them again. The others are noted, so
//! that a leader that turns out to have been wrong can be undone, or is known to be past undoing.

use crate::gate::real;
use crate::state::{Here, private};
use geryon_abi::changes::changes;
use geryon_abi::layout::{MAX_TAKEN, Taken};
use geryon_abi::record::kind;

const LSEEK: u16 = 8;
const GETDENTS: u16 = 78;
const GETDENTS64: u16 = 217;
const SEEK_CUR: u64 = 1;

/// Leader, before a call that moves a file's offset to where that does not tell where it was.
pub fn before(mut b: Here, nr: u16, fd: u64) {
    if matches!(nr, LSEEK | GETDENTS | GETDENTS64) && private().replicas > 1 {
        b.offset_before = real(LSEEK as u64, [fd, 0, SEEK_CUR, 0, 0, 0]);
    }
}

/// Leader: the record of a call's completion is about to be seen.
#[inline(always)]
pub fn note(b: Here, k: u8, nr: u16, args: &[u64; 6], digest: Option<u64>, result: i64) {
    if (k == kind::END || changes(nr as u32, args, result)) && private().replicas > 1 {
        keep(b, k, nr, args[0], digest, result);
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
        was: b.offset_before,
        digest: digest.unwrap_or(crate::call::CONFIRMED),
        nr: nr as u32,
        confirmed: (k == kind::END) as u32,
    };
    b.taken_count += 1;
}
