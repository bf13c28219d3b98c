//! What xsavec leaves in memory. A part of the registers that holds nothing may count as in use or not, as the processor likes
//! (on AMD's it depends on whether the thread was interrupted): then it is stored or left out, and a bit says so. Here what
//! holds nothing never counts as in use, and zeros stand in its place. Restored it is the same. (ld.so does that whenever a
//! function is bound late; the program finds it on the stack below.)

/// Words of the legacy region and the header.
const FIXED: usize = 576 / 8;
/// XSTATE_BV: which parts are there,
const HELD: usize = 512 / 8;
/// and XCOMP_BV: which have a place.
const PLACES: usize = HELD + 1;
/// The SSE registers, a part of the legacy region.
const SSE: core::ops::Range<usize> = 160 / 8..416 / 8;
/// MXCSR and its mask go with them.
const MXCSR: usize = 24 / 8;
const MXCSR_INITIAL: u32 = 0x1f80;
/// Words of the parts from AVX (2) on. (None is aligned, and all are as large on every processor.)
const PARTS: [usize; 6] = [256 / 8, 64 / 8, 64 / 8, 64 / 8, 512 / 8, 1024 / 8];
/// Words of all that is looked at.
const MOST: usize = FIXED + (256 + 3 * 64 + 512 + 1024) / 8;

/// Have what holds nothing not count as in use.
///
/// # Safety
/// xsavec has written there, and nobody else uses it.
pub(super) unsafe fn settle(area: *mut u64) {
    // SAFETY: the caller's promise: a header is there.
    let places = unsafe { area.add(PLACES).read() };
    let words = FIXED + parts(places).map(|(_, words)| words).sum::<usize>();
    // SAFETY: the same; the parts that have a place are there.
    settle_words(unsafe { core::slice::from_raw_parts_mut(area, words.min(MOST)) });
}

/// The parts behind the header that have a place, each with its words.
fn parts(places: u64) -> impl Iterator<Item = (usize, usize)> {
    let has_place = move |(part, _): &(usize, usize)| places >> part & 1 != 0;
    (2..).zip(PARTS).filter(has_place)
}

fn settle_words(area: &mut [u64]) {
    let (mut held, places) = (area[HELD], area[PLACES]);
    let mut at = FIXED;
    for (part, words) in parts(places) {
        settle_part(&mut area[at..at + words], &mut held, part, true);
        at += words;
    }
    if places & 1 << 1 != 0 {
        let is_initial = area[MXCSR] as u32 == MXCSR_INITIAL;
        settle_part(&mut area[SSE], &mut held, 1, is_initial);
        if held & 1 << 1 == 0 {
            area[MXCSR] = 0;
        }
    }
    area[HELD] = held;
}

/// One of them. `may_go`: nothing else says that it is in use.
fn settle_part(words: &mut [u64], held: &mut u64, part: usize, may_go: bool) {
    let bit = 1 << part;
    if *held & bit == 0 {
        words.fill(0);
    } else if may_go && words.iter().all(|w| *w == 0) {
        *held &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPACT: u64 = 1 << 63;

    /// As the processor writes it over this: with these parts in use, of those that have a place.
    fn saved(held: u64, places: u64, before: u64, content: u64, mxcsr: u64) -> [u64; MOST] {
        let mut area = [before; MOST];
        area[HELD] = held;
        area[PLACES] = COMPACT | places;
        let mut at = FIXED;
        for (part, words) in parts(places) {
            if held >> part & 1 != 0 {
                area[at..at + words].fill(content);
            }
            at += words;
        }
        if held & 2 != 0 {
            area[SSE].fill(content);
            area[MXCSR] = mxcsr;
        }
        area
    }

    fn settled(mut area: [u64; MOST]) -> [u64; MOST] {
        let words = FIXED + parts(area[PLACES]).map(|(_, w)| w).sum::<usize>();
        settle_words(&mut area[..words]);
        area
    }

    #[test]
    fn what_holds_nothing_is_the_same_whether_it_is_in_use() {
        for places in [0x6, 0xe6, 0xee] {
            let all = [0, 2, 4, 6, places & !2, places & !4, places];
            let all = all.map(|held| settled(saved(held, places, 7, 0, 0x2_ffff_0000_1f80)));
            assert!(all.iter().all(|a| *a == all[0]), "{places:#x}");
            assert_eq!(all[0][HELD], 0);
        }
    }

    #[test]
    fn what_holds_something_stays() {
        let area = saved(0xe6, 0xe6, 7, 5, 0x2_ffff_0000_1f80);
        assert!(settled(area) == area);
    }

    #[test]
    fn another_mxcsr_is_kept() {
        let area = settled(saved(6, 6, 7, 0, 0x2_ffff_0000_9fc0));
        assert_eq!((area[HELD], area[MXCSR]), (2, 0x2_ffff_0000_9fc0));
    }

    #[test]
    fn what_has_no_place_is_not_touched() {
        let area = settled(saved(2, 2, 7, 5, 0x1f80));
        assert_eq!(area[FIXED], 7);
    }
}
