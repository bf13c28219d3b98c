//! Births: threads, forked and vforked processes, and how a forked child finds its group.

use crate::private_field;
use crate::segment::Segment;
use crate::state::{Group, GroupId, Monitor, Name, Process, Thread};
use anyhow::Result;
use geryon_abi::layout::role;
use geryon_tracee::{Pid, Stopped, kill};
use std::sync::atomic::Ordering;

impl Monitor {
    /// A thread has made another one, or a process; `own_memory`: it is no vfork's child.
    pub(super) fn on_birth(&mut self, creator: Pid, own_memory: bool) -> Result<()> {
        let new = Stopped(creator).event_message()? as Pid;
        let is_process = tgid_of(new).is_none_or(|t| t == new);
        let creator_pid = self.threads[&creator].pid;
        if is_process {
            self.sleepers_lack_a_process();
            let parent = self.membership(creator_pid);
            // The agent's fork says which one it is.
            let fork = match parent {
                Some(_) if own_memory => Some(Stopped(creator).regs()?.r9),
                _ => None,
            };
            let process = Process {
                parent,
                fork,
                ..Process::new(parent.map_or(0, |p| p.1))
            };
            self.processes.insert(new, process);
            self.threads.insert(new, Thread::of(new));
            if let (Some((id, replica)), Some(sequence)) = (parent, fork)
                && self.leads(id, replica)
                && !self.knows_child(id, sequence)
            {
                self.name_child(id, sequence, new);
            }
        } else {
            if let Some(p) = self.processes.get_mut(&creator_pid) {
                p.threads += 1;
            }
            self.threads.insert(new, Thread::of(creator_pid));
        }
        if self.early.remove(&new) {
            self.arm(new);
            Stopped(new).resume(0).ok();
        }
        Stopped(creator).resume(0)?;
        Ok(())
    }

    /// Has the program been told an id of this child, or does only a lost leader know? (Its successor's
    /// own fork is heard of later, now and then.)
    fn knows_child(&self, id: GroupId, sequence: u64) -> bool {
        self.groups
            .get(&id)
            .is_some_and(|g| g.names.contains_key(&sequence) || g.is_unexamined())
    }

    /// The program has been told this id of a child that it has forked, or will be.
    pub(crate) fn name_child(&mut self, id: GroupId, sequence: u64, shown: Pid) {
        if let Some(g) = self.groups.get_mut(&id) {
            g.names.insert(sequence, shown);
            let child = g.children.get(&sequence).copied();
            if let Some(g) = child.and_then(|c| self.groups.get_mut(&c))
                && g.name.shown != 0
            {
                // It came before it was known what the program had been told.
                g.name.shown = shown;
            }
        }
        self.miss_newborn(id, sequence);
    }

    /// A vfork's child says on which slot of its parent's memory it runs.
    pub(super) fn on_vforked(&mut self, pid: Pid, slot: u64) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.guest = Some(slot);
            p.group = p.parent.map(|(g, _)| g);
        }
    }

    /// A forked child says which fork of its parent it comes from; it is told the path of its
    /// group's segment, and answered 1 when it leads. One that follows is answered (None: not yet) when
    /// its leader has come: until then it may have to lead itself, with the descriptors it was born with.
    pub(super) fn on_child(
        &mut self,
        pid: Pid,
        sequence: u64,
        path_at: u64,
    ) -> Result<Option<i64>> {
        let Some((parent, replica)) = self.processes.get(&pid).and_then(|p| p.parent) else {
            return Ok(Some(-1));
        };
        let next = self.next_group;
        // The parent may have exited, or gone to another program, before its child came here.
        let pg = match self.groups.get_mut(&parent) {
            None => self.retired.get_mut(&parent),
            living => living,
        };
        let Some(pg) = pg else {
            return Ok(Some(-1));
        };
        if pg.stillborn.contains(&sequence) {
            kill(pid, libc::SIGKILL);
            return Ok(Some(-1));
        }
        if pg.members[replica].pid.is_none() && pg.members[replica].end.is_none() {
            // Its parent was taken out while it was born.
            kill(pid, libc::SIGKILL);
            return Ok(Some(-1));
        }
        let n = pg.members.len();
        let leader = pg.leader;
        let parent_name = pg.name.shown;
        let shown = pg.names.get(&sequence).copied().unwrap_or(pid);
        let alive = pg.segment.header().alive.load(Ordering::Acquire);
        let areas = pg.areas.inherited();
        let id = *pg.children.entry(sequence).or_insert(next);
        if id == next {
            // The first replica's child to come here.
            self.next_group += 1;
            let words = self.options.ring_words();
            let segment = Segment::new(words, n as u32, alive, leader as u32, self.taken_over)?;
            self.groups
                .insert(id, Group::new(segment, n, leader, areas));
        }
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(Some(-1));
        };
        g.members[replica].pid = Some(pid);
        if replica == g.leader {
            if g.name.shown == 0 {
                g.name = Name {
                    shown,
                    parent: parent_name,
                };
            }
            if g.takeover.is_none() {
                let h = g.segment.header();
                h.leader_pid.store(pid as u32, Ordering::Release);
            }
        }
        // Its leader has been killed before it came: nothing will be said to it any more.
        let late = g.ending && g.leader_gone.is_some();
        let mut path = g.segment.path().into_bytes();
        path.push(0);
        self.memory(pid)?.write(path_at, &path)?;
        if let Some(p) = self.processes.get_mut(&pid) {
            p.group = Some(id);
            p.fork = None;
        }
        if late {
            kill(pid, libc::SIGKILL);
        }
        self.forget_retired();
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(Some(0));
        };
        if g.takeover.is_some() {
            // What the lost leader has logged comes first; its descriptors are fetched when that is done.
            return Ok(Some(0));
        }
        let led = &g.members[g.leader];
        if replica != g.leader && led.pid.is_none() && led.end.is_none() && !late {
            g.early.push(pid);
            return Ok(None);
        }
        let leads = replica == g.leader;
        if leads {
            self.refuse_naked(pid);
            self.answer_early(id);
        }
        Ok(Some(leads.into()))
    }
}

impl Monitor {
    /// A process that leads from its birth on, but whose parent followed without descriptors of its own
    /// when it forked it, has none either.
    fn refuse_naked(&mut self, pid: Pid) {
        let parent = self.processes.get(&pid).and_then(|p| p.parent);
        let parent = parent.and_then(|(g, r)| self.groups.get(&g)?.members[r].pid);
        let mut follows = |p: Pid, field: u64| {
            let word = self.memory(p).and_then(|m| Ok(m.word(field)?));
            word.map_or(0, |w| w as u32)
        };
        let followed = follows(pid, private_field!(role)) == role::FOLLOWER;
        if followed && parent.is_some_and(|p| follows(p, private_field!(shares_files)) == 0) {
            self.give_up(
                "stopped: a leader was lost while a process that it had forked forked another one, \
                 which is not supported yet; run the program again",
            );
        }
    }

    /// The group has a leader: those that have waited for it go on.
    pub(crate) fn answer_early(&mut self, id: GroupId) {
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        let leader = g.leader_pid();
        let early = std::mem::take(&mut g.early);
        if let Some(l) = leader.filter(|l| early.contains(l)) {
            self.refuse_naked(l);
        }
        for pid in early {
            let tracee = Stopped(pid);
            // One that was killed meanwhile reports its end.
            let Ok(mut regs) = tracee.regs() else {
                continue;
            };
            let leads = leader == Some(pid);
            let _ = super::rpc::answer(tracee, &mut regs, leads.into());
            let _ = tracee.resume(0);
        }
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
