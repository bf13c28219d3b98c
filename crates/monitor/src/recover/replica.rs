//! One process of the missing replica: whom to copy, and when.

use super::Attempt;
use super::copy::{shares_memory, shows_files};
use super::credentials;
use super::proven::NOT_PAST;
use crate::objects::{Mapped, mapped};
use crate::state::{Group, GroupId, Monitor, Process};
use anyhow::Result;
use geryon_abi::point::FaultPoint;
use geryon_tracee::Pid;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Why a process is not copied whose child has yet to say who it is.
const BEING_BORN: &str = "a child of its source is being born";

/// Why none is copied while there are files of which each replica has its own.
pub(super) const MAPS_FILES: &str = "its source maps files (mmap) to be shared and writable";

/// Where a copy is to sit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// As which replica.
    pub replica: usize,
    /// It stands still there until it is needed: a leader that it keeps from writing must not wait for
    /// it, from the first moment on.
    pub sleeps: bool,
    /// It is only ever to show where the log leads, and never takes part: of a leader whose threads wait inside hooked
    /// functions it can be made, too.
    pub testifies: bool,
}

/// A copy of a process of a replica, in its seat; its threads are stopped.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// Whose seat.
    pub replica: usize,
    /// Of whom it is a copy.
    pub source: usize,
    /// The process.
    pub pid: Pid,
    /// Its threads, the first one first.
    pub threads: Vec<Pid>,
    /// The rings at whose ends a thread of the source slept.
    pub asleep: Vec<usize>,
}

impl Monitor {
    /// Make the replica's member of a group anew.
    pub(super) fn replace_in(&mut self, id: GroupId, replica: usize) -> Result<Attempt> {
        self.pausing(|m| m.try_replace_in(id, replica))
    }

    /// Make an attempt, and count how long the source stood still for it.
    pub(super) fn pausing(
        &mut self,
        attempt: impl FnOnce(&mut Monitor) -> Result<Attempt>,
    ) -> Result<Attempt> {
        let since = Instant::now();
        self.recovery.pause = Duration::ZERO;
        let attempt = attempt(self);
        let stood = match self.recovery.pause {
            // Nothing was copied: it was let go at the end.
            Duration::ZERO => since.elapsed(),
            pause => pause,
        };
        if !self.running.follows_again {
            self.console.journal.stood(stood);
        }
        attempt
    }

    fn try_replace_in(&mut self, id: GroupId, replica: usize) -> Result<Attempt> {
        if !self.shared.is_empty() && !self.takes_turns() {
            return Ok(Attempt::Never(MAPS_FILES.into()));
        }
        let sources = self.sources_for(id);
        if sources.is_empty() {
            return Ok(self.without_source(id, replica));
        }
        let mut sources = sources.into_iter();
        let Some((source, pid)) = sources.find(|s| self.is_past_failure(id, replica, s.1)) else {
            return Ok(Attempt::Later(NOT_PAST.into()));
        };
        if self.is_yet_to_be_born(id, replica) {
            return Ok(Attempt::Later("its parent is about to fork it".into()));
        }
        let seat = Seat {
            replica,
            sleeps: false,
            testifies: false,
        };
        let made = match self.copy_of(id, seat, (source, pid))? {
            Ok(made) => made,
            Err(attempt) => return Ok(attempt),
        };
        let is_member = |g: &Group| g.members[replica].pid == Some(made.pid);
        if !self.groups.get(&id).is_some_and(is_member) {
            self.enrol(id, &made);
        }
        self.begin(&made);
        Ok(Attempt::Done(source))
    }

    /// A copy that takes part is let go.
    pub(super) fn begin(&mut self, made: &Made) {
        self.dies_at(FaultPoint::CopyJoined, made.pid);
        if self.options.eager_copy {
            self.begin_unsharing(made.replica, made.pid);
        }
        self.release(&made.threads);
    }

    /// A copy that was made is a member of its group from now on; it is left stopped.
    pub(crate) fn enrol(&mut self, id: GroupId, made: &Made) {
        self.enrol_process(id, made.replica, made.pid, &made.asleep);
    }

    /// `asleep`: the rings at whose ends threads of its source slept.
    pub(super) fn enrol_process(
        &mut self,
        id: GroupId,
        replica: usize,
        pid: Pid,
        asleep: &[usize],
    ) {
        if let Some(g) = self.groups.get_mut(&id) {
            let m = &mut g.members[replica];
            m.pid = Some(pid);
            m.end = None;
            m.missed = 0;
            g.segment.join(replica, asleep);
        }
    }

