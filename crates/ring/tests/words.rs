//! Words that are stored and loaded many at a time are those that single slots show, also at the ring's end.

use geryon_abi::layout::RingControl;
use geryon_ring::Ring;
use geryon_ring::memory::Log;

const WORDS: usize = 512;

#[repr(C, align(4096))]
struct Memory([u64; 512 + WORDS]);

#[test]
fn words_are_stored_and_loaded_where_their_positions_are() {
    assert!(size_of::<RingControl>() <= 4096);
    let mut memory = Box::new(Memory([0; 512 + WORDS]));
    // SAFETY: a page of zeros for the control, which is made of atomic words, and the slots behind it.
    let ring = unsafe { Ring::at((&raw mut *memory).cast(), WORDS) };
    let first = 3 * WORDS as u64 - 5;
    assert_eq!(ring.side_by_side(first), 5);
    assert_eq!(ring.side_by_side(first + 5), WORDS as u64);

    // From and to addresses that no word has.
    let bytes: Vec<u8> = (0..=8 * 9u8).collect();
    // SAFETY: nine words behind the first byte; nobody else has the ring.
    unsafe {
        ring.store(first, bytes[1..].as_ptr(), 5);
        ring.store(first + 5, bytes[1 + 8 * 5..].as_ptr(), 4);
    }
    for (k, word) in bytes[1..].chunks_exact(8).enumerate() {
        let slot = ring.read(first + k as u64);
        assert_eq!(slot.to_le_bytes(), word, "word {k}");
    }
    assert_eq!(ring.read(first - 1), 0);
    assert_eq!(ring.read(first + 9), 0);

    let mut read = vec![0u8; bytes.len()];
    // SAFETY: as above.
    unsafe {
        ring.load(first, read[1..].as_mut_ptr(), 5);
        ring.load(first + 5, read[1 + 8 * 5..].as_mut_ptr(), 4);
    }
    assert_eq!(read[1..], bytes[1..]);
}
