//! Which programs the kernel would take as filters.

use super::operation::{KEPT, Operation, Source};
use geryon_abi::layout::filter::{Instruction, MAX_INSTRUCTIONS};

/// A bit for each word that a program may keep.
type Words = u16;

const _: () = assert!(Words::BITS as usize == KEPT);

/// Is this a program that says something of every call, that only goes forwards, and that finds in what it keeps only
/// what it has put there?
pub fn is_filter(program: &[Instruction]) -> bool {
    if program.len() > MAX_INSTRUCTIONS {
        return false;
    }
    let says = |i: &Instruction| {
        let operation = Operation::of(i);
        matches!(
            operation,
            Some(Operation::Say(_) | Operation::SayAccumulator)
        )
    };
    if !program.last().is_some_and(says) {
        return false;
    }
    // What has been put there on all ways that lead to an instruction.
    let mut known = [Words::MAX; MAX_INSTRUCTIONS];
    let mut here: Words = 0;
    for (at, instruction) in program.iter().enumerate() {
        let Some(operation) = Operation::of(instruction) else {
            return false;
        };
        here &= known[at];
        let mut leads_to = |by: u32| {
            let to = (at + 1).saturating_add(by as usize);
            let is_in = to < program.len();
            if is_in {
                known[to] &= here;
            }
            is_in
        };
        let is_good = match operation {
            Operation::Skip(by) => leads_to(by),
            Operation::Branch(_, _, yes, no) => leads_to(yes.into()) && leads_to(no.into()),
            Operation::Load(Source::Kept(word)) | Operation::LoadX(Source::Kept(word)) => {
                here & 1 << word != 0
            }
            _ => true,
        };
        if !is_good {
            return false;
        }
        match operation {
            Operation::Keep(word) | Operation::KeepX(word) => here |= 1 << word,
            Operation::Skip(_) | Operation::Branch(..) => here = Words::MAX,
            _ => {}
        }
    }
    true
}
