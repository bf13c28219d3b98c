//! Loads that a compiler would have left out, or made smaller, had it been allowed to, whose value is only compared, and not used
//! any more. So what is loaded is atomic, or volatile, and often nothing else shows it:
//!
//! - A byte that is loaded to be compared with zero. A plain one gcc and clang compare in memory. (`std::atomic<bool>`: fastp's
//!   lists between its threads.) And with it, whether the same object points to something.
//! - A larger word, of which more is loaded than is looked at, or that is compared with a constant. (mimalloc asks so for the marks
//!   in a list's head.)

use crate::classify::is_call;
use crate::info::Info;
use crate::look::{compares, load};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// So many instructions behind it are looked at for a use of the value.
const FAR: usize = 48;
/// What a function is given.
const ARGUMENTS: [Register; 6] = [
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
];
/// A function that has more of them looks at a table, with registers to spare.
const MOST: usize = 4;

/// May the instruction be one, with the one behind it?
pub fn may_be(first: &Instruction, next: &Instruction) -> bool {
    is_byte(first, next) || is_word(first, next)
}

/// The same, of a byte.
pub fn is_byte(first: &Instruction, next: &Instruction) -> bool {
    is_tested(first, next, 1)
}

/// The same, of a larger word.
pub fn is_word(first: &Instruction, next: &Instruction) -> bool {
    is_wide(first) && asks(first, next)
}

/// Does it load so many bytes, and does the next one ask whether they are zero?
fn is_tested(first: &Instruction, next: &Instruction, size: usize) -> bool {
    let (to, tested) = (first.op0_register(), next.op0_register());
    matches!(first.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx)
        && first.op0_kind() == OpKind::Register
        && first.op1_kind() == OpKind::Memory
        && first.memory_size().size() == size
        && next.mnemonic() == Mnemonic::Test
        && tested == next.op1_register()
        && tested.full_register() == to.full_register()
        && tested.size() == size
}

/// Does it load 4 or 8 bytes?
fn is_wide(first: &Instruction) -> bool {
    first.mnemonic() == Mnemonic::Mov
        && first.op0_kind() == OpKind::Register
        && first.op1_kind() == OpKind::Memory
        && first.op0_register().is_gpr()
        && matches!(first.memory_size().size(), 4 | 8)
}

/// Does the next one compare what it loads with a constant, or some of its bits? (Whether they are zero gcc asks of a register
/// that it has to spare, even of a plain word.)
fn asks(first: &Instruction, next: &Instruction) -> bool {
    let asked = next.op0_register();
    let is_constant = !matches!(next.op1_kind(), OpKind::Register | OpKind::Memory);
    let is_whole = asked.size() == first.memory_size().size();
    next.op0_kind() == OpKind::Register
        && asked.full_register() == first.op0_register().full_register()
        && is_constant
        && match next.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Test => is_whole,
            // (Of a plain word no more would have been loaded.)
            Mnemonic::And => !is_whole,
            _ => false,
        }
}

/// Which of a function's instructions are such loads.
pub fn asked(lines: &[Instruction], info: &mut Info) -> Vec<usize> {
    let pairs = lines.windows(2).enumerate();
    let may = pairs.filter(|(_, pair)| may_be(&pair[0], &pair[1]) && load(&pair[0]).is_some());
    let may: Vec<usize> = may.map(|(at, _)| at).collect();
    let is_one = |at: &usize| !of_unoptimised(&lines[..=*at]) && is_dead(lines, *at, info);
    let found: Vec<usize> = may.into_iter().filter(is_one).collect();
    let (wide, bytes): (Vec<usize>, Vec<usize>) =
        found.into_iter().partition(|at| is_wide(&lines[*at]));
    match bytes.len() > MOST {
        true => wide,
        false => [bytes, wide].concat(),
    }
}

/// Which of a function's loads ask the same objects (as far as the registers that point to them say) whether they point to
/// something.
pub fn of_objects(lines: &[Instruction], asked: &[usize]) -> Vec<usize> {
    let object = |i: &Instruction| {
        let base = i.memory_base();
        (base.is_gpr64() && i.memory_index() == Register::None).then_some(base)
    };
    let objects: Vec<Register> = asked.iter().filter_map(|at| object(&lines[*at])).collect();
    let pairs = lines.windows(2).enumerate();
    let asks = pairs.filter(|(_, pair)| {
        is_tested(&pair[0], &pair[1], 8)
            && load(&pair[0]).is_some()
            && object(&pair[0]).is_some_and(|o| objects.contains(&o))
    });
    asks.map(|(at, _)| at).collect()
}

/// Has its address just been fetched from the frame, as code that nobody optimised does for each?
fn of_unoptimised(lines: &[Instruction]) -> bool {
    let [.., before, last] = lines else {
        return false;
    };
    before.mnemonic() == Mnemonic::Mov
        && before.op0_register() == last.memory_base()
        && before.memory_base() == Register::RBP
}

