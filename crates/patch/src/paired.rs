//! Double-checked locking with a lock that no name shows: it is taken by a table of functions (Tcl's extensions), or by another
//! library's. Then the shape alone tells: who has found that a word is not made calls a function, asks again as the first thing behind it,
//! and makes the word; and another function is given later what that one was given, which lies at a fixed place.

use crate::classify::is_call;
use crate::info::Info;
use crate::look::{any_store, load};
use crate::once::asks_whether_made;
use crate::place::{Place, gives};
use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;

/// So many instructions from one step to the next.
const SOON: usize = 8;
/// So many instructions before one are looked at for what makes a register.
const FAR: usize = 32;

/// One that asks whether a word is made, and the names of that word there.
struct Ask {
    at: usize,
    names: Vec<Place>,
}

/// Which of a function's instructions ask first.
pub fn asked(lines: &[Instruction], info: &mut Info) -> Vec<usize> {
    // (Few functions take such an address, and all are asked.)
    if !lines.iter().any(|i| gives(i).is_some()) {
        return Vec::new();
    }
    let asks = |at: &usize| load(&lines[*at]).is_some() && asks_whether_made(&lines[*at..]);
    let stores = lines.iter().filter(|i| any_store(i).is_some());
    let made: BTreeSet<Place> = stores.filter_map(Place::of).collect();
    let is_made = |at: usize| Place::of(&lines[at]).is_some_and(|place| made.contains(&place));
    let all: Vec<usize> = (0..lines.len()).filter(asks).collect();
    if all.len() < 2 || !all.iter().any(|at| is_made(*at)) {
        return Vec::new();
    }
    let again: Vec<Ask> = all
        .iter()
        .filter(|at| is_made(**at))
        .map(|&at| Ask {
            at,
            names: Place::names(&lines[..=at], info),
        })
        .collect();
    let given = given(lines, info);
    let mut is_first = |at: usize| {
        let place = Place::of(&lines[at])?;
        let same = |a: &&Ask| a.at != at && a.names.contains(&place);
        let branch = branch(lines, at).filter(|_| again.iter().any(|a| same(&a)))?;
        let there = lines[branch].near_branch_target();
        let there = lines.binary_search_by_key(&there, Instruction::ip).ok();
        let mut ways = [Some(branch + 1), there].into_iter().flatten();
        ways.find(|&from| {
            let Some(lock) = next_call(lines, from).filter(|l| is_lock(lines, &given, *l)) else {
                return false;
            };
            let soon = lock + 1..lock + SOON;
            let Some(again) = again.iter().filter(same).find(|a| soon.contains(&a.at)) else {
                return false;
            };
            let behind = &lines[lock + 1..again.at];
            let at_once = behind.iter().all(|i| i.flow_control() == FlowControl::Next);
            let name = again.names[0];
            let until = if name == place { again.at } else { lock };
            let way = (at + 1..=branch).chain(from..until);
            at_once
                && !behind.iter().any(|i| info.uses(i, Register::RAX))
                && is_kept(lines, way, place, name, info)
        })
    };
    all.into_iter()
        .filter(|at| is_first(*at).is_some())
        .collect()
}

/// Does the word that has one name keep it on this way, or until it gets another one?
fn is_kept(
    lines: &[Instruction],
    way: impl Iterator<Item = usize>,
    name: Place,
    other: Place,
    info: &mut Info,
) -> bool {
    for at in way {
        if name.copied(&lines[at]) == Some(other) {
            return true;
        }
        if !name.stays(&lines[at..=at], info) {
            return false;
        }
    }
    true
}

/// The branch that depends on what is asked there: whether it is equal.
fn branch(lines: &[Instruction], at: usize) -> Option<usize> {
    let is_one = |k: &usize| lines[*k].is_jcc_short_or_near();
    let found = (at + 1..lines.len().min(at + SOON)).find(is_one)?;
    let equal = [ConditionCode::e, ConditionCode::ne];
    equal
        .contains(&lines[found].condition_code())
        .then_some(found)
}

/// The first call at or soon behind one of these, if nothing branches before.
fn next_call(lines: &[Instruction], from: usize) -> Option<usize> {
    let is_end = |k: &usize| lines[*k].flow_control() != FlowControl::Next;
    let end = (from..lines.len().min(from + SOON)).find(is_end)?;
    is_call(&lines[end]).then_some(end)
}

