//! Places to which a thread comes again and again while it waits for another one without a call. Where one thread
//! runs at a time it waits there in vain until it gives its turn away.
//!
//! - Loads of what a loop reads at one place, to see whether somebody has stored there. A loop is a stretch from the
//!   target of a branch back to the branch. It waits when it says so (`pause`, the time stamp counter, which limits how
//!   long), or when it is short and stores nothing itself. Of its loads those count whose address stays the same all
//!   over the loop, and whose value is compared. (Compilers take all others out of such a loop.)
//! - Calls in short loops that go on until the function says something else.
//! - `pause`, and fences.

use crate::SiteKind;
use crate::classify::{Atomic, Rmw, atomic, is_call, number, site};
use crate::descriptor::{Op, Source};
use crate::naps::Naps;
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use std::ops::Range;

/// Most instructions of a loop that stores nothing.
const SHORT: usize = 12;
/// Most instructions of one that says that it waits.
const LONG: usize = 200;
/// Most of one that naps: a main loop, which asks each time what others have told it.
const LONGEST: usize = 2000;
/// So many instructions behind a load, or a call, its value is compared.
const NEAR: usize = 3;
/// So many instructions may make the address.
const DEEP: usize = 6;
/// So many instructions behind one that sets flags they are asked for.
const SOON: usize = 6;
/// Most bytes of a loop for which a function is looked at that has no other site.
const NARROW: u64 = 300;

