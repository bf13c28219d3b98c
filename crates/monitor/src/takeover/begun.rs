//! What a thread's registers and its notes say of the call that it had begun when it died: whether it was
//! made, and with which result.

use geryon_abi::layout::flight;
use geryon_abi::outcome::{self, NotesDiffer};
use geryon_abi::row::{Arg, Class, Kind, Property, Row};
use geryon_abi::table;
use geryon_patch::{INSTRUCTION_MAX, instruction_len};
use geryon_tracee::RemoteMemory;
use std::ops::Range;

/// What the block of a thread says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    pub(super) state: u32,
    pub(super) results: [u64; 2],
    /// It has come to the gate.
    pub(super) entered: bool,
    /// Of a write in several parts: what was out before the last one, and with it.
    pub(super) done: u64,
    pub(super) total: u64,
}

/// The places behind the gate's `syscall` instructions where the result is in no note yet.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// The addresses of the instructions, by gate; the first is right behind the call.
    pub(super) places: [Vec<u64>; 2],
    /// Where threads crash whose call counts as not made.
    pub(super) unmade: u64,
    /// The page in which all that is.
    pub(super) page: Range<u64>,
    /// The agent's other code.
    pub(super) text: Range<u64>,
}

/// Where a thread stands that had begun a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Behind it: rax holds its result.
    Behind,
    /// Before it, or where its result was noted.
    Elsewhere,
    /// It was at the gate, and has come through other code before it died, which no one flipped bit
    /// explains: what the call has returned is lost.
    Strayed,
}

/// What came of a call that was made cannot be found out: its two notes differ, or its result is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unclear;

impl From<NotesDiffer> for Unclear {
    fn from(_: NotesDiffer) -> Unclear {
        Unclear
    }
}

/// Registers of a thread at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    pub(super) rip: u64,
    pub(super) rcx: u64,
    pub(super) rax: i64,
}

impl Gate {
    /// Where the thread stands, by its registers and what it has noted. The `syscall` instruction leaves
    /// its successor's address in rcx: a thread that a flipped bit has sent elsewhere from there has come to
    /// where nothing is, and has died at once with the result that it had (see the agent's gate/page.rs).
    fn stand(&self, noted: Noted, at: Registers) -> Stand {
        if at.rip == self.unmade {
            return Stand::Elsewhere;
        }
        let from_call = self.places.iter().any(|p| p.first() == Some(&at.rcx));
        // On the way in rax holds the call's number: one that was interrupted is to be made again.
        let on_way_in = self.page.contains(&at.rip) && outcome::is_unmade(at.rax as u64);
        if self.places.iter().any(|p| p.contains(&at.rip))
            || from_call && !on_way_in && !self.text.contains(&at.rip)
        {
            return Stand::Behind;
        }
        let is_noted = noted.results != [outcome::NOTHING; 2];
        match noted.entered && !is_noted && !self.page.contains(&at.rip) {
            true => Stand::Strayed,
            false => Stand::Elsewhere,
        }
    }

    /// Was the call made, and found to have other arguments than it was begun with?
    pub(super) fn was_spoilt(&self, at: Registers) -> bool {
        at.rip == self.unmade && self.places[0].first() == Some(&at.rcx)
    }

    /// What the call that was under way has returned, if it has.
    ///
    /// # Errors
    /// See [`Unclear`].
    pub(super) fn returned(
        &self,
        noted: Noted,
        at: Registers,
        nr: u32,
    ) -> Result<Option<i64>, Unclear> {
        let stand = self.stand(noted, at);
        let now = (stand == Stand::Behind).then_some(at.rax);
        if stand == Stand::Strayed && noted.waits_for_result() && matters(nr) {
            return Err(Unclear);
        }
        Ok(match noted.state {
            flight::BEGUN if now.is_some() => now,
            flight::BEGUN | flight::RETURNED | flight::LOGGING => outcome::noted(noted.results)?,
            flight::FINISHING => Some(noted.sum(now, nr)),
            flight::FINISHED => Some(noted.sum(outcome::noted(noted.results)?, nr)),
            flight::AWAITING_ROOM | flight::AWAITED_ROOM if noted.done != 0 => {
                Some(noted.done as i64)
            }
            flight::SUMMED => Some(noted.total as i64),
            _ => None,
        })
    }
}

/// Does it matter whether this call was made? A wait, or a look, is simply made again.
fn matters(nr: u32) -> bool {
    const FUTEX: u32 = libc::SYS_futex as u32;
    let row = table::row(u64::from(nr));
    nr != FUTEX && row.is_none_or(|r| r.class != Class::Input || outcome::changes(r, &[0; 6], 1))
}

impl Noted {
    /// Is a call under way whose result is in no note?
    fn waits_for_result(&self) -> bool {
        matches!(self.state, flight::BEGUN | flight::FINISHING)
    }

