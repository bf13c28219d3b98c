//! What is said of a replica that makes no progress: what each of its threads, and the leader's,
//! waits for.

use super::words::{last_event, waiting};
use crate::state::{GroupId, Monitor};
use geryon_tracee::Pid;
use std::fmt::Write as _;

impl Monitor {
    /// The text; None when the replica is gone.
    pub(crate) fn describe_stuck(
        &mut self,
        id: GroupId,
        replica: usize,
        what: &str,
    ) -> Option<String> {
        let g = self.groups.get(&id)?;
        let (pid, leader) = (g.members[replica].pid?, g.leader_pid());
        let mut text = format!("geryon: divergence: replica {} {what}\n", replica + 1);
        text.push_str(&self.threads_text("thread group", pid));
        if let Some(l) = leader {
            text.push_str(&self.threads_text("leader's thread group", l));
        }
        if what.starts_with("waits") {
            text.push_str("geryon:   likely cause: a race in the program that no lock orders (plain loads and stores)\n");
        }
        Some(text)
    }

    /// One line for each thread of a process.
    pub(crate) fn threads_text(&mut self, whose: &str, pid: Pid) -> String {
        let mut text = String::new();
        for v in self.views(pid) {
            let _ = writeln!(
                text,
                "geryon:   {whose} {}: {}; last: {}",
                v.slot,
                waiting(&v),
                last_event(&v)
            );
        }
        text
    }
}
