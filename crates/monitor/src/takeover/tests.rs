//! Whatever a replica's memory holds, the monitor neither panics nor loops nor allocates without bound
//! over it: a fault may have left any word in a thread's block, in the log, or in a register.

use super::begun::{Gate, Noted, Registers};
use super::flight::{Call, is_fork, pending, waited_for};
use super::quiet::shows;
use super::undo::{behind_turns, clash, notes, remedy, under_way};
use crate::block::{COURSE, HEAD, Piece};
use crate::block_field;
use crate::report::words;
use crate::watch::{View, holder};
use geryon_abi::layout::{
    BLOCK_BYTES, BLOCKS_BASE, MAX_PENDING, MAX_TAKEN, RING_WORDS, block_address,
};
use geryon_abi::outcome;
use geryon_abi::record::{kind, word};
use geryon_abi::table;
use geryon_tracee::RemoteMemory;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::Cell;
use std::sync::OnceLock;

const SLOT: usize = 3;

/// The block of one thread, mapped in this process where a replica has it.
struct Hostile {
    memory: RemoteMemory,
}

// (Of several tests only one writes there.)
static BLOCK: OnceLock<Hostile> = OnceLock::new();

fn block() -> &'static Hostile {
    BLOCK.get_or_init(|| {
        let (at, bytes) = (block_address(SLOT), BLOCK_BYTES as usize);
        assert!(at >= BLOCKS_BASE);
        // SAFETY: an address where nothing of this process lies.
        let mapped = unsafe {
            libc::mmap(
                at as *mut _,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        assert_eq!(mapped as u64, at);
        Hostile {
            memory: RemoteMemory::open(std::process::id() as i32).unwrap(),
        }
    })
}

/// A word as a fault may leave it: any, or one at an edge, or nearly right.
fn any_word() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => any::<u64>(),
        1 => Just(u64::MAX),
        1 => Just(i64::MIN as u64),
        1 => Just(i64::MAX as u64),
        1 => 0u64..4096,
        1 => Just(block_address(SLOT)),
        1 => (any::<u8>(), any::<u8>(), 0u16..500, any::<u32>()).prop_map(|(k, d, s, l)| word(k % 16, d, s, l)),
    ]
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_block_may_hold_anything(
        words in prop::collection::vec(any_word(), 64),
        turn in any::<u64>(),
        asked in any_word(),
    ) {
        let hostile = block();
        let mut random = turn | 1;
        for n in 0..BLOCK_BYTES / 8 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let w = words[(random >> 33) as usize % words.len()];
            hostile.memory.set_word(block_address(SLOT) + 8 * n, w).unwrap();
        }
        let m = &hostile.memory;
        let (head, course) = (Piece::read(m, SLOT, HEAD), Piece::read(m, SLOT, COURSE));
        holder(m, SLOT);
        prop_assert!(pending(m, SLOT).len() <= MAX_PENDING);
        let notes = notes(m, SLOT as u32, asked);
        if let Ok(notes) = &notes {
            prop_assert!(notes.len() <= MAX_TAKEN);
        }
        let notes = notes.unwrap_or_default();
        let acts: Vec<_> = notes.iter().map(|n| (SLOT as u32, *n, remedy(n, asked))).collect();
        clash(&acts);
        let frame = head.word(block_field!(frame));
        for nr in [libc::SYS_clone, libc::SYS_waitid, libc::SYS_wait4, asked as i64] {
            is_fork(nr as u32, frame, m);
            waited_for(nr as u32, words[1] as i64, frame, m);
        }
        let call = Call { nr: asked as u32, digest: words[0], result: words[1] as i64, written: words[2] };
        if let Ok((note, args)) = under_way(m, SLOT as u32, call) {
            remedy(&note, asked);
            if let Some(row) = table::row(u64::from(note.nr)) {
                outcome::changes(row, &args, note.result);
            }
        }
        shows(m, head.word(block_field!(waiting_for)), head.word(block_field!(waiting_value)));
        let view = View {
            waiting: asked as u32 % 12,
            waiting_for: head.word(block_field!(waiting_for)),
            waiting_value: head.word(block_field!(waiting_value)),
            events: course.word(block_field!(events)),
            last: course.words(block_field!(last)),
            ..View::default()
        };
        prop_assert!(words::last_events(&view).count() <= 16);
        words::last_events(&view).for_each(|w| drop(words::operation(w)));
        words::waiting(&view);
        words::why_text(asked as u32);
    }

    #[test]
    fn notes_may_say_anything(words in prop::collection::vec(any_word(), 8), state in 0u32..16, nr in 0u32..500) {
        let noted = Noted {
            state: if state < 12 { state } else { words[0] as u32 },
            results: [words[1], words[2]],
            entered: words[3] & 1 != 0,
            done: words[3],
            total: words[4],
        };
        let gate = Gate {
            places: [vec![1010, 1012], vec![1120, 1122]],
            unmade: 1200,
            page: 1000..1300,
            text: 500..900,
        };
        let _ = gate.returned(
            noted,
            Registers { rip: words[5], rcx: words[6], rax: words[7] as i64 },
            nr,
        );
    }

    #[test]
    fn a_log_may_hold_anything(from in any_word(), words in prop::collection::vec(any_word(), 1..64)) {
        let looks = Cell::new(0);
        let all = |pos: u64| {
            looks.set(looks.get() + 1);
            words[pos as usize % words.len()]
        };
        behind_turns(from, RING_WORDS as u64, all);
        prop_assert!(looks.get() <= RING_WORDS);
    }
}

/// A log that holds nothing but turns: it was looked through for ever.
#[test]
fn a_log_of_turns_has_an_end() {
    let turns = |_| word(kind::TURN, 0, 0, 0);
    for from in [0, 5, u64::MAX - 1] {
        let end = behind_turns(from, RING_WORDS as u64, turns);
        assert!(end.wrapping_sub(from) < RING_WORDS as u64 + 3);
    }
}
