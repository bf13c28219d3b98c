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

use crate::asleep::Asleep;
use crate::classify::{Rmw, is_atomic, is_call};
use crate::constant::is_compare;
use crate::info::Info;
use crate::loops::Loop;
use crate::naps::{Calls, Naps};
use crate::own::Own;
use crate::place::{Place, fixed_word};
use crate::twice::asks_twice;
use crate::{doubly, flag, getters, look, once, pointer, polled, seed, spin, unfolded};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::VecDeque;
use std::ops::Range;

/// The same where it must be compared at once.
const NEAR: usize = 3;
/// The number of the kernel's call futex.
const FUTEX: u64 = 202;
/// Within so many instructions behind its number a call's arguments are there.
const ARGUMENTS: usize = 12;
/// So many instructions behind a load are looked at for a compare.
const LONG: usize = 200;
/// So far behind an address that is taken a word may say whether what lies there has been made.
pub const GIVEN: u64 = 64;

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

/// Does it take the address of a word at a fixed place? Which?
pub fn gives(i: &Instruction) -> Option<u64> {
    (i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand())
        .then(|| i.ip_rel_memory_address())
}

/// What is known of words at fixed places.
#[derive(Debug, Default)]
pub struct Words {
    /// On these an atomic instruction of the file works, or they are volatile, or asked for. Sorted, when all are known.
    pub atomic: Vec<u64>,
    /// The addresses of these are taken. Sorted, too.
    pub given: Vec<u64>,
    /// Functions with atomic instructions may change these. Sorted, too.
    pub changed: Vec<u64>,
    /// At these lie addresses of functions that are made while the program runs. Sorted, too.
    pub pointers: Vec<u64>,
    /// Places of which nobody can change one, once the file has been loaded: tables of addresses, for one.
    pub constants: Vec<Range<u64>>,
    /// The file is the C library, whose functions have hooks, or a part of it.
    pub in_c_library: bool,
    /// It is the library alone, and not a program that it is a part of.
    pub is_shared: bool,
    /// Functions that load what is atomic. Sorted, too.
    pub getters: Vec<u64>,
    /// What is the thread's own.
    pub own: Own,
    /// Calls by which a thread takes a lock.
    pub locks: Calls,
    /// Calls by which a thread waits.
    pub naps: Naps,
    /// Bytes by which threads say that they wait for a condition.
    pub asleep: Asleep,
}

impl Words {
    /// All are known.
    pub fn finish(&mut self) {
        for all in [&mut self.atomic, &mut self.given, &mut self.changed] {
            all.sort_unstable();
            all.dedup();
        }
        self.naps.finish();
    }

    /// Is the operand of the last of these instructions neither the thread's own nor one that nobody changes?
    fn may_meet_others(&self, lines: &[Instruction], info: &mut Info) -> bool {
        let word = lines.last().and_then(fixed_word);
        word.is_none_or(|w| !self.is_constant(w)) && !self.own.is_one(lines, info)
    }

    /// Does it stay as it is?
    fn is_constant(&self, word: u64) -> bool {
        self.constants.iter().any(|places| places.contains(&word))
    }

    /// In the C library: may another thread change it, beside this one? (What it reads when it begins, malloc's limits for one, stays as
    /// it is.)
    fn may_change(&self, word: u64) -> bool {
        !self.is_shared || self.changed.binary_search(&word).is_ok()
    }

    /// May a load of this word decide about order, wherever it is?
    pub fn may_decide(&self, word: u64) -> bool {
        self.atomic.binary_search(&word).is_ok() || !self.in_c_library && self.is_given(word)
    }

    /// Does it lie in something whose address is taken?
    fn is_given(&self, word: u64) -> bool {
        let behind = self.given.partition_point(|g| *g <= word);
        behind > 0 && word - self.given[behind - 1] < GIVEN
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn found(code: &[u8], words: &Words) -> Vec<usize> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        ordered(&lines, &Loop::all(&lines), words, &mut Info::new())
    }

