//! The pass over all covered code: where branches go, which addresses are taken,
//! which pieces hold sites.

use crate::Options;
use crate::asked;
use crate::asleep::{Asleep, byte};
use crate::classify::{Class, classes, is_atomic, site};
use crate::coverage::Piece;
use crate::doubly::Doubly;
use crate::elf::{Image, Symbol};
use crate::info::Info;
use crate::loads::{GIVEN, Words, plain};
use crate::look::compares;
use crate::loops::closes;
use crate::naps::{Calls, Naps, called};
use crate::once::Made;
use crate::own::Own;
use crate::place::{fixed_word, gives};
use crate::pointer::Pointers;
use crate::refs::Refs;
use crate::spin::{is_sign, may_wait};
use crate::volatile::Volatile;
use crate::{getters, unfolded};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// The tag of a library's own name.
const DT_SONAME: u64 = 14;

/// What the sweep finds besides references.
#[derive(Default)]
pub struct Found {
    /// Indices of pieces that hold candidates for sites.
    pub candidates: Vec<usize>,
    /// Of others that may compare such words as only `unfolded.rs` knows.
    pub comparing: Vec<usize>,
    /// Addresses that `lea` computes: perhaps jump tables.
    pub taken: Vec<u64>,
    /// What is known of words at fixed places.
    pub words: Words,
    volatile: Volatile,
    pointers: Pointers,
    /// Which pieces load or store which words at fixed places.
    used: Vec<(usize, u64)>,
    /// Which pieces with loops call which functions.
    calls: Vec<(usize, u64)>,
}

impl Found {
    /// In a file with so many bytes of code all that branches is known.
    pub fn finish(&mut self, refs: &Refs, bytes: u64) {
        if !self.words.in_c_library {
            let volatile = self.volatile.words(refs, bytes);
            self.words.atomic.extend(volatile);
            let (pointers, pieces) = self.pointers.finish();
            self.words.pointers = pointers;
            self.candidates.extend(pieces);
        }
        self.words.finish();
        let (words, naps) = (&self.words, &self.words.naps);
        let used = self.used.iter().filter(|u| words.may_decide(u.1));
        let calls = self.calls.iter().filter(|c| naps.has(c.1));
        self.candidates.extend(used.chain(calls).map(|of| of.0));
    }
}