/// Might the branch close a loop that waits?
pub fn may_wait(i: &Instruction) -> bool {
    let back = i.op0_kind() == OpKind::NearBranch64
        && matches!(
            i.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
    back && i.near_branch_target() <= i.ip() && i.ip() - i.near_branch_target() <= NARROW
}

/// A load that the agent can do in the program's place, and that others than this function may change.
pub fn load(i: &Instruction) -> Option<Rmw> {
    any_load(i).filter(|_| i.memory_base() != Register::RSP)
}

/// The same, on the stack, too.
pub fn any_load(i: &Instruction) -> Option<Rmw> {
    let thread_local = matches!(i.memory_segment(), Register::FS | Register::GS);
    if thread_local || matches!(i.memory_base(), Register::ESP | Register::EIP) {
        return None;
    }
    let size = i.memory_size().size();
    if !matches!(size, 1 | 2 | 4 | 8) {
        return None;
    }
    let of = |register: Register| match register {
        Register::AH | Register::BH | Register::CH | Register::DH => None,
        r => r.is_gpr().then(|| Source::Register(number(r))),
    };
    let (op, source) = match (i.mnemonic(), i.op0_kind(), i.op1_kind()) {
        (Mnemonic::Mov, OpKind::Register, OpKind::Memory) => (Op::Load, of(i.op0_register())?),
        (Mnemonic::Movzx, OpKind::Register, OpKind::Memory) if i.op0_register().size() >= 4 => {
            (Op::LoadZero, of(i.op0_register())?)
        }
        (Mnemonic::Movsx | Mnemonic::Movsxd, OpKind::Register, OpKind::Memory) => {
            let op = match i.op0_register().size() {
                4 => Op::LoadSign4,
                8 => Op::LoadSign8,
                _ => return None,
            };
            (op, of(i.op0_register())?)
        }
        (Mnemonic::Cmp, OpKind::Register, OpKind::Memory) => (Op::CompareTo, of(i.op0_register())?),
        (Mnemonic::Cmp, OpKind::Memory, OpKind::Register) => (Op::Compare, of(i.op1_register())?),
        (Mnemonic::Test, OpKind::Memory, OpKind::Register) => (Op::Test, of(i.op1_register())?),
        (Mnemonic::Cmp, OpKind::Memory, _) => {
            (Op::Compare, Source::Immediate(i.immediate(1) as i64))
        }
        (Mnemonic::Test, OpKind::Memory, _) => (Op::Test, Source::Immediate(i.immediate(1) as i64)),
        _ => return None,
    };
    Some(Rmw {
        op,
        size: size as u8,
        source,
    })
}

/// What has no operand that waits: `pause`, a fence, or a call.
pub fn bare(i: &Instruction) -> Rmw {
    Rmw {
        op: match i.mnemonic() {
            Mnemonic::Pause => Op::Pause,
            _ => Op::MayWait,
        },
        size: 8,
        source: Source::None,
    }
}

/// Which of a function's instructions, all of them in order, are such places.
pub fn waits(lines: &[Instruction]) -> Vec<usize> {
    let mut info = InstructionInfoFactory::new();
    let mut loops: Vec<Loop> = (0..lines.len())
        .filter_map(|at| Loop::closed_at(lines, at))
        .collect();
    // An instruction belongs to the innermost.
    loops.sort_by_key(|l| l.body.len());
    let mut owned = vec![false; lines.len()];
    let (mut out, mut waiting): (Vec<usize>, Vec<&Loop>) = (Vec::new(), Vec::new());
    for l in &loops {
        let waits =
            l.says_so() || l.is_short() && l.asks_the_same(&mut info) && l.stores_own(&mut info);
        let whole = l.says_so() || l.stores_nothing(&mut info);
        if waits {
            waiting.push(l);
        }
        if waits && whole {
            out.extend(l.loads(&mut info).into_iter().filter(|k| !owned[*k]));
        }
        owned[l.range()].fill(true);
    }
    let loads = out.clone();
    for l in waiting {
        // Who comes to the agent, or to a load that waits, is counted there.
        let counted =
            l.body.iter().any(|i| site(i).is_some()) || loads.iter().any(|k| l.range().contains(k));
        if l.is_short() && !counted {
            out.extend(l.calls());
        }
    }
    out.extend((0..lines.len()).filter(|at| is_sign(&lines[*at])));
    out.sort_unstable();
    out.dedup();
    out
}

/// Loads in loops that wait (they say so, or nap), or store nothing and call nothing, whose address stays the same all over
/// the loop: compilers leave few there that nobody else may change. (In a long one that compares bytes, or indexes, they do.)
pub fn polled(lines: &[Instruction], naps: &Naps) -> Vec<usize> {
    let mut info = InstructionInfoFactory::new();
    let mut out = Vec::new();
    let is_nap = |i: &Instruction| naps.is_called(i);
    let are_naps = lines.iter().any(is_nap);
    let long = |at| Loop::of_length(lines, at, LONGEST).filter(|l| l.body.iter().any(is_nap));
    let closed = |at| {
        let short = Loop::closed_at(lines, at);
        short.or_else(|| are_naps.then(|| long(at)).flatten())
    };
    for l in (0..lines.len()).filter_map(closed) {
        let asks = l.is_short() && l.asks_the_same(&mut info);
        let calls = l.body.iter().any(is_call);
        let waits = l.says_so() || l.body.iter().any(|i| naps.is_called(i));
        if waits || (asks || !calls) && l.stores_nothing(&mut info) {
            let says = l.is_short() || waits;
            let is_one = |k: &usize| {
                let i = &l.body[*k];
                let is_word = i.memory_size().size() >= 4 && i.memory_index() == Register::None;
                load(i).is_some()
                    && (says || is_word)
                    && is_fixed(*k, &l.body, &mut info)
                    && (waits || !l.counts_up_to(*k, &mut info))
            };
            out.extend((0..l.body.len()).filter(is_one).map(|k| l.from + k));
        }
    }
    out
}

/// Loads of what lies on the stack, whose address the function gives away, in loops that do not store there; and behind
/// such a loop, too, for the last look may be there.
pub fn polled_on_stack(lines: &[Instruction]) -> Vec<usize> {
    /// So far behind an address that is given away its object may reach.
    const OBJECT: u64 = 64;
    let mut info = InstructionInfoFactory::new();
    let on_stack =
        |i: &Instruction| i.memory_base() == Register::RSP && i.memory_index() == Register::None;
    let place = Instruction::memory_displacement64;
    let given: Vec<u64> = lines
        .iter()
        .filter(|i| i.mnemonic() == Mnemonic::Lea && on_stack(i))
        .map(place)
        .collect();
    let escapes = |at: u64| given.iter().any(|g| at.wrapping_sub(*g) < OBJECT);
    let mut out = Vec::new();
    for l in (0..lines.len()).filter_map(|at| Loop::closed_at(lines, at)) {
        let is_one = |k: &usize| {
            let i = &l.body[*k];
            any_load(i).is_some()
                && on_stack(i)
                && escapes(place(i))
                && is_compared(&l.body[*k..], &mut info)
                && !l
                    .body
                    .iter()
                    .any(|s| on_stack(s) && place(s) == place(i) && stores(s, &mut info))
        };
        out.extend((0..l.body.len()).filter(is_one).map(|k| l.from + k));
    }
    let known: Vec<u64> = out.iter().map(|at| place(&lines[*at])).collect();
    let again = |at: &usize| {
        let i = &lines[*at];
        any_load(i).is_some()
            && on_stack(i)
            && known.contains(&place(i))
            && is_compared(&lines[*at..], &mut info)
    };
    out.extend((0..lines.len()).filter(again));
    out
}

/// A thread that waits comes to these anywhere: `pause`, and a fence between what it stores and what it loads.
pub fn is_sign(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Pause | Mnemonic::Mfence)
        || site(i) == Some(SiteKind::Rmw) && atomic(i) == Atomic::Fence
}

