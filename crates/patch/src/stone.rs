//! Stepping stones. Where an instruction stands between two that others branch to, there is room for a jump of two bytes,
//! which reaches some hundred bytes. There, in a window that is longer than its own jump, is room for one of five
//! bytes: a stone on the way to the trampoline.

use crate::classify::Moving;
use crate::room::Calls;
use crate::window::{Choice, Function, JUMP};

/// Bytes of a short jump.
pub const SHORT_LEN: u64 = 2;

impl Function<'_> {
    /// Finds a stone for an instruction that found no window, and makes both windows. (If there is none it stays as it is.)
    pub(crate) fn step(&self, at: usize, taken: &mut Vec<Choice>) {
        let line = &self.lines[at];
        let (start, end) = (line.i.ip(), line.i.next_ip());
        let alone = end - start >= SHORT_LEN
            && line.moving == Moving::Free
            && line.site.is_some()
            && self.objection(at).is_none()
            && self.refs.entered(start, end).is_none()
            && self.refs.local_into(start + 1..end).is_empty();
        if !alone || taken.iter().any(|c| c.lines.contains(&at)) {
            return;
        }
        let Some(stone) = self.stone(at, taken) else {
            return;
        };
        let short = Choice {
            lines: at..at + 1,
            padding: 0,
            stone: Some(stone),
            stones: 0,
        };
        taken.push(short);
        taken.sort_unstable_by_key(|c| c.lines.start);
    }

    /// A place for a stone that the instruction's short jump reaches.
    fn stone(&self, at: usize, taken: &mut Vec<Choice>) -> Option<u64> {
        let from = self.lines[at].i.ip() + SHORT_LEN;
        let reaches = |stone: u64| i8::try_from(stone.wrapping_sub(from) as i64).is_ok();
        let place = |c: &Choice| self.lines[c.lines.start].i.ip() + JUMP + c.stones;
        // One that is there, if need be longer, up to the next one.
        for k in 0..taken.len() {
            let stone = place(&taken[k]);
            if taken[k].stone.is_some() || !reaches(stone) {
                continue;
            }
            let least = JUMP + taken[k].stones + JUMP;
            let lines = taken[k].lines.clone();
            let next = taken.get(k + 1).map_or(usize::MAX, |c| c.lines.start);
            if let Some(longer) = self.room(lines, least, at, next) {
                taken[k] = Choice {
                    stones: taken[k].stones + JUMP,
                    ..longer
                };
                return Some(stone);
            }
        }
        // A new one.
        for first in 0..self.lines.len() {
            let stone = self.lines[first].i.ip() + JUMP;
            if !reaches(stone) || taken.iter().any(|c| c.lines.contains(&first)) {
                continue;
            }
            let k = taken.partition_point(|c| c.lines.start <= first);
            if k > 0 && self.end(&taken[k - 1]) > self.lines[first].i.ip() {
                continue;
            }
            let next = taken.get(k).map_or(usize::MAX, |c| c.lines.start);
            if let Some(new) = self.room(first..first + 1, JUMP + JUMP, at, next) {
                let host = Choice {
                    stones: JUMP,
                    ..new
                };
                taken.insert(k, host);
                return Some(stone);
            }
        }
        None
    }

    /// These lines and more, of at least so many bytes, without this one, and before the next window.
    fn room(
        &self,
        lines: std::ops::Range<usize>,
        least: u64,
        without: usize,
        next: usize,
    ) -> Option<Choice> {
        let found = self
            .close(lines.start, lines.end, least, Calls::Left)
            .ok()?;
        let ends = self.end(&found);
        let behind = self.lines.get(next).is_none_or(|l| ends <= l.i.ip());
        // (A window that calls is left with the call's return address: none of that for others' sake.)
        let calls = self.lines[found.lines.clone()]
            .iter()
            .any(|l| l.moving == Moving::Call);
        let starts = self.lines[found.lines.start].moving == Moving::Free;
        (behind && !calls && starts && !found.lines.contains(&without)).then_some(found)
    }
}
