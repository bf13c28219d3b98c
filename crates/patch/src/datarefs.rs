//! Code addresses that data holds: relocation addends, function pointers of files
//! with fixed addresses, jump tables. Too many cost coverage, too few break programs,
//! so in doubt a word counts.

use crate::elf::{Image, u32_at, u64_at};
use crate::refs::Refs;

const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_INIT: u64 = 12;
const DT_FINI: u64 = 13;
const DT_JMPREL: u64 = 23;
const DT_PLTRELSZ: u64 = 2;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;
const R_X86_64_64: u32 = 1;
const R_X86_64_RELATIVE: u32 = 8;
const R_X86_64_IRELATIVE: u32 = 37;

/// Longest jump table that is followed.
const TABLE_ENTRIES: usize = 1 << 16;

/// Adds the entry point and everything that relocations and fixed words point to.
pub fn pointers(image: &Image, refs: &mut Refs) {
    refs.add(image.entry);
    for tag in [DT_INIT, DT_FINI] {
        image.dynamic(tag).into_iter().for_each(|a| refs.add(a));
    }
    for (table, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
        rela(image, refs, table, size);
    }
    relr(image, refs);
    if image.fixed {
        words(image, refs);
    }
}

fn table<'a>(image: &Image<'a>, start: u64, size: u64) -> &'a [u8] {
    let found = image.dynamic(start).zip(image.dynamic(size));
    found
        .and_then(|(addr, len)| image.bytes(addr, len))
        .unwrap_or_default()
}

fn rela(image: &Image, refs: &mut Refs, start: u64, size: u64) {
    for entry in table(image, start, size).chunks_exact(24) {
        let kind = u32_at(entry, 8).expect("24 bytes");
        let symbol = u32_at(entry, 12).expect("24 bytes");
        let addend = u64_at(entry, 16).expect("24 bytes");
        let based = matches!(kind, R_X86_64_RELATIVE | R_X86_64_IRELATIVE);
        if based || kind == R_X86_64_64 && symbol == 0 {
            refs.add(addend);
        }
    }
}

/// Relative relocations in the compact form: addresses, and bitmaps of the words that follow.
fn relr(image: &Image, refs: &mut Refs) {
    let word = |addr: u64| image.bytes(addr, 8).and_then(|b| u64_at(b, 0));
    let mut next = 0u64;
    for entry in table(image, DT_RELR, DT_RELRSZ).chunks_exact(8) {
        let entry = u64_at(entry, 0).expect("8 bytes");
        if entry & 1 == 0 {
            word(entry).into_iter().for_each(|a| refs.add(a));
            next = entry.wrapping_add(8);
            continue;
        }
        for bit in (1..64).filter(|bit| entry >> bit & 1 != 0) {
            let at = next.wrapping_add((bit - 1) * 8);
            word(at).into_iter().for_each(|a| refs.add(a));
        }
        next = next.wrapping_add(63 * 8);
    }
}

fn words(image: &Image, refs: &mut Refs) {
    for segment in &image.segments {
        let skip = (segment.vaddr.wrapping_neg() % 8) as usize;
        let bytes = image.tail(segment.vaddr).unwrap_or_default();
        for word in bytes.get(skip..).unwrap_or_default().chunks_exact(8) {
            refs.add(u64_at(word, 0).expect("8 bytes"));
        }
    }
}

/// Follows the jump tables that may start at the addresses taken by `lea`: 32-bit
/// distances from the table's start to instructions.
///
/// A table ends where the next one starts, or at the first distance that does not lead to code.
pub fn jump_tables(image: &Image, taken: &[u64], refs: &mut Refs) {
    let heads = taken.iter().copied().filter(|&a| a % 4 == 0);
    let heads = heads.filter(|&a| target(image, refs, a, a).is_some_and(|t| refs.is_start(t)));
    let heads: Vec<u64> = heads.collect();
    for (number, &start) in heads.iter().enumerate() {
        let limit = heads.get(number + 1).copied().unwrap_or(u64::MAX);
        for at in (start..limit).step_by(4).take(TABLE_ENTRIES) {
            match target(image, refs, start, at) {
                Some(target) if refs.is_start(target) => refs.add(target),
                Some(_) => {}
                None => break,
            }
        }
    }
}

/// Where the entry at `at` of the table at `start` leads, if that is code.
fn target(image: &Image, refs: &Refs, start: u64, at: u64) -> Option<u64> {
    let bytes = image
        .segment(at)
        .filter(|s| !s.write)
        .and_then(|_| image.bytes(at, 4))?;
    let distance = u32_at(bytes, 0).filter(|&d| d != 0)? as i32;
    let target = start.checked_add_signed(i64::from(distance))?;
    refs.is_code(target).then_some(target)
}
