//! What is said of a replica that makes no progress: what each of its threads, and the leader's (of the
//! leader itself: a follower's), waits for.

use super::words::{last_events, waiting};
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
        let follower = g.followers().next();
        let mut text = format!("geryon: divergence: replica {} {what}\n", replica + 1);
        text.push_str(&self.threads_text("thread group", pid));
        match (leader, follower) {
            (Some(l), _) if l != pid => {
                text.push_str(&self.threads_text("leader's thread group", l));
            }
            (_, Some((r, f))) => {
                let whose = format!("replica {}'s thread group", r + 1);
                text.push_str(&self.threads_text(&whose, f));
            }
            _ => {}
        }
        if what.starts_with("waits") {
            text.push_str("geryon:   likely cause: a race in the program that no lock orders (plain loads and stores): try geryon discover, which finds them, or --order serial\n");
        }
        Some(text)
    }

    /// One line for each thread of a process.
    pub(crate) fn threads_text(&mut self, whose: &str, pid: Pid) -> String {
        let mut text = String::new();
        let sites = self.sites(pid);
        for v in self.views(pid) {
            let last = last_events(&v).next_back();
            let last = last.map_or("nothing yet".into(), |w| self.operation(&sites, w));
            let _ = writeln!(
                text,
                "geryon:   {whose} {}: {}; last: {}",
                v.slot,
                waiting(&v),
                last
            );
        }
        text
    }
}
