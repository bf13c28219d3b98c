//! Loads that decide about order: what they find, another thread has stored to tell this one something. Where threads
//! run in parallel such a load is logged, as atomic instructions are.
//!
//! No opcode shows them; what stands around them does:
//! - a load in a loop that waits (`polled.rs`);
//! - a load of the operand of an atomic instruction: in the same function, or, where the word lies at a fixed place,
//!   anywhere in the file; or of a word at a fixed place that is volatile (`volatile.rs`), anywhere;
//! - a load that makes what a compare-and-exchange expects, or what another atomic instruction stores or adds (`seed.rs`);
//! - a load in a function with atomic instructions (or fences, or `pause`, or calls of `syscall` for a futex) whose value is compared, or, of four bytes, whose
//!   address the function gives to another one: what a futex is expected to hold; or one of what lies on its stack and it
//!   gives away, in a loop that does not store there;
//! - a load of a word at a fixed place whose address is taken somewhere, for a function that is given it, and whose
//!   value is compared at once: a guard of something that is made once;
//! - a load by which a function asks whether a word at a fixed place has been made yet (`once.rs`);
//! - one by which a function asks that of an object before it takes a lock, asks again, and makes it (`doubly.rs`);
//! - a load of a function's address that is made while the program runs (`pointer.rs`);
//! - a load of a byte that a compiler would have compared in memory, were it not atomic (`unfolded.rs`);
//! - the load of a function that is known by its name to load what is atomic (`getters.rs`);
//! - a byte that a function sets before it waits for a condition (`asleep.rs`).
//!
//! In the C library itself only the first three, and what is compared with zero, or by a register, at a fixed place (is there
//! a free arena?) that a function with atomic instructions stores: what its functions do is ordered by hooks around them.
//!
//! Source: seed 2, sections 3 to 5 (what has to be ordered where the program says nothing).

#[cfg(test)]
mod tests;
mod words;

use crate::classify::{Rmw, is_atomic, is_call};
use crate::constant::is_compare;
use crate::info::Info;
use crate::loops::Loop;
use crate::place::{Place, fixed_word};
use crate::twice::asks_twice;
use crate::{doubly, flag, getters, look, once, pointer, polled, seed, spin, unfolded};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::VecDeque;
pub use words::{GIVEN, Words};

/// The same where it must be compared at once.
const NEAR: usize = 3;
/// The number of the kernel's call futex.
const FUTEX: u64 = 202;
/// Within so many instructions behind its number a call's arguments are there.
const ARGUMENTS: usize = 12;
/// So many instructions behind a load are looked at for a compare.
const LONG: usize = 200;

/// A plain load, or a store, that the agent can do in the program's place.
pub fn plain(i: &Instruction) -> Option<Rmw> {
    look::any_load(i).or_else(|| store(i))
}

fn store(i: &Instruction) -> Option<Rmw> {
    look::any_store(i).filter(|_| i.memory_base() != Register::RSP)
}

/// Which of a function's instructions store what the loads that were found there, or its atomic instructions, or those of
/// the file, look at. With them in order the loads need not guess who stored what they find.
pub fn stores(
    lines: &[Instruction],
    found: &[usize],
    words: &Words,
    info: &mut Info,
) -> Vec<usize> {
    if words.in_c_library {
        return Vec::new();
    }
    let mut places: Vec<Place> = (0..lines.len())
        .filter(|at| is_atomic(&lines[*at]) || found.binary_search(at).is_ok())
        .flat_map(|at| Place::names(&lines[..=at], info))
        .collect();
    places.sort_unstable();
    let is_one = |at: &usize| {
        let i = &lines[*at];
        let is_word = |w: u64| words.atomic.binary_search(&w).is_ok();
        let mut is_named = || {
            let mut names = Place::names(&lines[..=*at], info).into_iter();
            names.any(|n| places.binary_search(&n).is_ok())
        };
        store(i).is_some()
            && (fixed_word(i).is_some_and(is_word)
                || words.asleep.is_one(i)
                || !places.is_empty() && is_named())
    };
    (0..lines.len()).filter(is_one).collect()
}

