//! What the result of a call says: whether the kernel can have given it at all, and whether the call
//! has done more than look.

use crate::row::{Class, Property, Row};
use crate::table::{self, nr};

/// The kernel looks at the lower half of a call's number. A number with this bit above it is no result
/// (directory offsets have the bit, and more): whoever finds it where a result should be has come by
/// the `syscall` instruction without executing it.
pub const UNMADE: u32 = 62;

/// Stands where the result of a call will be noted.
pub const NOTHING: u64 = 1 << UNMADE | 0x3ff;

/// Is this the number of a call that was not made, or [`NOTHING`]?
pub const fn is_unmade(word: u64) -> bool {
    word ^ (1 << UNMADE) < 0x400
}

/// Was the call interrupted before it had done anything?
pub const fn is_interrupted(result: i64) -> bool {
    result <= -512 && result >= -516
}

/// Whether an output changes a file, from which somebody may have mapped what he has not looked at yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesFile {
    /// It may: nothing is known of it.
    Perhaps,
    /// If argument 0 names one.
    IfNamed,
    /// It does not.
    Never,
}

/// Does this output change a file?
pub fn changes_file(nr: u64) -> ChangesFile {
    if table::is(nr, Property::FileIfNamed) {
        ChangesFile::IfNamed
    } else if table::is(nr, Property::NoFile) {
        ChangesFile::Never
    } else {
        ChangesFile::Perhaps
    }
}

/// Can the kernel have given this result? A flipped bit in one that says that a call was interrupted
/// is none.
pub const fn is_plausible(nr: u64, result: i64) -> bool {
    const LARGEST_ERROR: i64 = 133;
    if result < 0 {
        return result >= -LARGEST_ERROR || is_interrupted(result);
    }
    // No size and no address is as large; a directory's offset may be.
    nr == nr::lseek || result < 1 << 47
}

/// Two notes of one result that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotesDiffer;

/// The two notes of a result, of which one may have been hit by a fault: the result, if any was noted.
///
/// # Errors
/// They differ, and nobody knows which is right.
pub fn noted(notes: [u64; 2]) -> Result<Option<i64>, NotesDiffer> {
    match notes.map(is_unmade) {
        [true, true] => Ok(None),
        [false, true] => Ok(Some(notes[0] as i64)),
        [true, false] => Ok(Some(notes[1] as i64)),
        [false, false] if notes[0] == notes[1] => Ok(Some(notes[0] as i64)),
        [false, false] => Err(NotesDiffer),
    }
}

/// Does an input call that gave this result do more than look? (What is each replica's own is done by
/// each.)
pub fn changes(row: &Row, args: &[u64; 6], result: i64) -> bool {
    let nr = row.nr as u64;
    if result < 0 || !(row.class == Class::Input || matches!(nr, nr::wait4 | nr::waitid)) {
        return false;
    }
    match nr {
        _ if row.is(Property::Looks) => false,
        _ if row.is(Property::LooksAtNothing) => result > 0,
        // F_GETFD, F_GETFL, F_GETLK and its kin, F_GETOWN and its kin, F_GETSIG.
        nr::fcntl => !matches!(args[1], 1 | 3 | 5 | 9 | 11 | 16 | 17 | 36),
        // A process's own limits end with it.
        nr::setrlimit => false,
        nr::prlimit64 => args[0] != 0 && args[2] != 0,
        // SO_ERROR is taken.
        nr::getsockopt => args[2] == 4,
        nr::mq_getsetattr => args[1] != 0,
        _ => true,
    }
}

/// Does the kernel keep the pages of what it is given beyond the call's end (vmsplice, MSG_ZEROCOPY)? Then
/// these pages must be the program's own.
pub const fn keeps_pages(row: &Row, args: &[u64; 6]) -> bool {
    const MSG_ZEROCOPY: u64 = 0x400_0000;
    match row.nr as u64 {
        nr::vmsplice => true,
        nr::sendto | nr::sendmmsg => args[3] & MSG_ZEROCOPY != 0,
        nr::sendmsg => args[2] & MSG_ZEROCOPY != 0,
        _ => false,
    }
}

/// Offsets above this are not told: no file is so long.
const OFFSET_BITS: u32 = 47;

