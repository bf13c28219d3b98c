//! Loops: a stretch of a function from the target of a branch back to the branch, what goes round in it, and what stays the
//! same there.

use crate::classify::is_call;
use crate::info::Info;
use crate::look::{NEAR, clobbers, compares, is_compared, load, stores};
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;

/// Most instructions of a loop that stores nothing.
const SHORT: usize = 12;
/// Most instructions of one that says that it waits.
const LONG: usize = 200;
/// Most of one that naps: a main loop, which asks each time what others have told it.
pub const LONGEST: usize = 2000;
/// So many instructions behind a compare a branch depends on it.
const SOON: usize = 6;
/// So many instructions may make the address.
const DEEP: usize = 6;

/// From the target of a branch back to that branch.
pub struct Loop {
    /// Its first instruction.
    pub from: usize,
    /// What does not lead back (a function ends there, say) is left out: a nop stands there.
    pub body: Vec<Instruction>,
    /// Which ones do.
    comes: Vec<bool>,
}

impl Loop {
    /// All of a function, but for those that are too long, by where they end.
    pub fn all(lines: &[Instruction]) -> Vec<Loop> {
        let closed = |at| Loop::closed_at(lines, at);
        (0..lines.len()).filter_map(closed).collect()
    }

    /// The branch that closes it.
    pub fn end(&self) -> usize {
        self.from + self.body.len() - 1
    }

    /// The one that this instruction closes, if it does, and it is not too long.
    fn closed_at(lines: &[Instruction], at: usize) -> Option<Loop> {
        Loop::of_length(lines, at, LONG)
    }

    pub fn of_length(lines: &[Instruction], at: usize, most: usize) -> Option<Loop> {
        let line = &lines[at];
        if !closes(line) {
            return None;
        }
        let from = lines.partition_point(|l| l.ip() < line.near_branch_target());
        let is_start = lines[from].ip() == line.near_branch_target();
        if !is_start || at - from > most {
            return None;
        }
        let mut body = lines[from..=at].to_vec();
        // (Branches back lead to where a function ends with an error, too.)
        let comes = comes_round(&body)?;
        for (i, comes) in body.iter_mut().zip(&comes) {
            if !*comes {
                let (ip, len) = (i.ip(), i.len());
                *i = Instruction::with(Code::Nopd);
                i.set_len(len);
                i.set_ip(ip);
            }
        }
        Some(Loop { from, body, comes })
    }

    /// Which instructions it has.
    pub fn range(&self) -> Range<usize> {
        self.from..self.from + self.body.len()
    }

    /// Does it say that it waits?
    pub fn says_so(&self) -> bool {
        let says = |i: &Instruction| {
            matches!(
                i.mnemonic(),
                Mnemonic::Pause | Mnemonic::Rdtsc | Mnemonic::Rdtscp
            )
        };
        self.body.iter().any(says)
    }

    pub fn is_short(&self) -> bool {
        self.body.len() <= SHORT
    }

    /// (What a call stores nobody sees here.)
    pub fn stores_nothing(&self, info: &mut Info) -> bool {
        !self.body.iter().any(|i| stores(i, info))
    }

    /// Does it store nowhere but in the function's own frame?
    pub fn stores_own(&self, info: &mut Info) -> bool {
        self.stores_own_but(|_| false, info)
    }

    /// The same, but for some instructions.
    pub fn stores_own_but(&self, but: impl Fn(&Instruction) -> bool, info: &mut Info) -> bool {
        let own = |i: &Instruction| {
            i.mnemonic() == Mnemonic::Push
                || matches!(i.memory_base(), Register::RSP | Register::RBP)
        };
        !self
            .body
            .iter()
            .any(|i| !own(i) && !but(i) && stores(i, info))
    }

    /// Its loads whose address stays the same, and whose value is compared.
    pub fn loads(&self, info: &mut Info) -> Vec<usize> {
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
    pub fn asks_the_same(&self, info: &mut Info) -> bool {
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
            let set = (0..call).any(|k| !is_call(&body[k]) && clobbers(&body[k], r, info));
            !set || stays_at(r, call, body, DEEP, info)
        };
        let arguments = [Register::RDI, Register::RSI];
        !(0..body.len()).any(|k| self.decides(k, counts))
            && calls.all(|k| arguments.into_iter().all(|r| is_same(k, r)))
    }

