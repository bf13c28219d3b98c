//! What is left of processes that have led, and keeps the program's descriptors open until it has ended: what the
//! leader closed meanwhile would not be closed. A pipe would still have a reader, an address be in use.

use crate::state::{Group, Monitor};
use geryon_tracee::{Pid, Stopped, state};
use std::sync::atomic::Ordering;

impl Group {
    /// These have had its leader's descriptors.
    pub(crate) fn remains_of(&mut self, processes: impl IntoIterator<Item = Pid>) {
        self.remains.extend(processes);
        self.segment.header().remains.store(1, Ordering::SeqCst);
    }
}

impl Monitor {
    /// A leader is about to close a descriptor, see `rpc::LET_GO`.
    pub(crate) fn have_let_go(&mut self, pid: Pid) -> i64 {
        const LATER: i64 = -(libc::EAGAIN as i64);
        let Some(id) = self.membership(pid).map(|(id, _)| id) else {
            return 0;
        };
        let Some(g) = self.groups.get_mut(&id) else {
            return 0;
        };
        if g.takeover.is_some() || g.heir_of.is_some() {
            return LATER;
        }
        g.remains.retain(|p| !has_ended(*p));
        if g.remains.is_empty() {
            g.segment.header().remains.store(0, Ordering::SeqCst);
            return 0;
        }
        let remains = g.remains.clone();
        let process = |tid: &Pid| self.threads.get(tid).map(|t| t.pid);
        self.dead.retain(|d| {
            let is_waited_for = process(&d.tid).is_some_and(|p| remains.contains(&p));
            if is_waited_for {
                let _ = Stopped(d.tid).let_end();
            }
            !is_waited_for
        });
        LATER
    }
}

/// Have all threads of the process ended, and let go of what they had?
fn has_ended(pid: Pid) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    threads
        .filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok())
        .all(|tid: Pid| state(tid).is_none_or(|s| matches!(s, 'Z' | 'X')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn who_has_ended_has_nothing_even_if_nobody_has_waited_for_it() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("cat");
        let pid = child.id() as Pid;
        assert!(!has_ended(pid));
        drop(child.stdin.take());
        while !has_ended(pid) {
            std::thread::yield_now();
        }
        child.wait().expect("it has ended");
        assert!(has_ended(pid));
    }
}
