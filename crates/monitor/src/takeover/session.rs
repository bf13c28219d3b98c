//! The session and process group of the program's process, which its successor is to be in.

use crate::whom::group_of;
use geryon_tracee::Pid;

/// Both, by their ids.
#[derive(Debug)]
pub(super) struct Session {
    /// The session that the lost leader was in.
    pub(super) id: Pid,
    /// The process group that the program's process is in, as long as the successor has not joined one.
    pub(super) group: Pid,
    /// The successor is in that process group, or in another one that the program has put it into.
    pub(super) joined: bool,
}

impl Session {
    /// As they are of the lost leader.
    pub(super) fn of(pid: Pid) -> Session {
        Session {
            id: crate::jobs::session_of(pid),
            group: group_of(pid),
            joined: false,
        }
    }

    /// The lost process leads from its birth on: it may not have joined the group of who held its descriptors.
    pub(super) fn was_heir_of(&mut self, holder: Pid) {
        if self.group == group_of(std::process::id() as Pid) {
            self.group = group_of(holder);
        }
    }

    /// The lost process was a successor, which was to join that of its predecessor.
    pub(super) fn come_after(&mut self, before: &Session) {
        if !before.joined {
            self.group = before.group;
        }
    }
}