/// From the target of a branch back to that branch.
struct Loop {
    from: usize,
    /// What does not lead back (a function ends there, say) is left out: a nop stands there.
    body: Vec<Instruction>,
}

impl Loop {
    /// The one that this instruction closes, if it does, and it is not too long.
    fn closed_at(lines: &[Instruction], at: usize) -> Option<Loop> {
        Loop::of_length(lines, at, LONG)
    }

    fn of_length(lines: &[Instruction], at: usize, most: usize) -> Option<Loop> {
        let line = &lines[at];
        let closes = line.op0_kind() == OpKind::NearBranch64
            && (line.is_jcc_short_or_near() || line.is_jmp_short_or_near())
            && line.near_branch_target() <= line.ip();
        if !closes {
            return None;
        }
        let from = lines.partition_point(|l| l.ip() < line.near_branch_target());
        let is_start = lines[from].ip() == line.near_branch_target();
        if !is_start || at - from > most {
            return None;
        }
        let mut body = lines[from..=at].to_vec();
        // (Branches back lead to where a function ends with an error, too.)
        let round = comes_round(&body)?;
        for (i, comes) in body.iter_mut().zip(round) {
            if !comes {
                let (ip, len) = (i.ip(), i.len());
                *i = Instruction::with(Code::Nopd);
                i.set_len(len);
                i.set_ip(ip);
            }
        }
        Some(Loop { from, body })
    }

    /// Which instructions it has.
    fn range(&self) -> Range<usize> {
        self.from..self.from + self.body.len()
    }

    /// Does it say that it waits?
    fn says_so(&self) -> bool {
        let says = |i: &Instruction| {
            matches!(
                i.mnemonic(),
                Mnemonic::Pause | Mnemonic::Rdtsc | Mnemonic::Rdtscp
            )
        };
        self.body.iter().any(says)
    }

    fn is_short(&self) -> bool {
        self.body.len() <= SHORT
    }

    /// (What a call stores nobody sees here.)
    fn stores_nothing(&self, info: &mut InstructionInfoFactory) -> bool {
        !self.body.iter().any(|i| stores(i, info))
    }

    /// Does it store nowhere but in the function's own frame?
    fn stores_own(&self, info: &mut InstructionInfoFactory) -> bool {
        let own = |i: &Instruction| {
            i.mnemonic() == Mnemonic::Push
                || matches!(i.memory_base(), Register::RSP | Register::RBP)
        };
        !self.body.iter().any(|i| !own(i) && stores(i, info))
    }

    /// Its loads whose address stays the same, and whose value is compared.
    fn loads(&self, info: &mut InstructionInfoFactory) -> Vec<usize> {
        let is_one = |k: &usize| {
            load(&self.body[*k]).is_some()
                && is_fixed(*k, &self.body, info)
                && is_compared(&self.body[*k..], info)
        };
        let found = (0..self.body.len()).filter(is_one);
        found.map(|k| self.from + k).collect()
    }

    /// If it calls functions: with the same arguments in each turn, as far as it sets them, and it counts nothing
    /// that decides whether it goes on. (A loop that does something with each of many things is none that waits.)
    fn asks_the_same(&self, info: &mut InstructionInfoFactory) -> bool {
        let body = &self.body;
        let mut calls = (0..body.len()).filter(|k| is_call(&body[*k])).peekable();
        if calls.peek().is_none() {
            return true;
        }
        let counts = |register: Register| {
            body.iter().any(|i| {
                let changes = matches!(
                    i.mnemonic(),
                    Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Lea
                );
                changes && i.op0_register().full_register() == register
            })
        };
        let mut is_same = |call: usize, r: Register| {
            let set = (0..call).any(|k| !is_call(&body[k]) && writes(&body[k], r, info));
            !set || stays_at(r, call, body, DEEP, info)
        };
        let arguments = [Register::RDI, Register::RSI];
        !(0..body.len()).any(|k| self.decides(k, counts))
            && calls.all(|k| arguments.into_iter().all(|r| is_same(k, r)))
    }