    /// Is what is loaded there compared with a register that the loop changes, or with what lies where the loop goes along? (It
    /// counts, and the word is where it ends; or it looks how many others are like the word.)
    pub fn counts_up_to(&self, at: usize, info: &mut Info) -> bool {
        let first = &self.body[at];
        let own = match compares(first) {
            true => Register::None,
            false => first.op0_register().full_register(),
        };
        let uses = |i: &&Instruction| {
            let named = [i.op0_register(), i.op1_register()].map(Register::full_register);
            compares(i) && (own == Register::None || named.contains(&own))
        };
        let near = at..self.body.len().min(at + NEAR);
        let Some(compare) = near.into_iter().find(|k| uses(&&self.body[*k])) else {
            return false;
        };
        if compare != at && !is_fixed(compare, &self.body, info) {
            return true;
        }
        let compare = &self.body[compare];
        let named = [compare.op0_register(), compare.op1_register()];
        let mut others = named
            .into_iter()
            .filter(|r| r.is_gpr() && r.full_register() != own);
        others.any(|r| {
            let r = r.full_register();
            self.body.iter().any(|i| clobbers(i, r, info))
        })
    }

    /// The calls whose results decide whether it goes on.
    pub fn calls(&self) -> Vec<usize> {
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

    /// Is what is loaded there compared, so that a branch that depends on it may lead out of the loop?
    pub fn ends_by(&self, at: usize, info: &mut Info) -> bool {
        let first = &self.body[at];
        let to = first.op0_register().full_register();
        let mut asks = |k: &usize| {
            let Some(i) = self.body.get(*k) else {
                return false;
            };
            compares(i) && info.uses(i, to)
        };
        let compare = match compares(first) {
            true => Some(at),
            false => (at + 1..=at + NEAR).find(|k| asks(k)),
        };
        let Some(compare) = compare else {
            return false;
        };
        let behind = self.body[compare + 1..].iter().take(SOON);
        let Some(branch) = behind.into_iter().find(|i| i.is_jcc_short_or_near()) else {
            return false;
        };
        [branch.next_ip(), branch.near_branch_target()]
            .into_iter()
            .any(|to| !self.has(to))
    }

    /// Is there an instruction that comes round at this address?
    fn has(&self, ip: u64) -> bool {
        let there = self.body.binary_search_by_key(&ip, Instruction::ip);
        there.is_ok_and(|k| self.comes[k])
    }
}

/// Does the branch lead back?
pub fn closes(line: &Instruction) -> bool {
    line.op0_kind() == OpKind::NearBranch64
        && (line.is_jcc_short_or_near() || line.is_jmp_short_or_near())
        && line.near_branch_target() <= line.ip()
}

/// Which instructions of a loop its start leads to, and lead to its end. None: there is no way round.
fn comes_round(body: &[Instruction]) -> Option<Vec<bool>> {
    let next = |k: usize| {
        let i = &body[k];
        let there = |to: u64| body.binary_search_by_key(&to, Instruction::ip).ok();
        let (falls, jumps) = match i.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => (true, false),
            FlowControl::ConditionalBranch => (true, true),
            FlowControl::UnconditionalBranch => (false, true),
            _ => (false, false),
        };
        let falls = falls.then_some(k + 1).filter(|k| *k < body.len());
        let jumps = jumps.then(|| i.near_branch_target()).and_then(there);
        [falls, jumps]
    };
    let next: Vec<[Option<usize>; 2]> = (0..body.len()).map(next).collect();
    let mut reached = vec![false; body.len()];
    let mut open = vec![0];
    while let Some(k) = open.pop() {
        if !std::mem::replace(&mut reached[k], true) {
            open.extend(next[k].into_iter().flatten());
        }
    }
    let last = body.len() - 1;
    if !reached[last] {
        return None;
    }
    let mut leads = vec![false; body.len()];
    leads[last] = true;
    loop {
        // (What jumps back is seen in the next pass.)
        let mut more = false;
        for k in (0..last).rev().filter(|k| reached[*k]) {
            if !leads[k] && next[k].into_iter().flatten().any(|n| leads[n]) {
                leads[k] = true;
                more = true;
            }
        }
        if !more {
            return Some(leads);
        }
    }
}

/// Does its address stay the same all over the loop?
pub fn is_fixed(at: usize, body: &[Instruction], info: &mut Info) -> bool {
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
    info: &mut Info,
) -> bool {
    if register == Register::RSP || !body.iter().any(|l| clobbers(l, register, info)) {
        return true;
    }
    let Some(made) = (0..at).rev().find(|k| clobbers(&body[*k], register, info)) else {
        return false;
    };
    if deep == 0 || body[made].flow_control() != FlowControl::Next {
        return false;
    }
    let used = info.read(&body[made]);
    used.into_iter()
        .all(|r| stays_at(r, made, body, deep - 1, info))
}
