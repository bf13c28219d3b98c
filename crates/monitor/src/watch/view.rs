//! The threads of a replica, as their blocks show them.

use crate::block::{self, Piece};
use crate::block_field;
use crate::state::Monitor;
use geryon_abi::layout::{MAX_THREADS, Poll, block_address, wait};
use geryon_tracee::{Pid, RemoteMemory};
use std::collections::HashSet;
use std::mem::offset_of;

/// A thread of a replica, as its block shows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// Thread group.
    pub slot: u32,
    /// See `geryon_abi::layout::wait`.
    pub waiting: u32,
    /// What for.
    pub waiting_for: u64,
    /// Which value.
    pub waiting_value: u64,
    /// Position in the ring.
    pub pos: u64,
    /// Up to where it has compared.
    pub verified: u64,
    /// Records so far.
    pub events: u64,
    /// See `Block::contradicted`.
    pub contradicted: u64,
    /// What it is about to do there, see `Block::intent`.
    pub intent: [u64; 2],
    /// Where it said so.
    pub intent_at: u64,
    /// Where it last made a call that is not logged.
    pub unlogged_at: u64,
    /// How often it has made its last load again since, with the same result, if it has logged nothing else.
    pub polls: u64,
    /// The last records.
    pub last: [u64; 16],
    /// Host thread id.
    pub tid: Pid,
}

impl View {
    /// Does it wait for what another thread of its replica has yet to do?
    pub(super) fn awaits_another(&self) -> bool {
        matches!(
            self.waiting,
            wait::TURN | wait::KIN | wait::VALUE | wait::WORD | wait::ORDER
        )
    }

    /// Does it stand in the agent until another thread, of its replica or its leader's, has done something? `head`: where
    /// its ring ends.
    pub(super) fn stands(&self, head: u64) -> bool {
        let is_at_end = self.waiting == wait::RECORD && self.pos >= head;
        self.awaits_another() || self.waiting == wait::DIVERGED || is_at_end
    }
}

impl Monitor {
    /// The living threads of a process, from its blocks.
    pub(crate) fn views(&mut self, pid: Pid) -> Vec<View> {
        let mut unseen = self.living(pid);
        let mut out = Vec::new();
        let Ok(m) = self.memory(pid) else { return out };
        for slot in 0..MAX_THREADS {
            if unseen.is_empty() {
                break;
            }
            let Some((tid, head)) = holder(m, slot) else {
                continue;
            };
            unseen.remove(&tid);
            // Not older than what it waits for.
            let word = |o: u64| m.word(block_address(slot) + o).unwrap_or(0);
            let (pos, verified) = (word(block_field!(pos)), word(block_field!(verified)));
            let course = Piece::read(m, slot, block::COURSE);
            let poll = |of: usize| word(block_field!(poll) + of as u64);
            let polls = match poll(Poll::POS) == pos {
                true => poll(offset_of!(Poll, count)),
                false => 0,
            };
            out.push(View {
                slot: slot as u32,
                waiting: head.word(block_field!(waiting)) as u32,
                waiting_for: head.word(block_field!(waiting_for)),
                waiting_value: head.word(block_field!(waiting_value)),
                pos,
                verified,
                events: course.word(block_field!(events)),
                contradicted: word(block_field!(contradicted)),
                intent: [
                    course.word(block_field!(intent)),
                    course.word(block_field!(intent_digest)),
                ],
                intent_at: course.word(block_field!(intent_at)),
                unlogged_at: course.word(block_field!(unlogged_at)),
                polls,
                last: course.words(block_field!(last)),
                tid,
            });
        }
        out
    }

    /// How far the living threads of a process have come, all together.
    pub(crate) fn progress(&mut self, pid: Pid) -> u64 {
        let mut unseen = self.living(pid);
        let Ok(m) = self.memory(pid) else { return 0 };
        let mut progress = 0u64;
        for slot in 0..MAX_THREADS {
            if unseen.is_empty() {
                break;
            }
            if let Some((tid, head)) = holder(m, slot) {
                unseen.remove(&tid);
                progress = u64::wrapping_add(progress, head.word(block_field!(pos)));
            }
        }
        progress
    }

    /// Threads of a process that are not about to end.
    fn living(&self, pid: Pid) -> HashSet<Pid> {
        let threads = self.threads.iter();
        let threads = threads.filter(|(_, t)| t.pid == pid && !t.ends);
        threads.map(|(tid, _)| *tid).collect()
    }
}

/// The thread that has the block, if there is one, and the block's head.
pub(crate) fn holder(memory: &RemoteMemory, slot: usize) -> Option<(Pid, Piece)> {
    let head = Piece::read(memory, slot, block::HEAD);
    let has = head.word(block_field!(this)) != 0 && head.word(block_field!(free)) as u32 == 0;
    has.then(|| (head.word(block_field!(own_tid)) as u32 as Pid, head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(waiting: u32) -> View {
        View {
            waiting,
            pos: 50,
            ..View::default()
        }
    }

    #[test]
    fn who_waits_for_others_stands() {
        for waiting in [wait::TURN, wait::KIN, wait::VALUE, wait::WORD, wait::ORDER] {
            assert!(view(waiting).awaits_another() && view(waiting).stands(60));
        }
        for waiting in [
            wait::NONE,
            wait::KERNEL,
            wait::CONFIRM,
            wait::ROOM,
            wait::MAPS,
        ] {
            assert!(!view(waiting).awaits_another() && !view(waiting).stands(60));
        }
    }

    #[test]
    fn who_has_read_all_stands() {
        assert!(view(wait::RECORD).stands(50) && !view(wait::RECORD).stands(51));
        assert!(view(wait::DIVERGED).stands(60) && !view(wait::DIVERGED).awaits_another());
    }
}
