//! Are two threads, of two replicas, in the same state? Their registers, and whatever their processes could
//! have written: two rounds of a loop may differ in nothing but one word somewhere.

use super::Writing;
use super::alike::Alike;
use crate::block::Piece;
use crate::block_field;
use crate::maps::{AddressSpace, Pages};
use anyhow::Result;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{AGENT_BASE, MAX_THREADS, RESERVED_END};
use geryon_tracee::{Pid, Regs, RemoteMemory};
use std::mem::offset_of;
use std::ops::Range;

/// Bytes below the stack pointer that a function may use without moving it (System V ABI).
const RED_ZONE: u64 = 128;
/// Bytes that are compared at once.
const CHUNK: u64 = 256 << 10;
/// More words than that are not told apart: the states differ.
const MOST_WORDS: usize = 512;

/// General registers as the program has them, in one order; names of what they mean.
pub fn general(r: &Regs, writing: Writing) -> [u64; 18] {
    /// The resume flag and the trap flag are a debugger's.
    const DEBUGGERS: u64 = 1 << 16 | 1 << 8;
    [
        r.rip,
        r.rsp,
        r.rbp,
        r.rax,
        r.rbx,
        r.rcx,
        r.rdx,
        r.rsi,
        r.rdi,
        r.r8,
        r.r9,
        r.r10,
        r.r11,
        r.r12,
        r.r13,
        r.r14,
        r.r15,
        r.eflags & !DEBUGGERS,
    ]
    .map(|value| writing.name(value))
}

/// Vector registers, from what XSAVE writes: without what says which parts were in use; names of what they mean.
pub fn vectors(mut area: Vec<u8>, writing: Writing) -> Vec<u8> {
    let end = area.len().min(576);
    area[end.min(464)..end].fill(0);
    for word in area.as_chunks_mut::<8>().0 {
        *word = writing.name(u64::from_le_bytes(*word)).to_le_bytes();
    }
    area
}

/// One of the two processes.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Its id.
    pub pid: Pid,
    /// Its memory.
    pub memory: &'a RemoteMemory,
    /// How it writes what all mean.
    pub writing: Writing,
}

/// A word in which they differ: its name, and what both hold there (names of addresses).
pub type Word = (u64, [u64; 2]);

/// The words of private writable memory in which two processes differ, in the order of their addresses, as
/// many as [`MOST_WORDS`]; but for Geryon's own, and what lies below the stack pointers of the first one's threads
/// (`computes`: the one whose registers are known), and what is in `others`. `stack_only`: of that thread's stack.
pub fn differing(
    sides: [Side; 2],
    computes: &Regs,
    stack_only: bool,
    others: &[Range<u64>],
) -> Result<Vec<Word>> {
    let dead = dead_stacks(sides[0], computes)?;
    let is_left_out = |at: u64| dead.iter().chain(others).any(|bytes| bytes.contains(&at));
    let alike = Alike {
        sides: sides.map(|side| side.writing),
    };
    let mut out = Vec::new();
    let mut pages = Vec::new();
    for side in sides {
        let own = Pages::own_of(side.pid)?;
        pages.extend(
            own.into_iter()
                .map(|(at, len)| (side.writing.layout.name(at), len)),
        );
    }
    if stack_only {
        let own = AddressSpace::open(sides[0].pid)?.own_writable()?;
        let stack = own
            .iter()
            .find(|m| (m.0..m.0 + m.1).contains(&computes.rsp));
        let stack = stack.map(|(at, len)| (sides[0].writing.layout.name(*at), *len));
        pages.retain(|p| stack.is_some_and(|s| (s.0..s.0 + s.1).contains(&p.0)));
    }
    let mut buffers = [Vec::new(), Vec::new()];
    for (start, len) in joined(pages) {
        let mut at = start;
        while at < start + len {
            let part = (start + len - at).min(CHUNK);
            for (side, buffer) in sides.iter().zip(&mut buffers) {
                buffer.resize(part as usize, 0);
                side.memory.read(side.writing.layout.place(at), buffer)?;
            }
            if buffers[0] != buffers[1] {
                let (ours, _) = buffers[0].as_chunks::<8>();
                let (theirs, _) = buffers[1].as_chunks::<8>();
                for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
                    let name = at + 8 * i as u64;
                    let same = || alike.at([&buffers[0], &buffers[1]], 8 * i);
                    if a != b && !is_left_out(name) && !same() {
                        let words = [(a, sides[0]), (b, sides[1])];
                        let named =
                            words.map(|(w, side)| side.writing.name(u64::from_le_bytes(*w)));
                        out.push((name, named));
                    }
                }
                if out.len() > MOST_WORDS {
                    out.truncate(MOST_WORDS);
                    return Ok(out);
                }
            }
            at += part;
        }
    }
    Ok(out)
}

/// Sorted, without what is there twice, neighbours together, without Geryon's own.
fn joined(mut pages: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    pages.retain(|(start, _)| !(AGENT_BASE..RESERVED_END).contains(start));
    pages.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (start, len) in pages {
        match out.last_mut() {
            Some((from, had)) if *from + *had >= start => {
                *had = (*had).max(start + len - *from);
            }
            _ => out.push((start, len)),
        }
    }
    out
}

/// What lies below the stack pointers of the process's threads, down to where their stacks' mappings begin.
fn dead_stacks(side: Side, computes: &Regs) -> Result<Vec<Range<u64>>> {
    let space = AddressSpace::open(side.pid)?;
    let mut tops = vec![computes.rsp];
    for slot in 0..MAX_THREADS {
        let head = Piece::read(side.memory, slot, crate::block::HEAD);
        if head.word(block_field!(this)) == 0 {
            break;
        }
        let in_hook = head.word(block_field!(hook_rsp));
        let lives = head.word(block_field!(free)) as u32 == 0;
        let frame = head.word(block_field!(frame));
        if lives && (frame != 0 || in_hook != 0) {
            tops.push(match in_hook {
                0 => side.memory.word(frame + offset_of!(Frame, rsp) as u64)?,
                at => at,
            });
        }
    }
    let own = space.own_writable()?;
    let dead = |top: &u64| {
        let stack = own
            .iter()
            .find(|(start, len)| (*start..*start + *len).contains(top))?;
        let end = top.saturating_sub(RED_ZONE).max(stack.0);
        let layout = side.writing.layout;
        Some(layout.name(stack.0)..layout.name(end))
    };
    Ok(tops.iter().filter_map(dead).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::PAGE_BYTES;

    #[test]
    fn pages_of_both_are_looked_at_once() {
        let p = PAGE_BYTES;
        let pages = vec![(4 * p, 2 * p), (5 * p, p), (AGENT_BASE, p), (8 * p, p)];
        assert_eq!(joined(pages), [(4 * p, 2 * p), (8 * p, p)]);
    }

    #[test]
    fn a_debuggers_flags_do_not_count() {
        // SAFETY: plain numbers.
        let mut regs: Regs = unsafe { std::mem::zeroed() };
        let none = Writing::default();
        let before = general(&regs, none);
        regs.eflags = 1 << 16;
        assert_eq!(general(&regs, none), before);
        regs.eflags = 1;
        assert_ne!(general(&regs, none), before);
    }
}
