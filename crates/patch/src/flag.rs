//! A byte in an object that is reached by way of another one, which a function sets to a constant in one place and asks for in
//! another: what one thread tells the next one that comes to the object. (oneTBB's templates tell so that a task was stolen.)

use crate::look;
use crate::place::writes;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

/// So many instructions before one are looked at for what makes its base.
const NEAR: usize = 8;

/// Which of a function's instructions ask for such a byte.
pub fn asked(lines: &[Instruction], info: &mut InstructionInfoFactory) -> Vec<usize> {
    let set: Vec<u64> = (0..lines.len())
        .filter(|at| sets(&lines[*at]) && is_reached(&lines[..=*at], info))
        .map(|at| lines[at].memory_displacement64())
        .collect();
    if set.is_empty() {
        return Vec::new();
    }
    let is_one = |at: &usize| {
        let i = &lines[*at];
        is_byte(i)
            && look::load(i).is_some()
            && set.contains(&i.memory_displacement64())
            && look::is_compared(&lines[*at..], info)
            && is_reached(&lines[..=*at], info)
    };
    (0..lines.len()).filter(is_one).collect()
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
fn is_reached(lines: &[Instruction], info: &mut InstructionInfoFactory) -> bool {
    let Some((last, before)) = lines.split_last() else {
        return false;
    };
    let base = last.memory_base();
    base.is_gpr()
        && before
            .iter()
            .rev()
            .take(NEAR)
            .find(|i| writes(i, base, info))
            .is_some_and(|i| i.mnemonic() == Mnemonic::Mov && i.op1_kind() == OpKind::Memory)
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
            asked(&lines, &mut InstructionInfoFactory::new())
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
}
