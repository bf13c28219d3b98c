//! Processes that somebody outside knows by their ids.

use crate::state::{Group, Monitor};
use geryon_tracee::Pid;

impl Monitor {
    /// Let ids whose process is gone have somebody who stands in, and tell those who do whom to send on to.
    pub(super) fn keep_stand_ins(&mut self) {
        if !self.family.taken_over {
            return;
        }
        let groups = self.groups.values();
        let known = groups.filter(|g| !g.ending && self.is_known_outside(g));
        // (While its leader changes: nobody.)
        let leader = |g: &Group| g.leader_pid().filter(|_| g.takeover.is_none());
        let wanted: Vec<(Pid, Pid)> = known
            .map(|g| (g.name.shown, leader(g).unwrap_or(0)))
            .filter(|(shown, leader)| *shown > 0 && shown != leader)
            .collect();
        self.family.stand_ins.keep(&wanted);
    }

    /// Nobody in the program is its parent: who sends it signals is outside, or has its id from a file.
    fn is_known_outside(&self, g: &Group) -> bool {
        let mut others = self.groups.values();
        others.all(|other| other.name.shown != g.name.parent)
    }

    /// A process of which nothing else is known has ended: one that stood in, and was killed? Natively that would
    /// have been the program's.
    pub(super) fn stand_in_ended(&mut self, pid: Pid) {
        let mut groups = self.groups.values();
        let leader = groups.find(|g| g.name.shown == pid);
        let leader = leader.and_then(Group::leader_pid);
        if self.family.stand_ins.has_ended(pid)
            && let Some(leader) = leader
        {
            geryon_tracee::kill(leader, libc::SIGKILL);
        }
    }
}
