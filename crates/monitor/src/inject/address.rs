//! Faults that wait for an instruction: the threads of the replica's first process have a breakpoint
//! there, and whoever executes it for the n-th time is hit.

use super::{Hit, Injection};
use crate::state::Monitor;
use anyhow::Result;
use geryon_fault::Target;
use geryon_tracee::{Event, Pid, Stop};

impl Monitor {
    /// A thread has stopped: a newborn one gets the breakpoint, before it does anything.
    pub(crate) fn watch_address(&mut self, stop: Stop) {
        let i = self.injection.as_ref();
        if !i.is_some_and(|i| i.watched.waits()) {
            return;
        }
        match stop {
            Stop::Event(tid, Event::Stop(_)) => self.arm(tid),
            Stop::Exited(tid, _) | Stop::Killed(tid, ..) => {
                if let Some(i) = &mut self.injection {
                    i.watched.forget(tid);
                }
            }
            _ => {}
        }
    }

    /// Give a stopped thread the breakpoint, if it is one of those that are watched.
    pub(crate) fn arm(&mut self, tid: Pid) {
        let Some(i) = self.injection.as_ref().filter(|i| i.watched.waits()) else {
            return;
        };
        let replica = i.fault.replica as usize;
        let root = self.membership(self.family.root);
        let member = root.and_then(|(g, _)| self.groups.get(&g)?.members[replica].pid);
        let of = self.threads.get(&tid).map(|t| t.pid);
        if member.is_none() || of != member {
            return;
        }
        let Some(mut i) = self.injection.take() else {
            return;
        };
        // A program that a process has loaded anew has lost the breakpoint and lies elsewhere.
        if Some(tid) == member && self.threads_of(tid) == 1 {
            i.watched.begin();
        }
        i.watched.arm(tid, of.unwrap_or(tid));
        self.injection = Some(i);
    }

    /// A breakpoint was hit. False: it is none of ours.
    pub(crate) fn on_breakpoint(&mut self, tid: Pid, pid: Pid) -> Result<bool> {
        let Some(mut i) = self.injection.take() else {
            return Ok(false);
        };
        let ours = i.watched.watches(tid);
        let struck = if ours && i.watched.executed(tid, pid) {
            self.strike_at(&mut i, tid, pid)
        } else {
            Ok(())
        };
        self.injection = Some(i);
        struck.map(|()| ours)
    }

    /// The moment has come, and the thread stands at the instruction.
    fn strike_at(&mut self, i: &mut Injection, tid: Pid, pid: Pid) -> Result<()> {
        let others = [Target::Skip, Target::Crash];
        let in_thread = others.contains(&i.fault.target)
            || !matches!(
                i.fault.target,
                Target::Stop
                    | Target::Slow { .. }
                    | Target::Log { .. }
                    | Target::Progress { .. }
                    | Target::Monitor
                    | Target::Canary
            );
        if !in_thread {
            // Made as soon as this stop is served.
            return Ok(());
        }
        match self.strike(tid, pid, &i.fault.target)? {
            Ok(()) => {
                i.victim = Some(tid);
                self.tell_hit(i);
                self.went_on(i, Hit::Done);
            }
            Err(why) => self.went_on(i, Hit::Missed(why)),
        }
        Ok(())
    }
}
