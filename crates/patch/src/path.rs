//! What a thread may have done on its way from one instruction to another.

use crate::INSTRUCTION_MAX;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use std::collections::HashSet;

/// Instructions that are looked at on all paths together.
const MOST: usize = 400;

/// Where a thread has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the instruction at this address.
    At(u64),
    /// Somewhere to where a return or a computed jump has led it.
    Outside,
}

/// Does the thread hold the value in rax with which it began at `from`? None when no path leads from there
/// to its end, or not within some hundred instructions. `code`: the bytes at an address.
pub fn keeps_rax(
    from: u64,
    end: End,
    code: impl Fn(u64) -> Option<[u8; INSTRUCTION_MAX]>,
) -> Option<bool> {
    let (mut clean, mut spoilt) = (false, false);
    let mut seen = HashSet::new();
    let mut todo = vec![(from, false)];
    let mut info = InstructionInfoFactory::new();
    while let Some((at, written)) = todo.pop() {
        if !seen.insert((at, written)) {
            continue;
        }
        if seen.len() > MOST {
            return None;
        }
        let mut comes_to = |there: bool| match there {
            true if written => spoilt = true,
            true => clean = true,
            false => {}
        };
        comes_to(end == End::At(at));
        let Some(bytes) = code(at) else {
            comes_to(end == End::Outside);
            continue;
        };
        let instruction = Decoder::with_ip(64, &bytes, at, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            continue;
        }
        let writes = |r: &iced_x86::UsedRegister| {
            r.register().full_register() == Register::RAX
                && !matches!(
                    r.access(),
                    OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
                )
        };
        let written = written || info.info(&instruction).used_registers().iter().any(writes);
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::XbeginXabortXend => {
                todo.push((instruction.next_ip(), written));
            }
            FlowControl::ConditionalBranch => {
                todo.push((instruction.next_ip(), written));
                todo.push((instruction.near_branch_target(), written));
            }
            FlowControl::UnconditionalBranch => {
                todo.push((instruction.near_branch_target(), written))
            }
            // Who comes back from a call has done anything.
            FlowControl::Call => {
                todo.push((instruction.near_branch_target(), written));
                todo.push((instruction.next_ip(), true));
            }
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::IndirectCall => {
                match (end, written) {
                    (End::Outside, true) => spoilt = true,
                    (End::Outside, false) => clean = true,
                    _ => {}
                }
            }
            FlowControl::Interrupt | FlowControl::Exception => {}
        }
    }
    (clean || spoilt).then_some(!spoilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(code: &[u8], end: End) -> Option<bool> {
        keeps_rax(0, end, |at| {
            let rest = code.get(at as usize..)?;
            let mut bytes = [0x90; INSTRUCTION_MAX];
            let len = rest.len().min(INSTRUCTION_MAX);
            bytes[..len].copy_from_slice(&rest[..len]);
            (len > 0).then_some(bytes)
        })
    }

    #[test]
    fn straight_on() {
        // mov rbx, rax; mov rcx, [rbx]
        let code = [0x48, 0x89, 0xc3, 0x48, 0x8b, 0x0b];
        assert_eq!(ends(&code, End::At(3)), Some(true));
        // and al, 8; mov rcx, [rbx]
        let code = [0x24, 0x08, 0x48, 0x8b, 0x0b];
        assert_eq!(ends(&code, End::At(0)), Some(true));
        assert_eq!(ends(&code, End::At(2)), Some(false));
        assert_eq!(ends(&code, End::At(4)), None);
    }

    #[test]
    fn one_of_two_ways_is_enough_to_doubt() {
        // je 1f; xor eax, eax; 1: mov rcx, [rbx]
        let code = [0x74, 0x02, 0x31, 0xc0, 0x48, 0x8b, 0x0b];
        assert_eq!(ends(&code, End::At(4)), Some(false));
        // je 1f; xor ecx, ecx; 1: mov rcx, [rbx]
        let code = [0x74, 0x02, 0x31, 0xc9, 0x48, 0x8b, 0x0b];
        assert_eq!(ends(&code, End::At(4)), Some(true));
    }

    #[test]
    fn out_of_here() {
        // pop rdx; ret
        assert_eq!(ends(&[0x5a, 0xc3], End::Outside), Some(true));
        // pop rax; ret
        assert_eq!(ends(&[0x58, 0xc3], End::Outside), Some(false));
    }

    #[test]
    fn a_call_spoils_it() {
        // call 1f; mov rcx, [rbx]; 1: mov rcx, [rbx]
        let code = [0xe8, 3, 0, 0, 0, 0x48, 0x8b, 0x0b, 0x48, 0x8b, 0x0b];
        assert_eq!(ends(&code, End::At(5)), Some(false));
        // Into it, or over it.
        assert_eq!(ends(&code, End::At(8)), Some(false));
    }
}
