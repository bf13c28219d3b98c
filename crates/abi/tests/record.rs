//! First words of records: what was put in comes out, and no word of a log confuses a reader.

use geryon_abi::layout::{
    AGENT_BASE, LONG_RING_WORDS, MAX_THREADS, RESERVED_END, RING_WORDS, SEGMENT_BASE, ring_address,
    segment_bytes, touches_reserved,
};
use geryon_abi::record::{detail_of, kind, kind_of, low_of, name, short_of, word};
use geryon_abi::table;

/// Any word is a record to the functions that take it apart.
fn any_word(w: u64) {
    assert_eq!(
        word(kind_of(w), detail_of(w), short_of(w), low_of(w)),
        w,
        "{w:#x}"
    );
    assert!(!name(kind_of(w)).is_empty());
    let row = table::row(u64::from(short_of(w)));
    assert!(row.is_none_or(|r| r.nr == short_of(w)), "{w:#x}");
    let row = table::row(w);
    assert!(row.is_none_or(|r| u64::from(r.nr) == w), "{w:#x}");
    let _ = table::command(u64::from(short_of(w)), w);
}

/// `touches_reserved` against its definition, without overflow.
fn any_range(start: u64, len: u64) {
    let end = u128::from(start) + u128::from(len);
    let touches = u128::from(start) < u128::from(RESERVED_END) && end > u128::from(AGENT_BASE);
    assert_eq!(touches_reserved(start, len), touches, "{start:#x} {len:#x}");
}

#[test]
fn any_words_do_no_harm() {
    let mut state = 1u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for edge in [0, 1, u64::MAX, AGENT_BASE, RESERVED_END, SEGMENT_BASE] {
        for delta in [-1i64, 0, 1] {
            any_word(edge.wrapping_add_signed(delta));
            for len in [0, 1, 4096, segment_bytes(RING_WORDS), u64::MAX] {
                any_range(edge.wrapping_add_signed(delta), len);
                any_range(edge.wrapping_sub(len), len);
            }
        }
    }
    for _ in 0..200_000 {
        let w = random();
        any_word(w >> (random() % 64));
        any_range(w >> (random() % 64), random() >> (random() % 64));
    }
}

#[test]
fn every_kind_has_its_own_name() {
    let names: Vec<_> = (kind::CALL..=kind::CREATE).map(name).collect();
    for (i, n) in names.iter().enumerate() {
        assert_ne!(*n, name(0), "kind {}", i + 1);
        assert!(!names[..i].contains(n), "{n} twice");
    }
}

#[test]
fn rings_lie_within_the_segment() {
    for words in [RING_WORDS, LONG_RING_WORDS] {
        let address = |slot| ring_address(slot, words);
        let segment_end = SEGMENT_BASE + segment_bytes(words);
        assert!(segment_end <= RESERVED_END);
        for slot in 0..MAX_THREADS {
            let end = address(slot) + (address(1) - address(0));
            assert!(address(slot).is_multiple_of(4096) && end <= segment_end);
        }
    }
}
