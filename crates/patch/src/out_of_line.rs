//! A loop out of line: a copy of the instructions around a point, with a check at that point ([`crate::sentry()`] tells
//! what it looks at), for a thread that runs there alone. Nothing is written over the program's code, so it does for a loop
//! whose instructions are too short for a jump, and beside other threads that run the same code. Whoever leaves the loop
//! goes on in the program.

use crate::asm::Asm;
use crate::sentry::{Expected, check};
use crate::{Error, INSTRUCTION_MAX};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock,
};
use std::collections::{BTreeMap, VecDeque};

/// More instructions are not copied: who comes to those behind them goes on in the program.
const MOST: usize = 128;

/// The copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfLine {
    /// Content of the memory that was given for it.
    pub code: Vec<u8>,
    /// Where the thread stands when the check has stopped it (behind the breakpoint instruction). Rax and the flags are in
    /// the scratch words then.
    pub stopped: u64,
    /// The copy of the point's instruction, behind the check: where a thread enters.
    pub entry: u64,
    /// Addresses in the copy and in the program that mean the same, sorted. Elsewhere a thread is in the midst of the check.
    pub pcs: Vec<(u64, u64)>,
}

/// Bytes of memory that it takes, at most, with so many words expected.
#[must_use]
pub const fn out_of_line_len(words: usize) -> usize {
    // An instruction that is not followed by the next one has a jump behind it.
    crate::sentry_len(words) + MOST * (INSTRUCTION_MAX + 5)
}

/// The copy of what can be reached from `point` in this code (which lies at `start`), in memory at `area`.
/// `scratch`: two words of the thread's own, by their distances from where its GS register points to.
///
/// # Errors
/// [`Error::BadPlan`] where the point's instruction leads elsewhere, or is one that the kernel looks at;
/// [`Error::OutOfReach`] when the two, or what an instruction refers to, are too far from each other.
pub fn out_of_line(
    point: u64,
    start: u64,
    code: &[u8],
    area: u64,
    expected: &Expected,
    scratch: [u32; 2],
) -> Result<OutOfLine, Error> {
    let found = reachable(point, start, code);
    if !found.contains_key(&point) {
        return Err(Error::BadPlan(point));
    }
    let mut asm = Asm::new(area);
    let check = check(&mut asm, expected, scratch);
    // jmp to the copy of the point's instruction
    asm.put(&[0xe9, 0, 0, 0, 0]);
    let behind = asm.here();
    let (copied, originals) = copied(&found, point, check.entry)?;
    let block = InstructionBlock::new(&copied, behind);
    let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    let encoded = BlockEncoder::encode(64, block, options).map_err(|_| Error::OutOfReach {
        from: area,
        to: point,
    })?;
    let there = |offset: &u32| (*offset != u32::MAX).then(|| behind + u64::from(*offset));
    let places = encoded.new_instruction_offsets.iter().map(there);
    let mut pcs: Vec<(u64, u64)> = Vec::new();
    for (place, original) in places.zip(originals) {
        let place = place.ok_or(Error::BadPlan(point))?;
        pcs.extend(original.map(|original| (place, original)));
    }
    // The first one at the point is the jump to the check.
    let at_point = pcs.iter().filter(|pc| pc.1 == point);
    let entry = at_point.map(|pc| pc.0).max().ok_or(Error::BadPlan(point))?;
    asm.patch(behind - 4, behind, entry);
    asm.put(&encoded.code_buffer);
    Ok(OutOfLine {
        code: asm.finish()?,
        stopped: check.stopped,
        entry,
        pcs,
    })
}

/// The instructions that can be copied, by address, those that are reached first.
fn reachable(point: u64, start: u64, code: &[u8]) -> BTreeMap<u64, Instruction> {
    let mut found: BTreeMap<u64, Instruction> = BTreeMap::new();
    let mut next = VecDeque::from([point]);
    while let Some(at) = next.pop_front() {
        if found.len() == MOST {
            break;
        }
        let offset = at.checked_sub(start).map(|o| o as usize);
        let Some(bytes) = offset.and_then(|o| code.get(o..)) else {
            continue;
        };
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        // Who jumps into the midst of an instruction goes on in the program.
        let before = found.range(..instruction.next_ip()).next_back();
        if before.is_some_and(|(_, b)| b.next_ip() > at) || !can_be_copied(&instruction) {
            continue;
        }
        found.insert(at, instruction);
        let falls_through = instruction.flow_control() != FlowControl::UnconditionalBranch;
        next.extend(falls_through.then_some(instruction.next_ip()));
        if instruction.flow_control() != FlowControl::Next {
            next.push_back(instruction.near_branch_target());
        }
    }
    found
}

/// Can the instruction with which these bytes begin be a point?
#[must_use]
pub fn can_be_out_of_line(bytes: &[u8]) -> bool {
    can_be_copied(&Decoder::new(64, bytes, DecoderOptions::NONE).decode())
}

