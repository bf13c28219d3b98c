//! Loads that make what an atomic instruction puts into memory, or what it expects there. A follower whose load comes earlier or
//! later than its leader's would do the instruction on something else: the word never becomes what the leader saw.

use crate::classify::{is_atomic, is_call};
use crate::constant::is_compare;
use crate::info::Info;
use crate::look;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// So many instructions before an atomic one are looked at for the load.
const FAR: usize = 64;

/// What compare-and-exchanges expect.
pub fn expected(lines: &[Instruction], info: &mut Info) -> Vec<usize> {
    let compares = (0..lines.len()).filter(|at| is_atomic(&lines[*at]) && is_compare(&lines[*at]));
    compares
        .filter_map(|at| load(&lines[..at], Register::RAX, false, info))
        .collect()
}

/// What others add, exchange, or put in by the bit. (Of a compare-and-exchange it is made of what that expects, or lies where only this
/// thread knows of it; on the stack it is the thread's own.)
pub fn operands(lines: &[Instruction], info: &mut Info) -> Vec<usize> {
    let takes = |at: &usize| {
        let i = &lines[*at];
        let r = i.op1_register().full_register();
        let is_one = is_atomic(i) && !is_compare(i) && i.op0_kind() == OpKind::Memory && r.is_gpr();
        is_one.then_some((*at, r))
    };
    let taking: Vec<(usize, Register)> = (0..lines.len()).filter_map(|at| takes(&at)).collect();
    let of_others = |at: &usize| {
        let base = lines[*at].memory_base().full_register();
        !matches!(base, Register::RSP | Register::RBP)
    };
    taking
        .into_iter()
        .filter_map(|(at, r)| load(&lines[..at], r, true, info))
        .filter(of_others)
        .collect()
}

/// The load that makes what is in the register behind these instructions, if it is seen. `computed`: or what that is computed of.
fn load(
    before: &[Instruction],
    mut sought: Register,
    computed: bool,
    info: &mut Info,
) -> Option<usize> {
    for at in (before.len().saturating_sub(FAR)..before.len()).rev() {
        let i = &before[at];
        let written = info.writes(i, sought);
        if i.flow_control() == FlowControl::Return || is_call(i) && !outlives_calls(sought) {
            return None;
        }
        if !written {
            continue;
        }
        if look::load(i).is_some() {
            return Some(at);
        }
        sought = match i.mnemonic() {
            Mnemonic::Mov if i.op1_register().is_gpr() => i.op1_register().full_register(),
            _ if computed => only_source(i, info)?,
            _ => return None,
        };
    }
    None
}

/// Does a function that is called leave the register as it was?
fn outlives_calls(register: Register) -> bool {
    use Register::{R12, R13, R14, R15, RBP, RBX};
    matches!(register, RBX | RBP | R12 | R13 | R14 | R15)
}

/// The one register that it computes something of.
fn only_source(i: &Instruction, info: &mut Info) -> Option<Register> {
    if (0..i.op_count()).any(|k| i.op_kind(k) == OpKind::Memory && i.mnemonic() != Mnemonic::Lea) {
        return None;
    }
    let mut sources = info.read(i).map(Register::full_register);
    let first = sources.next().filter(|r| r.is_gpr())?;
    sources.all(|r| r == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn found(which: fn(&[Instruction], &mut Info) -> Vec<usize>, code: &[u8]) -> Vec<usize> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        which(&lines, &mut Info::new())
    }

    #[test]
    fn what_a_compare_expects_is_found_behind_other_registers() {
        // mov rdx, [rbx+8]; lea rcx, [rbx+8]; mov rax, rdx; lock cmpxchg [rcx], rsi
        let code = [
            0x48, 0x8b, 0x53, 8, 0x48, 0x8d, 0x4b, 8, 0x48, 0x89, 0xd0, 0xf0, 0x48, 0x0f, 0xb1,
            0x31,
        ];
        assert_eq!(found(expected, &code), [0]);
        // mov r15, [rdx+8]; call; lea rsi, [r15+1]; mov rax, r15; lock cmpxchg [rcx], rsi
        let outlives = [
            0x4c, 0x8b, 0x7a, 8, 0xe8, 0, 0, 0, 0, 0x49, 0x8d, 0x77, 1, 0x4c, 0x89, 0xf8, 0xf0,
            0x48, 0x0f, 0xb1, 0x31,
        ];
        assert_eq!(found(expected, &outlives), [0]);
        // mov rdx, [rdx+8]; call; mov rax, rdx; lock cmpxchg [rcx], rsi
        let spoilt = [
            0x48, 0x8b, 0x52, 8, 0xe8, 0, 0, 0, 0, 0x48, 0x89, 0xd0, 0xf0, 0x48, 0x0f, 0xb1, 0x31,
        ];
        assert_eq!(found(expected, &spoilt), []);
        // xor eax, eax before it: a constant.
        let constant = [0x48, 0x8b, 0x53, 8, 0x31, 0xc0, 0xf0, 0x0f, 0xb1, 0x31];
        assert_eq!(found(expected, &constant), []);
    }

    #[test]
    fn what_is_added_comes_from_a_word_of_others() {
        // mov eax, [rbx+0x65c]; mov rcx, [rbp-8]; lock add [rcx], eax
        let code = [
            0x8b, 0x83, 0x5c, 6, 0, 0, 0x48, 0x8b, 0x4d, 0xf8, 0xf0, 0x01, 0x01,
        ];
        assert_eq!(found(operands, &code), [0]);
        // mov eax, [rbx+8]; neg eax; lock xadd [rcx], eax
        let computed = [0x8b, 0x43, 8, 0xf7, 0xd8, 0xf0, 0x0f, 0xc1, 0x01];
        assert_eq!(found(operands, &computed), [0]);
        // mov eax, [rbp-8]; xchg [rcx], eax: the thread's own.
        let own = [0x8b, 0x45, 0xf8, 0x87, 0x01];
        assert_eq!(found(operands, &own), []);
        // mov eax, [rbx+8]; lock cmpxchg [rcx], edx: what it expects.
        let compares = [0x8b, 0x43, 8, 0xf0, 0x0f, 0xb1, 0x11];
        assert_eq!(found(operands, &compares), []);
    }
}
