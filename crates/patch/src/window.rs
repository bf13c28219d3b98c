//! Finds the window of each site of one function.

use crate::classify::{Atomic, Moving, atomic, is_atomic, moving, site};
use crate::constant::{is_compare, is_constant};
use crate::coverage::Piece;
use crate::info::Info;
use crate::loads::Words;
use crate::loops::Loop;
use crate::refs::Refs;
use crate::{JUMP_LEN, Options, SiteKind, Stats, Unpatched, Window, asked, loads, spin, vain};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use std::ops::Range;

/// Bytes of a jump.
pub(crate) const JUMP: u64 = JUMP_LEN as u64;
/// The number of `rt_sigreturn`.
const RT_SIGRETURN: u64 = 15;

/// What is known about one instruction of the function.
pub(crate) struct Line {
    pub i: Instruction,
    pub site: Option<SiteKind>,
    pub moving: Moving,
    /// A loop waits by it.
    pub spins: bool,
}

/// One decoded function and its surroundings.
pub struct Function<'a> {
    pub(crate) lines: Vec<Line>,
    pub(crate) piece: &'a Piece,
    /// Bytes of the piece and of the gap behind it.
    pub(crate) bytes: &'a [u8],
    pub(crate) refs: &'a Refs,
    entries: &'a [(u64, u16)],
    pub(crate) decodable: bool,
}

/// What is known of a function's surroundings.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    pub refs: &'a Refs,
    /// Entries inside the function's piece: address and id.
    pub entries: &'a [(u64, u16)],
    pub words: &'a Words,
    /// Nothing in the function is a site but words that it compares (`unfolded.rs`): other rules are for functions that meet others.
    pub only_compares: bool,
}

/// Windows and rest of one function.
#[derive(Default)]
pub struct Outcome {
    pub windows: Vec<(Window, Vec<(u64, SiteKind)>)>,
    pub unpatched: Vec<Unpatched>,
}

/// An entry that is left alone, and why.
type Refusal = (u64, &'static str);

/// Lines of a window, and padding bytes behind them.
#[derive(Clone)]
pub(crate) struct Choice {
    pub lines: Range<usize>,
    pub padding: u64,
    /// Where it steps on, if it is too short for a jump.
    pub stone: Option<u64>,
    /// Stepping stones of others in it.
    pub stones: u64,
}

/// Where a window starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    /// At its line, which is a function's entry.
    AtIt,
    /// There, or before it.
    BeforeIt,
}