fn can_be_copied(i: &Instruction) -> bool {
    let leads_on = matches!(
        i.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    !i.is_invalid() && i.code() != Code::Syscall && leads_on
}

/// What to encode, and the program's address of each (None: of a jump that the program has not).
fn copied(
    found: &BTreeMap<u64, Instruction>,
    point: u64,
    check: u64,
) -> Result<(Vec<Instruction>, Vec<Option<u64>>), Error> {
    let jump = |target| {
        Instruction::with_branch(Code::Jmp_rel32_64, target).map_err(|_| Error::BadPlan(point))
    };
    let mut all = Vec::new();
    for (at, instruction) in found {
        let mut instruction = *instruction;
        if *at == point {
            let mut to_check = jump(check)?;
            to_check.set_ip(point);
            all.push((to_check, Some(point)));
            // Nobody jumps to it but the check.
            instruction.set_ip(0);
        }
        all.push((instruction, Some(*at)));
        let next = at + instruction.len() as u64;
        let goes_on = instruction.flow_control() != FlowControl::UnconditionalBranch;
        if goes_on && found.range(at + 1..).next().map(|n| *n.0) != Some(next) {
            all.push((jump(next)?, None));
        }
    }
    Ok(all.into_iter().unzip())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x5555_0000_1000;
    const AREA: u64 = 0x5555_4000_0000;

    fn decode(copy: &OutOfLine, at: u64) -> Instruction {
        let offset = (at - AREA) as usize;
        Decoder::with_ip(64, &copy.code[offset..], at, 0).decode()
    }

    fn copy(point: u64, code: &[u8]) -> Result<OutOfLine, Error> {
        let expected = Expected::default();
        out_of_line(START + point, START, code, AREA, &expected, [0x40, 0x48])
    }

    fn place(copy: &OutOfLine, original: u64) -> u64 {
        let mut pcs = copy.pcs.iter();
        pcs.find(|pc| pc.1 == START + original)
            .expect("it is copied")
            .0
    }

    /// add rcx, 1; add rax, rdx; cmp rdi, rcx; jne -12; ret
    const LOOP: [u8; 13] = [
        0x48, 0x83, 0xc1, 1, 0x48, 0x01, 0xd0, 0x48, 0x39, 0xcf, 0x75, 0xf4, 0xc3,
    ];

    #[test]
    fn a_loop_of_short_instructions_passes_the_check_in_each_round() {
        for point in [0, 4, 7, 10] {
            let copy = copy(point, &LOOP).expect("it can be copied");
            assert!(copy.pcs.is_sorted());
            let to_check = decode(&copy, place(&copy, point));
            assert_eq!(to_check.code(), Code::Jmp_rel32_64);
            let entry = to_check.near_branch_target();
            assert_eq!(decode(&copy, entry).ip(), AREA + 16 * 8);
            // From the check to the point's own instruction, and round again.
            assert_eq!(
                decode(&copy, copy.entry).code(),
                decode_at(&LOOP, point).code()
            );
            let branch = copy.pcs.iter().rfind(|pc| pc.1 == START + 10);
            let branch = decode(&copy, branch.expect("it is copied").0);
            assert_eq!(branch.near_branch_target(), place(&copy, 0));
            let out = decode(&copy, branch.next_ip());
            assert_eq!(
                out.near_branch_target(),
                START + 12,
                "the return is the program's"
            );
        }
    }

    fn decode_at(code: &[u8], at: u64) -> Instruction {
        Decoder::with_ip(64, &code[at as usize..], START + at, 0).decode()
    }

    #[test]
    fn what_refers_to_where_it_lies_still_means_the_same() {
        // mov eax, [rip + 0x100]; jmp -8
        let copy = copy(0, &[0x8b, 0x05, 0, 1, 0, 0, 0xeb, 0xf8]).expect("it can be copied");
        let mov = decode(&copy, copy.entry);
        assert_eq!(mov.ip_rel_memory_address(), START + 0x106);
    }

    #[test]
    fn where_it_calls_or_returns_it_is_in_the_program() {
        // call +0; je -7; syscall
        let code = [0xe8, 0, 0, 0, 0, 0x74, 0xf9, 0x0f, 0x05];
        assert!(copy(0, &code).is_err());
        assert!(copy(7, &code).is_err());
        let copy = copy(5, &code).expect("a branch can be copied");
        assert_eq!(decode(&copy, copy.entry).near_branch_target(), START);
    }

    #[test]
    fn the_midst_of_an_instruction_is_not_copied_twice() {
        // mov eax, 0x90909090; jmp to its second byte
        let code = [0xb8, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xfa];
        let copy = copy(0, &code).expect("it can be copied");
        let jump = decode(&copy, place(&copy, 5));
        assert_eq!(jump.near_branch_target(), START + 1);
    }

    #[test]
    fn it_is_never_longer_than_said() {
        // jne to the next-but-one, 4,000 times: half of them are followed by a jump
        let code = [0x75, 0x02, 0xeb, 0x00].repeat(1000);
        let copy = copy(0, &code).expect("it can be copied");
        assert!(copy.code.len() <= out_of_line_len(0));
        assert!(copy.pcs.len() <= MOST + 1);
    }

    #[test]
    fn what_is_out_of_reach_is_refused() {
        let far = out_of_line(
            START,
            START,
            &LOOP,
            0x7fff_0000_0000,
            &Expected::default(),
            [0, 8],
        );
        assert!(far.is_err());
    }
}
