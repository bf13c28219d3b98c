//! Forked children that were killed before they had said who they are: they are in no group yet, and
//! nobody would miss them.

use crate::signals::{bit, caught, is_fault};
use crate::state::{End, GroupId, Monitor, Name, Process};
use geryon_tracee::{Pid, Siginfo, kill};
use std::mem::take;

/// A follower's forked child that was killed so early.
#[derive(Clone, Copy, Debug)]
pub struct Newborn {
    /// Whose.
    pub replica: usize,
    /// Number of the fork.
    pub fork: u64,
    /// What it died of.
    pub signal: i32,
}

impl Monitor {
    /// A process is about to end, killed by a signal. If it is such a child, its replica lacks a process
    /// from now on, and is lost.
    pub(crate) fn newborn_dies(&mut self, pid: Pid, signal: i32) {
        let Some(p) = self.processes.get(&pid).filter(|p| p.group.is_none()) else {
            return;
        };
        let (Some((id, replica)), Some(fork)) = (p.parent, p.birth.fork) else {
            return;
        };
        let wanted = p.doomed || !is_loss(signal);
        let known = self.is_wanted(id, p) && !p.doomed;
        if known || self.is_dropped(replica) || self.ends(id) || self.outcome.is_some() {
            return;
        }
        let survivors = self.has_survivors(id);
        // (Its parent forked as a follower, leads by now, and has yet to tell of the fork: it makes it anew.)
        let untold = !wanted && !survivors && self.follows(pid);
        if !self.leads(id, replica) || untold {
            let newborn = Newborn {
                replica,
                fork,
                signal,
            };
            if let Some(g) = self.groups.get_mut(&id) {
                g.forks.lost.push(newborn);
            }
            // Where the leader's fork has failed, its followers end their children themselves.
            let named = |m: &Monitor| {
                m.groups
                    .get(&id)
                    .is_some_and(|g| g.forks.names.contains_key(&fork))
            };
            if named(self) {
                self.miss_newborn(id, fork);
            }
        } else if wanted || !survivors {
            // (With nobody else left a child that is killed is a child that is killed.)
            self.end_siblings(id, fork, pid, signal);
        } else {
            self.lost(id, replica, End::Killed(signal));
        }
    }

    /// Was this child killed before it had said who it is? It is not missed any more: its parent leads, and makes it
    /// anew, or the leader has none either.
    pub(super) fn forget_lost_newborn(
        &mut self,
        (id, replica): (GroupId, usize),
        fork: u64,
    ) -> bool {
        let Some(g) = self.groups.get_mut(&id) else {
            return false;
        };
        let before = g.forks.lost.len();
        g.forks
            .lost
            .retain(|n| (n.replica, n.fork) != (replica, fork));
        g.forks.lost.len() < before
    }

    /// A child that has not said yet who it is was sent a signal that it catches: its handler would run in the midst
    /// of the agent, which follows its parent's log still.
    pub(crate) fn is_held_for_newborn<E>(
        &mut self,
        pid: Pid,
        signal: i32,
        info: &Result<Siginfo, E>,
    ) -> bool {
        let newborn = self
            .processes
            .get_mut(&pid)
            .filter(|p| p.group.is_none() && p.birth.fork.is_some());
        let (Some(p), Ok(info)) = (newborn, info) else {
            return false;
        };
        let is_held = !is_fault(signal, info) && caught(pid) & bit(signal) != 0;
        if is_held {
            p.pending.held.push(*info);
        }
        is_held
    }

    /// It has said so: if it leads it is sent them again; who follows has them from the log.
    pub(super) fn sends_held(&mut self, pid: Pid, leads: bool) {
        let held = self
            .processes
            .get_mut(&pid)
            .map(|p| take(&mut p.pending.held));
        for info in held.into_iter().flatten().filter(|_| leads) {
            self.pass_on(pid, None, &info);
        }
    }

    /// The leader has this child: who has lost its own is lost.
    pub(super) fn miss_newborn(&mut self, id: GroupId, fork: u64) {
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        let (missed, others) = g.forks.lost.iter().partition(|n| n.fork == fork);
        g.forks.lost = others;
        let missed: Vec<Newborn> = missed;
        for n in missed {
            if !self.is_dropped(n.replica) && !self.leads(id, n.replica) {
                self.lost(id, n.replica, End::Killed(n.signal));
            }
        }
    }

    /// Has the program killed this child, or its sibling that leads?
    pub(super) fn is_wanted(&self, id: GroupId, newborn: &Process) -> bool {
        let g = self.groups.get(&id);
        let stillborn = |f: u64| g.is_some_and(|g| g.forks.stillborn.contains(&f));
        newborn.doomed || newborn.birth.fork.is_some_and(stillborn)
    }

    /// The program has killed the child, `pid`: so it is in all replicas.
    fn end_siblings(&mut self, id: GroupId, fork: u64, pid: Pid, signal: i32) {
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        g.forks.stillborn.insert(fork);
        // The fork counts as made: who takes over is told of this child, and of its end.
        let shown = *g.forks.names.entry(fork).or_insert(pid);
        let name = Name::child_of(g.name.shown, shown);
        self.child_ended(name, End::Killed(signal));
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let Some(child) = g.forks.children.get(&fork).copied() else {
            return;
        };
        if let Some(g) = self.groups.get_mut(&child) {
            g.ending = true;
            for (_, p) in g.living() {
                kill(p, libc::SIGKILL);
            }
        }
    }
}

/// Is it nothing that a terminal or a user sends to end the program?
fn is_loss(signal: i32) -> bool {
    matches!(
        signal,
        libc::SIGKILL
            | libc::SIGSEGV
            | libc::SIGBUS
            | libc::SIGILL
            | libc::SIGFPE
            | libc::SIGTRAP
            | libc::SIGSYS
    )
}
