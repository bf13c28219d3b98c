//! Births: threads, forked and vforked processes, and how a forked child finds its group.

use crate::private_field;
use crate::segment::Segment;
use crate::state::{Birth, Group, GroupId, Monitor, Name, Process, Thread};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::{enclosed, failed, letter, role};
use geryon_tracee::{Pid, Stopped, kill};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// How a forked child asks for its log.
const LOG: u64 = letter::asked(enclosed::LOG, enclosed::LEADERS);

impl Monitor {
    /// A thread has made another one, or a process. One that leads and has forked goes on when its child
    /// has said who it is: a fork that was logged has a child that can be taken over from, and one whose
    /// child was lost before that was not made.
    pub(super) fn on_birth(&mut self, creator: Pid, borrows: bool) -> Result<()> {
        let new = Stopped(creator).event_message()? as Pid;
        let is_process = tgid_of(new).is_none_or(|t| t == new);
        let creator_pid = self.threads[&creator].pid;
        let mut stays = false;
        let mut common = false;
        if is_process {
            self.family.has_forked = true;
            self.stays_serial();
            self.sleepers_lack_a_process();
            let parent = self.membership(creator_pid);
            // The agent's fork says which one it is.
            let mut fork = None;
            if parent.is_some() && !borrows {
                let regs = Stopped(creator).regs()?;
                fork = Some(regs.r9);
                self.note_birth(parent, regs.r9);
                // It must not see the descriptors that its child needs to begin.
                common = regs.rdi & libc::CLONE_FILES as u64 != 0;
            }
            let alone = self.options.replicas == 1 && !common;
            stays = !borrows
                && !alone
                && parent.is_some_and(|(id, replica)| self.leads(id, replica))
                && !self.follows(creator_pid);
            let process = Process {
                parent,
                birth: Birth {
                    fork,
                    creator: stays.then_some(creator),
                    common,
                },
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
        if self.family.early.remove(&new) {
            self.arm(new);
            Stopped(new).resume(0).ok();
        }
        if !stays {
            Stopped(creator).resume(0)?;
        }
        Ok(())
    }

    /// The process of this group and replica has made this fork.
    fn note_birth(&mut self, parent: Option<(GroupId, usize)>, fork: u64) {
        if let Some((id, replica)) = parent
            && let Some(g) = self.groups.get_mut(&id)
        {
            g.forks.births[replica].add(fork);
        }
    }

    /// Does its agent follow, or did its parent's when it was forked?
    pub(super) fn follows(&mut self, pid: Pid) -> bool {
        self.private_half(pid, private_field!(role)) == role::FOLLOWER
    }

    /// A word of what its agent knows of itself; 0 when it is gone.
    fn private_half(&mut self, pid: Pid, field: u64) -> u32 {
        let word = self.memory(pid).and_then(|m| Ok(m.word(field)?));
        word.map_or(0, |w| w as u32)
    }

    /// A forked process has said who it is, or has ended before that: who made it goes on.
    pub(super) fn release_creator(process: &mut Process) {
        if let Some(creator) = process.birth.creator.take() {
            // One that was killed meanwhile reports its end.
            Stopped(creator).resume(0).ok();
        }
    }

    /// A forked child has what it needs to begin.
    pub(super) fn on_begun(&mut self, pid: Pid) {
        if let Some(p) = self.processes.get_mut(&pid) {
            Monitor::release_creator(p);
        }
    }

    /// A vfork's child says on which slot of its parent's memory it runs.
    pub(super) fn on_vforked(&mut self, pid: Pid, slot: u64) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.guest = Some(slot);
            p.group = p.parent.map(|(g, _)| g);
        }
    }

