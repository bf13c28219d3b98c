//! Sites that somebody asks for, by their addresses: plain loads, stores and updates of memory that another thread uses at the same
//! time, as a detector of races has seen. Nothing in the code around them has to show that they decide about order.
//!
//! Source: seed 2, sections 3 to 5 (what has to be ordered where the program says nothing).

use crate::classify::{Atomic, Rmw, atomic, is_atomic, operation};
use crate::coverage::Piece;
use crate::elf::Image;
use crate::info::Info;
use crate::look::any_store;
use crate::place::Place;
use crate::{Options, SiteKind, look};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};

/// Which pieces hold such sites.
pub fn pieces(pieces: &[Piece], opts: &Options) -> Vec<usize> {
    let asked = opts.asked.iter().filter(|_| opts.loads);
    let of = |at: &u64| {
        let piece = pieces.partition_point(|p| p.end <= *at);
        pieces.get(piece).filter(|p| p.start <= *at).map(|_| piece)
    };
    asked.filter_map(of).collect()
}

/// Which of a function's instructions are such sites, and what each is: those that are asked for, and all others that work on the
/// same places. (A detector sees what has raced: what a thread loads right behind its own store seldom has.)
pub fn sites(lines: &[Instruction], asked: &[u64], info: &mut Info) -> Vec<(usize, SiteKind)> {
    let is_asked = |i: &Instruction| asked.contains(&i.ip());
    if !lines.iter().any(is_asked) {
        return Vec::new();
    }
    let mut names = |at: usize| Place::names(&lines[..=at], info);
    let of_asked = (0..lines.len()).filter(|at| is_asked(&lines[*at]));
    let places: Vec<Place> = of_asked.flat_map(&mut names).collect();
    let all = (0..lines.len()).filter_map(|at| Some((at, orderable(&lines[at])?)));
    all.filter(|(at, _)| is_asked(&lines[*at]) || names(*at).iter().any(|n| places.contains(n)))
        .collect()
}

/// What a plain instruction becomes that is to be ordered; None: the agent cannot do it in the program's place, or it is
/// ordered already.
pub fn orderable(i: &Instruction) -> Option<SiteKind> {
    if load(i).is_some() {
        return Some(SiteKind::Load);
    }
    if any_store(i).is_some() {
        return Some(SiteKind::Store);
    }
    is_update(i).then_some(SiteKind::Rmw)
}

/// A load or a store that the agent can do.
pub fn plain(i: &Instruction) -> Option<Rmw> {
    load(i).or_else(|| any_store(i))
}

fn load(i: &Instruction) -> Option<Rmw> {
    look::any_load(i).or_else(|| look::arithmetic(i))
}

/// What an instruction that races is to Geryon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It can be ordered, as this.
    Orderable(SiteKind),
    /// It is atomic, and ordered already.
    Ordered,
    /// The agent cannot do it in the program's place.
    Other,
}

/// What the instruction at a link-time address of an ELF file is.
#[must_use]
pub fn asked_at(elf: &[u8], vaddr: u64) -> Asked {
    let image = Image::parse(elf).ok();
    let Some(bytes) = image.as_ref().and_then(|i| i.tail(vaddr)) else {
        return Asked::Other;
    };
    let i = Decoder::with_ip(64, bytes, vaddr, DecoderOptions::NONE).decode();
    match orderable(&i) {
        Some(kind) => Asked::Orderable(kind),
        None if is_atomic(&i) => Asked::Ordered,
        None => Asked::Other,
    }
}

/// Does it change a word of memory, and not at once as an atomic instruction would? (To change it at once is one of the
/// ways in which it may come out.)
fn is_update(i: &Instruction) -> bool {
    let plain = !i.has_lock_prefix() && i.op0_kind() == OpKind::Memory;
    plain && operation(i.mnemonic()).is_some() && matches!(atomic(i), Atomic::Ordered(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: &[u8]) -> Option<SiteKind> {
        orderable(&Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode())
    }

    #[test]
    fn what_can_be_ordered() {
        // mov eax, [rdi]; mov [rsp+8], eax; add dword [rdi], 1; lock add dword [rdi], 1; movups xmm0, [rdi]; add eax, [rdi]
        assert_eq!(kind(&[0x8b, 0x07]), Some(SiteKind::Load));
        assert_eq!(kind(&[0x89, 0x44, 0x24, 8]), Some(SiteKind::Store));
        // (The stub gives the stack pointer back as it was.)
        assert_eq!(kind(&[0x48, 0x2b, 0x20]), None, "sub rsp, [rax]");
        assert_eq!(kind(&[0x48, 0x8b, 0x20]), None, "mov rsp, [rax]");
        assert_eq!(kind(&[0x83, 0x07, 1]), Some(SiteKind::Rmw));
        assert_eq!(kind(&[0xf0, 0x83, 0x07, 1]), None);
        assert_eq!(kind(&[0x0f, 0x10, 0x07]), None);
        assert_eq!(kind(&[0x03, 0x07]), Some(SiteKind::Load));
        // add ah, [rdi]; add eax, edi
        assert_eq!(kind(&[0x02, 0x27]), None);
        assert_eq!(kind(&[0x01, 0xf8]), None);
    }
}
