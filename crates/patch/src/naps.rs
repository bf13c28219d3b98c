//! Functions by which a thread that waits gives its processor away, or sleeps for a while, or until there is something to
//! read: a loop that calls one of them looks again each time at what it waits for, or is to end by.

use crate::elf::{Image, Symbol, u32_at, u64_at};
use iced_x86::{Code, FlowControl, Instruction, OpKind};
use std::ops::Range;

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
/// Tables of relocations: address, length in bytes.
const TABLES: [(u64, u64); 2] = [(7, 8), (23, 2)];
/// Of a symbol's address, for data and for calls.
const KINDS: [u32; 2] = [6, 7];

const NAMES: [&[u8]; 19] = [
    b"sched_yield",
    b"__sched_yield",
    b"pthread_yield",
    b"thrd_yield",
    b"thrd_sleep",
    b"nanosleep",
    b"__nanosleep",
    b"clock_nanosleep",
    b"usleep",
    b"sleep",
    b"select",
    b"pselect",
    b"poll",
    b"ppoll",
    b"__poll_chk",
    b"__ppoll_chk",
    b"epoll_wait",
    b"epoll_pwait",
    // std::this_thread::__sleep_for
    b"_ZNSt11this_thread11__sleep_forENSt6chrono8durationIlSt5ratioILl1ELl1EEEENS1_IlS2_ILl1ELl1000000000EEEE",
];
/// Functions in which a thread waits for a condition.
const CONDITIONS: [&[u8]; 3] = [
    b"pthread_cond_wait",
    b"pthread_cond_timedwait",
    b"pthread_cond_clockwait",
];
/// C++'s std::condition_variable::wait.
const CONDITION_OF_CPP: &[u8] = b"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE";
/// Functions in which a thread waits for others or for input, and holds no lock meanwhile.
const WAITS: [&[u8]; 12] = [
    b"sem_wait",
    b"sem_timedwait",
    b"sem_clockwait",
    b"accept",
    b"accept4",
    b"recv",
    b"recvfrom",
    b"recvmsg",
    b"__recv_chk",
    b"__recvfrom_chk",
    b"read",
    b"__read_chk",
];
/// A function of so many bytes that calls one of them is one itself.
const WRAPPER: u64 = 64;
/// One that waits for a condition, and takes the lock.
const WITH_LOCK: u64 = 96;
/// Wrappers of wrappers.
const DEEP: usize = 3;

/// Where functions are called: addresses of them and of stubs, and of the words that hold such addresses.
#[derive(Debug, Default)]
pub struct Calls {
    /// Sorted.
    known: Vec<u64>,
}

impl Calls {
    /// By name: those that the file has, and the words of those that it takes from others.
    pub fn named(image: &Image, symbols: &[Symbol], names: &[&[u8]]) -> Calls {
        let is_one = |name: &[u8]| names.contains(&name);
        let own = symbols.iter().filter(|s| is_one(s.name)).map(|s| s.value);
        let mut known: Vec<u64> = own.collect();
        for (table, len) in TABLES {
            known.extend(words(image, table, len, is_one).unwrap_or_default());
        }
        for segment in image.segments.iter().filter(|s| s.exec) {
            let bytes = image.tail(segment.vaddr).unwrap_or_default();
            known.extend(stubs(bytes, segment.vaddr, &known));
        }
        known.sort_unstable();
        Calls { known }
    }

    /// To functions at these addresses.
    #[cfg(test)]
    pub fn at(known: Vec<u64>) -> Calls {
        Calls { known }
    }

    /// Those by which this file waits for conditions.
    pub fn of_conditions(image: &Image, symbols: &[Symbol]) -> Calls {
        Calls::named(image, symbols, &CONDITIONS)
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Does it call one of them?
    pub fn is_called(&self, i: &Instruction) -> bool {
        called(i).is_some_and(|t| self.has(t))
    }

    fn has(&self, at: u64) -> bool {
        self.known.binary_search(&at).is_ok()
    }

    fn add(&mut self, more: Vec<u64>) {
        self.known.extend(more);
        self.known.sort_unstable();
        self.known.dedup();
    }
}

/// Where a thread gives its processor away or sleeps, also by short functions of the file's own; and where it waits.
#[derive(Debug, Default)]
pub struct Naps {
    naps: Calls,
    waits: Calls,
    conditions: Calls,
    /// These, and those of C++.
    all_conditions: Calls,
    /// Short functions: an address, what they call, and how long they are.
    short: Vec<(u64, u64, u64)>,
}

impl Naps {
    pub fn of(image: &Image, symbols: &[Symbol]) -> Naps {
        Naps {
            naps: Calls::named(image, symbols, &NAMES),
            waits: Calls::named(image, symbols, &WAITS),
            conditions: Calls::of_conditions(image, symbols),
            all_conditions: Calls::named(
                image,
                symbols,
                &[&CONDITIONS[..], &[CONDITION_OF_CPP]].concat(),
            ),
            short: Vec::new(),
        }
    }

    /// By functions at these addresses.
    #[cfg(test)]
    pub fn at(naps: Vec<u64>, waits: Vec<u64>, conditions: Vec<u64>) -> Naps {
        Naps {
            naps: Calls::at(naps),
            waits: Calls::at(waits),
            all_conditions: Calls::at(conditions),
            ..Naps::default()
        }
    }

