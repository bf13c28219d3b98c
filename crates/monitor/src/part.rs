//! A replica of another program is dropped as a person asks for it: the leader only at a moment at which it has no call under way that
//! has happened already. What such a call has written lies where its successor, another program, has something else.

use crate::block_field;
use crate::state::Monitor;
use geryon_abi::layout::{block_address, flight};
use geryon_tracee::{Pid, Stopped};
use std::time::Duration;

const EINTR: i64 = -4;
/// So often such a moment is looked for in one process,
const TRIES: u32 = 20;
/// and in all of them.
const ROUNDS: u32 = 20;
/// After so long each time.
const PAUSE: Duration = Duration::from_micros(300);

impl Monitor {
    /// Halt the replica's processes where nothing of theirs is lost, for good.
    ///
    /// # Errors
    /// Why that cannot be, for who has asked.
    pub(crate) fn part_from(&mut self, replica: usize) -> Result<(), String> {
        let groups = self.groups.values();
        let leads = groups.filter(|g| g.leader == replica);
        let mut pids: Vec<Pid> = leads.filter_map(|g| g.members[replica].pid).collect();
        for _ in 0..ROUNDS {
            let mut halted: Vec<Vec<Pid>> = Vec::new();
            let busy = pids.iter().position(|pid| match self.halt_idle(*pid) {
                Some(threads) => {
                    halted.push(threads);
                    false
                }
                None => true,
            });
            let Some(busy) = busy else {
                // (They are killed as they stand.)
                return Ok(());
            };
            halted.iter().for_each(|threads| self.release(threads));
            // It may wait for one of those that stood still: it is the first to stand next time.
            pids[..=busy].rotate_right(1);
        }
        Err("the leader is never without a call under way: ask again".into())
    }

    /// Halt a process at such a moment; those before it stand still.
    fn halt_idle(&mut self, pid: Pid) -> Option<Vec<Pid>> {
        for _ in 0..TRIES {
            if let Ok(Some(threads)) = self.halt(pid) {
                let is_idle = |tid: &Pid| self.has_nothing_under_way(pid, *tid);
                if threads.iter().all(is_idle) {
                    return Some(threads);
                }
                self.release(&threads);
            }
            std::thread::sleep(PAUSE);
        }
        None
    }

    /// Has this halted thread made no call whose result is not in the log?
    fn has_nothing_under_way(&self, pid: Pid, tid: Pid) -> bool {
        let memory = self.processes.get(&pid).and_then(|p| p.memory.as_ref());
        let (Some(memory), Ok(regs)) = (memory, Stopped(tid).regs()) else {
            return false;
        };
        let Some(slot) = self.kit.image.slot_of(&regs) else {
            return false;
        };
        let word = |field: u64| memory.word(block_address(slot) + field);
        let state = word(block_field!(flight));
        let ended = || word(block_field!(flight_result)).is_ok_and(|r| r as i64 == EINTR);
        // (EINTR: some calls say so where nothing but this has happened.)
        let result = regs.rax as i64;
        let sleeps =
            regs.orig_rax as i64 >= 0 && (result == EINTR || (-516..=-512).contains(&result));
        match state.map(|w| w as u32) {
            Ok(flight::NONE) => true,
            Ok(flight::BEGUN) => sleeps,
            // (It has been halted in a wait, and waits for its turn.)
            Ok(flight::RETURNED) => ended(),
            _ => false,
        }
    }
}
