//! Processes of a replica that share memory are copied at one moment: a copy that was made later than another
//! one would find in their memory what its own source has written since.

use super::Attempt;
use super::copy::{Files, Forked};
use super::parting::{Part, Saved};
use super::replica::{MAPS_FILES, Made, Seat};
use crate::maps::{AddressSpace, ObjectId, SharedMap};
use crate::state::{Group, GroupId, Monitor};
use anyhow::{Result, anyhow};
use geryon_abi::layout::touches_reserved;
use geryon_tracee::{Pid, RemoteMemory};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What all kin share: their turn.
const TURN: ObjectId = (u32::MAX, u32::MAX, u64::MAX);

/// For so long one of them may go on until it stands where it can be copied, while those before it stand still.
const SETTLES: Duration = Duration::from_millis(10);
/// And so long each time.
const STEP: Duration = Duration::from_micros(50);

/// Processes of one replica that share memory, and which another one lacks.
pub(super) struct Kin {
    /// Whose.
    source: usize,
    /// In which groups, parents before their children.
    members: Vec<(GroupId, Pid)>,
    /// Why they cannot be copied now, or ever.
    hindered: Option<Hindered>,
}

/// What stands in the way of processes that are to be copied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hindered {
    /// A mapping is of another kind than those of which a copy can be given its own.
    Foreign,
    /// One that shares memory with them has ended in the leader and not yet in the source: what it is still to do there
    /// comes before what the others are to do, and nobody would do it among their copies.
    Ending,
    /// One that shares memory with them is in a group without a leader.
    Leaderless,
    /// One of them is about to end: its leader has given up what it maps already.
    Leaving,
    /// The replica that lacks them has one already that shares memory with them.
    Partial,
}

/// A process of the source's, and what it shares.
struct Relative {
    id: GroupId,
    pid: Pid,
    objects: BTreeSet<ObjectId>,
    foreign: bool,
    leaves: bool,
}

/// Copies that are being made.
#[derive(Default)]
struct Copies {
    forked: Vec<Forked>,
    /// Of those that have come to their first stop.
    memories: Vec<RemoteMemory>,
    /// What they are still to be given.
    saved: Option<Saved>,
    /// Whose they are, and whose copies.
    replica: usize,
    source: usize,
    /// Threads of leaders that stand still until then.
    leaders: Vec<Vec<Pid>>,
}

impl Copies {
    fn parts(&self) -> Vec<Part<'_>> {
        let all = self.forked.iter().zip(&self.memories);
        all.map(|(copy, memory)| copy.part(memory)).collect()
    }
}

impl Monitor {
    /// Of the groups that lack a replica, those whose processes share memory, and whom to copy there. None: there
    /// are no such groups.
    pub(super) fn kin(&mut self, lacking: &[GroupId], replica: usize) -> Option<Kin> {
        // (Whoever the replica will fork itself shares what it is to share.)
        let mut lacking = lacking.to_vec();
        lacking.retain(|id| !self.is_yet_to_be_born(*id, replica));
        self.kin_of(&lacking, replica)
    }

    /// Does one of these groups' leaders take turns with other processes?
    pub(super) fn are_kin(&self, groups: &[GroupId]) -> bool {
        let leader = |id: &GroupId| self.groups.get(id)?.leader_pid();
        groups.iter().filter_map(leader).any(|pid| self.is_kin(pid))
    }

    /// The first process of the replica was copied, and stands still with its source. If others had come to share memory and are
    /// gone, the next ones go on from the last of their turns. (Those that live are copied together, with their turn.)
    pub(super) fn begin_turn_of_kin(&mut self, source: usize, replica: usize) {
        if self
            .groups
            .values()
            .all(|g| g.members[replica].pid.is_none())
        {
            self.running.kin.copy(source, replica, |_| false);
        }
    }

