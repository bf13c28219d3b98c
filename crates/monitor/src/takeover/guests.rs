//! A vfork's children, which run in the memory of their parents until they have programs of their own: one
//! whose leader is lost is taken over with it.
//!
//! Each replica has such a child, on the same slot, and it is that child of the successor's which comes to
//! the end of the log: its parent stands in the kernel until it is gone. So it is the child that prepares
//! the process to lead, but for what only its parent can do (`geryon_abi::layout::owes`).

use super::holder::{is_naked, owes_nothing};
use crate::block_field;
use crate::state::{End, GroupId, Monitor, Name, Process, made_as_clone};
use anyhow::Result;
use geryon_abi::layout::block_address;
use geryon_tracee::{Pid, RemoteMemory, await_report, poll_for};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// One that executes another program has told so by then.
const LEAVING: Duration = Duration::from_secs(1);
/// How often it is looked in any case.
const LOOK: Duration = Duration::from_millis(1);

impl Monitor {
    /// Vforks' children of a replica, by group: on which slots.
    pub(super) fn guests_of(&self, replica: usize) -> HashMap<GroupId, Vec<(u64, Pid)>> {
        let mut found: HashMap<GroupId, Vec<(u64, Pid)>> = HashMap::new();
        for (pid, p) in self.processes.iter().filter(|(_, p)| p.replica == replica) {
            if let (Some(id), Some(slot)) = (p.group, p.guest) {
                found.entry(id).or_default().push((slot, *pid));
            }
        }
        found
    }

    /// The replica is about to lose the lead. A vfork's child that has another program already, of which
    /// only has not been told, has left: its parent may have gone on.
    pub(super) fn let_guests_leave(&mut self, replica: usize) {
        let led = |id: &GroupId| self.leads(*id, replica);
        let guests = self.guests_of(replica).into_iter();
        let guests: Vec<(u64, Pid)> = guests
            .filter(|(id, _)| led(id))
            .flat_map(|(_, g)| g)
            .collect();
        for (slot, pid) in guests {
            let since = Instant::now();
            while self.processes.get(&pid).is_some_and(|p| p.guest.is_some())
                && self.threads.get(&pid).is_some_and(|t| !t.ends)
                && has_left(pid, slot)
                && since.elapsed() < LEAVING
            {
                match poll_for(pid) {
                    // What goes wrong with one that is just ending shows elsewhere.
                    Ok(Some(stop)) => drop(self.on_stop(stop)),
                    Ok(None) => await_report(LOOK),
                    Err(_) => break,
                }
            }
        }
    }

    /// The process is killed, for its replica is taken out. If it is a vfork's child it belongs to nobody any
    /// more: by the time that it is gone the replica may have been made anew.
    pub(crate) fn disown(&mut self, pid: Pid) {
        let process = self.processes.get_mut(&pid);
        if let Some(p) = process.filter(|p| p.guest.is_some()) {
            p.guest = None;
            p.group = None;
            p.parent = None;
        }
    }

    /// The children of vforks of a lost leader that are over, for the successor's have ended: their names and
    /// ends.
    pub(super) fn guests_over(&mut self, former: usize, successor: usize) -> Vec<(Name, End)> {
        let mut over = Vec::new();
        for (id, guests) in self.guests_of(former) {
            for (slot, pid) in guests {
                let Some(g) = self.groups.get(&id).filter(|g| g.leader == former) else {
                    continue;
                };
                let told = self.processes.get(&pid).is_none_or(|p| p.leaving.told);
                let last = g.guests.ends.get(&(successor, slot)).copied();
                let parent = g.name.shown;
                // (The successor may still be at the child before this one.)
                let same = last.filter(|(shown, _)| self.guest_id(pid, slot) == Some(*shown));
                if let Some((shown, end)) = same.filter(|_| !told) {
                    over.push((Name::child_of(parent, shown), end));
                }
            }
        }
        over
    }

    /// A process is about to end, killed by a signal. If it is a vfork's child of a leader, which was killed
    /// from outside, its replica is lost.
    pub(super) fn guest_dies(&mut self, pid: Pid, signal: i32) {
        let Some(p) = self.processes.get(&pid).filter(|p| p.guest.is_some()) else {
            return;
        };
        let (Some(id), replica, doomed) = (p.group, p.replica, p.doomed) else {
            return;
        };
        if signal == libc::SIGKILL
            && !doomed
            && self.leads(id, replica)
            && !self.is_dropped(replica)
            && !self.ends(id)
            && self.outcome.is_none()
            && self.has_survivors(id)
        {
            self.lost(id, replica, End::Killed(signal));
        }
    }