/// Decodes all pieces and records into `refs` what they refer to. A piece that falls through into
/// bytes that nothing covers is extended (glibc ends the FDE of `clone` before its `syscall`).
pub fn sweep(
    image: &Image,
    symbols: &[Symbol],
    pieces: &mut [Piece],
    refs: &mut Refs,
    opts: &Options,
) -> Found {
    let mut found = Found::default();
    if opts.loads {
        found.words.constants = image.constants();
        found.words.is_shared = image.dynamic(DT_SONAME).is_some();
        found.words.getters = getters::of(symbols);
        found.words.own = Own::of(image, symbols);
        found.words.naps = Naps::of(image, symbols);
        found.words.asleep = Asleep::new(Calls::of_conditions(image, symbols));
    }
    let waits = opts.waits || opts.loads;
    // Which pieces load or store which bytes in objects, where such a byte may say that a thread sleeps.
    let mut bytes_at: Vec<(usize, u64)> = Vec::new();
    let may_sleep = opts.loads && found.words.asleep.may_be();
    let mut made = Made::default();
    let mut doubly = match opts.loads {
        true => Doubly::of(image, symbols),
        false => Doubly::default(),
    };
    let mut info = Info::new();
    let classes = classes();
    let mut instruction = Instruction::default();
    for segment in image.segments.iter().filter(|s| s.exec) {
        let bytes = image.tail(segment.vaddr).unwrap_or_default();
        let mut decoder = Decoder::with_ip(64, bytes, segment.vaddr, DecoderOptions::NONE);
        let begin = pieces.partition_point(|p| p.start < segment.vaddr);
        let end = pieces.partition_point(|p| p.start < segment.range().end);
        for index in begin..end {
            let limit = pieces
                .get(index + 1)
                .map_or(segment.range().end, |p| p.start);
            let piece = &mut pieces[index];
            let offset = (piece.start - segment.vaddr) as usize;
            decoder
                .set_position(offset)
                .expect("coverage keeps pieces in their segment");
            decoder.set_ip(piece.start);
            let (mut candidate, mut compares) = (false, false);
            let (mut is_round, calls) = (false, found.calls.len());
            let (mut meets_others, stored) = (false, found.words.changed.len());
            found.words.asleep.begin();
            found.volatile.begin();
            found.pointers.begin();
            made.begin();
            doubly.begin();
            let mut before = Instruction::default();
            loop {
                while decoder.ip() < piece.end {
                    refs.add_start(decoder.ip());
                    decoder.decode_out(&mut instruction);
                    match classes[instruction.code() as usize] {
                        Class::Plain => {}
                        Class::Branch => {
                            branch(&instruction, refs);
                            candidate |= waits && may_wait(&instruction);
                            is_round |= closes(&instruction);
                        }
                        Class::Lea => lea(&instruction, refs, &mut found.taken),
                        Class::Candidate => {
                            candidate |=
                                site(&instruction).is_some() || waits && is_sign(&instruction);
                        }
                    }
                    if opts.loads {
                        found.words.naps.see(&instruction, piece.start..piece.end);
                        found
                            .calls
                            .extend(called(&instruction).map(|to| (index, to)));
                        found.volatile.see(&instruction);
                        found.pointers.see(&instruction, index);
                        made.see(&instruction);
                        doubly.see(&instruction);
                        candidate |= unfolded::is_byte(&before, &instruction);
                        compares |= unfolded::is_word(&before, &instruction);
                        before = instruction;
                        found.words.changed.extend(changed(&instruction));
                        match fixed_word(&instruction) {
                            Some(word) if is_atomic(&instruction) => {
                                meets_others = true;
                                found.words.atomic.push(word);
                            }
                            Some(word) if opts.asked.contains(&instruction.ip()) => {
                                found.words.atomic.push(word);
                            }
                            Some(word) if plain(&instruction).is_some() => {
                                found.used.push((index, word));
                            }
                            _ if is_atomic(&instruction) => meets_others = true,
                            _ => found.words.given.extend(gives(&instruction)),
                        }
                    }
                    if may_sleep {
                        found.words.asleep.see(&instruction, &mut info);
                        if let Some(at) = byte(&instruction)
                            && plain(&instruction).is_some()
                        {
                            bytes_at.push((index, at));
                        }
                    }
                    if image.fixed {
                        immediates(&instruction, refs);
                    }
                }
                if decoder.ip() != piece.end || piece.end >= limit || !runs_on(&instruction) {
                    break;
                }
                let rest = &bytes[(piece.end - segment.vaddr) as usize..];
                match extension(rest, piece.end, limit) {
                    Some(end) => piece.end = end,
                    None => break,
                }
            }
            if !meets_others {
                found.words.changed.truncate(stored);
            }
            candidate |= found.words.getters.binary_search(&piece.start).is_ok();
            candidate |= made.may_be() || doubly.is_one(&mut info);
            if candidate {
                found.candidates.push(index);
            } else if compares {
                found.comparing.push(index);
            }
            if candidate || !is_round {
                found.calls.truncate(calls);
            }
        }
    }
    found.candidates.extend(asked::pieces(pieces, opts));
    found.words.locks = doubly.locks();
    found.words.asleep.finish();
    let asleep = bytes_at.iter().filter(|b| found.words.asleep.has(b.1));
    found.candidates.extend(asleep.map(|b| b.0));
    found.taken.sort_unstable();
    found.taken.dedup();
    found
}

/// The words at fixed places that it may change, itself or by whom it gives their address to.
fn changed(i: &Instruction) -> impl Iterator<Item = u64> {
    let stores = i.op0_kind() == OpKind::Memory && !compares(i);
    let (word, len) = match gives(i) {
        Some(word) => (Some(word), GIVEN),
        None => (
            fixed_word(i).filter(|_| stores),
            i.memory_size().size() as u64,
        ),
    };
    word.into_iter()
        .flat_map(move |w| (w..w + len.max(1)).step_by(4))
}

/// Whether execution goes on behind the last instruction of a piece. Behind a call it does not: the
/// compiler would have covered what follows.
fn runs_on(i: &Instruction) -> bool {
    let ends = matches!(
        i.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch
    );
    ends && !i.is_invalid() && !matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Hlt)
}

/// The end of the code at `start` that nothing covers: behind the first `jmp` or `ret`.
fn extension(bytes: &[u8], start: u64, limit: u64) -> Option<u64> {
    let bytes = bytes.get(..(limit - start) as usize)?;
    for i in &mut Decoder::with_ip(64, bytes, start, DecoderOptions::NONE) {
        if i.is_invalid() {
            return None;
        }
        let syscall = i.mnemonic() == Mnemonic::Syscall;
        if i.next_ip() == limit || !runs_on(&i) && !syscall {
            return Some(i.next_ip());
        }
    }
    None
}

fn branch(i: &Instruction, refs: &mut Refs) {
    if i.op0_kind() == OpKind::NearBranch64 {
        refs.add_branch(i.ip(), i.near_branch_target());
    }
}

fn lea(i: &Instruction, refs: &mut Refs, taken: &mut Vec<u64>) {
    if i.is_ip_rel_memory_operand() {
        let target = i.ip_rel_memory_address();
        refs.add(target);
        taken.push(target);
    }
}

/// In a file with fixed addresses any constant may be a code address.
fn immediates(i: &Instruction, refs: &mut Refs) {
    for op in 0..i.op_count() {
        match i.op_kind(op) {
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                refs.add(i.immediate(op));
            }
            OpKind::Memory if i.mnemonic() == Mnemonic::Lea => {
                refs.add(i.memory_displacement64());
            }
            _ => {}
        }
    }
}
