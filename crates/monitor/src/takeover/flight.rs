//! What a leader's threads had under way when it was lost: done or not, and with which result.

use super::{Takeover, spoilt};
use crate::block_field;
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{
    BLOCK_BYTES, BLOCKS_BASE, MAX_PENDING, MAX_THREADS, block_address, flight,
};
use geryon_abi::outcome::{self, NotesDiffer};
use geryon_abi::row::Class;
use geryon_patch::{INSTRUCTION_MAX, instruction_len};
use geryon_tracee::{Pid, RemoteMemory};
use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// What a thread of the former leader leaves to the successor's.
#[derive(Clone, Debug)]
pub struct Legacy {
    /// Thread group.
    pub(super) slot: u32,
    /// In whose memory is what the call wrote: an index in `Takeover::memories`.
    pub(super) whose: usize,
    /// A call that was made, and that is not in the log.
    pub(super) call: Option<Call>,
    /// Signals that waited for the thread's next safe point.
    pub(super) signals: Vec<[u64; 16]>,
}

/// Which, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub(super) nr: u32,
    pub(super) digest: u64,
    pub(super) result: i64,
    /// Digest of what it wrote; 0: not known.
    pub(super) written: u64,
}

/// What the block of a thread says.
#[derive(Clone, Copy, Debug)]
struct Noted {
    state: u32,
    results: [u64; 2],
    /// Of a write in several parts: what was out before the last one, and with it.
    done: u64,
    total: u64,
}

/// The places behind the gate's `syscall` instructions where the result is in no note yet.
#[derive(Clone, Debug)]
struct Gate {
    /// The addresses of the instructions, by gate; the first is right behind the call.
    places: [Vec<u64>; 2],
    /// Where threads crash whose call counts as not made.
    unmade: u64,
    /// The agent's code.
    image: Range<u64>,
}

/// Where a thread stands that had begun a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Behind it: rax holds its result.
    Behind,
    /// Before it, or where its result was noted.
    Elsewhere,
    /// The thread was sent elsewhere around its call, and has come through other code before it died.
    Unknown,
}

/// What came of a call cannot be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unclear;

impl From<NotesDiffer> for Unclear {
    fn from(_: NotesDiffer) -> Unclear {
        Unclear
    }
}

/// Registers of a thread at its end.
#[derive(Clone, Copy, Debug)]
struct Registers {
    rip: u64,
    rcx: u64,
    rax: i64,
}

impl Gate {
    /// The `syscall` instruction leaves its successor's address in rcx: a thread that a fault has sent
    /// out of the agent from there, and that has died at once, holds the result still. Within the agent
    /// it may have executed anything; and a call that a stop has taken it out of looks the same.
    fn stand(&self, at: Registers) -> Stand {
        if at.rip == self.unmade {
            return Stand::Elsewhere;
        }
        if self.places.iter().any(|p| p.contains(&at.rip)) {
            return Stand::Behind;
        }
        let from_call = self.places.iter().any(|p| p.first() == Some(&at.rcx));
        match (from_call, self.image.contains(&at.rip)) {
            (true, false) => Stand::Behind,
            (true, true) => Stand::Unknown,
            (false, _) => Stand::Elsewhere,
        }
    }

    /// Was the call made, and found to have other arguments than it was begun with?
    fn was_spoilt(&self, at: Registers) -> bool {
        at.rip == self.unmade && self.places[0].first() == Some(&at.rcx)
    }

    /// What the call that was under way has returned, if it has.
    ///
    /// # Errors
    /// Its two notes differ, or nobody knows whether it was made.
    fn returned(&self, noted: Noted, at: Registers, nr: u32) -> Result<Option<i64>, Unclear> {
        let stand = self.stand(at);
        let now = (stand == Stand::Behind).then_some(at.rax);
        let is_noted = noted.results != [outcome::NOTHING; 2];
        if stand == Stand::Unknown && noted.waits_for_result() && !is_noted && matters(nr) {
            return Err(Unclear);
        }
        Ok(match noted.state {
            flight::BEGUN if now.is_some() => now,
            flight::BEGUN | flight::RETURNED | flight::LOGGING => outcome::noted(noted.results)?,
            flight::FINISHING => Some(noted.sum(now, nr)),
            flight::FINISHED => Some(noted.sum(outcome::noted(noted.results)?, nr)),
            flight::SUMMED => Some(noted.total as i64),
            _ => None,
        })
    }
}

