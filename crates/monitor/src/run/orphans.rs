//! What children want to be told at the end of their parent (PR_SET_PDEATHSIG). The kernel would tell it to who was copied
//! from a process that is gone, or follows it as a leader; so it is told here.
//!
//! And who has them then: the next of its ancestors that wants to (PR_SET_CHILD_SUBREAPER). To the kernel all such are
//! Geryon's.

use crate::block_field;
use crate::state::{Group, GroupId, Monitor};
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

    /// Who has the children of one that has ended, as the program calls it: the next that wants to, from its parent on.
    pub(crate) fn reaper(&self, parent: Pid) -> Option<GroupId> {
        let mut at = parent;
        for _ in 0..=self.groups.len() {
            let called = |(_, g): &(&GroupId, &Group)| g.name.shown == at && at != 0;
            let lives = |(_, g): &(&GroupId, &Group)| g.leader_gone.is_none();
            let named = self.groups.iter().filter(called).find(lives);
            let (id, g) = named.or_else(|| self.family.retired.iter().find(called))?;
            let (id, next) = (*id, g.name.parent);
            if g.parenthood.reaps_orphans {
                return Some(id);
            }
            at = next;
        }
        None
    }

    /// Whose child is one that was forked in this group, and is it an orphan? (The group's process may have ended since, or
    /// have another program.)
    pub(crate) fn parent_of(&self, forked_in: GroupId) -> Option<(GroupId, bool)> {
        let lives = |g: &Group| g.leader_gone.is_none();
        if self.groups.get(&forked_in).is_some_and(lives) {
            return Some((forked_in, false));
        }
        let gone = self.groups.get(&forked_in);
        let gone = gone.or_else(|| self.family.retired.get(&forked_in))?.name;
        let mut all = self.groups.iter();
        let next = all.find(|(_, g)| g.name.shown == gone.shown && lives(g));
        let next = next.map(|(id, _)| *id);
        next.or_else(|| self.reaper(gone.parent))
            .map(|id| (id, true))
    }

    /// The process, or a vfork's child, is to have them, or is not any more.
    pub(super) fn wants_orphans(&mut self, pid: Pid, wants: bool) {
        if let Some(p) = self.processes.get_mut(&pid).filter(|p| p.guest.is_some()) {
            p.reaps_orphans = wants;
            return;
        }
        let Some((id, _)) = self.membership(pid) else {
            return;
        };
        if let Some(g) = self.groups.get_mut(&id) {
            g.parenthood.reaps_orphans = wants;
        }
        if wants {
            self.adopt(id);
        }
    }
}
