//! What a leader's threads had under way when it was lost: done or not, and with which result.

use super::begun::{
    Gate, Noted, Registers, Unclear, has_effect, instructions, is_broken_pipe, is_ended_by_signal,
};
use super::{Takeover, spoilt};
use crate::block::{self, Piece};
use crate::block_field;
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{GATE_BASE, GATE_BYTES, MAX_PENDING, block_address, flight};
use geryon_tracee::{Pid, RemoteMemory};
use std::mem::offset_of;
use std::sync::atomic::Ordering;

/// What a thread of the former leader leaves to the successor's.
#[derive(Clone, Debug)]
pub struct Legacy {
    /// Thread group.
    pub(super) slot: u32,
    /// In whose memory is what the call wrote: an index in `Estate::memories`.
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

impl Monitor {
    /// The former leader's threads are at their ends: what had they done that nobody knows of?
    pub(super) fn examine(&mut self, id: GroupId, t: &mut Takeover) {
        let (mut unclear, mut lost) = (None, None);
        let (Some(memory), Some(g)) = (t.estate.memories.first(), self.groups.get(&id)) else {
            return;
        };
        let places = |from: &str, to: &str| {
            let (from, to) = (self.kit.image.symbol(from), self.kit.image.symbol(to));
            instructions(memory, from, to)
        };
        let gate = Gate {
            places: [
                places("geryon_blocking_end", "geryon_flight_returned"),
                places("geryon_flight_end", "geryon_flight_end_returned"),
            ],
            unmade: self.kit.image.symbol("geryon_unmade"),
            page: GATE_BASE..GATE_BASE + GATE_BYTES,
            text: self.kit.image.text(),
        };
        for regs in t.lost.bodies.values() {
            let Some(slot) = self.kit.image.slot_of(regs) else {
                continue;
            };
            let ring = g.segment.ring(slot);
            // (It stands still for good.)
            let course = Piece::read(memory, slot, block::COURSE);
            let word = |field: u64| course.word(field);
            let apart = |field: u64| memory.word(block_address(slot) + field).unwrap_or(0);
            let noted = Noted {
                state: word(block_field!(flight)) as u32,
                results: [
                    word(block_field!(flight_result)),
                    word(block_field!(flight_result) + 8),
                ],
                entered: word(block_field!(flight_entered)) as u32 != 0,
                done: word(block_field!(flight_done)),
                total: word(block_field!(flight_total)),
            };
            let end = word(block_field!(flight_end));
            let ahead = end.wrapping_sub(ring.head.load(Ordering::SeqCst));
            if noted.state == flight::LOGGED && (1..=g.segment.ring_words() as u64).contains(&ahead)
            {
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
            let frame = apart(block_field!(frame));
            let mut returned = match gate.returned(noted, at, nr) {
                Ok(returned) => returned,
                Err(Unclear) => {
                    unclear = Some(nr);
                    continue;
                }
            };
            if noted.state == flight::BEGUN && gate.was_spoilt(at) && has_effect(nr, at.rax) {
                let seen = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
                // Where the gate has them from.
                let asked = memory.words(regs.rbx);
                let row = geryon_abi::table::row(u64::from(nr));
                let (Some(row), Ok(asked)) = (row, asked) else {
                    unclear = Some(nr);
                    continue;
                };
                let at_once = spoilt::is_made_at_once(row, &asked, t.lost.process);
                match spoilt::result(row, &asked, &seen, at.rax, at_once) {
                    Ok(result) => returned = result,
                    Err(spoilt::Lost) => lost = Some(row.name),
                }
            }
            let result = returned.filter(|r| has_effect(nr, *r));
            // That a child died which was killed with it is nothing that has happened. (That it was stopped is.)
            let result = result.filter(|r| {
                let child = waited_for(nr, *r, frame, memory).filter(|_| !lives(nr, frame, memory));
                child.is_none_or(|c| !self.family.deposed.contains(&c))
            });
            // A fork whose child was lost before it said who it is was not made.
            let forks = is_fork(nr, frame, memory);
            let result = result
                .filter(|r| !forks || g.forks.names.values().any(|child| *child == *r as Pid));
            let call = result.map(|result| Call {
                nr,
                digest: word(block_field!(flight_digest)),
                result,
                written: word(block_field!(flight_written)),
            });
            let mut signals = pending(memory, slot);
            let logged = apart(block_field!(signal_logged));
            let count = apart(block_field!(signal_count)) as u32 as usize;
            let is_logged = logged != 0 && ring.head.load(Ordering::SeqCst) >= logged;
            if is_logged && count == signals.len() {
                // The oldest ones are in the log already.
                let logged = apart(block_field!(signals_in_record)) as u32 as usize;
                signals.drain(..logged.min(count));
            }
            let call = call.or_else(|| {
                let result =
                    returned.filter(|r| !signals.is_empty() && is_ended_by_signal(nr, *r))?;
                Some(Call {
                    nr,
                    digest: word(block_field!(flight_digest)),
                    result,
                    written: 0,
                })
            });
            if returned.is_some_and(is_broken_pipe) {
                // It comes again with the call. (So does one that the thread was killed before it could be told.)
                signals.retain(|info| info[0] as i32 != libc::SIGPIPE);
                t.estate.broken_pipes.push(slot as u32);
            }
            // It had itself been given a result, and has not made it its own.
            let unused = word(block_field!(given)) as u32 != 0;
            if !unused {
                t.estate.legacy.retain(|l| l.slot != slot as u32);
            }
            if call.is_some() || !signals.is_empty() {
                t.estate.legacy.push(Legacy {
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
        if let Some(nr) = unclear {
            let name = geryon_abi::table::row(u64::from(nr)).map_or("?", |r| r.name);
            self.give_up(&format!(
                "stopped: nobody knows what the lost leader's last call ({name}) has returned"
            ));
        }
    }

    /// Tell the successor's threads.
    pub(super) fn bequeath(&mut self, t: &Takeover, pid: Pid) -> Result<()> {
        let m = self.memory(pid)?;
        for l in &t.estate.legacy {
            let block = block_address(l.slot as usize);
            // (Behind them comes what it was sent itself, since it is known to lead.)
            let own = if l.signals.is_empty() {
                Vec::new()
            } else {
                pending(m, l.slot as usize)
            };
            let signals: Vec<_> = l.signals.iter().chain(&own).take(MAX_PENDING).collect();
            for (i, info) in signals.iter().enumerate() {
                let to = block + block_field!(pending) + 128 * i as u64;
                for (k, w) in info.iter().enumerate() {
                    m.set_word(to + 8 * k as u64, *w)?;
                }
            }
            let count = signals.len() as u32;
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
        for l in t.estate.legacy.iter().filter(|l| l.call.is_some()) {
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
pub(super) fn is_fork(nr: u32, frame: u64, memory: &RemoteMemory) -> bool {
    let flags = || memory.word(frame.wrapping_add(offset_of!(Frame, rdi) as u64));
    match i64::from(nr) {
        libc::SYS_fork => true,
        libc::SYS_clone => flags().is_ok_and(|f| f & libc::CLONE_VM as u64 == 0),
        _ => false,
    }
}

/// The child that a wait has returned.
pub(super) fn waited_for(nr: u32, result: i64, frame: u64, memory: &RemoteMemory) -> Option<Pid> {
    const SI_PID: u64 = 16;
    match i64::from(nr) {
        libc::SYS_wait4 => Some(result as Pid),
        libc::SYS_waitid => {
            let info = memory
                .word(frame.wrapping_add(offset_of!(Frame, rdx) as u64))
                .ok()?;
            let mut pid = [0; 4];
            memory.read(info.wrapping_add(SI_PID), &mut pid).ok()?;
            Some(Pid::from_le_bytes(pid))
        }
        _ => None,
    }
}

/// Does the child live on of which a wait has told?
fn lives(nr: u32, frame: u64, memory: &RemoteMemory) -> bool {
    const SI_CODE: u64 = 8;
    let said = |register: usize, at: u64| {
        let place = memory.word(frame.wrapping_add(register as u64)).ok()?;
        let mut said = [0; 4];
        memory.read(place.wrapping_add(at), &mut said).ok()?;
        Some(i32::from_le_bytes(said))
    };
    match i64::from(nr) {
        libc::SYS_wait4 => {
            let status = said(offset_of!(Frame, rsi), 0);
            status.is_some_and(|s| libc::WIFSTOPPED(s) || libc::WIFCONTINUED(s))
        }
        libc::SYS_waitid => said(offset_of!(Frame, rdx), SI_CODE)
            .is_some_and(|code| matches!(code, libc::CLD_STOPPED | libc::CLD_CONTINUED)),
        _ => false,
    }
}

pub(super) fn pending(memory: &RemoteMemory, slot: usize) -> Vec<[u64; 16]> {
    let block = block_address(slot);
    let mut count = [0; 4];
    let read = memory.read(block + block_field!(pending_count), &mut count);
    let count = read.map_or(0, |()| u32::from_le_bytes(count) as usize);
    let at = |i: usize| block + block_field!(pending) + 128 * i as u64;
    (0..count.min(MAX_PENDING))
        .filter_map(|i| memory.words(at(i)).ok())
        .collect()
}