/// Is the value that it loads, and that is tested behind it, not used any more?
fn is_dead(lines: &[Instruction], first: usize, info: &mut Info) -> bool {
    let value = lines[first].op0_register().full_register();
    // (Its bits are compared.)
    let asks = lines[first + 1].mnemonic() == Mnemonic::And
        && lines.get(first + 2).is_some_and(|i| {
            compares(i)
                && i.op0_register().full_register() == value
                && i.op1_kind() != OpKind::Memory
        });
    let behind = first + if asks { 3 } else { 2 };
    let (mut open, mut seen) = (vec![behind], Vec::new());
    while let Some(at) = open.pop() {
        if seen.contains(&at) {
            continue;
        }
        let Some(i) = lines.get(at).filter(|_| seen.len() < FAR) else {
            return false;
        };
        seen.push(at);
        if info.reads(i, value) {
            return false;
        }
        let ends = i.flow_control() == FlowControl::Return;
        if ends && value == Register::RAX {
            return false;
        }
        if is_call(i) && is_wide(&lines[first]) && ARGUMENTS.contains(&value) {
            return false;
        }
        if ends || is_call(i) || info.writes(i, value) {
            continue;
        }
        let there = |to: u64| lines.binary_search_by_key(&to, Instruction::ip);
        match i.flow_control() {
            FlowControl::Next => open.push(at + 1),
            FlowControl::ConditionalBranch => {
                let Ok(there) = there(i.near_branch_target()) else {
                    return false;
                };
                open.extend([there, at + 1]);
            }
            FlowControl::UnconditionalBranch => {
                let Ok(there) = there(i.near_branch_target()) else {
                    return false;
                };
                open.push(there);
            }
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn found(code: &[u8]) -> Vec<usize> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        let mut found = asked(&lines, &mut Info::new());
        found.extend(of_objects(&lines, &found));
        found
    }

    /// movzx edx, byte [rcx+0x10]; test dl, dl; je +1; nop; mov edx, 1; ret
    const ASKED: [u8; 15] = [
        0x0f, 0xb6, 0x51, 0x10, 0x84, 0xd2, 0x74, 1, 0x90, 0xba, 1, 0, 0, 0, 0xc3,
    ];

    #[test]
    fn a_byte_that_is_only_asked_whether_it_is_zero_is_atomic() {
        assert_eq!(found(&ASKED), [0]);
        // mov eax, edx in the nop's place: it is used.
        let used = [&ASKED[..7], &[2, 0x89, 0xd0], &ASKED[9..]].concat();
        assert_eq!(found(&used), []);
        // movzx eax, ...; test al, al; je; nop; ret: it is returned.
        let returned = [0x0f, 0xb6, 0x41, 0x10, 0x84, 0xc0, 0x74, 1, 0x90, 0xc3];
        assert_eq!(found(&returned), []);
        // cmp byte [rcx+0x10], 0: a plain one.
        assert_eq!(found(&[0x80, 0x79, 0x10, 0, 0x74, 1, 0x90, 0xc3]), []);
    }

    #[test]
    fn a_word_that_is_only_compared_is_atomic() {
        // mov rdx, [rcx+0x38]; cmp rdx, 3; jbe +1; nop; xor edx, edx; ret
        let mut compared = [
            0x48, 0x8b, 0x51, 0x38, 0x48, 0x83, 0xfa, 3, 0x76, 1, 0x90, 0x31, 0xd2, 0xc3,
        ];
        assert_eq!(found(&compared), [0]);
        // test rdx, rdx; nop in the place of the cmp: so plain ones are asked, too.
        compared[4..8].copy_from_slice(&[0x48, 0x85, 0xd2, 0x90]);
        assert_eq!(found(&compared), []);
        // mov rdi, [rcx+0x38]; cmp rdi, 3; jbe +1; nop; call: it is given to a function.
        let given = [
            0x48, 0x8b, 0x79, 0x38, 0x48, 0x83, 0xff, 3, 0x76, 1, 0x90, 0xe8, 0, 0, 0, 0, 0xc3,
        ];
        assert_eq!(found(&given), []);
    }

    #[test]
    fn a_word_of_which_less_is_looked_at_than_loaded_is_atomic() {
        // mov rax, [rcx+0x38]; and eax, 3; cmp eax, 1; sete al; ret
        let mut bits = [
            0x48, 0x8b, 0x41, 0x38, 0x83, 0xe0, 3, 0x83, 0xf8, 1, 0x0f, 0x94, 0xc0, 0xc3,
        ];
        assert_eq!(found(&bits), [0]);
        // mov eax, [rcx+0x38]
        bits[0] = 0x40;
        assert_eq!(found(&bits), []);
    }

    #[test]
    fn whether_its_object_points_to_something_goes_with_it() {
        // mov rax, [rcx]; test rax, rax; je +0 before it; and the same of [rsi]
        let pointer = |modrm| [0x48, 0x8b, modrm, 0x48, 0x85, 0xc0, 0x74, 0];
        assert_eq!(found(&[&pointer(0x01)[..], &ASKED].concat()), [3, 0]);
        assert_eq!(found(&[&pointer(0x06)[..], &ASKED].concat()), [3]);
        assert_eq!(found(&pointer(0x01)), []);
    }

    #[test]
    fn code_that_nobody_optimised_is_left_alone() {
        // mov rcx, [rbp-8] before it
        let fetched = [&[0x48, 0x8b, 0x4d, 0xf8][..], &ASKED].concat();
        assert_eq!(found(&fetched), []);
    }

    #[test]
    fn who_looks_at_many_bytes_looks_at_a_table() {
        let many = |n| [ASKED[..9].repeat(n), ASKED[9..].to_vec()].concat();
        assert_eq!(found(&many(MOST)).len(), MOST);
        assert_eq!(found(&many(MOST + 1)), []);
    }
}