/// Calls, and tail calls, that are given something at a fixed place.
fn given(lines: &[Instruction], info: &mut Info) -> Vec<(usize, u64)> {
    let calls = (0..lines.len()).filter(|at| is_call(&lines[*at]) || leaves(lines, &lines[*at]));
    let mut address = |at: usize| {
        let mut to = Register::RDI;
        let from = at.saturating_sub(FAR);
        for i in lines[from..at].iter().rev() {
            if !info.writes(i, to) {
                continue;
            }
            if let Some(place) = gives(i) {
                return Some((at, place));
            }
            if i.mnemonic() != Mnemonic::Mov || i.op1_kind() != OpKind::Register {
                return None;
            }
            to = i.op1_register();
        }
        None
    };
    calls.filter_map(&mut address).collect()
}

/// Is it a jump to another function?
fn leaves(lines: &[Instruction], i: &Instruction) -> bool {
    let own = lines[0].ip()..=lines[lines.len() - 1].ip();
    match i.flow_control() {
        FlowControl::UnconditionalBranch => !own.contains(&i.near_branch_target()),
        FlowControl::IndirectBranch => i.op0_kind() == OpKind::Memory,
        _ => false,
    }
}

/// Does another function get later what this call gives?
fn is_lock(lines: &[Instruction], given: &[(usize, u64)], call: usize) -> bool {
    let Some((_, lock)) = given.iter().find(|g| g.0 == call) else {
        return false;
    };
    let mut later = given.iter().filter(|g| g.0 > call && g.1 == *lock);
    later.any(|g| function(&lines[g.0]) != function(&lines[call]))
}

/// What is called, as far as the instruction says.
fn function(i: &Instruction) -> (u64, Register) {
    match i.op0_kind() {
        OpKind::NearBranch64 => (i.near_branch_target(), Register::None),
        OpKind::Memory if i.is_ip_rel_memory_operand() => {
            (i.ip_rel_memory_address(), Register::RIP)
        }
        OpKind::Memory => (i.memory_displacement64(), Register::RAX),
        _ => (0, i.op0_register()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn found(code: &[u8]) -> Vec<usize> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        asked(&lines, &mut Info::new())
    }

    /// cmp qword [r12], 0; jne +32; lea rbx, [rip+0x100]; mov rdi, rbx; call [rax+8];
    /// cmp qword [r12], 0; jne +4; mov [r12], rbp; mov rdi, rbx; call [rax+16]; ret
    const CODE: [u8; 38] = [
        0x49, 0x83, 0x3c, 0x24, 0, 0x75, 30, 0x48, 0x8d, 0x1d, 0, 1, 0, 0, 0x48, 0x89, 0xdf, 0xff,
        0x50, 8, 0x49, 0x83, 0x3c, 0x24, 0, 0x75, 4, 0x49, 0x89, 0x2c, 0x24, 0x48, 0x89, 0xdf,
        0xff, 0x50, 16, 0xc3,
    ];

    fn with(changes: &[(usize, u8)]) -> Vec<usize> {
        let mut code = CODE;
        changes.iter().for_each(|c| code[c.0] = c.1);
        found(&code)
    }

    #[test]
    fn what_two_functions_are_given_is_a_lock() {
        assert_eq!(found(&CODE), [0]);
        assert_eq!(with(&[(36, 8)]), [], "the same function again");
        assert_eq!(with(&[(33, 0xef)]), [], "something else: mov rdi, rbp");
        assert_eq!(
            with(&[(8, 0x8b)]),
            [],
            "what a word there points to: mov rbx"
        );
    }

    #[test]
    fn the_word_may_have_another_name_then() {
        // cmp qword [rdi], 0; jne; mov r12, rdi; ...
        let begin = [0x48, 0x83, 0x3f, 0, 0x75, 33, 0x49, 0x89, 0xfc];
        assert_eq!(found(&[&begin, &CODE[7..]].concat()), [0]);
        // mov r12, rsi
        let begin = [0x48, 0x83, 0x3f, 0, 0x75, 33, 0x49, 0x89, 0xf4];
        assert_eq!(found(&[&begin, &CODE[7..]].concat()), []);
    }

    #[test]
    fn what_is_asked_for_is_asked_again_and_made() {
        assert_eq!(with(&[(22, 0x7d)]), [], "another word is asked for: [r13]");
        assert_eq!(
            with(&[(27, 0x48), (30, 0x20)]),
            [],
            "another one is made: [rax]"
        );
        assert_eq!(with(&[(5, 0x7f)]), [], "whether it is larger");
    }
}