    /// A write whose last part had this result, if it had any.
    fn sum(self, part: Option<i64>, nr: u32) -> i64 {
        let more = part.filter(|r| *r > 0 && has_effect(nr, *r));
        self.done as i64 + more.unwrap_or(0)
    }
}

/// Nobody is left who reads what was to be written.
pub(super) fn is_broken_pipe(result: i64) -> bool {
    result == -i64::from(libc::EPIPE)
}

/// Does this result say that the call was made, and not interrupted before it had done anything?
pub(super) fn has_effect(nr: u32, result: i64) -> bool {
    !outcome::is_unmade(result as u64)
        && !outcome::is_interrupted(result)
        && !is_taken_up_again(nr, result)
        && result != -i64::from(libc::EINTR)
        // Its signal was lost with the thread, unless it is blocked, ignored or not wanted: who makes the
        // call again gets both.
        && !is_broken_pipe(result)
        // What was one of these before a bit of it was flipped.
        && outcome::is_plausible(u64::from(nr), result)
}

/// Does this result say that the call has waited until a signal came? (The successor has that signal; were it to come
/// before the call, the call would wait for another one. Not those that have a mask of their own, which see to that, that
/// tell of what is left when they are interrupted, that write, for which there may be room, or that followers make
/// themselves.)
pub(super) fn is_ended_by_signal(nr: u32, result: i64) -> bool {
    let is_given = |row: &Row| {
        let is_special = |a: &Arg| {
            let kind = a.kind;
            matches!(kind, Kind::Sigmask | Kind::SigmaskPair | Kind::OutAlways(_))
        };
        row.class != Class::Local && !row.args.iter().any(is_special)
    };
    (outcome::is_interrupted(result) || result == -i64::from(libc::EINTR))
        && table::is(nr.into(), Property::Interruptible)
        && !table::is(nr.into(), Property::Sends)
        && table::row(nr.into()).is_some_and(is_given)
}

/// Was the call interrupted, and is restart_syscall's number there for the kernel to take it up again by? (poll,
/// nanosleep, futex, clock_nanosleep. Where it is poll's own result, the call has only looked, and looks again.)
fn is_taken_up_again(nr: u32, result: i64) -> bool {
    matches!(nr, 7 | 35 | 202 | 230) && result == libc::SYS_restart_syscall
}

