//! Verdicts on fatal signals: all replicas got it, or one is broken.

use super::loss::Loss;
use crate::report::words::signal_name;
use crate::state::{Crash, GroupId, Monitor};
use anyhow::Result;
use geryon_tracee::{Stopped, kill};
use std::fmt::Write as _;
use std::time::Duration;

impl Monitor {
    /// A replica died of its own fault; perhaps the others will, too.
    pub(crate) fn on_crash(&mut self, id: GroupId, crash: Crash) -> Result<()> {
        if let Some(g) = self.groups.get_mut(&id) {
            g.crashes.push(crash);
        }
        self.judge_crashes(id, Duration::MAX)
    }

    /// Everybody crashed alike: the program is what dies. Some did not: they are the verdict.
    pub(crate) fn judge_crashes(&mut self, id: GroupId, limit: Duration) -> Result<()> {
        let Some(g) = self.groups.get(&id) else {
            return Ok(());
        };
        let Some(first) = g.crashes.first().cloned() else {
            return Ok(());
        };
        let alike = g
            .crashes
            .iter()
            .filter(|c| (c.slot, c.signal, c.pc) == (first.slot, first.signal, first.pc))
            .count();
        if alike == g.living().count() {
            return self.end_alike(id);
        }
        if first.when.elapsed() <= limit {
            return Ok(());
        }
        let what = format!(
            "replica {} got signal {} ({}) at {} (address {:#x}) and the others did not",
            first.replica + 1,
            first.signal,
            signal_name(first.signal),
            self.place(first.tid, first.pc),
            first.address
        );
        let backtrace = self.backtrace_of(first.tid, None);
        let mut text = format!("geryon: divergence: {what}\n");
        for f in &backtrace {
            let _ = writeln!(text, "geryon:       {f}");
        }
        self.settle_loss(Loss {
            group: id,
            replica: first.replica,
            cause: what,
            text,
            backtrace,
        });
        Ok(())
    }

    /// The leader takes its fatal signal, natively as the program would; the followers are over.
    fn end_alike(&mut self, id: GroupId) -> Result<()> {
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(());
        };
        g.ending = true;
        for (_, f) in g.followers() {
            kill(f, libc::SIGKILL);
        }
        if let Some(c) = g.crashes.iter().find(|c| c.replica == g.leader) {
            Stopped(c.tid).resume(c.signal)?;
        }
        Ok(())
    }
}
