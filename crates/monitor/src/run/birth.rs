//! Births: threads, forked and vforked processes, and how a forked child finds its group.

use crate::segment::Segment;
use crate::state::{Group, Monitor, Name, Process, Thread};
use crate::private_field;
use anyhow::Result;
use geryon_abi::layout::role;
use geryon_tracee::{Pid, Stopped, kill};
use std::sync::atomic::Ordering;

impl Monitor {
    /// A thread has made another one, or a process.
    pub(super) fn on_birth(&mut self, creator: Pid) -> Result<()> {
        let new = Stopped(creator).event_message()? as Pid;
        let is_process = tgid_of(new).is_none_or(|t| t == new);
        let creator_pid = self.threads[&creator].pid;
        if is_process {
            let parent = self.membership(creator_pid);
            let process = Process {
                parent,
                ..Process::new(parent.map_or(0, |p| p.1))
            };
            self.processes.insert(new, process);
            self.threads.insert(new, Thread::of(new));
        } else {
            if let Some(p) = self.processes.get_mut(&creator_pid) {
                p.threads += 1;
            }
            self.threads.insert(new, Thread::of(creator_pid));
        }
        if self.early.remove(&new) {
            Stopped(new).resume(0).ok();
        }
        Stopped(creator).resume(0)?;
        Ok(())
    }

    /// A vfork's child says on which slot of its parent's memory it runs.
    pub(super) fn on_vforked(&mut self, pid: Pid, slot: u64) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.guest = Some(slot);
            p.group = p.parent.map(|(g, _)| g);
        }
    }

    /// A forked child says which fork of its parent it comes from; it is told the path of its
    /// group's segment.
    pub(super) fn on_child(&mut self, pid: Pid, sequence: u64, path_at: u64) -> Result<i64> {
        let Some((parent, replica)) = self.processes.get(&pid).and_then(|p| p.parent) else {
            return Ok(-1);
        };
        let next = self.next_group;
        // The parent may have exited, or gone to another program, before its child came here.
        let pg = match self.groups.get_mut(&parent) {
            None => self.retired.get_mut(&parent),
            living => living,
        };
        let Some(pg) = pg else {
            return Ok(-1);
        };
        if pg.members[replica].pid.is_none() && pg.members[replica].end.is_none() {
            // Its parent was taken out while it was born.
            kill(pid, libc::SIGKILL);
            return Ok(-1);
        }
        let n = pg.members.len();
        let leader = pg.leader;
        let parent_name = pg.name.shown;
        let alive = pg.segment.header().alive.load(Ordering::Acquire);
        let areas = pg.areas.inherited();
        let id = *pg.children.entry(sequence).or_insert(next);
        if id == next {
            // The first replica's child to come here.
            self.next_group += 1;
            let segment = Segment::new(n as u32, alive, leader as u32, self.taken_over)?;
            self.groups
                .insert(id, Group::new(segment, n, leader, areas));
        }
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(-1);
        };
        g.members[replica].pid = Some(pid);
        if replica == g.leader {
            if g.name.shown == 0 {
                g.name = Name {
                    shown: pid,
                    parent: parent_name,
                };
            }
            g.segment
                .header()
                .leader_pid
                .store(pid as u32, Ordering::Release);
        }
        // Its leader has been killed before it came: nothing will be said to it any more.
        let late = g.ending && g.leader_gone.is_some();
        let mut path = g.segment.path().into_bytes();
        path.push(0);
        self.memory(pid)?.write(path_at, &path)?;
        if let Some(p) = self.processes.get_mut(&pid) {
            p.group = Some(id);
        }
        if late {
            kill(pid, libc::SIGKILL);
        }
        let leads = self.leads(id, replica);
        if leads && self.memory(pid)?.word(private_field!(role))? as u32 == role::FOLLOWER {
            // Its parent followed when it was forked.
            self.lead_from_birth(id, replica);
        }
        self.forget_retired();
        Ok(0)
    }
}

/// The process that a thread belongs to.
fn tgid_of(tid: Pid) -> Option<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    text.lines()
        .find_map(|l| l.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}
