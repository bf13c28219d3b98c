//! What files below /proc tell a program of its own addresses (maps, smaps, auxv). What a follower is given is
//! what the leader has read of itself: here are the places of what has these names (variants only).
//! pthread_getattr_np looks the main thread's stack up in that way, and with it the run-time systems of Rust and
//! of many collectors.

use crate::gate::guarded;
use crate::ids::path;
use crate::state::layout;
use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::layout::Layout;
use geryon_abi::layout::place::VECTOR_ADDRESSES;
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const PATH_BYTES: usize = 64;
/// Digits of an address in these files.
const DIGITS: usize = 12;

/// A set of descriptors; those with larger numbers are in none.
struct Descriptors([AtomicU64; 16]);

impl Descriptors {
    const fn none() -> Descriptors {
        Descriptors([const { AtomicU64::new(0) }; 16])
    }

    fn set(&self, fd: u64, is_in: bool) {
        let bit = 1 << (fd % 64);
        if let Some(word) = self.0.get(fd as usize / 64) {
            match is_in {
                true => word.fetch_or(bit, Ordering::Relaxed),
                false => word.fetch_and(!bit, Ordering::Relaxed),
            };
        }
    }

    fn contain(&self, fd: u64) -> bool {
        let word = self.0.get(fd as usize / 64);
        word.is_some_and(|w| w.load(Ordering::Relaxed) & (1 << (fd % 64)) != 0)
    }
}

static TEXTS: Descriptors = Descriptors::none();
static VECTORS: Descriptors = Descriptors::none();
/// What the last text that was read has ended in: descriptor, digits, value.
static CUT: AtomicU64 = AtomicU64::new(0);

/// Follower, when it has been given what a call has returned.
#[inline(always)]
pub fn given(row: &Row, args: &[u64; 6], result: i64) {
    if layout().number != 0 && !layout().is_unrelated() && result >= 0 {
        look(row, args, result as u64);
    }
}

fn look(row: &Row, args: &[u64; 6], result: u64) {
    match row.nr as u64 {
        nr::open => opened(args[0], result),
        nr::openat => opened(args[1], result),
        nr::close => {
            TEXTS.set(args[0], false);
            VECTORS.set(args[0], false);
        }
        nr::read | nr::pread64 if TEXTS.contain(args[0]) => {
            change(args[1], result, |bytes| {
                in_text(bytes, layout(), Cut::take(args[0])).keep(args[0]);
            });
        }
        nr::read | nr::pread64 if VECTORS.contain(args[0]) => {
            change(args[1], result, |bytes| in_vector(bytes, layout()));
        }
        _ => {}
    }
}

fn opened(at: u64, fd: u64) {
    let mut path = [0u8; PATH_BYTES];
    let name = path::read(at, &mut path)
        .and_then(|p| p.rsplit(|b| *b == b'/').next())
        .unwrap_or_default();
    TEXTS.set(fd, matches!(name, b"maps" | b"smaps" | b"numa_maps"));
    VECTORS.set(fd, name == b"auxv");
}

fn change(at: u64, len: u64, mut with: impl FnMut(&mut [u8])) {
    guarded(|| {
        // SAFETY: inside `guarded`; the slice is not kept.
        with(unsafe { core::slice::from_raw_parts_mut(at as *mut u8, len as usize) });
    });
}

fn in_vector(bytes: &mut [u8], layout: Layout) {
    for entry in bytes.as_chunks_mut::<16>().0 {
        let (key, value) = entry.split_at_mut(8);
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        if VECTOR_ADDRESSES.contains(&word(key)) {
            let place = layout.place(word(value));
            value.copy_from_slice(&place.to_ne_bytes());
        }
    }
}

/// An address that the end of a buffer has cut when nothing can be said yet of what it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cut {
    digits: usize,
    value: u64,
}

/// So many digits are those that change, and say of most addresses which place they are of.
const TELLING: usize = 2;

impl Cut {
    /// Of what was read last from this descriptor.
    fn take(fd: u64) -> Cut {
        let word = CUT.swap(0, Ordering::Relaxed);
        match word >> 32 == fd {
            true => Cut {
                digits: (word >> 16 & 0xffff) as usize,
                value: word & 0xffff,
            },
            false => Cut::default(),
        }
    }

