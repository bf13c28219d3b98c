//! Exec: a process leaves its program, and with it its group; the new program founds another.

use crate::state::{End, GroupId, Monitor, Name, Thread};
use anyhow::{Context, Result};
use geryon_tracee::{Pid, Stopped, kill};
use std::time::Instant;

impl Monitor {
    /// A new program was loaded (always in a leader, or at launch).
    pub(super) fn on_exec(&mut self, pid: Pid) -> Result<()> {
        let tracee = Stopped(pid);
        let former = tracee.event_message()? as Pid;
        if former != pid {
            self.threads.remove(&former);
        }
        self.threads.retain(|tid, t| t.pid != pid || *tid == pid);
        self.threads.entry(pid).or_insert(Thread::of(pid));
        if self
            .processes
            .get(&pid)
            .is_some_and(|p| p.group.is_none() && p.parent.is_some())
        {
            // A child that has not said who it is: its agent is damaged.
            kill(pid, libc::SIGKILL);
            return Ok(());
        }
        if let Some((group, replica)) = self.membership(pid)
            && !self.leads(group, replica)
        {
            // A follower does not execute programs.
            self.broken(group, replica, "has loaded another program by itself");
            return Ok(());
        }
        self.console.exec_pipe = None;
        tracee.finish_syscall()?;
        let old = self.processes.get_mut(&pid).map(|p| {
            p.memory = None;
            p.threads = 1;
            let shown = p.shown_as(pid);
            p.shown = 0;
            (p.group.take(), p.replica, p.guest.take(), shown)
        });
        // The program goes on under the name that it had; a vfork's child has its own.
        let name = match old {
            Some((Some(g), _, guest, shown)) => self.groups.get(&g).map(|g| match guest {
                None => g.name,
                Some(_) => Name::child_of(g.name.shown, shown),
            }),
            _ => None,
        };
        if let Some((Some(old), _, None, _)) = old {
            self.keeps_children(old, pid);
        }
        match old {
            Some((Some(old), replica, Some(slot), _)) => self.end_guests(old, replica, slot),
            Some((Some(old), replica, None, _)) => self.leave_group(old, replica),
            _ => {}
        }
        let mut name = name.unwrap_or(Name::child_of(0, pid));
        // (The kernel forgets how its end was to be told.)
        name.is_clone = false;
        self.found(pid, name).context("cannot set up replicas")?;
        let group = self.membership(pid).and_then(|(g, _)| self.groups.get(&g));
        let pids = group.map_or(Vec::new(), |g| g.living().map(|(_, p)| p).collect());
        self.console.journal.start(pids);
        Ok(())
    }

    /// A vfork's child in the leader has its own program now, or was killed by a signal of the program's: its followers'
    /// children are over, which lets their parents go on.
    pub(crate) fn end_guests(&mut self, id: GroupId, leader: usize, slot: u64) {
        for (pid, p) in &mut self.processes {
            if p.group == Some(id) && p.guest == Some(slot) && p.replica != leader {
                p.group = None;
                kill(*pid, libc::SIGKILL);
            }
        }
    }

    /// The leader has replaced its program: the old program's followers are over.
    fn leave_group(&mut self, id: GroupId, replica: usize) {
        self.end_sleepers();
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        let left = g.members[replica].pid.take();
        g.leader_gone = Some(Instant::now());
        let followers: Vec<Pid> = g.living().map(|(_, f)| f).collect();
        for m in &mut g.members {
            m.pid = None;
            m.end.get_or_insert(End::Exited(0));
        }
        for f in followers {
            kill(f, libc::SIGKILL);
            if let Some(p) = self.processes.get_mut(&f) {
                p.group = None;
            }
        }
        if let Some(left) = left {
            self.leaves_shared(left);
            if let Some(p) = self.processes.get_mut(&left) {
                // (What comes now has mapped nothing yet.)
                p.leaving.left_shared = false;
            }
        }
        (0..self.replicas.len()).for_each(|r| self.running.kin.ended(id, r));
        self.retire(id);
    }
}