    fn atomic(word: u64) -> Words {
        Words {
            atomic: vec![word],
            ..Words::default()
        }
    }

    #[test]
    fn the_operand_of_an_atomic_is_loaded_elsewhere_in_the_function() {
        // mov eax, [rdi+8]; mov ecx, [rdi+16]; lock xadd [rdi+8], edx; ret
        let code = [
            0x8b, 0x47, 8, 0x8b, 0x4f, 16, 0xf0, 0x0f, 0xc1, 0x57, 8, 0xc3,
        ];
        assert_eq!(found(&code, &Words::default()), [0]);
    }

    #[test]
    fn a_fixed_word_on_which_another_function_is_atomic() {
        // mov rax, [rip+0x100]; ret
        let code = [0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xc3];
        assert_eq!(found(&code, &atomic(0x1107)), [0]);
        assert_eq!(found(&code, &atomic(0x1108)), []);
    }

    #[test]
    fn what_makes_what_a_compare_expects_may_lie_on_the_stack() {
        // mov eax, [rsp+0x40]; lea edx, [rax-1]; lock cmpxchg [rsp+0x40], edx; mov ecx, [rsp+0x48]; ret
        let code = [
            0x8b, 0x44, 0x24, 0x40, 0x8d, 0x50, 0xff, 0xf0, 0x0f, 0xb1, 0x54, 0x24, 0x40, 0x8b,
            0x4c, 0x24, 0x48, 0xc3,
        ];
        assert_eq!(found(&code, &Words::default()), [0]);
    }

    #[test]
    fn a_guard_is_compared_and_given_to_who_makes_what_it_guards() {
        // movzx eax, byte [rip+0x100]; test al, al; je +1; ret
        let code = [0x0f, 0xb6, 0x05, 0, 1, 0, 0, 0x84, 0xc0, 0x74, 1, 0xc3];
        let given = |word| Words {
            given: vec![word],
            ..Words::default()
        };
        assert_eq!(found(&code, &given(0x1107)), [0]);
        assert_eq!(found(&code, &given(0x10f0)), [0], "behind what it guards");
        assert_eq!(found(&code, &given(0x1108)), []);
        let hooked = Words {
            in_c_library: true,
            ..given(0x1107)
        };
        assert_eq!(found(&code, &hooked), []);
    }

    #[test]
    fn what_is_stored_where_it_is_loaded() {
        // mov eax, [rdi+8]; inc eax; mov [rdi+8], eax; mov [rdi+16], eax; cmp eax, 3; lock dec dword [rsi]; ret
        let code = [
            0x8b, 0x47, 8, 0xff, 0xc0, 0x89, 0x47, 8, 0x89, 0x47, 16, 0x83, 0xf8, 3, 0xf0, 0xff,
            0x0e, 0xc3,
        ];
        let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        let (words, info) = (Words::default(), &mut Info::new());
        let found = ordered(&lines, &Loop::all(&lines), &words, info);
        assert_eq!(found, [0]);
        let stores = stores(&lines, &found, &words, info);
        assert_eq!(stores, [2]);
    }

    #[test]
    fn what_a_futex_is_expected_to_hold() {
        // mov esi, [r12]; mov rdi, r12; call 0; lock dec dword [rbx]; ret
        let code = [
            0x41, 0x8b, 0x34, 0x24, 0x4c, 0x89, 0xe7, 0xe8, 0, 0, 0, 0, 0xf0, 0xff, 0x0b, 0xc3,
        ];
        assert_eq!(found(&code, &Words::default()), [0]);
        // Of eight bytes: mov rsi, [r12]
        let wide = [&[0x49], &code[1..]].concat();
        assert_eq!(found(&wide, &Words::default()), []);
    }

