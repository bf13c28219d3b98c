//! Who has what the kernel keeps for the program's process: its descriptors, its working directory, its
//! root and its umask. Who is to lead fetches them first, and may be lost before it has: then its own
//! successor has them from where it would have had them.

use super::Takeover;
use super::stage::Stage;
use crate::state::{Group, Monitor};
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::layout::{block_address, owes, promotion, vforked};
use geryon_tracee::{Pid, RemoteMemory};

/// The processes that have them.
#[derive(Clone, Debug)]
pub(super) struct Holders {
    pub(super) process: Pid,
    /// Its vforks' children, by slot.
    pub(super) guests: Vec<(u64, Pid)>,
}

impl Holders {
    /// The one that has what this vfork's child is to have, or, without one, its parent. (One that was killed before it
    /// had said who it is has its parent's.)
    fn of(&self, guest: Option<u64>) -> Pid {
        let same = self.guests.iter().find(|(slot, _)| Some(*slot) == guest);
        same.map_or(self.process, |(_, pid)| *pid)
    }
}

impl Takeover {
    /// A process that was asked to lead is lost: has it, and have its vforks' children, fetched them? (The
    /// log's header names another leader already. One that has not by now may still do so, but it cannot
    /// make a call with them any more.)
    pub(super) fn hold(&mut self, before: &Takeover) {
        if before.stage != Stage::Asked {
            self.holders = before.holders.clone();
            return;
        }
        if self.lost.has_executed() {
            return;
        }
        let Some(memory) = self.estate.memories.first() else {
            // It is gone, and nothing can be fetched from it.
            self.holders = before.holders.clone();
            return;
        };
        if !has_fetched(memory) {
            self.holders.process = before.holders.process;
        }
        for (slot, guest) in &mut self.holders.guests {
            if is_naked(memory, *slot).unwrap_or(false) {
                *guest = before.predecessor(Some(*slot));
            }
        }
    }

    /// The lost process leads from its birth on, and was fetching them from this one.
    pub(super) fn was_heir_of(&mut self, holder: Pid) {
        self.holders.process = holder;
        self.session.was_heir_of(holder);
    }

    /// The process whose descriptors the successor is to have, or its vfork's child on this slot.
    pub(crate) fn predecessor(&self, guest: Option<u64>) -> Pid {
        self.holders.of(guest)
    }
}

impl Group {
    /// The process whose descriptors its leader has: itself, unless it has taken over and has yet to fetch them. A
    /// follower may want to map one of them before that.
    pub(crate) fn leaders_holder(&self) -> Option<Pid> {
        let leader = self.leader_pid()?;
        let takeover = self.takeover.as_ref().filter(|_| {
            let memory = RemoteMemory::open(leader);
            !memory.is_ok_and(|m| has_fetched(&m))
        });
        let holder = self
            .descriptors
            .heir_of
            .or_else(|| Some(takeover?.predecessor(None)));
        Some(holder.unwrap_or(leader))
    }
}

impl Monitor {
    /// Is a thread of the former leader not at its end yet? (A first thread that has ended before the others stays
    /// until they have.)
    pub(super) fn is_alive(&self, t: &Takeover) -> bool {
        let mut threads = self.threads.iter().filter(|(_, th)| t.lost.is_of(th.pid));
        threads.any(|(tid, th)| !th.ends && !t.lost.bodies.contains_key(tid))
    }

    /// Does a newborn leader, or the successor of one that was lost, have descriptors from what is kept here?
    pub(crate) fn has_heir_of(&self, t: &Takeover) -> bool {
        self.groups.values().any(|g| {
            let holder = g.takeover.as_ref().map(|t| t.predecessor(None));
            [g.descriptors.heir_of, holder]
                .into_iter()
                .flatten()
                .any(|h| t.lost.has_led(h))
        })
    }
}

fn word32(memory: &RemoteMemory, at: u64) -> Result<u32> {
    let mut bytes = [0; 4];
    memory.read(at, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn has_fetched(memory: &RemoteMemory) -> bool {
    let leads = word32(memory, private_field!(promotion)).is_ok_and(|p| p == promotion::DONE);
    leads && owes_nothing(memory).unwrap_or(false)
}

/// Has the process all that only the thread that stands in a vfork can fetch?
pub(super) fn owes_nothing(memory: &RemoteMemory) -> Result<bool> {
    Ok(word32(memory, private_field!(owes))? == owes::NOTHING)
}

/// Has the vfork's child on this slot no descriptors of its own yet?
pub(super) fn is_naked(memory: &RemoteMemory, slot: u64) -> Result<bool> {
    let at = block_address(slot as usize) + block_field!(vforked);
    Ok(word32(memory, at)? == vforked::NAKED)
}
