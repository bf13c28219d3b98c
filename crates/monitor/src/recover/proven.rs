//! Whose copy may take the place of a replica that has failed by itself: who stands where that one stood may fail there as well,
//! and so would all copies of it. One that has come past each of those places, or to the end of the log, has shown that it does
//! not.

use crate::block_field;
use crate::state::{GroupId, Monitor};
use geryon_abi::layout::block_address;
use geryon_tracee::Pid;
use std::sync::atomic::Ordering;

/// Why nobody is copied who may be about to fail as well. The watchdog looks at who does not come past.
pub(super) const NOT_PAST: &str = "its source has not come past where it failed";

impl Monitor {
    /// A follower is about to be taken out: remember before which records its threads stand.
    pub(crate) fn note_failure(&mut self, replica: usize) {
        let groups = self.groups.iter();
        let member = groups.filter_map(|(id, g)| Some((*id, g.members[replica].pid?)));
        let members: Vec<(GroupId, Pid)> = member.collect();
        let mut places = Vec::new();
        for (id, pid) in members {
            let behind = self.behind(id, pid).into_iter();
            places.extend(behind.map(|(slot, pos)| (id, slot, pos)));
        }
        self.replicas[replica].failed_at = places;
    }

    /// Has a process come past where a replica of its group failed?
    pub(super) fn is_past_failure(&mut self, id: GroupId, failed: usize, pid: Pid) -> bool {
        let places = self.replicas[failed].failed_at.clone();
        if self.memory(pid).is_err() {
            return false;
        }
        let memory = self.processes.get(&pid).and_then(|p| p.memory.as_ref());
        let (Some(g), Some(memory)) = (self.groups.get(&id), memory) else {
            return false;
        };
        let mut here = places.iter().filter(|(group, ..)| *group == id);
        here.all(|(_, slot, place)| {
            let slot = *slot as usize;
            let end = g.segment.ring(slot).head.load(Ordering::Acquire);
            let pos = memory.word(block_address(slot) + block_field!(pos));
            pos.is_ok_and(|pos| pos > *place || pos >= end)
        })
    }
}
