//! Has a follower replayed everything that was published, so that it can begin to lead?

use super::Takeover;
use crate::block::{self, Piece};
use crate::block_field;
use crate::segment::wake_word;
use crate::state::{GroupId, Monitor, Process};
use crate::watch::holder;
use geryon_abi::layout::{MAX_THREADS, block_address, wait};
use geryon_tracee::{Pid, RemoteMemory};
use std::sync::atomic::Ordering;

/// How a follower's thread stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// Thread group.
    pub slot: u32,
    /// Host thread id.
    pub tid: Pid,
    /// Position in the ring.
    pub pos: u64,
    /// See `geryon_abi::layout::wait`.
    pub waiting: u32,
    /// It is in the agent, or in the original of a hooked function.
    pub inside: bool,
    /// It carries out an operation whose turn has come.
    pub midway: bool,
    /// Where the record starts whose turn it waits for.
    pub standing: u64,
    /// The value that it waits for is there.
    pub due: bool,
    /// It stands in the kernel until its vfork's child has another program, or ends.
    pub vforks: bool,
    /// It is in a futex call.
    pub in_futex: bool,
    /// That call, if it is one, is a hooked function's: it ends when another thread ends it.
    pub suspended: bool,
}

impl Stand {
    /// Is there nothing that it still has to replay or to complete?
    fn is_quiet(&self, head: u64) -> bool {
        self.pos == head
            && match self.waiting {
                wait::RECORD | wait::ORDER => true,
                wait::KERNEL | wait::WORD => !self.midway,
                wait::NONE => !self.inside,
                _ => false,
            }
    }
}

/// Is it a call by which a process waits for its child? (A clone announces itself only then.)
fn is_vfork(nr: u64) -> bool {
    matches!(nr as i64, libc::SYS_vfork | libc::SYS_clone)
}

/// Does an operand (see [`wait::operand`]) show this value?
pub(super) fn shows(memory: &RemoteMemory, operand: u64, value: u64) -> bool {
    let (address, size) = wait::place_of(operand);
    let mut bytes = value.to_le_bytes();
    let Some(now) = bytes.get_mut(..usize::from(size)).filter(|b| !b.is_empty()) else {
        return false;
    };
    memory.read(address, now).is_ok() && u64::from_le_bytes(bytes) == value
}

impl Monitor {
    /// How the living threads of a process stand; None while one of them cannot be told.
    pub(super) fn stands(&mut self, pid: Pid) -> Option<Vec<Stand>> {
        let of_it = self.membership(pid);
        let is_guest = |p: &Process| p.guest.is_some() && p.group.map(|g| (g, p.replica)) == of_it;
        let runs_there = |p: Pid| p == pid || self.processes.get(&p).is_some_and(is_guest);
        let threads = self.threads.iter();
        let threads = threads.filter(|(_, t)| !t.ends && runs_there(t.pid));
        let threads: Vec<(Pid, Pid)> = threads.map(|(tid, t)| (*tid, t.pid)).collect();
        let guests = threads.iter().filter(|(_, p)| *p != pid).count();
        let threads: Vec<Pid> = threads.into_iter().map(|(tid, _)| tid).collect();
        let m = self.memory(pid).ok()?;
        let mut out = Vec::new();
        for slot in 0..MAX_THREADS {
            if out.len() == threads.len() {
                break;
            }
            let holder = holder(m, slot);
            let Some((tid, _)) = holder.filter(|(tid, _)| threads.contains(tid)) else {
                continue;
            };
            // The position first: whoever reads a record meanwhile is seen to be busy, or comes to
            // wait again behind a position that is not the last.
            let word = |o: u64| m.word(block_address(slot) + o).unwrap_or(0);
            let pos = word(block_field!(pos));
            let head = Piece::read(m, slot, block::HEAD);
            let waiting = head.word(block_field!(waiting)) as u32;
            let waiting_for = head.word(block_field!(waiting_for));
            out.push(Stand {
                slot: slot as u32,
                tid,
                pos,
                waiting,
                inside: head.word(block_field!(frame)) != 0
                    || head.word(block_field!(hook_rsp)) != 0,
                midway: word(block_field!(midway)) as u32 != 0,
                standing: word(block_field!(standing)),
                due: shows(m, waiting_for, head.word(block_field!(waiting_value))),
                vforks: waiting == wait::KERNEL && is_vfork(waiting_for),
                in_futex: waiting == wait::KERNEL && waiting_for == libc::SYS_futex as u64,
                suspended: word(block_field!(suspend)) as u32 != 0,
            });
        }
        // A thread that vforks is about to have a child that nobody has heard of, or has it no more.
        let vforks = out.iter().filter(|s| s.vforks).count();
        (out.len() == threads.len() && vforks == guests).then_some(out)
    }