    fn kin_of(&self, lacking: &[GroupId], replica: usize) -> Option<Kin> {
        let of = |r: usize| {
            let member = move |id: &GroupId| Some((*id, self.groups.get(id)?.members[r].pid?));
            lacking.iter().filter_map(member)
        };
        let changes_leader = |id| self.groups.get(&id).is_some_and(|g| g.takeover.is_some());
        // (First what is known without looking at all that they map: while leaders change this is asked each time.)
        // (Who has not come to be one of them, and does in what the lost leader has logged, would be copied alone, into a replica
        // whose turn is where that leader has left it.)
        let is_changing = |(id, pid)| changes_leader(id) && (self.was_kin(id) || self.is_kin(pid));
        if let Some(source) = (0..self.replicas.len()).find(|r| of(*r).any(is_changing)) {
            return Some(Kin {
                source,
                members: Vec::new(),
                hindered: Some(Hindered::Leaderless),
            });
        }
        let leads = |r: usize| of(r).filter(|(id, _)| self.leads(*id, r)).count();
        let source = (0..self.replicas.len())
            .filter(|r| of(*r).next().is_some())
            .filter(|r| of(*r).all(|(id, pid)| self.is_healthy(id, *r, pid)))
            // (Followers first, and those who have all of the processes by now.)
            .min_by_key(|r| (leads(*r), lacking.len() - of(*r).count()))?;
        let related = self.related(source, lacking);
        let (lack, rest): (Vec<&Relative>, Vec<&Relative>) =
            related.iter().partition(|r| lacking.contains(&r.id));
        let rest = rest.iter().filter_map(|r| self.groups.get(&r.id));
        let (made, leaderless): (Vec<&Group>, Vec<&Group>) =
            rest.partition(|g| g.members[replica].pid.is_some());
        let hindered = if related.iter().any(|r| r.foreign) {
            Some(Hindered::Foreign)
        } else if related.iter().any(|r| r.leaves) {
            Some(Hindered::Leaving)
        } else if !made.is_empty() || self.has_left_copy(source, replica) {
            Some(Hindered::Partial)
        } else if leaderless.iter().any(|g| g.ending) {
            Some(Hindered::Ending)
        } else if !leaderless.is_empty() || lack.iter().any(|r| changes_leader(r.id)) {
            Some(Hindered::Leaderless)
        } else {
            None
        };
        let mut members: Vec<(GroupId, Pid)> = lack.iter().map(|r| (r.id, r.pid)).collect();
        members.sort_unstable();
        (!members.is_empty()).then_some(Kin {
            source,
            members,
            hindered,
        })
    }

    /// Does the replica have the copy of a process that has come to share memory, and has ended, in the source meanwhile? What it
    /// is still to do there has been done in what the others' copies would be given, and its turns are over.
    fn has_left_copy(&self, source: usize, replica: usize) -> bool {
        let mut all = self.groups.iter();
        all.any(|(id, g)| {
            let is_gone = g.members[source].pid.is_none();
            g.members[replica].pid.is_some() && is_gone && self.was_kin(*id)
        })
    }

    /// The replica's processes that share memory in these groups, and those that share some of that with them.
    fn related(&self, replica: usize, ids: &[GroupId]) -> Vec<Relative> {
        let apart = self.inodes_of_objects();
        let all = self.groups.iter();
        let all = all.filter_map(|(id, g)| Some((*id, g.members[replica].pid?)));
        let all = all.filter_map(|(id, pid)| {
            // (One that is gone shares nothing.)
            let mut maps = AddressSpace::open(pid).ok()?.shared().ok()?;
            maps.retain(|m| !touches_reserved(m.start, m.len));
            let mut objects: BTreeSet<ObjectId> = maps.iter().map(|m| m.object).collect();
            if self.is_kin(pid) {
                objects.insert(TURN);
            }
            // (A leader maps the files themselves, and one that was given up looks like anybody's.)
            let has_left = self
                .processes
                .get(&pid)
                .is_some_and(|p| p.leaving.left_shared);
            maps.retain(|m| !m.anonymous && !apart.contains(&m.object.2));
            let leaves = |m: &SharedMap| m.stands_for_file || has_left;
            (!objects.is_empty()).then(|| Relative {
                id,
                pid,
                foreign: !maps.iter().all(leaves),
                leaves: maps.iter().any(leaves),
                objects,
            })
        });
        let (mut found, mut left): (Vec<_>, Vec<_>) = all.partition(|r| ids.contains(&r.id));
        loop {
            let is_near = |r: &Relative| found.iter().any(|f| !f.objects.is_disjoint(&r.objects));
            let (near, far): (Vec<_>, Vec<_>) = left.into_iter().partition(is_near);
            if near.is_empty() {
                return found;
            }
            found.extend(near);
            left = far;
        }
    }

