//! Waiting for an instruction: a breakpoint in the debug registers of threads, and the count of its
//! executions. Replicas and bare runs are watched alike.

use geryon_fault::{Fault, Point, When};
use geryon_symbols::{entry, locate};
use geryon_tracee::{Pid, Stopped};
use std::collections::HashSet;

/// How far the waiting is.
#[derive(Debug, Default)]
pub struct Watched {
    /// For what; None: the fault waits for no instruction, or no longer.
    point: Option<Point>,
    /// It is to be executed so many times more.
    left: u64,
    /// Where it is, or where the program begins as long as its library is not there.
    at: Option<At>,
    /// Threads that have the breakpoint.
    armed: HashSet<Pid>,
    /// Why it cannot be waited for.
    why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The program's entry.
    Entry(u64),
    /// The instruction.
    Point(u64),
}

impl Watched {
    /// What the fault waits for.
    pub fn of(fault: &Fault) -> Watched {
        match fault.when {
            When::Address { point, nth } => Watched {
                point: Some(point),
                left: nth,
                ..Watched::default()
            },
            _ => Watched::default(),
        }
    }

    /// Does the fault have to wait?
    pub fn waits(&self) -> bool {
        self.point.is_some()
    }

    /// Why it will wait in vain.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

impl Watched {
    /// The process has loaded its program anew: it has no breakpoint, and lies elsewhere.
    pub fn begin(&mut self) {
        self.at = None;
        self.armed.clear();
    }

    /// Has the thread the breakpoint?
    pub fn watches(&self, tid: Pid) -> bool {
        self.armed.contains(&tid)
    }

    /// The thread is gone.
    pub fn forget(&mut self, tid: Pid) {
        self.armed.remove(&tid);
    }

    /// Give a stopped thread of the process the breakpoint.
    pub fn arm(&mut self, tid: Pid, pid: Pid) {
        if self.armed.contains(&tid) {
            return;
        }
        if self.at.is_none() {
            self.at = self.place(pid);
        }
        let Some(At::Entry(address) | At::Point(address)) = self.at else {
            return;
        };
        match Stopped(tid).set_breakpoint(Some(address)) {
            Ok(()) => {
                self.armed.insert(tid);
            }
            Err(e) => self.why = Some(format!("no breakpoint can be set at {address:#x}: {e}")),
        }
    }

    fn place(&mut self, pid: Pid) -> Option<At> {
        match self.located(pid) {
            Ok(address) => Some(At::Point(address)),
            Err(why) => {
                self.why = Some(why);
                // Libraries are there by then.
                entry(pid).ok().map(At::Entry)
            }
        }
    }

    fn located(&mut self, pid: Pid) -> Result<u64, String> {
        let point = self.point.as_ref().ok_or("nothing is waited for")?;
        let name = |n: &Option<geryon_fault::point::Name>| n.map(|n| n.as_str().to_owned());
        let (object, symbol) = (name(&point.object), name(&point.symbol));
        locate(pid, object.as_deref(), symbol.as_deref(), point.offset)
    }

    /// The thread stands at the breakpoint. True: the fault is due.
    pub fn executed(&mut self, tid: Pid, pid: Pid) -> bool {
        match self.at {
            Some(At::Point(_)) if self.waits() => {
                self.left = self.left.saturating_sub(1);
                if self.left > 0 {
                    return false;
                }
                self.point = None;
                // A thread that is gone needs none.
                let _ = Stopped(tid).set_breakpoint(None);
                true
            }
            Some(At::Entry(_)) if self.waits() => {
                self.at = self.located(pid).ok().map(At::Point);
                self.armed.remove(&tid);
                let _ = Stopped(tid).set_breakpoint(None);
                if self.at.is_some() {
                    self.why = None;
                    self.arm(tid, pid);
                }
                false
            }
            // Another thread has counted the last one.
            _ => {
                let _ = Stopped(tid).set_breakpoint(None);
                false
            }
        }
    }
}