    /// A forked child says which fork of its parent it comes from; it is sent its group's segment, to
    /// the socket of this name, and answered 1 when it leads. One that follows is answered (None: not yet) when
    /// its leader has come: until then it may have to lead itself, with the descriptors it was born with.
    pub(super) fn on_child(&mut self, pid: Pid, sequence: u64, socket: u64) -> Result<Option<i64>> {
        let newborn = self.processes.get(&pid).filter(|p| p.group.is_none());
        let Some((parent, replica)) = newborn.and_then(|p| p.parent) else {
            // Its descriptors may be the leader's: it must not close them.
            bail!("it takes itself for its child");
        };
        let next = self.family.next_group;
        let Some(pg) = parent_group(&mut self.groups, &mut self.family.retired, parent) else {
            return Ok(Some(-1));
        };
        if pg.forks.stillborn.contains(&sequence) {
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
        let parent_pid = pg.leader_pid();
        let alive = pg.segment.header().alive.load(Ordering::Acquire);
        let areas = pg.areas.inherited();
        let id = *pg.forks.children.entry(sequence).or_insert(next);
        if id == next {
            // The first replica's child to come here.
            self.family.next_group += 1;
            let words = self.ring_words();
            let segment = Segment::new(
                words,
                n as u32,
                alive,
                leader as u32,
                self.family.taken_over,
            )?;
            let new = Group::new(segment, n, leader, areas);
            new.segment.header().group.store(id, Ordering::SeqCst);
            new.segment
                .header()
                .shared
                .store(self.shared.bits, Ordering::SeqCst);
            self.groups.insert(id, new);
        }
        let Some(g) = self.groups.get_mut(&id) else {
            // The program has killed its sibling that leads, and nobody is left of its group: it has been
            // killed, too, and is not missed.
            if let Some(p) = self.processes.get_mut(&pid) {
                p.birth.fork = None;
            }
            kill(pid, libc::SIGKILL);
            return Ok(Some(-1));
        };
        if let Some(other) = g.members[replica].pid {
            bail!("it has forked process {pid}, which is there already: {other}");
        }
        g.members[replica].pid = Some(pid);
        let parent_leads = parent_pid.filter(|_| replica == g.leader);
        if replica == g.leader && g.takeover.is_none() {
            let h = g.segment.header();
            h.open.leader_pid.store(pid as u32, Ordering::Release);
        }
        if let Some(parent) = parent_leads {
            self.inherits_shared(parent, pid);
        }
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(Some(0));
        };
        // Its leader has been killed before it came: nothing will be said to it any more.
        let late = g.ending && g.leader_gone.is_some();
        // One that was killed meanwhile reports its end; one that has no socket says so itself.
        if socket != 0
            && let Err(e) = self
                .kit
                .passage
                .send(socket, LOG, &[g.segment.descriptor()])
            && e.raw_os_error() != Some(libc::ECONNREFUSED)
        {
            return Err(e).context("cannot send it its log");
        }
        if let Some(p) = self.processes.get_mut(&pid) {
            p.group = Some(id);
            p.birth.fork = None;
            if !p.birth.common {
                Monitor::release_creator(p);
            }
        }
        if late {
            kill(pid, libc::SIGKILL);
        }
        self.sends_held(pid, self.leads(id, replica));
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(Some(0));
        };
        if g.takeover.is_some() {
            // What the lost leader has logged comes first; its descriptors are fetched when that is done.
            return Ok(Some(0));
        }
        let led = &g.members[g.leader];
        if replica != g.leader && led.pid.is_none() && led.end.is_none() && !late {
            g.forks.early.push(pid);
            return Ok(None);
        }
        if replica != g.leader {
            return Ok(Some(0));
        }
        let answer = self.first_role(id, pid);
        self.answer_early(id);
        Ok(Some(answer))
    }
}

impl Monitor {
    /// A process cannot go on, and says why.
    pub(super) fn on_failed(&mut self, pid: Pid, what: u64, error: u64) {
        let what = match what {
            failed::SEND => {
                "is killed right after its fork: it cannot get its log from the monitor"
            }
            failed::IDS_OF_THREADS => {
                return self.give_up(
                    "stopped: the program has changed its user or group while it has several threads, which \
                     --order clocks does not repeat; use --order serial",
                );
            }
            failed::ROOT => "cannot take over: it cannot enter the root of its lost leader",
            failed::DIRECTORY => {
                "cannot take over: it cannot enter the working directory of its lost leader"
            }
            failed::MAP => "is killed right after its fork: it cannot map its log",
            _ => {
                "cannot take over: its lost leader shared descriptors or directory with another process \
                 (clone with CLONE_FILES or CLONE_FS)"
            }
        };
        let why = match (error as i64).unsigned_abs() {
            0 => String::new(),
            e => format!(": {}", std::io::Error::from_raw_os_error(e as i32)),
        };
        self.say(&format!("process {pid} {what}{why}"));
    }