    /// The former leader may have written to another thread's line: what it has shown by its own notes, and
    /// what a survivor has read, was in the log, whatever that says of its end.
    /// Whoever sleeps there is to look.
    pub(super) fn raise_heads(&mut self, id: GroupId, t: &Takeover) {
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let words = g.segment.ring_words() as u64;
        let former = t.estate.memory();
        for slot in g.segment.touched() {
            let Some(m) = former else { break };
            let noted = |field: u64| m.word(block_address(slot) + field).unwrap_or(0);
            let pos = noted(block_field!(pos));
            let shown = noted(block_field!(published)).min(pos);
            let head = &g.segment.ring(slot).head;
            let now = head.load(Ordering::SeqCst);
            if (1..=words).contains(&shown.wrapping_sub(now)) {
                head.store(shown, Ordering::SeqCst);
            } else if pos != 0 && now > pos && now - pos > words {
                // Nobody has ever been there.
                head.store(pos, Ordering::SeqCst);
            }
            // It may have been lost between the two.
            wake_word(head);
        }
        for pid in g.living().map(|(_, p)| p) {
            let Some(m) = self.processes.get(&pid).and_then(|p| p.memory.as_ref()) else {
                continue;
            };
            for slot in g.segment.touched() {
                let read = m.word(block_address(slot) + block_field!(pos)).unwrap_or(0);
                let head = &g.segment.ring(slot).head;
                if head.fetch_max(read, Ordering::SeqCst) < read {
                    wake_word(head);
                }
            }
        }
    }

    /// Has the process replayed all rings to their ends?
    pub(crate) fn has_replayed(&mut self, id: GroupId, pid: Pid) -> bool {
        let Some(stands) = self.stands(pid) else {
            return false;
        };
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let head = |slot: usize| g.segment.ring(slot).head.load(Ordering::SeqCst);
        if !stands.iter().all(|s| s.is_quiet(head(s.slot as usize))) {
            return false;
        }
        // Threads that are yet to be born, and what is left of those that have ended.
        let Some(m) = self.processes.get(&pid).and_then(|p| p.memory.as_ref()) else {
            return false;
        };
        g.segment.touched().into_iter().all(|slot| {
            let pos = || m.word(block_address(slot) + block_field!(pos));
            head(slot) == 0 || pos().is_ok_and(|p| p == head(slot))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand(waiting: u32) -> Stand {
        Stand {
            slot: 0,
            tid: 1,
            pos: 50,
            waiting,
            inside: true,
            midway: false,
            standing: 0,
            ..Stand::default()
        }
    }

    #[test]
    fn who_waits_for_what_is_not_there_is_quiet() {
        assert!(stand(wait::RECORD).is_quiet(50));
        assert!(!stand(wait::RECORD).is_quiet(51));
        assert!(!stand(wait::TURN).is_quiet(50));
    }

    #[test]
    fn the_program_may_compute_but_no_operation_be_half_done() {
        assert!(!stand(wait::NONE).is_quiet(50));
        let outside = Stand {
            inside: false,
            ..stand(wait::NONE)
        };
        assert!(outside.is_quiet(50));
        let blocked = stand(wait::KERNEL);
        assert!(blocked.is_quiet(50));
        let midway = Stand {
            midway: true,
            ..blocked
        };
        assert!(!midway.is_quiet(50));
    }
}