    /// The program kills the process that it calls `shown`, by force. In a leader that has taken over a vfork's child is not
    /// known to the kernel by that name.
    pub(crate) fn announce_guests_kill(&mut self, shown: u64) {
        let led = |p: &Process| p.group.is_some_and(|id| self.leads(id, p.replica));
        let all = self.processes.iter().filter(|(_, p)| led(p));
        let guests: Vec<(Pid, u64)> = all.filter_map(|(pid, p)| Some((*pid, p.guest?))).collect();
        for (pid, slot) in guests {
            if self.guest_id(pid, slot) == Some(shown as u32 as Pid)
                && let Some(p) = self.processes.get_mut(&pid)
            {
                p.doomed = true;
            }
        }
    }

    /// A vfork's child is about to leave its parent's memory, with another program: what the program calls
    /// it.
    pub(crate) fn guest_leaves(&mut self, pid: Pid, shown: Pid) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.shown = shown;
        }
    }

    /// The same for one that ends: it tells nothing, but its parent stands still as yet. If it leads, that is
    /// the end of the program's child, even if its replica is lost before it is gone.
    pub(super) fn guest_ends(&mut self, pid: Pid, end: End) {
        let guest = self.processes.get(&pid).filter(|p| !p.leaving.told);
        let Some((slot, id)) = guest.and_then(|p| Some((p.guest?, p.group?))) else {
            return;
        };
        if let Some(shown) = self.guest_id(pid, slot) {
            self.guest_leaves(pid, shown);
        }
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        let replica = p.replica;
        if g.leader != replica {
            if let End::Exited(_) = end {
                g.guests.ends.insert((replica, slot), (p.shown, end));
                // (Its replica may come to lead before it is gone.)
                p.leaving.told = true;
            }
        } else if end != End::Killed(libc::SIGKILL) || p.doomed {
            p.leaving.told = true;
            let mut name = Name::child_of(g.name.shown, p.shown_as(pid));
            name.is_clone = made_as_clone(pid);
            let before = g.guests.told.insert(slot, (replica, name.shown));
            // The former leader's has ended before that one was lost: the program's child is the same.
            let is_news = before.is_none_or(|(by, shown)| by == replica || shown != name.shown);
            if is_news {
                self.child_ended(name, end);
            }
            if let End::Killed(_) = end {
                // Nothing of that comes by the log to those that follow, whose parents stand still until they are gone.
                self.end_guests(id, replica, slot);
            }
        }
    }

    /// Is it a vfork's child, which ends without the program's process in whose memory it is?
    pub(crate) fn is_guest(&self, pid: Pid) -> bool {
        self.processes.get(&pid).is_some_and(|p| p.guest.is_some())
    }

    /// What the program calls the vfork's child that runs on this slot, as long as it does.
    fn guest_id(&mut self, pid: Pid, slot: u64) -> Option<Pid> {
        let at = block_address(slot as usize) + block_field!(shown_tid);
        let mut shown = [0; 4];
        self.memory(pid).ok()?.read(at, &mut shown).ok()?;
        Some(Pid::from_le_bytes(shown)).filter(|s| *s > 0)
    }

    /// Does the new leader lead, while a vfork's child runs in its memory?
    pub(crate) fn leads_by_guest(&self, id: GroupId) -> bool {
        let takeover = self.groups.get(&id).and_then(|g| g.takeover.as_ref());
        takeover.is_some_and(|t| t.told && self.guests_of(t.successor).contains_key(&id))
    }

    /// Has a vfork's child of the new leader no descriptors yet, or has the process to wait for its own
    /// thread to complete it?
    pub(super) fn awaits_guests(&mut self, id: GroupId, pid: Pid) -> Result<bool> {
        let replica = self.membership(pid).map_or(0, |(_, r)| r);
        let guests = self.guests_of(replica).remove(&id).unwrap_or_default();
        let m = self.memory(pid)?;
        for (slot, _) in guests {
            if is_naked(m, slot)? {
                return Ok(true);
            }
        }
        owes_nothing(m).map(|nothing| !nothing)
    }
}

/// Is it not in its parent's memory any more?
fn has_left(pid: Pid, slot: u64) -> bool {
    let block = block_address(slot as usize);
    let this = RemoteMemory::open(pid).and_then(|m| m.word(block + block_field!(this)));
    !this.is_ok_and(|t| t == block)
}
