//! What lost leaders leave to their successor: calls that were made and are not in the log, and signals that nobody has been
//! given.

use super::flight::{Call, Legacy};
use super::signals::Waiting;
use super::undo;
use geryon_tracee::{Pid, RemoteMemory};

/// It, and where it is found.
#[derive(Debug)]
pub(super) struct Estate {
    /// The former leader's memory; behind it, of those before it who have left something still.
    pub(super) memories: Vec<RemoteMemory>,
    /// What the former leader's threads leave.
    pub(super) legacy: Vec<Legacy>,
    /// Slots of those that had found a pipe that nobody reads, and whose successors find it again.
    pub(super) broken_pipes: Vec<u32>,
    /// Signals that waited for it in the kernel.
    pub(super) waiting: Vec<Waiting>,
}

impl Estate {
    /// Of this process, which has not been examined yet.
    pub(super) fn of(pid: Pid) -> Estate {
        Estate {
            memories: RemoteMemory::open(pid).ok().into_iter().collect(),
            legacy: Vec::new(),
            broken_pipes: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// The former leader's memory.
    pub(super) fn memory(&self) -> Option<&RemoteMemory> {
        self.memories.first()
    }

    /// The memory of who has left this.
    pub(super) fn memory_of(&self, legacy: &Legacy) -> Option<&RemoteMemory> {
        self.memories.get(legacy.whose)
    }

    /// The former leader's memory, or that of one before it that has left something to this thread group.
    pub(super) fn memory_for(&self, slot: Option<u32>) -> Option<&RemoteMemory> {
        let of = slot.and_then(|s| self.legacy.iter().find(|l| l.slot == s));
        of.map_or(self.memory(), |l| self.memory_of(l))
    }

    /// The former leader was a successor, and had not made its own what those before it had left; unless it had another
    /// program by then.
    pub(super) fn come_after(&mut self, before: Estate, has_executed: bool) {
        let own = self.memories.len();
        if !has_executed {
            self.legacy = before.legacy;
        }
        for l in &mut self.legacy {
            l.whose += own;
        }
        self.memories.extend(before.memories);
    }

    /// Has a wait that is not in the log been given this child, and says so?
    pub(super) fn may_have_reaped(&self, child: Pid) -> bool {
        let says = |l: &Legacy, c: Call| match i64::from(c.nr) {
            libc::SYS_wait4 => c.result == i64::from(child),
            libc::SYS_waitid if c.result == 0 => {
                let memory = self.memory_of(l);
                let made = memory.and_then(|m| undo::under_way(m, l.slot, c).ok());
                made.is_none_or(|(_, args)| args[2] != 0)
            }
            _ => false,
        };
        let mut all = self.legacy.iter();
        all.any(|l| l.call.is_some_and(|c| says(l, c)))
    }
}
