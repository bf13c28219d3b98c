//! A word that is loaded a second time, and compared with what was found there first, where this thread cannot have changed
//! it in between: that asks whether another one has. (Compilers load words twice that nobody changes, too, but do not
//! compare them with themselves.) So readers of a sequence lock look whether a writer came by.

use crate::classify::is_call;
use crate::info::Info;
use crate::look;
use crate::place::Place;
use iced_x86::{FlowControl, Instruction, Mnemonic, Register};

/// So many instructions behind a load the second one is looked for.
const FAR: usize = 40;
/// So many before a load what makes its base.
const NEAR: usize = 4;

/// Does a function, whose instructions these are, ask so?
pub fn asks_twice(lines: &[Instruction], info: &mut Info) -> bool {
    (0..lines.len()).any(|at| {
        let i = &lines[at];
        let loads = matches!(i.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx);
        loads && look::load(i).is_some() && is_asked_again(lines, at, info)
    })
}

fn is_asked_again(lines: &[Instruction], at: usize, info: &mut Info) -> bool {
    let first = &lines[at];
    let frame = [Register::RBP, Register::RSP];
    let Some(place) = Place::of(first).filter(|_| !frame.contains(&first.memory_base())) else {
        return false;
    };
    let names = [first.memory_base(), first.memory_index()];
    let moves = |i: &Instruction, info: &mut Info| {
        names.into_iter().any(|r| r.is_gpr() && info.writes(i, r))
    };
    let mut is_named = !moves(first, info);
    // The second load may have its base from where the first one has it: a variable that is captured by reference.
    let mut way = Way::to(lines, at, info);
    // Which registers hold what was found there first, and then.
    let mut then: Vec<Register> = Vec::new();
    let mut before = vec![first.op0_register().full_register()];
    for (k, i) in lines.iter().enumerate().skip(at + 1).take(FAR) {
        let was_known = is_named || way.is_some();
        let goes_on = matches!(
            i.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch
        );
        if !goes_on || is_call(i) || !was_known && then.is_empty() {
            return false;
        }
        let named = [i.op0_register(), i.op1_register()].map(Register::full_register);
        let of = |all: &[Register]| named.iter().any(|r| all.contains(r));
        let again = look::load(i).is_some()
            && i.memory_size().size() == first.memory_size().size()
            && (is_named && Place::of(i) == Some(place)
                || way.is_some() && Way::to(lines, k, info) == way);
        if i.mnemonic() == Mnemonic::Cmp && of(&before) && (again || of(&then)) {
            return true;
        }
        let stores = look::stores(i, info);
        is_named &= !stores && !moves(i, info);
        way = way.filter(|w| !stores && !info.writes(i, w.root));
        // (The second load may write its own base.)
        if was_known && !is_named && way.is_none() && !again {
            return false;
        }
        let copies = i.mnemonic() == Mnemonic::Mov && named[1] != Register::None;
        let from = (
            copies && before.contains(&named[1]),
            copies && then.contains(&named[1]),
        );
        for all in [&mut before, &mut then] {
            all.retain(|r| !info.writes(i, *r));
        }
        match (again, from) {
            (true, _) if i.mnemonic() != Mnemonic::Cmp => then.push(named[0]),
            (_, (true, _)) => before.push(named[0]),
            (_, (_, true)) => then.push(named[0]),
            _ => {}
        }
    }
    false
}

/// How an operand is reached whose address was loaded right before: by a word behind a register.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Way {
    root: Register,
    word: u64,
    displacement: u64,
}

impl Way {
    fn to(lines: &[Instruction], at: usize, info: &mut Info) -> Option<Way> {
        let base = lines[at].memory_base();
        let displacement = Place::of(&lines[at])?.behind()?;
        let before = lines[at.saturating_sub(NEAR)..at].iter().rev();
        for i in before {
            if !info.writes(i, base) {
                continue;
            }
            let word = Place::of(i)?.behind()?;
            let root = i.memory_base();
            let is_load = i.mnemonic() == Mnemonic::Mov && i.op0_register() == base;
            return (is_load && root != base).then_some(Way {
                root,
                word,
                displacement,
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn asks(code: &[u8]) -> bool {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        asks_twice(&lines, &mut Info::new())
    }

    #[test]
    fn a_sequence_number_is_asked_for_again() {
        // mov eax, [rdi]; mov rdx, [rdi+8]; mov ecx, [rdi]; cmp eax, ecx; ret
        assert!(asks(&[
            0x8b, 0x07, 0x48, 0x8b, 0x57, 8, 0x8b, 0x0f, 0x39, 0xc8, 0xc3
        ]));
        // mov edx, [rax]; mov eax, [rax]; cmp edx, eax; ret
        assert!(asks(&[0x8b, 0x10, 0x8b, 0x00, 0x39, 0xc2, 0xc3]));
        // mov eax, [rdi]; mov rdx, [rdi+8]; cmp [rdi], eax; ret
        assert!(asks(&[0x8b, 0x07, 0x48, 0x8b, 0x57, 8, 0x39, 0x07, 0xc3]));
    }

    #[test]
    fn it_is_asked_for_by_an_address_that_is_loaded_again() {
        // mov rdx, [rax+24]; mov ecx, [rdx]; mov rdi, [rax+24]; mov edi, [rdi]; cmp ecx, edi; ret
        let code = [
            0x48, 0x8b, 0x50, 24, 0x8b, 0x0a, 0x48, 0x8b, 0x78, 24, 0x8b, 0x3f, 0x39, 0xf9, 0xc3,
        ];
        assert!(asks(&code));
        // The same with [rax+32], and with a store between.
        let mut other = code;
        other[9] = 32;
        assert!(!asks(&other));
        let stored = [&code[..6], &[0x89, 0x16], &code[6..]].concat();
        assert!(!asks(&stored));
    }

    #[test]
    fn another_word_or_one_that_may_have_been_stored_is_not() {
        // mov eax, [rdi]; cmp [rdi+8], eax; ret
        assert!(!asks(&[0x8b, 0x07, 0x39, 0x47, 8, 0xc3]));
        // mov eax, [rdi]; mov [rsi], edx; cmp [rdi], eax; ret
        assert!(!asks(&[0x8b, 0x07, 0x89, 0x16, 0x39, 0x07, 0xc3]));
        // mov eax, [rdi]; test eax, eax; mov ecx, [rdi]; ret
        assert!(!asks(&[0x8b, 0x07, 0x85, 0xc0, 0x8b, 0x0f, 0xc3]));
    }
}