/// Which of a function's instructions, all of them in order, are such loads.
pub fn ordered(
    lines: &[Instruction],
    loops: &[Loop],
    words: &Words,
    info: &mut Info,
) -> Vec<usize> {
    let mut places: Vec<Place> = (0..lines.len())
        .filter(|at| is_atomic(&lines[*at]))
        .flat_map(|at| Place::names(&lines[..=at], info))
        .collect();
    places.sort_unstable();
    let frame = lines.iter().any(|i| {
        i.mnemonic() == Mnemonic::Mov
            && i.op0_register() == Register::RBP
            && i.op1_register() == Register::RSP
    });
    let meets_others = lines.iter().any(|i| is_atomic(i) || spin::is_sign(i))
        || !words.in_c_library && (asks_for_futex(lines) || asks_twice(lines, info));
    let arguments: Vec<Place> = lines.iter().filter_map(Place::given).collect();
    let mut decides = |at: usize| {
        let names = match places.is_empty() {
            true => Place::of(&lines[at]).into_iter().collect(),
            false => Place::names(&lines[..=at], info),
        };
        if names.iter().any(|n| places.binary_search(n).is_ok()) {
            return true;
        }
        let word = fixed_word(&lines[at]);
        if word.is_some_and(|w| words.atomic.binary_search(&w).is_ok()) {
            return true;
        }
        if words.in_c_library {
            return meets_others
                && word.is_some_and(|w| words.may_change(w))
                && asks_for_zero(&lines[at..], info);
        }
        let own = frame && lines[at].memory_base().full_register() == Register::RBP;
        word.is_some_and(|w| words.is_given(w)) && look::is_compared(&lines[at..], info)
            || meets_others && !own && reaches_compare(lines, at, info)
            || meets_others
                && lines[at].memory_size().size() == 4
                && names.iter().any(|n| arguments.contains(n))
    };
    let mut out: Vec<usize> = (0..lines.len())
        .filter(|at| {
            let i = &lines[*at];
            let is_load = look::load(i).is_some() || !words.in_c_library && computes(i);
            is_load && decides(*at)
        })
        .collect();
    let polled = polled::polled(lines, loops, &words.naps, info);
    let as_well = match words.in_c_library {
        true => Vec::new(),
        false => polled::asked_as_well(lines, &polled.waited_for),
    };
    if !words.in_c_library {
        // (What it does with such a word need not be a compare: Tcl closes the descriptor that it holds.)
        let as_well = polled::asked_as_well(lines, &polled.conditions);
        let is_fixed = |at: &usize| fixed_word(&lines[*at]).is_some();
        out.extend(as_well.into_iter().filter(is_fixed));
    }
    let polled = polled.all.into_iter().chain(as_well);
    out.extend(polled.filter(|at| reaches_compare(lines, *at, info)));
    if meets_others && !words.in_c_library {
        out.extend(polled::polled_on_stack(lines, loops, info));
        out.extend(beside_atomics_on_stack(lines));
    }
    if !words.in_c_library {
        out.extend(flag::asked(lines, info));
        out.extend(words.asleep.asked(lines, info));
        out.extend(getters::loaded(lines, &words.getters, info));
        out.extend(once::asked(lines, info));
        out.extend(doubly::asked(lines, &words.locks, info));
        let unfolded = unfolded::asked(lines, info);
        out.extend(unfolded::of_objects(lines, &unfolded));
        out.extend(unfolded);
        out.extend(pointer::called(lines, &words.pointers));
    }
    out.extend(seed::expected(lines, info));
    if !words.in_c_library {
        out.extend(seed::operands(lines, info));
    }
    out.retain(|at| words.may_meet_others(&lines[..=*at], info));
    out.sort_unstable();
    out.dedup();
    out
}

/// Is what is loaded added to something, or subtracted, at once? (What bits are changed of may be made of addresses, as the C
/// library's lists of free memory are.)
fn computes(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Add | Mnemonic::Sub)
        && look::arithmetic(i).is_some()
        && i.memory_base() != Register::RSP
}

/// The same, of a function that has no other sign.
pub fn only_compared(lines: &[Instruction], words: &Words, info: &mut Info) -> Vec<usize> {
    let mut out = match words.in_c_library {
        true => Vec::new(),
        false => unfolded::asked(lines, info),
    };
    out.retain(|at| words.may_meet_others(&lines[..=*at], info));
    out
}