impl<'a> Function<'a> {
    /// `bytes` starts at the piece and goes on to the next piece.
    pub fn decode(
        piece: &'a Piece,
        bytes: &'a [u8],
        around: Around<'a>,
        opts: &Options,
        stats: &mut Stats,
        info: &mut Info,
    ) -> Function<'a> {
        let own = &bytes[..(piece.end - piece.start) as usize];
        let decoder = Decoder::with_ip(64, own, piece.start, DecoderOptions::NONE);
        let mut decodable = true;
        let line = |i: Instruction| {
            decodable &= !i.is_invalid();
            let site = site(&i).filter(|&k| k != SiteKind::Rmw || opts.rmw && ordered(&i, stats));
            let moving = if site.is_some() {
                Moving::Free
            } else {
                moving(&i)
            };
            Line {
                i,
                site,
                moving,
                spins: false,
            }
        };
        let mut lines: Vec<Line> = decoder.into_iter().map(line).collect();
        let all: Vec<Instruction> = lines.iter().map(|l| l.i).collect();
        let mut mark = |found: Vec<usize>, kind| {
            for at in found {
                // What cannot be moved is no place: `call *8(%rsp)`, say.
                if lines[at].moving != Moving::Never {
                    lines[at].site = Some(kind);
                }
            }
        };
        let loops = Loop::all(&all);
        if opts.waits {
            mark(spin::waits(&all, &loops, info), SiteKind::Wait);
        }
        if opts.loads && around.only_compares {
            mark(
                loads::only_compared(&all, around.words, info),
                SiteKind::Load,
            );
        } else if opts.loads {
            let found = loads::ordered(&all, &loops, around.words, info);
            mark(
                loads::stores(&all, &found, around.words, info),
                SiteKind::Store,
            );
            mark(found, SiteKind::Load);
            let asked = asked::sites(&all, opts.asked, info);
            asked
                .into_iter()
                .for_each(|(at, kind)| mark(vec![at], kind));
        }
        if opts.rmw {
            let found = vain::spins(&loops, &around.words.naps, info);
            found.into_iter().for_each(|at| lines[at].spins = true);
        }
        Function {
            lines,
            piece,
            bytes,
            refs: around.refs,
            entries: around.entries,
            decodable,
        }
    }

    /// Finds windows for all sites.
    pub fn solve(&self) -> Outcome {
        let mut refused = Vec::new();
        loop {
            match self.attempt(&refused) {
                Ok(outcome) => return outcome,
                Err(refusal) => refused.push(refusal),
            }
        }
    }

    /// `Err` names an entry that must be left alone, and why: it has no window, or a branch back to it
    /// could not be moved and would enter the hook again.
    fn attempt(&self, refused: &[Refusal]) -> Result<Outcome, Refusal> {
        let mut outcome = Outcome::default();
        let mut taken: Vec<Choice> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let ip = line.i.ip();
            if let Some(id) = self.entry_at(ip) {
                match refused.iter().find(|r| r.0 == ip) {
                    Some(&(_, reason)) => outcome.leave(ip, SiteKind::Entry(id), reason),
                    None => self
                        .place(at, Starts::AtIt, &mut taken)
                        .map_err(|reason| (ip, reason))?,
                }
            }
            if let Some(kind) = line.site {
                let placed = match self.objection(at) {
                    Some(reason) => Err(reason),
                    None => self.place(at, Starts::BeforeIt, &mut taken),
                };
                if let Err(reason) = placed {
                    outcome.leave(ip, kind, reason);
                }
            }
            if let Some(entry) = self.loops_to(at, refused) {
                let reason = "a branch back to the entry cannot be moved";
                if self.place(at, Starts::BeforeIt, &mut taken).is_err()
                    && !self.call(at, &mut taken)
                {
                    return Err((entry, reason));
                }
            }
        }
        let found_none = |at: &usize| {
            let line = &self.lines[*at];
            let is_left = |u: &Unpatched| u.vaddr == line.i.ip();
            line.site.is_some() && outcome.unpatched.iter().any(is_left)
        };
        let left: Vec<usize> = (0..self.lines.len()).filter(found_none).collect();
        left.iter().for_each(|&at| self.step(at, &mut taken));
        for at in left {
            self.call(at, &mut taken);
        }
        for choice in &taken {
            let window = self.window(choice, refused);
            outcome
                .unpatched
                .retain(|u| !window.1.contains(&(u.vaddr, u.kind)));
            outcome.windows.push(window);
        }
        Ok(outcome)
    }

    fn entry_at(&self, ip: u64) -> Option<u16> {
        self.entries.iter().find(|e| e.0 == ip).map(|e| e.1)
    }

    /// The redirected entry of this function that the instruction branches back to.
    fn loops_to(&self, at: usize, refused: &[Refusal]) -> Option<u64> {
        let i = &self.lines[at].i;
        if self.entries.is_empty() || i.op0_kind() != OpKind::NearBranch64 {
            return None;
        }
        let target = i.near_branch_target();
        let redirected = self.entry_at(target).is_some() && refused.iter().all(|r| r.0 != target);
        (redirected && i.flow_control() != FlowControl::Call).then_some(target)
    }

    /// Why a site must not be touched, window or not.
    pub(crate) fn objection(&self, at: usize) -> Option<&'static str> {
        let line = &self.lines[at];
        if self.piece.signal {
            return Some("return of a signal handler");
        }
        if !self.decodable {
            return Some("function holds bytes that do not decode");
        }
        match line.site? {
            SiteKind::Rmw => match atomic(&line.i) {
                Atomic::Odd(reason) => Some(reason),
                _ => None,
            },
            SiteKind::Syscall if at > 0 && loads_sigreturn(&self.lines[at - 1].i) => {
                Some("rt_sigreturn")
            }
            SiteKind::Rdrand
                if line.i.op0_register().full_register() == iced_x86::Register::RSP =>
            {
                Some("destination is rsp")
            }
            _ => None,
        }
    }

    /// Is it a compare whose expected value is a constant, whatever way leads there?
    fn expects_constant(&self, at: usize) -> bool {
        let entered = |i: &Instruction| self.refs.entered(i.ip() - 1, i.ip() + 1).is_some();
        let before = self.lines[..at].iter().rev().map(|l| &l.i);
        let line = &self.lines[at];
        line.site == Some(SiteKind::Rmw)
            && is_compare(&line.i)
            && !entered(&line.i)
            && is_constant(before, entered)
    }

    fn window(&self, choice: &Choice, refused: &[Refusal]) -> (Window, Vec<(u64, SiteKind)>) {
        let lines = &self.lines[choice.lines.clone()];
        let start = lines[0].i.ip();
        let moved = lines[lines.len() - 1].i.next_ip() - start;
        let entry = self
            .entry_at(start)
            .filter(|_| refused.iter().all(|r| r.0 != start));
        let from = (start - self.piece.start) as usize;
        let bytes = &self.bytes[from..from + (moved + choice.padding) as usize];
        let window = Window {
            start,
            bytes: bytes.to_vec(),
            moved: moved as u8,
            stone: choice.stone,
            entry,
            loops_to: choice
                .lines
                .clone()
                .find_map(|at| self.loops_to(at, refused)),
            constants: choice
                .lines
                .clone()
                .filter(|at| self.expects_constant(*at))
                .map(|at| self.lines[at].i.ip())
                .collect(),
            spins: lines.iter().filter(|l| l.spins).map(|l| l.i.ip()).collect(),
            waits: lines
                .iter()
                .filter(|l| {
                    matches!(
                        l.site,
                        Some(SiteKind::Wait | SiteKind::Load | SiteKind::Store)
                    ) && (l.site == Some(SiteKind::Wait) || loads::plain(&l.i).is_some())
                })
                .map(|l| l.i.ip())
                .collect(),
            asked: lines
                .iter()
                .filter(|l| match l.site {
                    Some(SiteKind::Rmw) => !is_atomic(&l.i),
                    Some(SiteKind::Load | SiteKind::Store) => loads::plain(&l.i).is_none(),
                    _ => false,
                })
                .map(|l| l.i.ip())
                .collect(),
        };
        let mut sites: Vec<_> = entry
            .map(|id| (start, SiteKind::Entry(id)))
            .into_iter()
            .collect();
        sites.extend(lines.iter().filter_map(|l| Some((l.i.ip(), l.site?))));
        (window, sites)
    }
}

impl Outcome {
    fn leave(&mut self, vaddr: u64, kind: SiteKind, reason: &str) {
        self.unpatched.push(Unpatched {
            vaddr,
            kind,
            reason: reason.into(),
        });
    }
}

/// Whether an atomic needs order; counts those that do not.
fn ordered(i: &Instruction, stats: &mut Stats) -> bool {
    match atomic(i) {
        Atomic::Ordered(_) | Atomic::Odd(_) => return true,
        Atomic::ThreadLocal => stats.rmw_thread_local += 1,
        Atomic::Fence => stats.rmw_fences += 1,
    }
    false
}

/// `mov eax, 15` in any of its forms.
fn loads_sigreturn(i: &Instruction) -> bool {
    let load = matches!(
        i.code(),
        Code::Mov_r32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_rm32_imm32
    );
    load && i.op0_register().full_register() == iced_x86::Register::RAX
        && i.immediate(1) == RT_SIGRETURN
}
