//! The dead of a replica that is being made anew: they end a little later.
//!
//! The kernel frees the memory of a process that ends in one go. Meanwhile the threads that it has for
//! neighbours on its core wait, and these may be the ones that stand still for the copy: 4 ms for 1 GiB
//! in large pages, where the fork itself takes 0.8 ms.

use super::Recovery;
use crate::state::Monitor;
use crate::takeover::Takeover;
use geryon_tracee::{Pid, Stopped};
use std::time::{Duration, Instant};

/// No longer than that: their memory may be needed.
const HELD: Duration = Duration::from_millis(100);

/// A thread that stands where it is about to end.
#[derive(Clone, Copy, Debug)]
pub struct Dead {
    pub(crate) tid: Pid,
    /// Whose it was.
    replica: usize,
    since: Instant,
}

impl Recovery {
    /// Let a thread of the replica end, which has reported that it is about to: now, or when the replica
    /// has been made anew.
    pub(crate) fn bury(&mut self, tid: Pid, replica: usize) {
        if self.wants(replica) {
            self.dead.push(Dead {
                tid,
                replica,
                since: Instant::now(),
            });
        } else {
            // One that is gone needs nothing.
            let _ = Stopped(tid).let_end();
        }
    }

    /// Let those end that have been held for long enough.
    pub(crate) fn bury_held(&mut self) {
        let wanted = &self.wanted;
        self.dead.retain(|d| {
            let waits = wanted.iter().any(|w| w.replica == d.replica) && d.since.elapsed() < HELD;
            if !waits {
                let _ = Stopped(d.tid).let_end();
            }
            waits
        });
    }
}

impl Monitor {
    /// The run is over: let all end that are left, of former leaders, too.
    pub(crate) fn bury_all(&mut self) {
        for d in std::mem::take(&mut self.recovery.dead) {
            let _ = Stopped(d.tid).let_end();
        }
        let groups = self.groups.values().chain(self.family.retired.values());
        for tid in groups
            .filter_map(|g| g.takeover.as_ref())
            .flat_map(Takeover::remains)
        {
            let _ = Stopped(tid).let_end();
        }
    }
}
