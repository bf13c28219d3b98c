//! Processes of a replica that share memory are copied at one moment: a copy that was made later than another
//! one would find in their memory what its own source has written since.

use super::Attempt;
use super::copy::Forked;
use super::parting;
use super::replica::{Made, Seat};
use crate::maps::AddressSpace;
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_abi::layout::touches_reserved;
use geryon_tracee::{Pid, RemoteMemory};
use std::time::Instant;

/// Processes of one replica that share memory, and which another one lacks.
pub(super) struct Kin {
    /// Whose.
    source: usize,
    /// In which groups, parents before their children.
    members: Vec<(GroupId, Pid)>,
    /// A mapping is of another kind than those of which a copy can be given its own.
    foreign: bool,
}

impl Kin {
    /// Is its process in this group one of them?
    pub(super) fn has(&self, id: GroupId) -> bool {
        self.members.iter().any(|(i, _)| *i == id)
    }
}

impl Monitor {
    /// Of the groups that lack a replica, those where whoever can be copied in all of them shares memory. None:
    /// there are no such groups.
    pub(super) fn kin(&self, lacking: &[GroupId]) -> Option<Kin> {
        let of = |r: usize| {
            let member = move |id: &GroupId| Some((*id, self.groups.get(id)?.members[r].pid?));
            lacking.iter().filter_map(member)
        };
        let leads = |r: usize| of(r).filter(|(id, _)| self.leads(*id, r)).count();
        let source = (0..self.replicas.len())
            .filter(|r| of(*r).next().is_some())
            .filter(|r| of(*r).all(|(id, pid)| self.is_healthy(id, *r, pid)))
            // (Followers first, and those who have all of the processes by now.)
            .min_by_key(|r| (leads(*r), lacking.len() - of(*r).count()))?;
        let mut kin = Kin {
            source,
            members: Vec::new(),
            foreign: false,
        };
        for (id, pid) in of(source) {
            // (One that is gone shares nothing.)
            let maps = AddressSpace::open(pid).and_then(|space| space.shared());
            let mut maps = maps.unwrap_or_default();
            maps.retain(|m| !touches_reserved(m.start, m.len));
            if !maps.is_empty() {
                kin.members.push((id, pid));
            }
            kin.foreign |= maps.iter().any(|m| !m.anonymous);
        }
        (!kin.members.is_empty()).then_some(kin)
    }

    /// Make the replica's members of these groups anew.
    pub(super) fn replace_kin(&mut self, kin: &Kin, replica: usize) -> Result<Attempt> {
        self.pausing(|m| m.try_replace_kin(kin, replica))
    }

    fn try_replace_kin(&mut self, kin: &Kin, replica: usize) -> Result<Attempt> {
        if kin.foreign {
            return Ok(Attempt::Never(
                "its source shares memory with other programs".into(),
            ));
        }
        let since = Instant::now();
        let mut halted = Vec::new();
        let hindered = self.halt_kin(kin, &mut halted);
        let mut copies = Vec::new();
        let forked = match hindered {
            Ok(None) => self.fork_kin(kin, replica, &halted, &mut copies),
            Ok(Some(why)) => Ok(Some(Attempt::Later(why.into()))),
            Err(e) => Err(e),
        };
        halted.iter().for_each(|threads| self.release(threads));
        self.pause = since.elapsed();
        let mut made: Vec<Made> = Vec::new();
        let mut failed = forked?;
        for (copy, memory) in &mut copies {
            let Some(memory) = memory.take().filter(|_| failed.is_none()) else {
                break;
            };
            match self.complete_copy(copy, memory) {
                Ok(it) => made.push(it),
                Err(e) => failed = Some(Attempt::Later(format!("{e:#}"))),
            }
        }
        if let Some(attempt) = failed {
            copies.iter().for_each(|(copy, _)| self.unmake(copy));
            return Ok(attempt);
        }
        made.iter().for_each(|made| self.begin(made));
        Ok(Attempt::Done(kin.source))
    }

    /// Halt all of them. The reason when one cannot be copied as it stands.
    fn halt_kin(&mut self, kin: &Kin, halted: &mut Vec<Vec<Pid>>) -> Result<Option<&'static str>> {
        for &(id, pid) in &kin.members {
            match self.halt_source(id, (kin.source, pid))? {
                Ok(threads) => halted.push(threads),
                Err(why) => return Ok(Some(why)),
            }
        }
        // (While the later ones were being halted, something may have happened to the earlier ones.)
        let mut all = kin.members.iter();
        Ok(all.find_map(|(id, pid)| self.hinders(*id, (kin.source, *pid))))
    }

    /// Fork them, and give the copies memory of their own. The attempt's outcome when one cannot be copied:
    /// then those that were forked are of no use.
    fn fork_kin(
        &mut self,
        kin: &Kin,
        replica: usize,
        halted: &[Vec<Pid>],
        copies: &mut Vec<(Forked, Option<RemoteMemory>)>,
    ) -> Result<Option<Attempt>> {
        let seat = Seat {
            replica,
            sleeps: false,
        };
        let later = |e: anyhow::Error| Ok(Some(Attempt::Later(format!("{e:#}"))));
        for ((id, pid), threads) in kin.members.iter().zip(halted) {
            match self.fork_halted(*id, seat, (kin.source, *pid), threads) {
                Ok(Ok(forked)) => copies.push((forked, None)),
                Ok(Err(attempt)) => return Ok(Some(attempt)),
                Err(e) => return later(e),
            }
        }
        for (copy, memory) in copies.iter_mut() {
            match self.settle_copy(copy) {
                Ok(m) => *memory = Some(m),
                Err(e) => return later(e),
            }
        }
        let parts: Vec<parting::Part<'_>> = copies
            .iter()
            .filter_map(|(copy, memory)| Some(copy.part(memory.as_ref()?)))
            .collect();
        if let Err(e) = parting::part(&parts, &self.image, &self.passage) {
            return later(e);
        }
        // All of them before one of the sources goes on: when the leader makes a call that its followers have
        // confirmed, each of them has written to the shared memory what stands before it in the program. A copy
        // that had not been asked would find out too late that another process of its replica may read that.
        copies.iter().for_each(|(copy, _)| self.enrol_forked(copy));
        Ok(None)
    }
}
