//! Room for a window: which instructions before and behind a site can be moved with it.
//!
//! A call that is moved pushes the address behind itself in the program, so that unwinders see what they know. But some
//! look at the bytes before that address, too: code that mono has compiled ahead of time calls by way of a table, and its
//! runtime finds the entry by the distance in the call. So a call is moved where there is no other room, neither before
//! the site nor by a stepping stone. There it is: unwinders do not look at those bytes, runtimes do only in code of their
//! own compilers, whose sites find other room, and a site that is left alone is a divergence in any program.

use crate::SiteKind;
use crate::classify::Moving;
use crate::window::{Choice, Function, JUMP, Line, Starts};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::ops::Range;

/// Most instructions taken from before a site.
const BEFORE: usize = 8;
/// Longest window.
const WINDOW_BYTES: u64 = 96;

/// What becomes of a call behind a site.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// It may be moved.
    Taken,
    /// It stays.
    Left,
}

impl Function<'_> {
    /// Finds a window for the line, or widens the last one, or says why neither is possible.
    pub(crate) fn place(
        &self,
        at: usize,
        starts: Starts,
        taken: &mut Vec<Choice>,
    ) -> Result<(), &'static str> {
        if self.piece.signal || !self.decodable {
            return Err("function is left alone");
        }
        let floor = self.floor(taken);
        if at < floor {
            return match starts {
                Starts::AtIt => Err("inside another window"),
                Starts::BeforeIt => Ok(()),
            };
        }
        let found = match starts {
            Starts::AtIt => self.around(at, at, Calls::Taken),
            Starts::BeforeIt => self.around(floor, at, Calls::Left),
        };
        let reason = match found {
            Ok(choice) => {
                taken.push(choice);
                return Ok(());
            }
            Err(reason) => reason,
        };
        if starts == Starts::BeforeIt
            && let Some(last) = taken.last_mut()
        {
            let between = last.lines.end - 1..at;
            let free = self.lines[between].iter().all(|l| l.moving == Moving::Free);
            if free && last.padding == 0 {
                *last = self.close(last.lines.start, at + 1, JUMP, Calls::Left)?;
                return Ok(());
            }
        }
        Err(reason)
    }

    /// A window with the call behind it, for a line that found no other one. Is there one now?
    pub(crate) fn call(&self, at: usize, taken: &mut Vec<Choice>) -> bool {
        let before = taken.partition_point(|c| c.lines.start <= at);
        let floor = self.floor(&taken[..before]);
        if at < floor || self.lines[at].moving == Moving::Never || self.objection(at).is_some() {
            return false;
        }
        let Ok(found) = self.around(floor, at, Calls::Taken) else {
            return false;
        };
        let next = taken
            .get(before)
            .map_or(u64::MAX, |c| self.lines[c.lines.start].i.ip());
        let fits = self.end(&found) <= next;
        if fits {
            taken.insert(before, found);
        }
        fits
    }

    /// The first line behind these windows.
    fn floor(&self, taken: &[Choice]) -> usize {
        taken.last().map_or(0, |c| {
            let end = self.end(c);
            self.lines.partition_point(|l| l.i.ip() < end)
        })
    }

    /// The address behind a window.
    pub(crate) fn end(&self, c: &Choice) -> u64 {
        self.lines[c.lines.end - 1].i.next_ip() + c.padding
    }

    /// The window around a line that takes in as little as can be from before it, and nothing from before `floor`.
    fn around(&self, floor: usize, at: usize, calls: Calls) -> Result<Choice, &'static str> {
        let mut reason = "no room before or after";
        for first in (at.saturating_sub(BEFORE).max(floor)..=at).rev() {
            if first != at && !self.can_precede(first) {
                break;
            }
            match self.close(first, at + 1, JUMP, calls) {
                Ok(choice) => return Ok(choice),
                Err(why) => reason = why,
            }
        }
        Err(reason)
    }

    /// Whether a line can stand before others in a window. What follows a `jmp` or `ret` must be known
    /// to be entered by a branch that may move along.
    fn can_precede(&self, at: usize) -> bool {
        let line = &self.lines[at];
        let next = line.i.next_ip();
        match line.moving {
            Moving::Free => true,
            Moving::Last => !self.refs.local_into(next..next + 1).is_empty(),
            Moving::Call | Moving::Never => false,
        }
    }

    /// Extends `first..end` to whole instructions of at least so many bytes: room for a jump.
    pub(crate) fn close(
        &self,
        first: usize,
        mut end: usize,
        least: u64,
        calls: Calls,
    ) -> Result<Choice, &'static str> {
        let start = self.lines[first].i.ip();
        let room = |end: usize| self.lines[end - 1].i.next_ip() - start;
        let mut padding = 0;
        while room(end) < least {
            match self.lines[end - 1].moving {
                Moving::Free => {}
                Moving::Last => {
                    let missing = least - room(end);
                    padding = self
                        .padding(end, missing)
                        .ok_or("no padding behind a return")?;
                    break;
                }
                Moving::Call | Moving::Never => return Err("cannot move what follows"),
            }
            match self.lines.get(end) {
                Some(line) if line.moving == Moving::Call && calls == Calls::Left => {
                    return Err("a call follows");
                }
                Some(line) if line.moving != Moving::Never => end += 1,
                Some(_) => return Err("cannot move what follows"),
                None => return Err("function ends"),
            }
        }
        let lines = &self.lines[first..end];
        if lines[lines.len() - 1].moving == Moving::Never {
            return Err("cannot be moved");
        }
        if lines
            .iter()
            .zip(first..)
            .any(|(l, at)| l.site.is_some() && self.objection(at).is_some())
        {
            return Err("next to a site that must stay");
        }
        let end_ip = start + room(end) + padding;
        if end_ip - start > WINDOW_BYTES {
            return Err("window too long");
        }
        if self.refs.entered(start, end_ip).is_some() {
            return Err("branch target inside");
        }
        self.inner_branches(start..end_ip, lines)?;
        Ok(Choice {
            lines: first..end,
            padding,
            stone: None,
            stones: 0,
        })
    }

    /// Branches from inside the window to inside it are moved with it, if they go to an instruction
    /// or just behind the lock prefix of one.
    fn inner_branches(&self, window: Range<u64>, lines: &[Line]) -> Result<(), &'static str> {
        for &(target, _) in self.refs.local_into(window.start + 1..window.end) {
            let good = lines.iter().any(|l| {
                let unlocked = l.site == Some(SiteKind::Rmw) && self.byte(l.i.ip()) == 0xf0;
                l.i.ip() == target || unlocked && l.i.ip() + 1 == target
            });
            if !good {
                return Err("branch into an instruction");
            }
        }
        Ok(())
    }

    fn byte(&self, ip: u64) -> u8 {
        self.bytes[(ip - self.piece.start) as usize]
    }

    /// At least `missing` bytes behind line `end - 1` that are only there for alignment.
    fn padding(&self, end: usize, missing: u64) -> Option<u64> {
        let begin = self.lines[end - 1].i.next_ip();
        let bytes = &self.bytes[(begin - self.piece.start) as usize..];
        let decoder = Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE);
        let mut len = 0;
        for i in decoder {
            if !matches!(
                i.mnemonic(),
                Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::Fnop
            ) {
                return None;
            }
            len += i.len() as u64;
            if len >= missing {
                return Some(len);
            }
        }
        None
    }
}