    /// A forked process leads its group, unless one did before that was lost: it is what the program calls
    /// the child.
    fn name_leader(&mut self, id: GroupId, pid: Pid) {
        let Some((of, _)) = self.processes.get(&pid).and_then(|p| p.parent) else {
            return;
        };
        let Some(pg) = parent_group(&mut self.groups, &mut self.family.retired, of) else {
            return;
        };
        let fork = pg.forks.children.iter().find(|(_, child)| **child == id);
        let fork = fork.map(|(sequence, _)| *sequence);
        if let Some(sequence) = fork {
            pg.forks.names.entry(sequence).or_insert(pid);
        }
        let maker = pg.name.shown;
        let whose = self.parent_of(of);
        let parent =
            whose.and_then(|(p, is_orphan)| Some((self.groups.get(&p)?.name.shown, is_orphan)));
        let (parent, is_orphan) = parent.unwrap_or((maker, false));
        if let Some(g) = self.groups.get_mut(&id)
            && g.name.shown == 0
        {
            g.name = Name::child_of(parent, pid);
            g.name.is_orphan = is_orphan;
            g.name.is_clone = !is_orphan && crate::state::made_as_clone(pid);
            if parent != maker {
                g.segment.header().taken_over.store(1, Ordering::SeqCst);
            }
        }
        if let Some(sequence) = fork {
            self.miss_newborn(of, sequence);
        }
    }

    /// What the program calls the child of this fork, 0 if none has led yet. One that led from its birth on
    /// may be lost before its parent has logged the fork: its name stays. None: the parent's own child is to lead,
    /// and has not said who it is. The parent, which has come to lead behind its fork, goes on then, and is told 0;
    /// were both lost before that, the log would name a child that nobody has. -EAGAIN: its own was lost, and it is to make
    /// another one.
    pub(super) fn name_of_fork(&mut self, tid: Pid, parent: Pid, sequence: u64) -> Option<Pid> {
        let Some(member) = self.membership(parent) else {
            return Some(0);
        };
        let group = self.groups.get(&member.0);
        if let Some(name) = group.and_then(|g| g.forks.names.get(&sequence)) {
            return Some(*name);
        }
        if self.forget_lost_newborn(member, sequence) {
            return Some(-libc::EAGAIN);
        }
        let is_it = |p: &&mut Process| {
            p.parent == Some(member) && p.group.is_none() && p.birth.fork == Some(sequence)
        };
        let Some(newborn) = self.processes.values_mut().find(is_it) else {
            return Some(0);
        };
        newborn.birth.creator = Some(tid);
        None
    }

    /// What a forked process is answered whose replica leads, see `rpc::CHILD`.
    fn first_role(&mut self, id: GroupId, pid: Pid) -> i64 {
        self.name_leader(id, pid);
        if self.groups.get(&id).is_some_and(|g| g.takeover.is_some()) {
            // The lost leader's child had come before it: it follows, and is asked to lead.
            return 0;
        }
        if !self.follows(pid) || self.private_half(pid, private_field!(shares_files)) != 0 {
            // Its parent had all descriptors.
            return 1;
        }
        // The lost leader stands where it was about to fork, with the descriptors of that moment.
        let parent = self.processes.get(&pid).and_then(|p| p.parent);
        let pg =
            parent.and_then(|(g, _)| parent_group(&mut self.groups, &mut self.family.retired, g));
        let former = pg.and_then(|g| g.takeover.as_ref().map(|t| t.predecessor(None)));
        if former.is_none() {
            self.give_up(
                "stopped: nothing is left of a lost leader, whose child lacks its descriptors; \
                 run the program again",
            );
        }
        if let Some(g) = self.groups.get_mut(&id) {
            g.descriptors.heir_of = former;
            g.remains_of(former);
        }
        2
    }

    /// It has all of its predecessor's descriptors.
    pub(super) fn has_inherited(&mut self, pid: Pid) {
        if let Some((id, _)) = self.membership(pid)
            && let Some(g) = self.groups.get_mut(&id)
        {
            g.descriptors.heir_of = None;
            self.forget_retired();
        }
    }

    /// If the group has a leader, those that have waited for it go on.
    pub(crate) fn answer_early(&mut self, id: GroupId) {
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        let leader = g.leader_pid();
        for pid in g.take_early() {
            let tracee = Stopped(pid);
            // One that was killed meanwhile reports its end.
            let Ok(mut regs) = tracee.regs() else {
                continue;
            };
            let role = match leader {
                Some(l) if l == pid => self.first_role(id, pid),
                _ => 0,
            };
            let _ = super::rpc::answer(tracee, &mut regs, role);
            let _ = tracee.resume(0);
        }
    }
}

/// The group of a process that has forked: it may have exited, or gone to another program, before its
/// child comes.
fn parent_group<'a>(
    groups: &'a mut HashMap<GroupId, Group>,
    retired: &'a mut HashMap<GroupId, Group>,
    id: GroupId,
) -> Option<&'a mut Group> {
    groups.get_mut(&id).or_else(|| retired.get_mut(&id))
}

/// The process that a thread belongs to.
fn tgid_of(tid: Pid) -> Option<Pid> {
    let text = geryon_tracee::text(format!("/proc/{tid}/status")).ok()?;
    text.lines()
        .find_map(|l| l.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}
