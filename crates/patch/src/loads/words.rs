//! What is known of words at fixed places, of the whole file.

use crate::asleep::Asleep;
use crate::info::Info;
use crate::naps::{Calls, Naps};
use crate::own::Own;
use crate::place::fixed_word;
use iced_x86::Instruction;
use std::ops::Range;

/// So far behind an address that is taken a word may say whether what lies there has been made.
pub const GIVEN: u64 = 64;

/// What is known of words at fixed places.
#[derive(Debug, Default)]
pub struct Words {
    /// On these an atomic instruction of the file works, or they are volatile, or asked for. Sorted, when all are known.
    pub atomic: Vec<u64>,
    /// The addresses of these are taken. Sorted, too.
    pub given: Vec<u64>,
    /// Functions with atomic instructions may change these. Sorted, too.
    pub changed: Vec<u64>,
    /// At these lie addresses of functions that are made while the program runs. Sorted, too.
    pub pointers: Vec<u64>,
    /// Places of which nobody can change one, once the file has been loaded: tables of addresses, for one.
    pub constants: Vec<Range<u64>>,
    /// The file is the C library, whose functions have hooks, or a part of it.
    pub in_c_library: bool,
    /// It is the library alone, and not a program that it is a part of.
    pub is_shared: bool,
    /// Functions that load what is atomic. Sorted, too.
    pub getters: Vec<u64>,
    /// What is the thread's own.
    pub own: Own,
    /// Calls by which a thread takes a lock.
    pub locks: Calls,
    /// Calls by which a thread waits.
    pub naps: Naps,
    /// Bytes by which threads say that they wait for a condition.
    pub asleep: Asleep,
}

impl Words {
    /// All are known.
    pub fn finish(&mut self) {
        for all in [&mut self.atomic, &mut self.given, &mut self.changed] {
            all.sort_unstable();
            all.dedup();
        }
        self.naps.finish();
    }

    /// Is the operand of the last of these instructions neither the thread's own nor one that nobody changes?
    pub(super) fn may_meet_others(&self, lines: &[Instruction], info: &mut Info) -> bool {
        let word = lines.last().and_then(fixed_word);
        word.is_none_or(|w| !self.is_constant(w)) && !self.own.is_one(lines, info)
    }

    /// Does it stay as it is?
    fn is_constant(&self, word: u64) -> bool {
        self.constants.iter().any(|places| places.contains(&word))
    }

    /// In the C library: may another thread change it, beside this one? (What it reads when it begins, malloc's limits for one, stays as
    /// it is.)
    pub(super) fn may_change(&self, word: u64) -> bool {
        !self.is_shared || self.changed.binary_search(&word).is_ok()
    }

    /// May a load of this word decide about order, wherever it is?
    pub fn may_decide(&self, word: u64) -> bool {
        self.atomic.binary_search(&word).is_ok() || !self.in_c_library && self.is_given(word)
    }

    /// Does it lie in something whose address is taken?
    pub(super) fn is_given(&self, word: u64) -> bool {
        let behind = self.given.partition_point(|g| *g <= word);
        behind > 0 && word - self.given[behind - 1] < GIVEN
    }
}