/// What an offset is told with: a digest of which a bit has changed is none.
const fn check_of(offset: u64) -> u64 {
    offset.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// `Block::flight_written` of a write to a file, at this offset, in whose buffer a bit had changed when it
/// returned. (Digests are odd.) None for an offset that no file has.
pub const fn spoilt_at(offset: u64) -> Option<u64> {
    if offset >> OFFSET_BITS == 0 {
        Some((offset << 16 | check_of(offset)) << 1)
    } else {
        None
    }
}

/// The offset, if that is what it says.
pub const fn spoilt(written: u64) -> Option<u64> {
    let offset = written >> 17;
    if written & 1 == 0 && (written >> 1) & 0xffff == check_of(offset) {
        Some(offset)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(nr: u64, args: &[u64; 6], result: i64) -> bool {
        super::changes(table::row(nr).expect("a row"), args, result)
    }

    #[test]
    fn one_flipped_bit_makes_an_interruption_implausible() {
        assert!(is_plausible(0, -512));
        for bit in 0..64 {
            assert!(!is_plausible(0, -512 ^ 1 << bit), "bit {bit}");
        }
    }

    #[test]
    fn ordinary_results_are_plausible() {
        for result in [0, 1, -1, -11, -133, 1 << 40, 0x7fff_ffff_f000] {
            assert!(is_plausible(0, result), "{result}");
        }
        assert!(is_plausible(8, i64::MAX));
    }

    #[test]
    fn of_two_notes_one_is_enough() {
        assert_eq!(noted([NOTHING, NOTHING]), Ok(None));
        assert_eq!(noted([5, NOTHING]), Ok(Some(5)));
        assert_eq!(noted([NOTHING, 5]), Ok(Some(5)));
        assert_eq!(noted([5, 5]), Ok(Some(5)));
        assert_eq!(noted([5, 4]), Err(NotesDiffer));
    }

    #[test]
    fn reading_changes_the_offset_and_looking_does_not() {
        assert!(changes(0, &[3, 0, 10, 0, 0, 0], 10));
        assert!(!changes(17, &[3, 0, 10, 0, 0, 0], 10));
        assert!(!changes(0, &[3, 0, 10, 0, 0, 0], -11));
    }

    #[test]
    fn what_each_replica_does_itself_changes_nothing() {
        assert!(!changes(202, &[0; 6], 0));
        assert!(!changes(14, &[0; 6], 0));
        assert!(changes(61, &[0; 6], 77));
    }

    #[test]
    fn a_descriptor_s_flags_are_looked_at_or_set() {
        assert!(!changes(72, &[3, 3, 0, 0, 0, 0], 2));
        assert!(changes(72, &[3, 4, 0, 0, 0, 0], 0));
    }

    #[test]
    fn limits_are_looked_at_or_the_process_s_own() {
        let (old, new) = (0x7000, 0x8000);
        assert!(!changes(302, &[0, 3, 0, old, 0, 0], 0));
        assert!(!changes(302, &[77, 3, 0, old, 0, 0], 0));
        assert!(!changes(302, &[0, 3, new, 0, 0, 0], 0));
        assert!(changes(302, &[77, 3, new, 0, 0, 0], 0));
        assert!(!changes(160, &[3, new, 0, 0, 0, 0], 0));
    }

    #[test]
    fn attributes_are_looked_at_or_set() {
        assert!(!changes(245, &[3, 0, 0x7000, 0, 0, 0], 0));
        assert!(changes(245, &[3, 0x7000, 0, 0, 0, 0], 0));
        assert!(!changes(55, &[3, 1, 7, 0x7000, 0x8000, 0], 0));
        assert!(changes(55, &[3, 1, 4, 0x7000, 0x8000, 0], 0));
    }

    #[test]
    fn a_digest_is_no_offset() {
        for offset in [0, 1, 4096, (1 << OFFSET_BITS) - 1] {
            assert_eq!(spoilt_at(offset).and_then(spoilt), Some(offset));
        }
        assert_eq!(spoilt_at(1 << OFFSET_BITS), None);
        assert_eq!(spoilt(0), None);
        // One whose lowest bit has changed.
        let digests = [0x28594f2fd07e2aa3, 0xfdb7f1b2a9548973, 0x13c7ef55f5b223a9];
        assert!(digests.iter().all(|d: &u64| spoilt(d ^ 1).is_none()));
        assert_eq!(spoilt(u64::MAX), None);
    }
}
