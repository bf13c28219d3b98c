//! Is the value that a compare expects a constant? Then both the program and its replicas expect the same,
//! and whoever comes with another one has been hit by a fault. Where it was loaded before, replicas may come
//! with values of different moments.

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Instructions before a compare that are looked at.
const FAR: usize = 16;

/// Is it one that compares the accumulator with memory?
pub fn is_compare(i: &Instruction) -> bool {
    matches!(
        i.mnemonic(),
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b
    )
}

/// Does the accumulator hold a constant behind these instructions, the last one first, on the only way that
/// leads there? `entered`: a branch leads to an instruction.
pub fn is_constant<'a>(
    before: impl Iterator<Item = &'a Instruction>,
    entered: impl Fn(&Instruction) -> bool,
) -> bool {
    let mut factory = InstructionInfoFactory::new();
    for i in before.take(FAR) {
        let goes_on = matches!(
            i.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch
        );
        if !goes_on || i.is_invalid() {
            return false;
        }
        let mut written = factory.info(i).used_registers().iter();
        let sets = written.any(|r| {
            r.register().full_register() == Register::RAX
                && !matches!(
                    r.access(),
                    OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
                )
        });
        if sets {
            return sets_constant(i);
        }
        if entered(i) {
            return false;
        }
    }
    false
}

fn sets_constant(i: &Instruction) -> bool {
    let immediate = |n: u32| {
        !matches!(
            i.op_kind(n),
            OpKind::Register | OpKind::Memory | OpKind::NearBranch64
        )
    };
    match i.mnemonic() {
        Mnemonic::Mov => i.op0_kind() == OpKind::Register && immediate(1),
        Mnemonic::Xor | Mnemonic::Sub => {
            i.op1_kind() == OpKind::Register && i.op0_register() == i.op1_register()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn constant(code: &[u8], entered: u64) -> bool {
        let lines: Vec<Instruction> = Decoder::with_ip(64, code, 0, DecoderOptions::NONE)
            .into_iter()
            .collect();
        is_constant(lines.iter().rev(), |i| i.ip() == entered)
    }

    #[test]
    fn a_constant_is_one_on_the_only_way() {
        const NONE: u64 = 99;
        // xor eax, eax; mov edx, 1
        assert!(constant(&[0x31, 0xc0, 0xba, 1, 0, 0, 0], NONE));
        // mov eax, 5; jne +0
        assert!(constant(&[0xb8, 5, 0, 0, 0, 0x75, 0], NONE));
        // The same, and a branch comes to the jne.
        assert!(!constant(&[0xb8, 5, 0, 0, 0, 0x75, 0], 5));
    }

    #[test]
    fn what_was_loaded_or_computed_is_none() {
        const NONE: u64 = 99;
        // mov eax, [rdi]; mov edx, eax
        assert!(!constant(&[0x8b, 0x07, 0x89, 0xc2], NONE));
        // mov eax, 5; inc al
        assert!(!constant(&[0xb8, 5, 0, 0, 0, 0xfe, 0xc0], NONE));
        // mov eax, 5; call +0
        assert!(!constant(&[0xb8, 5, 0, 0, 0, 0xe8, 0, 0, 0, 0], NONE));
        // mov edx, eax: an argument.
        assert!(!constant(&[0x89, 0xc2], NONE));
    }
}