    /// Copy a replica's process to the seat of another one, which lacks it. The copy is left stopped in
    /// its seat. The attempt's outcome when there is none.
    pub(crate) fn copy_of(
        &mut self,
        id: GroupId,
        seat: Seat,
        (source, pid): (usize, Pid),
    ) -> Result<std::result::Result<Made, Attempt>> {
        let since = Instant::now();
        let halted = match self.halt_source(id, (source, pid))? {
            Ok(halted) => halted,
            Err(why) => return Ok(Err(Attempt::Later(why.into()))),
        };
        let forked = self.fork_halted(id, seat, (source, pid), &halted);
        if matches!(forked, Ok(Ok(_))) && !seat.sleeps {
            self.begin_turn_of_kin(source, seat.replica);
        }
        if let Ok(Ok(forked)) = &forked
            && !seat.sleeps
            && shows_files(pid).unwrap_or(true)
        {
            // The leader writes to a file when all have come to the write: the copy has to be asked before its source goes
            // on, or it finds there what is written later.
            self.enrol_forked(forked);
        }
        // What is done from here on the source need not wait for.
        self.release(&halted);
        let forked = match forked? {
            Ok(forked) => forked,
            Err(attempt) => return Ok(Err(attempt)),
        };
        self.recovery.pause = since.elapsed();
        let made = self.settle_copy(&forked).and_then(|memory| {
            match self.has_shared(forked.pid, pid)? || seat.sleeps && !self.shared.is_empty() {
                true => Ok(None),
                false => self.complete_copy(&forked, memory).map(Some),
            }
        });
        if let Ok(Some(made)) = made {
            return Ok(Ok(made));
        }
        self.unmake(&forked);
        Ok(Err(match made {
            Err(e) => Attempt::Later(format!("{e:#}")),
            Ok(_) if seat.sleeps => {
                Attempt::Never("its source has memory that several processes share".into())
            }
            Ok(_) => Attempt::Later("its source has begun to share memory".into()),
        }))
    }

    /// Has the copy memory that others have, too, or is its source one of those that take turns for it by now? (What others
    /// map is not the copy's affair.)
    fn has_shared(&self, copy: Pid, source: Pid) -> Result<bool> {
        let objects = self.inodes_of_objects();
        let is_object = |m: &Mapped| objects.contains(&m.inode);
        Ok(shares_memory(copy)?
            || self.is_kin(source)
            || (!objects.is_empty() && mapped(copy)?.iter().any(is_object)))
    }

    /// Copy a sleeper, all of whose threads are halted, and stay so. The copy is left stopped in its seat.
    pub(crate) fn copy_of_halted(
        &mut self,
        id: GroupId,
        seat: Seat,
        source: (usize, Pid),
        halted: &[Pid],
    ) -> Result<Made> {
        let forked = match self.fork_halted(id, seat, source, halted)? {
            Ok(forked) => forked,
            Err(Attempt::Later(why) | Attempt::Never(why)) => anyhow::bail!("{why}"),
            Err(Attempt::Done(_)) => anyhow::bail!("a copy is there already"),
        };
        let memory = self.settle_copy(&forked);
        let made = memory.and_then(|memory| self.complete_copy(&forked, memory));
        if made.is_err() {
            self.unmake(&forked);
        }
        made
    }

