//! The threads of a replica, as their blocks show them.

use crate::block_field;
use crate::state::Monitor;
use geryon_abi::layout::{MAX_THREADS, block_address};
use geryon_tracee::Pid;
use std::collections::HashSet;

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
    /// The last records.
    pub last: [u64; 16],
    /// Host thread id.
    pub tid: Pid,
}

impl Monitor {
    /// The living threads of a process, from its blocks.
    pub(crate) fn views(&mut self, pid: Pid) -> Vec<View> {
        let threads = self.threads.iter();
        let threads = threads.filter(|(_, t)| t.pid == pid && !t.ends);
        let mut unseen: HashSet<Pid> = threads.map(|(tid, _)| *tid).collect();
        let mut out = Vec::new();
        let Ok(m) = self.memory(pid) else { return out };
        for slot in 0..MAX_THREADS {
            if unseen.is_empty() {
                break;
            }
            let b = block_address(slot);
            let word = |o: u64| m.word(b + o).unwrap_or(0);
            if word(block_field!(this)) == 0 || word(block_field!(free)) as u32 != 0 {
                continue;
            }
            let tid = word(block_field!(own_tid)) as Pid;
            unseen.remove(&tid);
            out.push(View {
                slot: slot as u32,
                waiting: word(block_field!(waiting)) as u32,
                waiting_for: word(block_field!(waiting_for)),
                waiting_value: word(block_field!(waiting_value)),
                pos: word(block_field!(pos)),
                verified: word(block_field!(verified)),
                events: word(block_field!(events)),
                contradicted: word(block_field!(contradicted)),
                intent: [
                    word(block_field!(intent)),
                    word(block_field!(intent_digest)),
                ],
                intent_at: word(block_field!(intent_at)),
                unlogged_at: word(block_field!(unlogged_at)),
                last: m.words(b + block_field!(last)).unwrap_or([0; 16]),
                tid,
            });
        }
        out
    }
}
