//! A process of the program has the id that its first leader had, for whoever looks (see `Name`). When another
//! replica leads, the kernel knows nobody by that id any more, and a signal that is sent by it from outside (`kill
//! $(cat nginx.pid)`) would reach nobody. So where the monitor may choose the ids of its children, a child of its own
//! gets that id and sends on what it is sent.

use crate::state::{Group, GroupId, Monitor};
use geryon_tracee::{Pid, StandIn};
use std::collections::HashMap;

/// Who stands in, by group.
#[derive(Debug, Default)]
pub struct StandIns {
    by_group: HashMap<GroupId, StandIn>,
    /// The monitor may not choose ids.
    forbidden: bool,
}

impl StandIns {
    /// None is needed any more: the run is over.
    pub fn end(&mut self) {
        self.by_group.clear();
    }

    /// A process is gone.
    pub fn lost(&self, pid: Pid) {
        self.by_group.values().for_each(|s| s.has_lost(pid));
    }

    /// Whose group's was that process?
    fn group_of(&self, pid: Pid) -> Option<GroupId> {
        let mut all = self.by_group.iter();
        all.find(|(_, s)| s.pid() == pid).map(|(id, _)| *id)
    }
}

impl Monitor {
    /// Let ids that are missing have somebody who stands in, and tell those who do whom to send on to.
    pub(crate) fn keep_stand_ins(&mut self) {
        if !self.taken_over || self.stand_ins.forbidden {
            return;
        }
        let groups = &self.groups;
        self.stand_ins
            .by_group
            .retain(|id, _| groups.contains_key(id));
        let wanted: Vec<(GroupId, Pid, Pid)> = groups
            .iter()
            .filter(|(_, g)| g.takeover.is_none() && !g.ending && self.is_known_outside(g))
            .filter_map(|(id, g)| Some((*id, g.name.shown, g.leader_pid()?)))
            .filter(|(_, shown, leader)| *shown > 0 && shown != leader)
            .collect();
        for (id, shown, leader) in wanted {
            if let Some(s) = self.stand_ins.by_group.get(&id) {
                s.send_to(leader);
                continue;
            }
            let comm = std::fs::read_to_string(format!("/proc/{leader}/comm")).unwrap_or_default();
            match StandIn::new(shown, leader, comm.trim_end()) {
                Ok(new) => {
                    self.stand_ins.by_group.insert(id, new);
                }
                // Its remains are not gone yet.
                Err(e) if e.raw_os_error() == Some(libc::EEXIST) => {}
                Err(_) => self.stand_ins.forbidden = true,
            }
        }
    }

    /// Nobody in the program is its parent: who sends it signals is outside, or has its id from a file.
    fn is_known_outside(&self, g: &Group) -> bool {
        self.groups
            .values()
            .all(|other| other.name.shown != g.name.parent)
    }

    /// A process has been killed: one that stood in? Natively that would have been the program's.
    pub(crate) fn stand_in_ended(&mut self, pid: Pid) {
        let Some(id) = self.stand_ins.group_of(pid) else {
            return;
        };
        self.stand_ins.by_group.remove(&id);
        if let Some(leader) = self.groups.get(&id).and_then(Group::leader_pid) {
            geryon_tracee::kill(leader, libc::SIGKILL);
        }
    }
}
