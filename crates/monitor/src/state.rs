//! What the monitor knows: itself, the replicas, their groups, processes and threads.

mod births;
mod console;
mod crowd;
mod family;
mod forks;
mod group;
mod job;
mod kit;
mod process;
mod running;

pub use console::Console;
pub use crowd::{Crowd, Seen, Why};
pub use family::Family;
pub use group::{Crash, Group, GroupId, Member, Name, ReportWords, Reported, made_as_clone};
pub use job::Asker;
pub use kit::Kit;
pub use process::{Birth, End, Process, Thread};
pub use running::{Ascent, Descent, Otherwise, Running};

use crate::checkpoint::Checkpoints;
use crate::cores::CoreSet;
use crate::inject::Injection;
use crate::objects::Shared;
use crate::options::{Options, Outcome};
use crate::recover::Recovery;
use crate::watch::Watch;
use anyhow::{Context, Result};
use geryon_abi::layout::Layout;
use geryon_tracee::{Pid, RemoteMemory};
use std::collections::HashMap;

/// Why a process that is traced cannot be reached.
const UNREACHABLE: &str = "it has changed its user or its groups, and Geryon may not reach it any more: that needs \
     CAP_SYS_PTRACE";

/// Everything.
pub struct Monitor {
    /// What was asked for.
    pub options: Options,
    /// What a process is given to be a replica.
    pub kit: Kit,
    /// In which order its threads run.
    pub running: Running,
    /// What holds for a replica in all its groups, by index.
    pub replicas: Vec<Replica>,
    /// The groups with a living member, or one that is yet to be born.
    pub groups: HashMap<GroupId, Group>,
    /// Every process that is traced and whose parent has been heard of.
    pub processes: HashMap<Pid, Process>,
    /// Their threads.
    pub threads: HashMap<Pid, Thread>,
    /// The processes of the program, born and gone.
    pub family: Family,
    /// What is told of the run, and asked of it.
    pub console: Console,
    /// The fault that is to be made.
    pub injection: Option<Injection>,
    /// Checkpoints, if they were asked for.
    pub checkpoints: Option<Checkpoints>,
    /// What makes replicas anew.
    pub recovery: Recovery,
    /// Files that the program maps to be shared and writable.
    pub shared: Shared,
    /// The watchdog's memory.
    pub watch: Watch,
    /// How the run ends, once that is known.
    pub outcome: Option<Outcome>,
}

/// What holds for a replica in all its groups.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    /// Taken out of the run: it has no vote, nobody waits for it, and no group gets one of it.
    pub dropped: bool,
    /// How often it was replaced.
    pub replaced: u32,
    /// It will not be replaced, and that was told.
    pub given_up: bool,
    /// The cores on which it ran when it was lost last.
    pub ran_on: CoreSet,
    /// The cores that its next copy is the first to keep away from.
    pub flees: CoreSet,
    /// It may not run on all cores that the run may use.
    pub confined: bool,
    /// Somebody has asked for its end.
    pub asked_out: bool,
    /// Before which records its threads stood when it failed last: group, thread group, place.
    pub failed_at: Vec<(GroupId, u32, u64)>,
}

impl Monitor {
    /// Was the replica taken out of the run?
    pub fn is_dropped(&self, replica: usize) -> bool {
        self.replicas[replica].dropped
    }

    /// The replicas that were not taken out, as bits.
    pub fn alive_mask(&self) -> u32 {
        (0..self.replicas.len())
            .filter(|r| !self.is_dropped(*r))
            .fold(0, |m, r| m | 1 << r)
    }

    /// Group and replica of a process; None before it has one.
    pub fn membership(&self, pid: Pid) -> Option<(GroupId, usize)> {
        let p = self.processes.get(&pid)?;
        Some((p.group?, p.replica))
    }

    /// Does the replica lead the group?
    pub fn leads(&self, id: GroupId, replica: usize) -> bool {
        self.groups.get(&id).is_some_and(|g| g.leader == replica)
    }

    /// How many threads of a process are known.
    pub fn threads_of(&self, pid: Pid) -> usize {
        self.threads.values().filter(|t| t.pid == pid).count()
    }

    /// Where the memory of a process lies; of one that is gone, or of none of ours, as in a run without variants.
    pub(crate) fn layout(&self, pid: Pid) -> Layout {
        let memory = self.processes.get(&pid).and_then(|p| p.memory.as_ref());
        memory
            .and_then(|m| crate::layout::of(m).ok())
            .unwrap_or_default()
    }

    /// Memory of a process, opened at the first use.
    ///
    /// # Errors
    /// When the process is unknown or gone.
    pub fn memory(&mut self, pid: Pid) -> Result<&RemoteMemory> {
        let p = self.processes.get_mut(&pid).context("unknown process")?;
        if p.memory.is_none() {
            let opened = RemoteMemory::open(pid);
            p.memory = Some(match opened {
                Err(e) if e.raw_os_error() == Some(libc::EACCES) => {
                    return Err(e).context(UNREACHABLE);
                }
                other => other?,
            });
        }
        Ok(p.memory.as_ref().expect("just opened"))
    }

    /// The group's leader is about to die of a signal: that is the program's end.
    pub fn expect_end(&mut self, id: GroupId) {
        if let Some(g) = self.groups.get_mut(&id) {
            g.ending = true;
        }
    }

    /// Is the group expected to end by a signal? Then its followers' ends are no verdict.
    pub fn ends(&self, id: GroupId) -> bool {
        self.groups.get(&id).is_some_and(|g| g.ending)
    }
}