    #[test]
    fn what_cannot_change_decides_nothing() {
        // mov rax, [rip+0x100]; test rax, rax; lock dec dword [rdi]
        let code = [
            0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x48, 0x85, 0xc0, 0xf0, 0xff, 0x0f,
        ];
        assert_eq!(found(&code, &Words::default()), [0]);
        let table = Words {
            constants: vec![0x1100..0x1108, 0x2000..0x3000],
            ..Words::default()
        };
        assert_eq!(found(&code, &table), []);
    }

    #[test]
    fn in_the_c_library_a_word_is_asked_whether_it_is_zero_or_a_limit() {
        let hooked = Words {
            in_c_library: true,
            ..Words::default()
        };
        let beside_atomic = |code: &[u8]| {
            let atomic: &[u8] = &[0xf0, 0xff, 0x0f]; // lock dec dword [rdi]
            found(&[code, atomic].concat(), &hooked)
        };
        // mov eax, [rip+0x100]; test eax, eax
        assert_eq!(beside_atomic(&[0x8b, 0x05, 0, 1, 0, 0, 0x85, 0xc0]), [0]);
        // cmp dword [rip+0x100], 0
        assert_eq!(beside_atomic(&[0x83, 0x3d, 0, 1, 0, 0, 0]), [0]);
        // cmp rcx, [rip+0x100]: a limit, which malloc's free raises in one thread and asks for in another.
        assert_eq!(beside_atomic(&[0x48, 0x3b, 0x0d, 0, 1, 0, 0]), [0]);
        // mov rax, [rip+0x100]; mov rax, fs:[rax]; test rax, rax: where a thread's own word is.
        let own = [
            0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x64, 0x48, 0x8b, 0, 0x48, 0x85, 0xc0,
        ];
        assert_eq!(beside_atomic(&own), []);
    }

    /// Malloc's limits, which its functions ask for each time: loads of theirs were most of what some programs logged.
    #[test]
    fn in_the_c_library_what_is_set_once_decides_nothing() {
        // cmp rcx, [rip+0x100]; lock dec dword [rdi]
        let code = [0x48, 0x3b, 0x0d, 0, 1, 0, 0, 0xf0, 0xff, 0x0f];
        let library = |changed| Words {
            in_c_library: true,
            is_shared: true,
            changed,
            ..Words::default()
        };
        assert_eq!(found(&code, &library(vec![])), []);
        assert_eq!(found(&code, &library(vec![0x1107])), [0]);
    }

    #[test]
    fn a_loop_that_stores_nothing_polls() {
        // mov eax, [rdi]; mov ecx, [rsi]; sub eax, ecx; cmp eax, 16; je -11
        let code = [
            0x8b, 0x07, 0x8b, 0x0e, 0x29, 0xc8, 0x83, 0xf8, 16, 0x74, 0xf5,
        ];
        assert_eq!(found(&code, &Words::default()), [0, 1]);
        // The same with mov [rdx], eax in it.
        let stores = [
            0x8b, 0x07, 0x8b, 0x0e, 0x89, 0x02, 0x29, 0xc8, 0x83, 0xf8, 16, 0x74, 0xf3,
        ];
        assert_eq!(found(&stores, &Words::default()), []);
    }

    #[test]
    fn what_is_compared_beside_an_atomic_instruction() {
        // mov eax, [rsi]; lea ecx, [rax+1]; cmp ecx, edx; lock inc dword [rdi]
        let code = [0x8b, 0x06, 0x8d, 0x48, 1, 0x39, 0xd1, 0xf0, 0xff, 0x07];
        assert_eq!(found(&code, &Words::default()), [0]);
        // mov rax, [rsi]; cmp [rax], edx: a load of its own; the pointer itself is not compared.
        let points = [0x48, 0x8b, 0x06, 0x39, 0x10, 0xf0, 0xff, 0x07];
        assert_eq!(found(&points, &Words::default()), [1]);
        // Without an atomic instruction.
        assert_eq!(found(&code[..7], &Words::default()), []);
    }
}