    /// An instruction of a function.
    pub fn see(&mut self, i: &Instruction, function: Range<u64>) {
        let bytes = function.end - function.start;
        if bytes <= WITH_LOCK
            && let Some(target) = target(i)
        {
            self.short.push((function.start, target, bytes));
        }
    }

    /// All have been seen.
    pub fn finish(&mut self) {
        let made = std::mem::take(&mut self.short);
        // (Who waits for a condition without a function of its own holds the lock that what it looks at is under.)
        let with_lock = made.iter().filter(|m| self.conditions.has(m.1));
        self.waits.add(with_lock.map(|m| m.0).collect());
        for known in [&mut self.naps, &mut self.waits] {
            for _ in 0..DEEP {
                let more = made.iter().filter(|m| m.2 <= WRAPPER && known.has(m.1));
                let more = more.map(|m| m.0).collect();
                known.add(more);
            }
        }
    }

    /// Is one of them called there?
    pub fn has(&self, at: u64) -> bool {
        self.naps.has(at) || self.waits.has(at) || self.all_conditions.has(at)
    }

    /// Does it call one in which a thread waits for a condition?
    pub fn is_for_condition(&self, i: &Instruction) -> bool {
        self.all_conditions.is_called(i)
    }

    /// Does it call a function by which a thread naps?
    pub fn is_nap(&self, i: &Instruction) -> bool {
        self.naps.is_called(i)
    }

    /// Does it call one in which a thread waits?
    pub fn is_wait(&self, i: &Instruction) -> bool {
        self.waits.is_called(i)
    }
}

/// The linker's stubs that jump by one of these words, with what stands before the jump.
fn stubs(bytes: &[u8], vaddr: u64, words: &[u64]) -> Vec<u64> {
    const JUMP: [u8; 2] = [0xff, 0x25];
    const BEFORE: [&[u8]; 2] = [&[0xf3, 0x0f, 0x1e, 0xfa], &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2]];
    let mut out = Vec::new();
    for at in 0..bytes.len().saturating_sub(JUMP.len() + 4) {
        if bytes[at..at + 2] != JUMP {
            continue;
        }
        let distance = u32_at(bytes, at + 2).unwrap_or(0) as i32;
        let here = vaddr + at as u64;
        let word = (here + 6).wrapping_add_signed(i64::from(distance));
        if words.contains(&word) {
            out.push(here);
            let before = BEFORE.iter().filter(|b| bytes[..at].ends_with(b));
            out.extend(before.map(|b| here - b.len() as u64));
        }
    }
    out
}

/// What it calls, as [`target`] has it.
pub fn called(i: &Instruction) -> Option<u64> {
    let calls = matches!(
        i.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    );
    target(i).filter(|_| calls)
}

/// What a call or jump leads to: a function, or the word that holds its address.
fn target(i: &Instruction) -> Option<u64> {
    let by_word =
        matches!(i.code(), Code::Call_rm64 | Code::Jmp_rm64) && i.is_ip_rel_memory_operand();
    let leads = matches!(
        i.flow_control(),
        FlowControl::Call | FlowControl::UnconditionalBranch
    );
    if by_word {
        Some(i.ip_rel_memory_address())
    } else if leads && i.op0_kind() == OpKind::NearBranch64 {
        Some(i.near_branch_target())
    } else {
        None
    }
}

/// The words of a table of relocations that get the addresses of such functions.
fn words(image: &Image, table: u64, len: u64, is_one: impl Fn(&[u8]) -> bool) -> Option<Vec<u64>> {
    let table = image.bytes(image.dynamic(table)?, image.dynamic(len)?)?;
    let symbols = image.tail(image.dynamic(DT_SYMTAB)?)?;
    let names = image.tail(image.dynamic(DT_STRTAB)?)?;
    let name = |number: u32| {
        let entry = symbols.get((number as usize).checked_mul(24)?..)?;
        let name = names.get(u32_at(entry, 0)? as usize..)?;
        name.split(|b| *b == 0).next()
    };
    let word = |entry: &[u8]| {
        let (at, info) = (u64_at(entry, 0)?, u64_at(entry, 8)?);
        let wanted =
            KINDS.contains(&(info as u32)) && name((info >> 32) as u32).is_some_and(&is_one);
        wanted.then_some(at)
    };
    Some(table.chunks_exact(24).filter_map(word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_condition_by_a_function_of_its_own_waits() {
        let mut naps = Naps {
            waits: Calls::at(vec![0x4000]),
            conditions: Calls::at(vec![0x5000]),
            ..Naps::default()
        };
        naps.see(&jump(0x5000), 0x1000..0x1050);
        // One of another one, and a long one.
        naps.see(&jump(0x1000), 0x2000..0x2010);
        naps.see(&jump(0x5000), 0x3000..0x3070);
        naps.finish();
        let waits = |at| naps.waits.has(at);
        assert!(waits(0x1000) && waits(0x2000) && waits(0x4000));
        assert!(!waits(0x3000) && !waits(0x5000));
    }

    fn jump(to: u64) -> Instruction {
        Instruction::with_branch(Code::Jmp_rel32_64, to).expect("it is near")
    }
}