/// Does it matter whether this call was made? A wait, or a look, is simply made again.
fn matters(nr: u32) -> bool {
    const FUTEX: u32 = libc::SYS_futex as u32;
    let row = geryon_abi::table::row(u64::from(nr));
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
fn is_broken_pipe(result: i64) -> bool {
    result == -i64::from(libc::EPIPE)
}

/// Does this result say that the call was made, and not interrupted before it had done anything?
fn has_effect(nr: u32, result: i64) -> bool {
    !outcome::is_unmade(result as u64)
        && !outcome::is_interrupted(result)
        && result != -i64::from(libc::EINTR)
        // Its signal was lost with the thread, unless it is blocked, ignored or not wanted: who makes the
        // call again gets both.
        && !is_broken_pipe(result)
        // What was one of these before a bit of it was flipped.
        && outcome::is_plausible(u64::from(nr), result)
}

/// The addresses of the instructions from one place to another, both included.
fn instructions(memory: &RemoteMemory, from: u64, to: u64) -> Vec<u64> {
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

impl Monitor {
    /// The former leader's threads are at their ends: what had they done that nobody knows of?
    pub(super) fn examine(&mut self, id: GroupId, t: &mut Takeover) {
        let (mut unclear, mut lost) = (false, None);
        let (Some(memory), Some(g)) = (t.memories.first(), self.groups.get(&id)) else {
            return;
        };
        let places = |from: &str, to: &str| {
            let (from, to) = (self.image.symbol(from), self.image.symbol(to));
            instructions(memory, from, to)
        };
        let gate = Gate {
            places: [
                places("geryon_blocking_end", "geryon_flight_returned"),
                places("geryon_flight_end", "geryon_flight_end_returned"),
            ],
            unmade: self.image.symbol("geryon_unmade"),
            image: self.image.range(),
        };
        for regs in t.bodies.values() {
            let at = regs.gs_base.wrapping_sub(BLOCKS_BASE);
            let slot = (at / BLOCK_BYTES) as usize;
            if slot >= MAX_THREADS || at % BLOCK_BYTES != 0 {
                continue;
            }
            let ring = g.segment.ring(slot);
            let word = |field: u64| memory.word(block_address(slot) + field).unwrap_or(0);
            let noted = Noted {
                state: word(block_field!(flight)) as u32,
                results: [
                    word(block_field!(flight_result)),
                    word(block_field!(flight_result) + 8),
                ],
                done: word(block_field!(flight_done)),
                total: word(block_field!(flight_total)),
            };
            let end = word(block_field!(flight_end));
            if noted.state == flight::LOGGED && ring.head.load(Ordering::SeqCst) < end {
                // All of its words are there: it only was not said.
                ring.head.store(end, Ordering::SeqCst);
                crate::segment::wake_word(&ring.head);
            }
            let nr = word(block_field!(flight_nr)) as u32;
            let at = Registers {
                rip: regs.rip,
                rcx: regs.rcx,
                rax: regs.rax as i64,
            };
            let Ok(mut returned) = gate.returned(noted, at, nr) else {
                unclear = true;
                continue;
            };
            if noted.state == flight::BEGUN && gate.was_spoilt(at) && has_effect(nr, at.rax) {
                let seen = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
                // Where the gate has them from.
                let asked = memory.words(regs.rbx);
                let row = geryon_abi::table::row(u64::from(nr));
                let (Some(row), Ok(asked)) = (row, asked) else {
                    unclear = true;
                    continue;
                };
                match spoilt::result(row, &asked, &seen, at.rax) {
                    Ok(result) => returned = result,
                    Err(spoilt::Lost) => lost = Some(row.name),
                }
            }
            let result = returned.filter(|r| has_effect(nr, *r));
            // That a child died which was killed with it is nothing that has happened.
            let result = result.filter(|r| {
                let child = waited_for(nr, *r, word(block_field!(frame)), memory);
                child.is_none_or(|c| !self.deposed.contains(&c))
            });
            // A fork whose child was lost before it said who it is was not made.
            let forks = is_fork(nr, word(block_field!(frame)), memory);
            let result =
                result.filter(|r| !forks || g.names.values().any(|child| *child == *r as Pid));
            let call = result.map(|result| Call {
                nr,
                digest: word(block_field!(flight_digest)),
                result,
                written: word(block_field!(flight_written)),
            });
            let mut signals = pending(memory, slot);
            if returned.is_some_and(is_broken_pipe) {
                // It comes again with the call.
                signals.retain(|info| info[0] as i32 != libc::SIGPIPE);
            }
            // It had itself been given a result, and has not made it its own.
            let unused = word(block_field!(given)) as u32 != 0;
            if !unused {
                t.legacy.retain(|l| l.slot != slot as u32);
            }
            if call.is_some() || !signals.is_empty() {
                t.legacy.push(Legacy {
                    slot: slot as u32,
                    whose: 0,
                    call,
                    signals,
                });
            }
        }
        if let Some(call) = lost {
            self.give_up(&format!(
                "stopped: the arguments of the lost leader's last call ({call}) had changed, and what it has taken cannot be given back"
            ));
        }
        if unclear {
            self.give_up("stopped: nobody knows what the lost leader's last call has returned");
        }
    }

    /// Tell the successor's threads.
    pub(super) fn bequeath(&mut self, t: &Takeover, pid: Pid) -> Result<()> {
        let m = self.memory(pid)?;
        for l in &t.legacy {
            let block = block_address(l.slot as usize);
            for (i, info) in l.signals.iter().enumerate() {
                let to = block + block_field!(pending) + 128 * i as u64;
                for (k, w) in info.iter().enumerate() {
                    m.set_word(to + 8 * k as u64, *w)?;
                }
            }
            let count = l.signals.len() as u32;
            if count != 0 {
                m.write(block + block_field!(pending_count), &count.to_le_bytes())?;
            }
            if let Some(c) = l.call {
                m.write(block + block_field!(given_nr), &c.nr.to_le_bytes())?;
                m.set_word(block + block_field!(given_digest), c.digest)?;
                m.set_word(block + block_field!(given_result), c.result as u64)?;
                m.set_word(block + block_field!(given_written), c.written)?;
                m.write(block + block_field!(given), &1u32.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Has the successor taken all results?
    pub(super) fn legacy_is_used(&mut self, t: &Takeover, pid: Pid) -> Result<bool> {
        let m = self.memory(pid)?;
        for l in t.legacy.iter().filter(|l| l.call.is_some()) {
            let mut word = [0; 4];
            m.read(
                block_address(l.slot as usize) + block_field!(given),
                &mut word,
            )?;
            if u32::from_le_bytes(word) != 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Is the call a fork? (Not a vfork, whose child has no group of its own yet. Which one it is the
/// process's count does not say: another thread may have forked since.)
fn is_fork(nr: u32, frame: u64, memory: &RemoteMemory) -> bool {
    let flags = || memory.word(frame + offset_of!(Frame, rdi) as u64);
    match i64::from(nr) {
        libc::SYS_fork => true,
        libc::SYS_clone => flags().is_ok_and(|f| f & libc::CLONE_VM as u64 == 0),
        _ => false,
    }
}

/// The child that a wait has returned.
fn waited_for(nr: u32, result: i64, frame: u64, memory: &RemoteMemory) -> Option<Pid> {
    const SI_PID: u64 = 16;
    match i64::from(nr) {
        libc::SYS_wait4 => Some(result as Pid),
        libc::SYS_waitid => {
            let info = memory.word(frame + offset_of!(Frame, rdx) as u64).ok()?;
            let mut pid = [0; 4];
            memory.read(info + SI_PID, &mut pid).ok()?;
            Some(Pid::from_le_bytes(pid))
        }
        _ => None,
    }
}

fn pending(memory: &RemoteMemory, slot: usize) -> Vec<[u64; 16]> {
    let block = block_address(slot);
    let mut count = [0; 4];
    let read = memory.read(block + block_field!(pending_count), &mut count);
    let count = read.map_or(0, |()| u32::from_le_bytes(count) as usize);
    let at = |i: usize| block + block_field!(pending) + 128 * i as u64;
    (0..count.min(MAX_PENDING))
        .filter_map(|i| memory.words(at(i)).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::outcome::NOTHING;

    #[test]
    fn the_parts_of_a_write_add_up() {
        // Before the part, in it, behind it, and noted.
        assert_eq!(result(flight::FINISHING, 9, 1, [7, 7]), Ok(Some(100)));
        assert_eq!(result(flight::FINISHING, 10, 5, NONE), Ok(Some(105)));
        assert_eq!(result(flight::FINISHING, 10, -4, NONE), Ok(Some(100)));
        assert_eq!(
            result(flight::FINISHING, 12, 5, [5, NOTHING]),
            Ok(Some(105))
        );
        assert_eq!(result(flight::FINISHED, 13, 0, [5, NOTHING]), Ok(Some(105)));
        assert_eq!(
            result(flight::FINISHED, 13, 0, [-32i64 as u64; 2]),
            Ok(Some(100))
        );
        assert_eq!(result(flight::SUMMED, 13, 0, [5, 105]), Ok(Some(200)));
    }

    fn result(state: u32, rip: u64, rax: i64, notes: [u64; 2]) -> Result<Option<i64>, Unclear> {
        let noted = Noted {
            state,
            results: notes,
            done: 100,
            total: 200,
        };
        effect(noted, Registers { rip, rcx: 7, rax }, 0)
    }

    fn effect(noted: Noted, at: Registers, nr: u32) -> Result<Option<i64>, Unclear> {
        let returned = gate().returned(noted, at, nr)?;
        Ok(returned.filter(|r| has_effect(nr, *r)))
    }

    fn gate() -> Gate {
        Gate {
            places: [vec![10, 12], vec![20, 22]],
            unmade: 40,
            image: 1..50,
        }
    }
    const NONE: [u64; 2] = [NOTHING; 2];

    #[test]
    fn a_call_that_has_not_begun_is_not_done() {
        assert_eq!(result(flight::NONE, 10, 5, NONE), Ok(None));
        assert_eq!(result(flight::BEGUN, 8, 1, NONE), Ok(None));
    }

    #[test]
    fn between_the_call_and_its_note_the_register_tells() {
        assert_eq!(result(flight::BEGUN, 10, 5, NONE), Ok(Some(5)));
        assert_eq!(result(flight::BEGUN, 12, 5, NONE), Ok(Some(5)));
        assert_eq!(result(flight::BEGUN, 20, -9, NONE), Ok(Some(-9)));
    }

    #[test]
    fn a_thread_that_a_fault_has_sent_elsewhere_had_made_its_call() {
        let noted = Noted {
            state: flight::BEGUN,
            results: NONE,
            done: 0,
            total: 0,
        };
        let at = Registers {
            rip: 0,
            rcx: 10,
            rax: 5,
        };
        assert_eq!(effect(noted, at, 0), Ok(Some(5)));
        let at = Registers { rip: 40, ..at };
        assert_eq!(effect(noted, at, 0), Ok(None));
    }

    #[test]
    fn who_was_sent_through_other_code_has_no_result_any_more() {
        const READ: u32 = libc::SYS_read as u32;
        let noted = Noted {
            state: flight::BEGUN,
            results: NONE,
            done: 0,
            total: 0,
        };
        // In the middle of an instruction, or elsewhere in the agent.
        for rip in [11, 30] {
            let at = Registers {
                rip,
                rcx: 10,
                rax: 5,
            };
            assert_eq!(effect(noted, at, READ), Err(Unclear));
            assert_eq!(effect(noted, at, libc::SYS_futex as u32), Ok(None));
            let logged = Noted {
                state: flight::RETURNED,
                results: [7, 7],
                ..noted
            };
            assert_eq!(effect(logged, at, READ), Ok(Some(7)));
        }
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
        assert_eq!(result(flight::BEGUN, 10, -32, NONE), Ok(None));
        let notes = [-32i64 as u64; 2];
        assert_eq!(result(flight::LOGGING, 99, 5, notes), Ok(None));
        // What was written before it was found is out.
        assert_eq!(result(flight::FINISHING, 10, -32, NONE), Ok(Some(100)));
    }

    #[test]
    fn what_was_interrupted_has_done_nothing() {
        assert_eq!(result(flight::BEGUN, 10, -512, NONE), Ok(None));
        assert_eq!(result(flight::BEGUN, 10, -4, NONE), Ok(None));
        assert_eq!(result(flight::BEGUN, 10, 1 << 62 | 202, NONE), Ok(None));
        assert_eq!(result(flight::BEGUN, 10, -512 ^ 1 << 37, NONE), Ok(None));
    }
}