    /// Make the replica's members of these groups anew.
    pub(super) fn replace_kin(&mut self, kin: &Kin, replica: usize) -> Result<Attempt> {
        self.pausing(|m| m.try_replace_kin(kin, replica))
    }

    fn try_replace_kin(&mut self, kin: &Kin, replica: usize) -> Result<Attempt> {
        if !self.shared.is_empty() && !self.takes_turns() {
            return Ok(Attempt::Never(MAPS_FILES.into()));
        }
        match kin.hindered {
            None => {}
            Some(Hindered::Foreign) => {
                let why = "its source shares memory with other programs";
                return Ok(Attempt::Never(why.into()));
            }
            Some(Hindered::Leaderless) => {
                let why = "a process that shares memory with its source has no leader";
                return Ok(Attempt::Later(why.into()));
            }
            Some(Hindered::Ending) => {
                let why = "a process that shares memory with its source is about to end";
                return Ok(Attempt::Later(why.into()));
            }
            Some(Hindered::Leaving) => {
                let why = "a process that maps the same files is about to end";
                return Ok(Attempt::Later(why.into()));
            }
            Some(Hindered::Partial) => {
                // What they share would not be the same any more: all of them anew.
                self.drop_replica(replica);
                let why = "some of the processes that share memory were copied before others";
                return Ok(Attempt::Later(why.into()));
            }
        }
        let since = Instant::now();
        let mut halted = Vec::new();
        let hindered = self.halt_kin(kin, replica, &mut halted);
        let mut copies = Copies::default();
        let forked = match hindered {
            Ok(None) => self.fork_kin(kin, replica, &halted, &mut copies),
            Ok(Some(why)) => Ok(Some(Attempt::Later(why))),
            Err(e) => Err(e),
        };
        halted.iter().for_each(|threads| self.release(threads));
        self.recovery.pause = since.elapsed();
        let made = match forked? {
            Some(attempt) => Err(attempt),
            None => self
                .complete_kin(&mut copies)
                .map_err(|e| Attempt::Later(format!("{e:#}"))),
        };
        copies
            .leaders
            .iter()
            .for_each(|threads| self.release(threads));
        match made {
            Ok(made) => made.iter().for_each(|made| self.begin(made)),
            Err(attempt) => {
                copies.forked.iter().for_each(|copy| self.unmake(copy));
                return Ok(attempt);
            }
        }
        Ok(Attempt::Done(kin.source))
    }

    /// Halt all of them. The reason when one cannot be copied as it stands.
    fn halt_kin(
        &mut self,
        kin: &Kin,
        replica: usize,
        halted: &mut Vec<Vec<Pid>>,
    ) -> Result<Option<String>> {
        for &(id, pid) in &kin.members {
            match self.halt_settled(id, (kin.source, pid))? {
                Ok(threads) => halted.push(threads),
                Err(why) => return Ok(Some(why)),
            }
        }
        // (While the later ones were being halted, something may have happened to the earlier ones.)
        let mut all = kin.members.iter();
        let hindered = all.find_map(|(id, pid)| self.hinders(*id, (kin.source, *pid)));
        let others = || self.has_others(kin) || self.has_left_copy(kin.source, replica);
        let changed = || others().then_some("another process shares memory with its source by now");
        Ok(hindered.or_else(changed).map(Into::into))
    }

    /// Has one more process of the source come to take turns with these?
    fn has_others(&self, kin: &Kin) -> bool {
        let is_member = |id: &GroupId| kin.members.iter().any(|(member, _)| member == id);
        let mut all = self.groups.iter().filter(|(id, _)| !is_member(id));
        all.any(|(_, g)| {
            g.members[kin.source]
                .pid
                .is_some_and(|pid| self.is_kin(pid))
        })
    }

    /// Halt one of them where it can be copied. One that stands elsewhere, as most often does the one that has the turn,
    /// goes on for a moment while the others stand still: all of them would hardly ever stand well by chance.
    fn halt_settled(
        &mut self,
        id: GroupId,
        (source, pid): (usize, Pid),
    ) -> Result<std::result::Result<Vec<Pid>, String>> {
        let since = Instant::now();
        loop {
            let threads = match self.halt_source(id, (source, pid))? {
                Ok(threads) => threads,
                Err(why) => return Ok(Err(why.into())),
            };
            let Some(why) = self.stands_amiss(id, (source, pid), &threads)? else {
                return Ok(Ok(threads));
            };
            self.release(&threads);
            if since.elapsed() >= SETTLES {
                return Ok(Err(why));
            }
            std::thread::sleep(STEP);
        }
    }

