//! Which bytes are known to be code: what an FDE covers and, where there is none,
//! what a function symbol covers. Tables inside `.text` are in neither.

use crate::classify::is_atomic;
use crate::elf::{Image, STT_FUNC, STT_GNU_IFUNC, Symbol};
use crate::frames::Frame;
use iced_x86::{Decoder, DecoderOptions, Instruction};

/// Less is padding, or a stub.
const STRETCH: u64 = 64;

/// Code that a linear sweep decodes from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub start: u64,
    pub end: u64,
    /// The return of a signal handler: unwinders know its bytes, so it stays as it is.
    pub signal: bool,
}

/// The covered pieces, by address, without overlap.
pub fn pieces(image: &Image, frames: &[Frame], symbols: &[Symbol]) -> Vec<Piece> {
    let from_frames = frames.iter().map(|f| Piece {
        start: f.start + u64::from(f.signal),
        end: f.end,
        signal: f.signal,
    });
    let mut out = settle(image, from_frames.collect());
    let functions = symbols
        .iter()
        .filter(|s| matches!(s.kind, STT_FUNC | STT_GNU_IFUNC));
    let mut more = Vec::new();
    for s in functions.filter(|s| s.size > 0) {
        let next = out.partition_point(|p| p.end <= s.value);
        let limit = out.get(next).map_or(u64::MAX, |p| p.start);
        if limit > s.value {
            let end = s.value.saturating_add(s.size).min(limit);
            let signal = s.name.starts_with(b"__restore");
            more.push(Piece {
                start: s.value,
                end,
                signal,
            });
        }
    }
    if !more.is_empty() {
        out.append(&mut more);
        out = settle(image, out);
    }
    out
}

/// What sections of code have between the pieces, as far as it is at least [`STRETCH`] long: how many bytes, and how many atomic
/// instructions, should it be code. (An assembler's tables are there, too.)
pub fn unseen(image: &Image, pieces: &[Piece]) -> (u64, u32) {
    let (mut bytes, mut atomics) = (0, 0);
    for section in image.code_sections() {
        let inside = pieces.iter().filter(|p| section.contains(&p.start));
        let ends = inside.map(|p| (p.start, p.end));
        let mut at = section.start;
        for (start, end) in ends.chain([(section.end, section.end)]) {
            if start.saturating_sub(at) >= STRETCH {
                bytes += start - at;
                atomics += count(image.bytes(at, start - at).unwrap_or_default(), at);
            }
            at = at.max(end);
        }
    }
    (bytes, atomics)
}

fn count(bytes: &[u8], at: u64) -> u32 {
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    let (mut found, mut i) = (0, Instruction::default());
    while decoder.can_decode() {
        decoder.decode_out(&mut i);
        found += u32::from(i.has_lock_prefix() && is_atomic(&i));
    }
    found
}

/// Sorts, drops what is not in the file's code, cuts overlaps.
fn settle(image: &Image, mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.retain(|p| {
        let inside = |s: &&crate::elf::Segment| s.exec && p.end <= s.range().end;
        p.start < p.end && image.segment(p.start).filter(inside).is_some()
    });
    pieces.sort_by_key(|p| (p.start, p.end));
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match out.last_mut() {
            Some(last) if last.start == piece.start => {
                last.signal |= piece.signal;
                last.end = last.end.max(piece.end);
            }
            Some(last) if last.end > piece.start => {
                last.end = piece.start;
                out.push(piece);
            }
            _ => out.push(piece),
        }
    }
    out
}
