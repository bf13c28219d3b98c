//! What is left of processes that have led, and keeps the program's descriptors open until it has ended: what the
//! leader closed meanwhile would not be closed. A pipe would still have a reader, an address be in use.

use crate::state::{Group, Monitor};
use geryon_tracee::{Pid, Stopped};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A leader waits no longer: what is left may wait for something that it does itself.
const PATIENCE: Duration = Duration::from_secs(2);

impl Group {
    /// These have had its leader's descriptors.
    pub(crate) fn remains_of(&mut self, processes: impl IntoIterator<Item = Pid>) {
        self.descriptors.remains.extend(processes);
        self.descriptors.closes_since = None;
        self.segment.header().remains.store(1, Ordering::SeqCst);
    }

    /// Nobody waits for them any more.
    fn let_go(&mut self) {
        self.descriptors.remains.clear();
        self.descriptors.closes_since = None;
        self.segment.header().remains.store(0, Ordering::SeqCst);
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
        let since = *g.descriptors.closes_since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE {
            g.let_go();
            self.say(
                "the process of a lost leader has not ended yet; what the program closes now may stay open for others",
            );
            return 0;
        }
        if g.takeover.is_some() || g.descriptors.heir_of.is_some() {
            return LATER;
        }
        // (By its id another process may stand in for it.)
        let is_there = |p: &Pid| self.threads.values().any(|t| t.pid == *p);
        g.descriptors.remains.retain(is_there);
        if g.descriptors.remains.is_empty() {
            g.let_go();
            return 0;
        }
        let remains = g.descriptors.remains.clone();
        let process = |tid: &Pid| self.threads.get(tid).map(|t| t.pid);
        self.recovery.dead.retain(|d| {
            let is_waited_for = process(&d.tid).is_some_and(|p| remains.contains(&p));
            if is_waited_for {
                let _ = Stopped(d.tid).let_end();
            }
            !is_waited_for
        });
        LATER
    }
}