    /// Is what is loaded there compared with a register that the loop changes? (It counts, and the word is where it ends.)
    fn counts_up_to(&self, at: usize, info: &mut InstructionInfoFactory) -> bool {
        let first = &self.body[at];
        let own = match compares(first) {
            true => Register::None,
            false => first.op0_register().full_register(),
        };
        let uses = |i: &&Instruction| {
            let named = [i.op0_register(), i.op1_register()].map(Register::full_register);
            compares(i) && (own == Register::None || named.contains(&own))
        };
        let Some(compare) = self.body[at..].iter().take(NEAR).find(uses) else {
            return false;
        };
        let named = [compare.op0_register(), compare.op1_register()];
        let mut others = named
            .into_iter()
            .filter(|r| r.is_gpr() && r.full_register() != own);
        others.any(|r| {
            let r = r.full_register();
            self.body.iter().any(|i| writes(i, r, info))
        })
    }

    /// The calls whose results decide whether it goes on.
    fn calls(&self) -> Vec<usize> {
        let is_one = |k: &usize| {
            let soon = k + 1..(k + 1 + NEAR).min(self.body.len());
            let decides = |n: usize| self.decides(n, |r| r == Register::RAX);
            is_call(&self.body[*k]) && soon.into_iter().any(decides)
        };
        let found = (0..self.body.len()).filter(is_one);
        found.map(|k| self.from + k).collect()
    }

    /// Does a jump depend on such a register, by this instruction?
    fn decides(&self, at: usize, of: impl Fn(Register) -> bool) -> bool {
        let i = &self.body[at];
        let jumps = self
            .body
            .get(at + 1)
            .is_some_and(Instruction::is_jcc_short_or_near);
        let compares = matches!(
            i.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Add | Mnemonic::Sub | Mnemonic::Dec
        );
        let mut operands = [i.op0_register(), i.op1_register()].into_iter();
        jumps && compares && operands.any(|r| r.is_gpr() && of(r.full_register()))
    }
}

/// Does it do nothing but compare?
fn compares(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt)
}

/// Does it compare, or does a branch, or what else depends on flags, depend on those that the first of these instructions sets?
pub fn is_asked(rest: &[Instruction]) -> bool {
    if compares(&rest[0]) {
        return true;
    }
    let mut open = rest[0].rflags_modified();
    for i in rest.iter().skip(1).take(SOON) {
        if open & i.rflags_read() != 0 {
            return true;
        }
        open &= !i.rflags_modified();
        if open == 0 || i.flow_control() != FlowControl::Next {
            return false;
        }
    }
    false
}

/// Which instructions of a loop its start leads to, and lead to its end. None: there is no way round.
fn comes_round(body: &[Instruction]) -> Option<Vec<bool>> {
    let next = |i: &Instruction| {
        let there = |to: u64| body.binary_search_by_key(&to, Instruction::ip).ok();
        let (falls, jumps) = match i.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => (true, false),
            FlowControl::ConditionalBranch => (true, true),
            FlowControl::UnconditionalBranch => (false, true),
            _ => (false, false),
        };
        let falls = falls.then(|| i.next_ip()).and_then(there);
        let jumps = jumps.then(|| i.near_branch_target()).and_then(there);
        falls.into_iter().chain(jumps)
    };
    let mut reached = vec![false; body.len()];
    let mut open = vec![0];
    while let Some(k) = open.pop() {
        if !std::mem::replace(&mut reached[k], true) {
            open.extend(next(&body[k]));
        }
    }
    let last = body.len() - 1;
    if !reached[last] {
        return None;
    }
    let mut leads = vec![false; body.len()];
    leads[last] = true;
    loop {
        let more = |k: &usize| !leads[*k] && reached[*k] && next(&body[*k]).any(|n| leads[n]);
        let found: Vec<usize> = (0..body.len()).rev().filter(more).collect();
        if found.is_empty() {
            return Some(leads);
        }
        found.into_iter().for_each(|k| leads[k] = true);
    }
}

/// Does it store something? (Not what a call stores.)
pub fn stores(i: &Instruction, info: &mut InstructionInfoFactory) -> bool {
    // What a call stores nobody sees here; a push is for one.
    if is_call(i) {
        return false;
    }
    let used = info.info(i);
    used.used_memory().iter().any(|m| {
        !matches!(
            m.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        )
    })
}

/// Does its address stay the same all over the loop?
fn is_fixed(at: usize, body: &[Instruction], info: &mut InstructionInfoFactory) -> bool {
    let i = &body[at];
    let parts = [i.memory_base(), i.memory_index()];
    let registers = parts.into_iter().filter(|r| r.is_gpr());
    registers
        .into_iter()
        .all(|r| stays_at(r.full_register(), at, body, DEEP, info))
}