    fn keep(self, fd: u64) {
        let word = fd << 32 | (self.digits as u64) << 16 | self.value;
        CUT.store(word, Ordering::Relaxed);
    }
}

/// Addresses stand at the start of a line and behind a hyphen. One that the end of the buffer has cut has its
/// first digits here, which are those that change; where it is fewer, the rest changes when it is read.
fn in_text(bytes: &mut [u8], layout: Layout, cut: Cut) -> Cut {
    let mut begun = cut;
    let mut starts = true;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &mut bytes[at..];
        let digits = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let all = begun.digits + digits;
        let ends = matches!(rest.get(digits), None | Some(b'-' | b' '));
        let is_cut = digits == rest.len() && all < DIGITS;
        if starts && ends && (all == DIGITS || is_cut) {
            let value = rest[..digits].iter();
            let value = value.fold(begun.value, |n, b| n << 4 | digit(*b));
            if all < TELLING {
                return Cut { digits: all, value };
            }
            let place = layout.place(value << (4 * (DIGITS - all)));
            for (i, byte) in (begun.digits..).zip(&mut rest[..digits]) {
                *byte = b"0123456789abcdef"[(place >> (4 * (DIGITS - 1 - i))) as usize & 15];
            }
        }
        begun = Cut::default();
        at += digits;
        starts = matches!(bytes.get(at), Some(b'\n' | b'-'));
        at += 1;
    }
    Cut::default()
}

fn digit(byte: u8) -> u64 {
    match byte {
        b'a'..=b'f' => (byte - b'a') as u64 + 10,
        b'A'..=b'F' => (byte - b'A') as u64 + 10,
        _ => byte.wrapping_sub(b'0') as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::layout::place::Moves;

    const LINES: &str = "55d0c2a4f000-55d0c2a50000 r--p 00000000 fe:00 99 /bin/a-1.so\n\
        7fdada154000-7fdada17e000 r-xp 00000000 00:00 0 \n\
        ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n";
    const PLACES: &str = "53d0c2a4f000-53d0c2a50000 r--p 00000000 fe:00 99 /bin/a-1.so\n\
        7ddada154000-7ddada17e000 r-xp 00000000 00:00 0 \n\
        ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n";

    fn second() -> Layout {
        Layout::new(1, Moves::All)
    }

    #[test]
    fn a_list_of_mappings_shows_their_places() {
        let mut text: [u8; 256] = [0; 256];
        let text = &mut text[..LINES.len()];
        text.copy_from_slice(LINES.as_bytes());
        in_text(text, second(), Cut::default());
        assert_eq!(core::str::from_utf8(text), Ok(PLACES));
    }

    #[test]
    fn it_may_come_in_parts() {
        for cut in 0..LINES.len() {
            let mut text: [u8; 256] = [0; 256];
            let text = &mut text[..LINES.len()];
            text.copy_from_slice(LINES.as_bytes());
            let (first, rest) = text.split_at_mut(cut);
            // (Of two or three digits it cannot always be said what they begin.)
            let digits = first.iter().rev().take_while(|b| b.is_ascii_hexdigit());
            if (2..4).contains(&digits.count()) {
                continue;
            }
            let begun = in_text(first, second(), Cut::default());
            in_text(rest, second(), begun);
            assert_eq!(core::str::from_utf8(text), Ok(PLACES), "cut at {cut}");
        }
    }

    #[test]
    fn a_vector_shows_the_places_of_addresses() {
        let mut bytes = [0u8; 48];
        for (i, word) in [3u64, 0x55d0_c2a4_f040, 6, 0x1000, 9, 0x55d0_c2a5_0000]
            .into_iter()
            .enumerate()
        {
            bytes[8 * i..][..8].copy_from_slice(&word.to_ne_bytes());
        }
        in_vector(&mut bytes, second());
        let word =
            |i: usize| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().unwrap_or_default());
        assert_eq!(word(1), 0x53d0_c2a4_f040);
        assert_eq!(word(3), 0x1000);
        assert_eq!(word(5), 0x53d0_c2a5_0000);
    }
}