/// Does the function wait for a futex, by the C library's `syscall`? It looks at the word before, as often as a signal ends
/// the wait.
fn asks_for_futex(lines: &[Instruction]) -> bool {
    let is_number = |i: &Instruction| {
        i.mnemonic() == Mnemonic::Mov
            && i.op0_register().full_register() == Register::RDI
            && matches!(i.op1_kind(), OpKind::Immediate32 | OpKind::Immediate32to64)
            && i.immediate(1) == FUTEX
    };
    let at = |k: &usize| is_number(&lines[*k]);
    (0..lines.len())
        .filter(at)
        .any(|k| lines[k..].iter().take(ARGUMENTS).any(is_call))
}

/// Loads of words on the stack on which the function is atomic (a semaphore that lies there until others have come).
fn beside_atomics_on_stack(lines: &[Instruction]) -> Vec<usize> {
    let place = |i: &Instruction| {
        let on_stack = i.memory_base() == Register::RSP && i.memory_index() == Register::None;
        on_stack.then(|| i.memory_displacement64())
    };
    let atomics = lines.iter().filter(|i| is_atomic(i));
    let places: Vec<u64> = atomics.filter_map(place).collect();
    let is_one = |at: &usize| {
        let i = &lines[*at];
        look::any_load(i).is_some() && place(i).is_some_and(|p| places.contains(&p))
    };
    (0..lines.len()).filter(is_one).collect()
}

/// Is the word that the first of these instructions loads compared with zero, or a register with it, at once? (A byte says whether there are
/// threads: that is known.)
fn asks_for_zero(rest: &[Instruction], info: &mut Info) -> bool {
    let first = &rest[0];
    let size = first.memory_size().size();
    match first.mnemonic() {
        Mnemonic::Cmp => {
            let is_one = match first.op1_kind() {
                OpKind::Register => false,
                OpKind::Memory => true,
                _ => first.immediate(1) == 0,
            };
            size >= 4 && is_one
        }
        Mnemonic::Mov => {
            let to = first.op0_register();
            let is_test = |i: &Instruction| {
                i.mnemonic() == Mnemonic::Test && i.op0_register() == to && i.op1_register() == to
            };
            let mut stays = rest[1..].iter().take(NEAR);
            let next = stays.find(|i| is_test(i) || info.writes(i, to));
            size >= 4 && next.is_some_and(is_test)
        }
        _ => false,
    }
}

/// Is the value that this instruction loads compared, itself or what is made of it, on any way that goes on from there?
fn reaches_compare(lines: &[Instruction], at: usize, info: &mut Info) -> bool {
    if is_compare(&lines[at]) || look::is_asked(&lines[at..]) {
        return true;
    }
    let mut seen = vec![at];
    let from = vec![lines[at].op0_register().full_register()];
    let mut open = VecDeque::from([(at + 1, from)]);
    while let Some((at, mut from)) = open.pop_front() {
        let Some(i) = lines.get(at).filter(|_| !seen.contains(&at)) else {
            continue;
        };
        if seen.len() > LONG {
            return false;
        }
        seen.push(at);
        let is_from = |r: Register| r.is_gpr() && from.contains(&r.full_register());
        let reads = info.read(i).any(is_from);
        // (What lies where it points to is another value.)
        let points = is_from(i.memory_base()) || is_from(i.memory_index());
        let reads = reads && (!points || i.mnemonic() == Mnemonic::Lea);
        if reads && (is_compare(i) || look::is_asked(&lines[at..])) {
            return true;
        }
        let made = info.written(i);
        match reads {
            true => from.extend(made),
            false => {
                let made: Vec<Register> = made.collect();
                from.retain(|r| !made.contains(r));
            }
        }
        if from.is_empty() {
            continue;
        }
        let there = |to: u64| lines.binary_search_by_key(&to, Instruction::ip);
        match i.flow_control() {
            FlowControl::Next => open.push_back((at + 1, from)),
            FlowControl::ConditionalBranch => {
                if let Ok(there) = there(i.near_branch_target()) {
                    open.push_back((there, from.clone()));
                }
                open.push_back((at + 1, from));
            }
            FlowControl::UnconditionalBranch => {
                open.extend(there(i.near_branch_target()).ok().map(|to| (to, from)));
            }
            _ => {}
        }
    }
    false
}