/// Has the register the same value each time that the loop comes to this instruction? It is not written there, or
/// made anew from what has.
fn stays_at(
    register: Register,
    at: usize,
    body: &[Instruction],
    deep: usize,
    info: &mut InstructionInfoFactory,
) -> bool {
    if register == Register::RSP || !body.iter().any(|l| writes(l, register, info)) {
        return true;
    }
    let Some(made) = (0..at).rev().find(|k| writes(&body[*k], register, info)) else {
        return false;
    };
    if deep == 0 || body[made].flow_control() != FlowControl::Next {
        return false;
    }
    let used: Vec<Register> = info
        .info(&body[made])
        .used_registers()
        .iter()
        .filter(|u| u.register().is_gpr() && u.access() != OpAccess::Write)
        .map(|u| u.register().full_register())
        .collect();
    used.into_iter()
        .all(|r| stays_at(r, made, body, deep - 1, info))
}

fn writes(i: &Instruction, register: Register, info: &mut InstructionInfoFactory) -> bool {
    const KEPT: [Register; 6] = [
        Register::RBX,
        Register::RBP,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    if is_call(i) && !KEPT.contains(&register) {
        return true;
    }
    info.info(i).used_registers().iter().any(|u| {
        u.register().full_register() == register
            && !matches!(u.access(), OpAccess::Read | OpAccess::CondRead)
    })
}

/// Is its value compared at once, or soon?
pub fn is_compared(rest: &[Instruction], info: &mut InstructionInfoFactory) -> bool {
    let first = &rest[0];
    if matches!(first.mnemonic(), Mnemonic::Cmp | Mnemonic::Test) {
        return true;
    }
    let to = first.op0_register().full_register();
    for l in rest.iter().skip(1).take(NEAR) {
        if compares(l) {
            let uses = info
                .info(l)
                .used_registers()
                .iter()
                .any(|u| u.register().full_register() == to);
            if uses {
                return true;
            }
        }
        if writes(l, to, info) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn found(code: &[u8]) -> Vec<usize> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        waits(&decoder.into_iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_word_that_is_read_until_it_changes() {
        // mov eax, [rip+0x1000]; test eax, eax; je -10
        let plain = [0x8b, 0x05, 0, 0x10, 0, 0, 0x85, 0xc0, 0x74, 0xf6];
        assert_eq!(found(&plain), [0]);
        // mov eax, [rdi]; cmp eax, esi; pause; jne -8
        let pauses = [0x8b, 0x07, 0x39, 0xf0, 0xf3, 0x90, 0x75, 0xf8];
        assert_eq!(found(&pauses), [0, 2]);
    }

    #[test]
    fn a_list_is_followed_and_a_spilt_register_is_nobody_elses() {
        // mov rdi, [rdi]; test rdi, rdi; jne -8
        assert_eq!(found(&[0x48, 0x8b, 0x3f, 0x48, 0x85, 0xff, 0x75, 0xf8]), []);
        // mov eax, [rsp+8]; test eax, eax; je -8
        assert_eq!(found(&[0x8b, 0x44, 0x24, 0x08, 0x85, 0xc0, 0x74, 0xf8]), []);
    }

    #[test]
    fn a_function_that_is_called_until_it_says_yes() {
        // mov rdi, rbx; call 0; test al, al; je -12
        let asks = [0x48, 0x89, 0xdf, 0xe8, 0, 0, 0, 0, 0x84, 0xc0, 0x74, 0xf4];
        assert_eq!(found(&asks), [1]);
        // mov rdi, rbp; call 0; inc rbp; cmp [r12], rbp; jg -17
        let counts = [
            0x48, 0x89, 0xef, 0xe8, 0, 0, 0, 0, 0x48, 0xff, 0xc5, 0x49, 0x39, 0x2c, 0x24, 0x7f,
            0xef,
        ];
        assert_eq!(found(&counts), []);
    }

    #[test]
    fn a_branch_back_to_where_a_function_ends_closes_no_loop() {
        // xor eax, eax; ret; mov eax, [rdi]; test eax, eax; je -9
        let ends = [0x31, 0xc0, 0xc3, 0x8b, 0x07, 0x85, 0xc0, 0x74, 0xf7];
        assert_eq!(found(&ends), []);
    }

    #[test]
    fn fences_and_pauses_count_anywhere() {
        // lock or dword [rsp], 0; mfence; pause; ret
        let signs = [
            0xf0, 0x83, 0x0c, 0x24, 0, 0x0f, 0xae, 0xf0, 0xf3, 0x90, 0xc3,
        ];
        assert_eq!(found(&signs), [0, 1, 2]);
    }
}
