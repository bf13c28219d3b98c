//! A word that is loaded a second time, and compared with what was found there first, where this thread cannot have changed
//! it in between: that asks whether another one has. (Compilers load words twice that nobody changes, too, but do not
//! compare them with themselves.) So readers of a sequence lock look whether a writer came by.

use crate::classify::is_call;
use crate::place::{Place, writes};
use crate::spin;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, Register};

/// So many instructions behind a load the second one is looked for.
const FAR: usize = 40;

/// Does a function, whose instructions these are, ask so?
pub fn asks_twice(lines: &[Instruction], info: &mut InstructionInfoFactory) -> bool {
    (0..lines.len()).any(|at| {
        let i = &lines[at];
        let loads = matches!(i.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx);
        loads && spin::load(i).is_some() && is_asked_again(&lines[at..], info)
    })
}

fn is_asked_again(rest: &[Instruction], info: &mut InstructionInfoFactory) -> bool {
    let first = &rest[0];
    let frame = [Register::RBP, Register::RSP];
    let Some(place) = Place::of(first).filter(|_| !frame.contains(&first.memory_base())) else {
        return false;
    };
    let names = [first.memory_base(), first.memory_index()];
    let moves = |i: &Instruction, info: &mut InstructionInfoFactory| {
        names.into_iter().any(|r| r.is_gpr() && writes(i, r, info))
    };
    if moves(first, info) {
        return false;
    }
    let mut is_named = true;
    let is_again = |i: &Instruction, is_named: bool| {
        is_named
            && spin::load(i).is_some()
            && Place::of(i) == Some(place)
            && i.memory_size().size() == first.memory_size().size()
    };
    // Which registers hold what was found there first, and then.
    let mut then: Vec<Register> = Vec::new();
    let mut before = vec![first.op0_register().full_register()];
    for i in rest.iter().skip(1).take(FAR) {
        let goes_on = matches!(
            i.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch
        );
        if !goes_on || is_call(i) {
            return false;
        }
        let named = [i.op0_register(), i.op1_register()].map(Register::full_register);
        let of = |all: &[Register]| named.iter().any(|r| all.contains(r));
        if i.mnemonic() == Mnemonic::Cmp && of(&before) && (is_again(i, is_named) || of(&then)) {
            return true;
        }
        let again = is_again(i, is_named);
        let ends = spin::stores(i, info) || moves(i, info);
        if ends && is_named && !again {
            return false;
        }
        // (The second load may write its own base.)
        is_named &= !ends;
        let copies = i.mnemonic() == Mnemonic::Mov && named[1] != Register::None;
        let from = (
            copies && before.contains(&named[1]),
            copies && then.contains(&named[1]),
        );
        for all in [&mut before, &mut then] {
            all.retain(|r| !writes(i, *r, info));
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

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn asks(code: &[u8]) -> bool {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        asks_twice(&lines, &mut InstructionInfoFactory::new())
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
    fn another_word_or_one_that_may_have_been_stored_is_not() {
        // mov eax, [rdi]; cmp [rdi+8], eax; ret
        assert!(!asks(&[0x8b, 0x07, 0x39, 0x47, 8, 0xc3]));
        // mov eax, [rdi]; mov [rsi], edx; cmp [rdi], eax; ret
        assert!(!asks(&[0x8b, 0x07, 0x89, 0x16, 0x39, 0x07, 0xc3]));
        // mov eax, [rdi]; test eax, eax; mov ecx, [rdi]; ret
        assert!(!asks(&[0x8b, 0x07, 0x85, 0xc0, 0x8b, 0x0f, 0xc3]));
    }
}
