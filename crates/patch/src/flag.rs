//! A byte in an object that is reached by way of another one, which a function sets to a constant in one place and asks for in
//! another: what one thread tells the next one that comes to the object. (oneTBB's templates tell so that a task was stolen.)
//! And what else it asks that object for, before it sets the byte (whether others still have a part of the task).

use crate::info::Info;
use crate::look;
use crate::place::Place;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// So many instructions before one are looked at for what makes its base.
const NEAR: usize = 8;

/// Which of a function's instructions ask for such a byte.
pub fn asked(lines: &[Instruction], info: &mut Info) -> Vec<usize> {
    let sets: Vec<usize> = (0..lines.len())
        .filter(|at| sets(&lines[*at]) && is_reached(&lines[..=*at], info))
        .collect();
    if sets.is_empty() {
        return Vec::new();
    }
    let byte = |at: &usize| lines[*at].memory_displacement64();
    let set: Vec<u64> = sets.iter().map(byte).collect();
    let objects: Vec<Place> = sets
        .iter()
        .filter_map(|at| way(&lines[..=*at], info))
        .collect();
    let mut is_asked = |at: &usize| {
        look::load(&lines[*at]).is_some()
            && look::is_compared(&lines[*at..], info)
            && is_reached(&lines[..=*at], info)
    };
    let asked: Vec<usize> = (0..lines.len()).filter(|at| is_asked(at)).collect();
    let is_flag = |at: &usize| is_byte(&lines[*at]) && set.contains(&byte(at));
    let mut of_object =
        |at: &usize| way(&lines[..=*at], info).is_some_and(|way| objects.contains(&way));
    // (Otherwise nobody is told by the byte.)
    if !asked.iter().any(is_flag) {
        return Vec::new();
    }
    let found = asked.into_iter().filter(|at| is_flag(at) || of_object(at));
    found.collect()
}

/// Is its operand in memory a byte?
pub fn is_byte(i: &Instruction) -> bool {
    i.memory_size().size() == 1 && i.memory_index() == Register::None
}

/// Does it store one of value 1?
pub fn sets(i: &Instruction) -> bool {
    is_byte(i)
        && i.mnemonic() == Mnemonic::Mov
        && i.op0_kind() == OpKind::Memory
        && i.op1_kind() == OpKind::Immediate8
        && i.immediate(1) == 1
}

/// Has the last one's base just been loaded?
fn is_reached(lines: &[Instruction], info: &mut Info) -> bool {
    made(lines, info).is_some()
}

/// From where its base has just been loaded, if that is somewhere else than on the stack.
fn way(lines: &[Instruction], info: &mut Info) -> Option<Place> {
    made(lines, info).and_then(Place::of)
}

/// What has just loaded the last one's base.
fn made<'a>(lines: &'a [Instruction], info: &mut Info) -> Option<&'a Instruction> {
    let (last, before) = lines.split_last()?;
    let base = last.memory_base();
    let mut recent = before.iter().rev().take(NEAR);
    let made = recent.find(|i| base.is_gpr() && info.writes(i, base))?;
    (made.mnemonic() == Mnemonic::Mov && made.op1_kind() == OpKind::Memory).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn a_flag_of_a_parent_is_set_and_asked_for() {
        // mov rax, [rdi+0x60]; mov byte [rax+0x18], 1; mov rax, [rsi+0x60]; movzx ecx, byte [rax+0x18]; test cl, cl; ret
        let code = [
            0x48, 0x8b, 0x47, 0x60, 0xc6, 0x40, 0x18, 1, 0x48, 0x8b, 0x46, 0x60, 0x0f, 0xb6, 0x48,
            0x18, 0x84, 0xc9, 0xc3,
        ];
        let found = |code: &[u8]| {
            let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
            let lines: Vec<Instruction> = decoder.into_iter().collect();
            asked(&lines, &mut Info::new())
        };
        assert_eq!(found(&code), [3]);
        // Another byte is asked for.
        let mut other = code;
        other[15] = 0x19;
        assert!(found(&other).is_empty());
        // It is set to zero.
        let mut zero = code;
        zero[7] = 0;
        assert!(found(&zero).is_empty());
    }

    #[test]
    fn what_else_the_object_is_asked_for() {
        // mov rax, [rdi+0x60]; cmp dword [rax+8], 1; mov rcx, [rdi+0x58]; cmp dword [rcx+8], 1
        let asks = [
            0x48, 0x8b, 0x47, 0x60, 0x83, 0x78, 8, 1, 0x48, 0x8b, 0x4f, 0x58, 0x83, 0x79, 8, 1,
        ];
        // mov rax, [rdi+0x60]; mov byte [rax+0x18], 1
        let sets = [0x48, 0x8b, 0x47, 0x60, 0xc6, 0x40, 0x18, 1];
        // mov rdx, [rsi+0x60]; cmp byte [rdx+0x18], 0; ret
        let flag = [0x48, 0x8b, 0x56, 0x60, 0x80, 0x7a, 0x18, 0, 0xc3];
        let found = |code: Vec<u8>| {
            let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
            let lines: Vec<Instruction> = decoder.into_iter().collect();
            asked(&lines, &mut Info::new())
        };
        assert_eq!(found([&asks[..], &sets, &flag].concat()), [1, 7]);
        assert_eq!(found([&asks[..], &sets].concat()), []);
    }
}
