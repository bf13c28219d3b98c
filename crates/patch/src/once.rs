//! A word at a fixed place, or one of an array there, that a function asks whether it has been made yet, and stores: each thread
//! makes it that comes before it is. (git's threads ask so whether its output is a terminal.)

use crate::info::Info;
use crate::look::{NEAR, any_store, compares, load};
use crate::place::{Place, fixed_word};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// So many instructions before one are looked at for what makes its base.
const FAR: usize = 32;
/// So many behind the compare for the branch that depends on it.
const SOON: usize = 3;

/// Where a word lies: behind this link-time address, by an index.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    address: u64,
    index: Register,
    scale: u32,
}

impl Word {
    /// The operand of the last of these instructions.
    fn of(lines: &[Instruction], info: &mut Info) -> Option<Word> {
        let (last, before) = lines.split_last()?;
        if let Some(address) = fixed_word(last) {
            return Some(Word {
                address,
                index: Register::None,
                scale: 1,
            });
        }
        let base = last.memory_base();
        if !base.is_gpr64() || base == Register::RSP {
            return None;
        }
        let recent = before.iter().rev().take(FAR);
        let made = recent.into_iter().find(|i| info.writes(i, base))?;
        let is_fixed = made.mnemonic() == Mnemonic::Lea && made.is_ip_rel_memory_operand();
        is_fixed.then(|| Word {
            address: made
                .ip_rel_memory_address()
                .wrapping_add(last.memory_displacement64()),
            index: last.memory_index(),
            scale: last.memory_index_scale(),
        })
    }
}

/// May a function have such words? (It has no other sites perhaps.)
#[derive(Debug, Default)]
pub struct Made {
    loaded: Vec<u64>,
    takes_address: bool,
    loads_of_array: bool,
    may: bool,
}

impl Made {
    /// A function begins.
    pub fn begin(&mut self) {
        self.loaded.clear();
        (self.takes_address, self.loads_of_array, self.may) = (false, false, false);
    }

    /// Its next instruction.
    pub fn see(&mut self, i: &Instruction) {
        self.takes_address |= i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand();
        let of_array = self.takes_address && i.memory_index() != Register::None;
        let word = fixed_word(i);
        if !of_array && word.is_none() {
            return;
        }
        if load(i).is_some() {
            self.loaded.extend(word);
            self.loads_of_array |= of_array;
        } else if any_store(i).is_some() {
            let is_known = word.is_some_and(|w| self.loaded.contains(&w));
            self.may |= is_known || of_array && self.loads_of_array;
        }
    }

    /// All of the function has been seen.
    pub fn may_be(&self) -> bool {
        self.may
    }
}

/// Which of a function's instructions ask so.
pub fn asked(lines: &[Instruction], info: &mut Info) -> Vec<usize> {
    let asks = |at: &usize| load(&lines[*at]).is_some() && asks_whether_made(&lines[*at..]);
    let mut found: Vec<(usize, Word)> = Vec::new();
    for at in (0..lines.len()).filter(asks) {
        found.extend(Word::of(&lines[..=at], info).map(|w| (at, w)));
    }
    if found.is_empty() {
        return Vec::new();
    }
    let stores = (0..lines.len()).filter(|at| any_store(&lines[*at]).is_some());
    let stored: Vec<(usize, Option<Word>)> = stores
        .map(|at| (at, Word::of(&lines[..=at], info)))
        .collect();
    // (Where its base is made need not stand right before the store; then it has the same name there.)
    let same = |load: usize, word: Word, store: &(usize, Option<Word>)| {
        let names = [load, store.0].map(|at| Place::of(&lines[at]));
        store.1 == Some(word) || names[0] == names[1]
    };
    let is_made = |(at, word): &(usize, Word)| {
        let mut behind = stored.iter().filter(|s| s.0 > *at);
        behind.any(|s| same(*at, *word, s))
    };
    let made = found.into_iter().filter(is_made);
    made.map(|(at, _)| at).collect()
}

/// Is what the first of these instructions loads compared with zero or -1, and does a branch depend on that?
pub fn asks_whether_made(rest: &[Instruction]) -> bool {
    let first = &rest[0];
    let to = first.op0_register().full_register();
    let is_nothing = |i: &Instruction| {
        let with = match i.op1_kind() {
            OpKind::Register | OpKind::Memory => return i.mnemonic() == Mnemonic::Test,
            _ => i.immediate(1) as i64,
        };
        i.mnemonic() == Mnemonic::Cmp && matches!(with as i32, 0 | -1)
    };
    let is_it = |i: &Instruction| {
        let own = i.op0_register().full_register() == to;
        let alone = i.op1_kind() != OpKind::Register || i.op1_register() == i.op0_register();
        compares(i) && own && alone && is_nothing(i)
    };
    let compare = match compares(first) {
        true => Some(0).filter(|_| is_nothing(first)),
        false => (1..=NEAR).find(|k| rest.get(*k).is_some_and(is_it)),
    };
    compare.is_some_and(|k| {
        let behind = rest[k + 1..].iter().take(SOON);
        behind.into_iter().any(|i| i.is_jcc_short_or_near())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Those of code at 0x1000, and whether it may have any.
    fn found(code: &[u8]) -> (Vec<usize>, bool) {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        let mut made = Made::default();
        made.begin();
        lines.iter().for_each(|i| made.see(i));
        (asked(&lines, &mut Info::new()), made.may_be())
    }

    #[test]
    fn a_word_that_is_made_where_it_is_not_there_yet() {
        // mov eax, [0x1106]; test eax, eax; js +1; ret; call 0; mov [0x1106], eax; ret
        let mut code = [
            0x8b, 0x05, 0, 1, 0, 0, 0x85, 0xc0, 0x78, 1, 0xc3, 0xe8, 0, 0, 0, 0, 0x89, 0x05, 0xf0,
            0, 0, 0, 0xc3,
        ];
        assert_eq!(found(&code), (vec![0], true));
        // Another word is stored.
        code[18] = 0xf4;
        assert_eq!(found(&code), (vec![], false));
    }

    #[test]
    fn what_is_compared_with_something_else_is_not_asked_whether_it_is_made() {
        // cmp dword [0x1107], -1; je +1; ret; mov [0x1107], eax
        let mut code = [
            0x83, 0x3d, 0, 1, 0, 0, 0xff, 0x74, 1, 0xc3, 0x89, 0x05, 0xf7, 0, 0, 0,
        ];
        assert_eq!(found(&code).0, [0]);
        code[6] = 5;
        assert_eq!(found(&code).0, []);
    }

    #[test]
    fn a_word_of_an_array_whose_address_was_taken_before() {
        // lea rbx, [0x1107]; mov eax, [rbx+rbp*4]; test eax, eax; js +2; pop rbx; ret; call 0; mov [rbx+rbp*4], eax
        let code = [
            0x48, 0x8d, 0x1d, 0, 1, 0, 0, 0x8b, 0x04, 0xab, 0x85, 0xc0, 0x78, 2, 0x5b, 0xc3, 0xe8,
            0, 0, 0, 0, 0x89, 0x04, 0xab,
        ];
        assert_eq!(found(&code), (vec![1], true));
    }
}
