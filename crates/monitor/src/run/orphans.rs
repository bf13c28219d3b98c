//! What children want to be told at the end of their parent (PR_SET_PDEATHSIG). The kernel would tell it to who was copied
//! from a process that is gone, or follows it as a leader; so it is told here.

use crate::block_field;
use crate::state::{GroupId, Monitor};
use geryon_abi::layout::block_address;
use geryon_tracee::{Pid, kill};

impl Monitor {
    /// A process of the program has ended, which the program calls `parent`.
    pub(crate) fn tell_orphans(&mut self, parent: Pid) {
        let orphans = self.groups.iter().filter(|(_, g)| g.name.parent == parent);
        let orphans: Vec<(GroupId, Pid)> = orphans
            .filter_map(|(id, g)| Some((*id, g.leader_pid()?)))
            .collect();
        for (id, pid) in orphans {
            for signal in self.wanted_at_parents_end(id, pid) {
                self.tell_orphan(id, pid, parent, signal);
            }
        }
    }

    /// The signals that its threads want.
    fn wanted_at_parents_end(&mut self, id: GroupId, pid: Pid) -> Vec<i32> {
        let slots = self.groups.get(&id).map(|g| g.segment.touched());
        let Ok(memory) = self.memory(pid) else {
            return Vec::new();
        };
        let half = |at: u64| memory.word(at).map_or(0, |w| w as u32);
        let wanted = |slot: usize| {
            let block = block_address(slot);
            let lives = memory
                .word(block + block_field!(this))
                .is_ok_and(|w| w == block)
                && half(block + block_field!(free)) == 0;
            let wanted = half(block + block_field!(at_parents_end)).saturating_sub(1);
            (lives && wanted != 0).then_some(wanted as i32)
        };
        slots.into_iter().flatten().filter_map(wanted).collect()
    }

    fn tell_orphan(&mut self, id: GroupId, pid: Pid, parent: Pid, signal: i32) {
        if signal == libc::SIGKILL {
            self.expect_end(id);
            return kill(pid, signal);
        }
        self.sends_for(parent, id, signal);
    }
}