    /// Fork them, and keep what they share as it is now. The attempt's outcome when one cannot be copied: then
    /// those that were forked are of no use.
    fn fork_kin(
        &mut self,
        kin: &Kin,
        replica: usize,
        halted: &[Vec<Pid>],
        copies: &mut Copies,
    ) -> Result<Option<Attempt>> {
        let seat = Seat {
            replica,
            sleeps: false,
            testifies: false,
        };
        let later = |e: anyhow::Error| Ok(Some(Attempt::Later(format!("{e:#}"))));
        for ((id, pid), threads) in kin.members.iter().zip(halted) {
            match self.fork_halted(*id, seat, (kin.source, *pid), threads) {
                Ok(Ok(forked)) => copies.forked.push(forked),
                Ok(Err(attempt)) => return Ok(Some(attempt)),
                Err(e) => return later(e),
            }
        }
        if let Err(e) = self.save_kin(copies) {
            return later(e);
        }
        // (While leaders were being halted, something may have happened to the sources.)
        let mut all = kin.members.iter();
        let hindered = all.find_map(|(id, pid)| self.hinders(*id, (kin.source, *pid)));
        if let Some(why) = hindered {
            return Ok(Some(Attempt::Later(why.into())));
        }
        if kin.members.iter().any(|(_, pid)| self.is_kin(*pid)) {
            let lives = |id| kin.members.iter().any(|(m, _)| *m == id);
            self.running.kin.copy(kin.source, replica, lives);
        }
        // All of them before one of the sources goes on: when the leader makes a call that its followers have
        // confirmed, each of them has written to the shared memory what stands before it in the program. A copy
        // that had not been asked would find out too late that another process of its replica may read that.
        let forked = copies.forked.iter();
        forked.for_each(|copy| self.enrol_forked(copy));
        Ok(None)
    }

    /// What the copies share with their sources is kept as it is now, and they get it, unless that can wait.
    fn save_kin(&mut self, copies: &mut Copies) -> Result<()> {
        for copy in &copies.forked {
            let memory = self.settle_copy(copy)?;
            copies.memories.push(memory);
        }
        if let Some(first) = copies.forked.first() {
            (copies.replica, copies.source) = first.seats();
            self.copy_objects(copies.source, copies.replica)?;
        }
        let apart = self.inodes_of_objects();
        copies.saved = Some(Saved::of(&copies.parts(), &self.kit.image, &apart)?);
        if copies.forked.iter().any(|c| c.files() == Files::Sources) {
            return self.part_kin(copies);
        }
        // A leader whose descriptors a copy has would find that of what is to be mapped among its own.
        match self.halt_leaders(copies)? {
            true => Ok(()),
            false => Err(anyhow!("its leader's threads did not stop")),
        }
    }

    /// The copies get memory of their own, unless they have it.
    fn part_kin(&mut self, copies: &mut Copies) -> Result<()> {
        let Some(saved) = copies.saved.take() else {
            return Ok(());
        };
        saved.map(&copies.parts(), &self.kit.image, &self.kit.passage)?;
        self.map_objects(&copies.parts(), copies.replica)
    }

    /// False: one of them did not stop in time.
    fn halt_leaders(&mut self, copies: &mut Copies) -> Result<bool> {
        for copy in &copies.forked {
            let leader = self.groups.get(&copy.id).and_then(Group::leader_pid);
            let Some(leader) = leader.filter(|_| copy.files() == Files::Leaders) else {
                continue;
            };
            match self.halt(leader)? {
                Some(threads) => copies.leaders.push(threads),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// What the copies still lack.
    fn complete_kin(&mut self, copies: &mut Copies) -> Result<Vec<Made>> {
        self.part_kin(copies)?;
        let memories = std::mem::take(&mut copies.memories);
        let all = copies.forked.iter().zip(memories);
        all.map(|(copy, memory)| self.complete_copy(copy, memory))
            .collect()
    }
}