/// The addresses of the instructions from one place to another, both included.
pub(super) fn instructions(memory: &RemoteMemory, from: u64, to: u64) -> Vec<u64> {
    let mut code = vec![0; (to - from) as usize + INSTRUCTION_MAX];
    if memory.read(from, &mut code).is_err() {
        return Vec::new();
    }
    let mut out = vec![from];
    let mut at = 0;
    while let Some(len) = instruction_len(&code[at..])
        && from + ((at + len) as u64) <= to
    {
        at += len;
        out.push(from + at as u64);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::outcome::NOTHING;

    #[test]
    fn the_parts_of_a_write_add_up() {
        // Before the part, in it, behind it, and noted.
        assert_eq!(result(flight::FINISHING, 1009, 1, [7, 7]), Ok(Some(100)));
        assert_eq!(result(flight::FINISHING, 1010, 5, NONE), Ok(Some(105)));
        assert_eq!(result(flight::FINISHING, 1010, -4, NONE), Ok(Some(100)));
        assert_eq!(
            result(flight::FINISHING, 1012, 5, [5, NOTHING]),
            Ok(Some(105))
        );
        assert_eq!(
            result(flight::FINISHED, 1013, 0, [5, NOTHING]),
            Ok(Some(105))
        );
        assert_eq!(
            result(flight::FINISHED, 1013, 0, [-32i64 as u64; 2]),
            Ok(Some(100))
        );
        assert_eq!(result(flight::SUMMED, 1013, 0, [5, 105]), Ok(Some(200)));
        // What a wait for room has returned is no part.
        assert_eq!(result(flight::AWAITING_ROOM, 1010, 1, NONE), Ok(Some(100)));
        assert_eq!(result(flight::AWAITED_ROOM, 1013, 0, [1, 1]), Ok(Some(100)));
    }

    fn result(state: u32, rip: u64, rax: i64, notes: [u64; 2]) -> Result<Option<i64>, Unclear> {
        let noted = Noted {
            results: notes,
            done: 100,
            total: 200,
            ..begun(state)
        };
        effect(noted, died(rip, 7, rax), 0)
    }

    /// A call that has come to the gate.
    fn begun(state: u32) -> Noted {
        Noted {
            state,
            results: NONE,
            entered: true,
            done: 0,
            total: 0,
        }
    }

    fn died(rip: u64, rcx: u64, rax: i64) -> Registers {
        Registers { rip, rcx, rax }
    }

    fn effect(noted: Noted, at: Registers, nr: u32) -> Result<Option<i64>, Unclear> {
        let returned = gate().returned(noted, at, nr)?;
        Ok(returned.filter(|r| has_effect(nr, *r)))
    }

    fn gate() -> Gate {
        Gate {
            places: [vec![1010, 1012], vec![1120, 1122]],
            unmade: 1200,
            page: 1000..1300,
            text: 500..900,
        }
    }
    const NONE: [u64; 2] = [NOTHING; 2];

    /// A fault had taken a thread elsewhere that slept in one of these: its result was that number.
    #[test]
    fn what_was_to_be_taken_up_again_was_not_made() {
        const FUTEX: u32 = libc::SYS_futex as u32;
        let strayed = died(0, 1010, libc::SYS_restart_syscall);
        assert_eq!(effect(begun(flight::BEGUN), strayed, FUTEX), Ok(None));
        // So many bytes were read.
        let read = effect(begun(flight::BEGUN), strayed, 0);
        assert_eq!(read, Ok(Some(libc::SYS_restart_syscall)));
    }

    #[test]
    fn a_call_that_has_not_begun_is_not_done() {
        assert_eq!(result(flight::NONE, 1010, 5, NONE), Ok(None));
        assert_eq!(result(flight::BEGUN, 1008, 1, NONE), Ok(None));
    }

    #[test]
    fn between_the_call_and_its_note_the_register_tells() {
        assert_eq!(result(flight::BEGUN, 1010, 5, NONE), Ok(Some(5)));
        assert_eq!(result(flight::BEGUN, 1012, 5, NONE), Ok(Some(5)));
        assert_eq!(result(flight::BEGUN, 1120, -9, NONE), Ok(Some(-9)));
    }

    #[test]
    fn a_thread_that_a_fault_has_sent_where_nothing_is_had_made_its_call() {
        let noted = begun(flight::BEGUN);
        for rip in [0, 700 << 40, 1010 - 2, 1299] {
            assert_eq!(effect(noted, died(rip, 1010, 5), 0), Ok(Some(5)), "{rip}");
        }
        assert_eq!(effect(noted, died(1200, 1010, 5), 0), Ok(None));
        // It slept in the call, which was to be taken up again: by number.
        let number = (1u64 << outcome::UNMADE) as i64 | libc::SYS_wait4;
        let waits = libc::SYS_wait4 as u32;
        assert_eq!(effect(noted, died(0, 1010, number), waits), Ok(None));
        assert_eq!(effect(noted, died(1010 - 2, 1010, number), waits), Ok(None));
        // From elsewhere to the check before it: nothing was made.
        assert_eq!(effect(noted, died(1010 - 2, 77, 5), 0), Ok(None));
    }

    #[test]
    fn who_was_sent_through_other_code_has_no_result_any_more() {
        const READ: u32 = libc::SYS_read as u32;
        let noted = begun(flight::BEGUN);
        let at = died(650, 1010, 5);
        assert_eq!(effect(noted, at, READ), Err(Unclear));
        assert_eq!(effect(noted, died(0, 77, 5), READ), Err(Unclear));
        assert_eq!(effect(noted, at, libc::SYS_futex as u32), Ok(None));
        let logged = Noted {
            state: flight::RETURNED,
            results: [7, 7],
            ..noted
        };
        assert_eq!(effect(logged, at, READ), Ok(Some(7)));
        // It had not come to the gate.
        let before = Noted {
            entered: false,
            ..noted
        };
        assert_eq!(effect(before, at, READ), Ok(None));
    }

    #[test]
    fn then_the_notes_tell() {
        assert_eq!(result(flight::RETURNED, 99, 5, [7, NOTHING]), Ok(Some(7)));
        assert_eq!(result(flight::LOGGING, 99, 5, [7, 7]), Ok(Some(7)));
        assert_eq!(result(flight::LOGGED, 99, 5, [7, 7]), Ok(None));
    }

    #[test]
    fn one_note_or_the_state_may_be_wrong() {
        assert_eq!(result(flight::RETURNED, 99, 5, [NOTHING, 7]), Ok(Some(7)));
        assert_eq!(result(flight::BEGUN, 99, 5, [7, 7]), Ok(Some(7)));
        assert_eq!(result(flight::RETURNED, 99, 5, [6, 7]), Err(Unclear));
    }

    #[test]
    fn a_broken_pipe_is_found_again() {
        assert_eq!(result(flight::BEGUN, 1010, -32, NONE), Ok(None));
        let notes = [-32i64 as u64; 2];
        assert_eq!(result(flight::LOGGING, 99, 5, notes), Ok(None));
        // What was written before it was found is out.
        assert_eq!(result(flight::FINISHING, 1010, -32, NONE), Ok(Some(100)));
    }

    #[test]
    fn what_was_interrupted_has_done_nothing() {
        assert_eq!(result(flight::BEGUN, 1010, -512, NONE), Ok(None));
        assert_eq!(result(flight::BEGUN, 1010, -4, NONE), Ok(None));
        assert_eq!(result(flight::BEGUN, 1010, 1 << 62 | 202, NONE), Ok(None));
        assert_eq!(result(flight::BEGUN, 1010, -512 ^ 1 << 37, NONE), Ok(None));
    }
}