    /// Halt a replica's process that is to be copied. `Err` with the reason when it cannot be copied as it
    /// stands; then it runs again.
    pub(crate) fn halt_source(
        &mut self,
        id: GroupId,
        (source, pid): (usize, Pid),
    ) -> Result<std::result::Result<Vec<Pid>, &'static str>> {
        if self.has_vforked(source) {
            return Ok(Err("its source waits for a vfork's child"));
        }
        if self.bears(id, source) {
            // The thread that has forked it stands still already.
            return Ok(Err(BEING_BORN));
        }
        self.memory(pid)?;
        let Some(halted) = self.halt(pid)? else {
            return Ok(Err("its source's threads did not stop"));
        };
        if let Some(why) = self.hinders(id, (source, pid)) {
            self.release(&halted);
            return Ok(Err(why));
        }
        Ok(Ok(halted))
    }

    /// What stands in the way of a copy of a process that is halted?
    pub(super) fn hinders(&self, id: GroupId, (source, pid): (usize, Pid)) -> Option<&'static str> {
        let in_flight = self
            .threads
            .values()
            .any(|t| t.pid == pid && t.takes_signal());
        if self.bears(id, source) || self.lacks_child(source) {
            // The copy would stand behind that fork, and nobody would make its child.
            return Some(BEING_BORN);
        }
        if in_flight || !self.is_healthy(id, source, pid) {
            return Some("a signal is on its way in its source");
        }
        let own = self.threads.iter().filter(|(_, t)| t.pid == pid);
        (self.threads_of(pid) > 1 && !credentials::are_the_same(own.map(|(tid, _)| *tid)))
            .then_some("threads of its source have different users, groups or capabilities")
    }

    /// Does a process of the replica wait for its vfork's child?
    fn has_vforked(&self, replica: usize) -> bool {
        let mut all = self.processes.values();
        all.any(|p| p.guest.is_some() && p.replica == replica)
    }

    /// Has the replica's process forked a child that is in no group yet?
    fn bears(&self, id: GroupId, replica: usize) -> bool {
        let expected = |p: &Process| p.group.is_none() && p.parent == Some((id, replica));
        self.processes.values().any(expected) || self.has_early_child(id, replica)
    }

    /// Has a child of the replica's process come to its group before that has a leader? Who copied the
    /// process now would not find the child's group among those that lack the copy.
    fn has_early_child(&self, id: GroupId, replica: usize) -> bool {
        let children = self.groups.get(&id).into_iter();
        let children = children.flat_map(|g| g.forks.children.values());
        children.filter_map(|c| self.groups.get(c)).any(|child| {
            child.members[replica].pid.is_some()
                && child.leader_pid().is_none()
                && child.leader_gone.is_none()
        })
    }

    /// Is this the replica's process still, and has nobody said anything against it?
    pub(super) fn is_healthy(&self, id: GroupId, replica: usize, pid: Pid) -> bool {
        self.groups.get(&id).is_some_and(|g| {
            g.members[replica].pid == Some(pid)
                && g.dispute.reports.iter().all(|x| x.replica != replica)
                && g.dispute.crashes.iter().all(|c| c.replica != replica)
                && (replica != g.leader || g.takeover.is_none())
        })
    }

    /// There is nobody to copy; perhaps a follower is yet to be born.
    fn without_source(&self, id: GroupId, replica: usize) -> Attempt {
        let expected = self.groups.get(&id).is_some_and(|g| {
            if g.takeover.is_some() {
                return true;
            }
            let others = g.segment.header().alive.load(Ordering::SeqCst) & !(1 << replica);
            (0..g.members.len())
                .any(|r| r != g.leader && others & (1 << r) != 0 && g.members[r].pid.is_none())
        });
        if expected {
            Attempt::Later("its source is not born yet".into())
        } else {
            Attempt::Never("no healthy follower is left to copy".into())
        }
    }

    /// Was the replica's parent process copied before it forked this one, or has its child not come yet? (The
    /// parent may be gone by then.)
    pub(super) fn is_yet_to_be_born(&self, id: GroupId, replica: usize) -> bool {
        let is_parents = |g: &Group| {
            let mut children = g.forks.children.iter();
            children.find_map(|(fork, child)| (*child == id).then_some(*fork))
        };
        let groups = || self.groups.iter().chain(&self.family.retired);
        let parent = groups().find_map(|(of, g)| Some((*of, g, is_parents(g)?)));
        let Some((of, parent, fork)) = parent else {
            return false;
        };
        let is_to_fork =
            parent.members[replica].pid.is_some() && !parent.forks.births[replica].has(fork);
        let comes = |(pid, p): (&Pid, &Process)| {
            let is_it = p.parent == Some((of, replica)) && p.group.is_none();
            is_it && p.birth.fork == Some(fork) && self.threads.get(pid).is_some_and(|t| !t.ends)
        };
        is_to_fork || self.processes.iter().any(comes)
    }

    /// Followers that nobody has said anything against; if there is no follower left, the leader.
    fn sources_for(&self, id: GroupId) -> Vec<(usize, Pid)> {
        let Some(g) = self.groups.get(&id) else {
            return Vec::new();
        };
        let mut sources: Vec<(usize, Pid)> = g.followers().collect();
        if sources.is_empty() {
            sources.extend(g.leader_pid().map(|pid| (g.leader, pid)));
        }
        sources.retain(|(r, pid)| self.is_healthy(id, *r, *pid));
        sources
    }
}
