//! Promotion: a group's leader is gone, or was outvoted and must go, and a follower leads from then
//! on. (Design, section 6; seed 2, failover; seed 4, section 3.4.)
//!
//! 1. The former leader is killed. Its threads stop at their ends, with their registers and their
//!    memory: what they had under way is found out there ([`flight`]).
//! 2. The successor replays everything that was published ([`quiet`]).
//! 3. It is asked to lead. Each of its threads that waits for a record makes one instead; where the
//!    former leader had made the call already, it is given the result.
//! 4. The former leader's remains are let go, and a copy takes its place.
//!
//! A leader that was outvoted has written records that nobody believes. Then all survivors come to
//! rest first, and the log is cut off where they stand ([`cut`]).

mod begun;
mod children;
mod choice;
mod cut;
mod depose;
mod ends;
mod estate;
mod files;
mod flight;
mod groups;
mod guests;
mod heir;
mod holder;
mod kin;
mod locks;
mod lost;
mod posted;
mod quiet;
mod remains;
mod rest;
mod session;
mod signals;
mod spoilt;
mod stage;
#[cfg(test)]
mod tests;
mod undo;
mod untold;

pub use children::Ended;

use crate::journal::Event;
use crate::meeting::CALLS_SOON;
use crate::state::{GroupId, Monitor, Process};
use crate::{block_field, private_field};
use anyhow::Result;
use cut::Cut;
use estate::Estate;
use geryon_abi::layout::{block_address, promotion, wait};
use geryon_abi::point::FaultPoint;
use geryon_tracee::{Pid, RemoteMemory, cpu_ticks};
use holder::Holders;
use lost::Lost;
pub(crate) use posted::Post;
use session::Session;
pub(crate) use signals::as_it_was;
use stage::Stage;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
pub(crate) use untold::bare;

/// Threads that were killed are at their ends by then, unless a device keeps them.
const DYING: Duration = Duration::from_secs(10);

/// A group without a leader.
#[derive(Debug)]
pub struct Takeover {
    /// The replica that led.
    former: usize,
    /// Its process, and those before it.
    lost: Lost,
    /// Who has the program's descriptors.
    holders: Holders,
    /// What it leaves.
    estate: Estate,
    /// Who is to lead.
    successor: usize,
    /// Since when there is no leader.
    since: Instant,
    /// Processor time that the former leader had used.
    used: u64,
    stage: Stage,
    /// All threads of the successor may compute: when one of them is led next to where it sees what it was asked.
    led_in: Option<Instant>,
    /// The session and process group of the program's process.
    session: Session,
    /// The user knows.
    told: bool,
    /// The survivors do not agree with what it has logged last.
    outvoted: bool,
    /// Where it is cut off for that.
    cut: Cut,
}

impl Monitor {
    /// Is a group without a leader?
    pub(crate) fn has_takeovers(&self) -> bool {
        self.groups.values().any(|g| g.takeover.is_some())
    }

    /// Does the one who is to lead a group still follow? What it says of the log is said of its former
    /// leader then.
    pub(crate) fn is_replaying(&self, id: GroupId) -> bool {
        let takeover = self.groups.get(&id).and_then(|g| g.takeover.as_ref());
        takeover.is_some_and(|t| t.stage != Stage::Asked)
    }

    /// Get on with all takeovers, as far as they can.
    pub(crate) fn take_over(&mut self) {
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in groups {
            let Some(mut t) = self.groups.get_mut(&id).and_then(|g| g.takeover.take()) else {
                continue;
            };
            // What goes wrong with a process that is just ending is looked at again.
            let mut over = false;
            loop {
                let before = t.stage;
                over |= self.advance(id, &mut t).unwrap_or(false);
                if over || t.stage == before || self.outcome.is_some() {
                    break;
                }
            }
            if let Some(g) = self.groups.get_mut(&id)
                && !over
            {
                g.takeover = Some(t);
            } else {
                if let Some(shown) = self.groups.get(&id).map(|g| g.name.shown) {
                    self.family.note_lost(shown, &t);
                }
                if let Some(g) = self.groups.get_mut(&id) {
                    g.remains_of(t.lost.processes());
                }
                self.end_takeover(&t);
            }
            if self.outcome.is_some() {
                return;
            }
        }
    }

    /// One step; true when it is over.
    fn advance(&mut self, id: GroupId, t: &mut Takeover) -> Result<bool> {
        let Some(pid) = self
            .groups
            .get(&id)
            .and_then(|g| g.members[t.successor].pid)
        else {
            // The successor's process of this group is yet to be born, or is gone.
            return Ok(self.is_dropped(t.successor) || t.since.elapsed() > DYING);
        };
        match t.stage {
            Stage::Dying => {
                if self.is_alive(t) {
                    if t.since.elapsed() > DYING {
                        self.give_up("stopped: a thread of the former leader does not end");
                    }
                    return Ok(false);
                }
                self.examine(id, t);
                self.find_waiting(id, t);
                self.find_unsent(id, t);
                self.raise_heads(id, t);
                self.dies_at(FaultPoint::SuccessorExamined, pid);
                t.stage = Stage::Replaying;
                Ok(false)
            }
            Stage::Replaying => {
                if self.disagrees(id) {
                    t.outvoted = true;
                }
                if t.outvoted && !self.cut_off(id, t)? {
                    return Ok(false);
                }
                if !self.is_back(id, t) || !self.has_replayed(id, pid) {
                    return Ok(false);
                }
                if !self.post_is_known(id) || !self.kin_may_lead(id, t) {
                    return Ok(false);
                }
                self.dies_at(FaultPoint::SuccessorReplayed, pid);
                self.ask(id, t, pid)?;
                self.dies_at(FaultPoint::SuccessorAsked, pid);
                t.stage = Stage::Asked;
                t.led_in = Some(Instant::now() + CALLS_SOON);
                Ok(false)
            }
            Stage::Asked => self.has_taken_over(id, t, pid),
        }
    }

    /// Everything is replayed: the successor is to lead.
    fn ask(&mut self, id: GroupId, t: &mut Takeover, pid: Pid) -> Result<()> {
        // Threads born meanwhile, too.
        self.unconfine(t.successor);
        self.hold_back(t, pid)?;
        self.bequeath(t, pid)?;
        self.pass_on_waiting(id, t, pid)?;
        self.pass_on_timers(t, pid)?;
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(());
        };
        g.remains_of([]);
        let newborn = g.segment.ring(0).head.load(Ordering::SeqCst) == 0;
        let shown = g.name.shown as u32;
        if newborn {
            // Its parent has been told this id.
            let at = block_address(0) + block_field!(shown_tid);
            self.memory(pid)?.write(at, &shown.to_le_bytes())?;
        }
        self.memory(pid)?
            .write(private_field!(promotion), &promotion::ASKED.to_le_bytes())?;
        self.wake_sleepers(id, t.successor, true);
        Ok(())
    }

    /// Whoever sleeps until there is another record is to look.
    fn wake_sleepers(&self, id: GroupId, replica: usize, all: bool) {
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        for slot in g.segment.touched() {
            let ring = g.segment.ring(slot);
            let asleep = ring.follower_sleeps.load(Ordering::SeqCst) & (1 << replica) != 0;
            if asleep || (all && ring.head.load(Ordering::SeqCst) != 0) {
                crate::segment::wake_word(&ring.head);
            }
        }
    }

    /// Does it lead, and has it made its own what was under way?
    fn has_taken_over(&mut self, id: GroupId, t: &mut Takeover, pid: Pid) -> Result<bool> {
        self.wake_sleepers(id, t.successor, false);
        let mut state = [0; 4];
        self.memory(pid)?
            .read(private_field!(promotion), &mut state)?;
        if u32::from_le_bytes(state) != promotion::DONE {
            // All its threads compute: the first one to come to a call will see it. (It may wait for a signal of a timer
            // that only a leader's process has.)
            if t.led_in.is_some_and(|due| due <= Instant::now()) {
                t.led_in = Some(Instant::now() + CALLS_SOON);
                let touched = self.groups.get(&id).map(|g| g.segment.touched());
                self.lead_in_alone(t.successor, pid, &touched.unwrap_or_default())?;
            }
            return Ok(false);
        }
        if !t.told {
            t.told = true;
            self.tell_of_locks(t, pid);
            self.dies_at(FaultPoint::SuccessorLeads, pid);
            self.forget_reaped(id);
            self.goes_on_stopped(id);
            self.console.journal.tell(&Event::Promoted {
                replica: t.successor,
                pid,
                total_us: t.since.elapsed().as_micros() as u64,
            });
            eprintln!(
                "geryon: replica {} leads from now on, {:.1} ms after replica {} was lost",
                t.successor + 1,
                t.since.elapsed().as_secs_f64() * 1e3,
                t.former + 1
            );
        }
        // One that had just looked when the question came sleeps behind the wake-up that went with it.
        let unaware = |v: &crate::watch::View| v.waiting == wait::RECORD;
        if self.views(pid).iter().any(unaware) {
            self.wake_sleepers(id, t.successor, true);
            return Ok(false);
        }
        Ok(!self.awaits_heirs(id, t)
            && !self.awaits_guests(id, pid)?
            && self.legacy_is_used(t, pid)?)
    }

    /// Are its descriptors still wanted, by a child that the successor has forked while it followed?
    fn awaits_heirs(&self, id: GroupId, t: &Takeover) -> bool {
        let newborn = |p: &Process| {
            p.group.is_none() && p.guest.is_none() && p.parent == Some((id, t.successor))
        };
        self.processes.values().any(newborn) || self.has_heir_of(t)
    }

    /// It is over, or the group is: let go of what is left, and have the replica made anew.
    pub(crate) fn end_takeover(&mut self, t: &Takeover) {
        if self.is_dropped(t.former) && !self.recovery.wants(t.former) {
            self.lose(t.former);
        }
        for tid in t.remains() {
            self.recovery.bury(tid, t.former);
        }
    }

    /// The process whose descriptors this one is to have: the former leader of its group, or of its
    /// parent's.
    pub(crate) fn former(&self, pid: Pid) -> Option<Pid> {
        let (id, _) = self.membership(pid)?;
        let g = self.groups.get(&id)?;
        let guest = self.processes.get(&pid).and_then(|p| p.guest);
        g.descriptors
            .heir_of
            .or_else(|| Some(g.takeover.as_ref()?.predecessor(guest)))
    }

    /// Its memory, or that of one before it that has left something to this thread group.
    pub(crate) fn former_memory(&self, pid: Pid, slot: Option<u32>) -> Option<&RemoteMemory> {
        let (id, _) = self.membership(pid)?;
        let t = self.groups.get(&id)?.takeover.as_ref()?;
        t.estate.memory_for(slot)
    }
}

impl Takeover {
    /// `pid`: the former leader's process.
    fn new(former: usize, pid: Pid, guests: Vec<(u64, Pid)>, successor: usize) -> Takeover {
        Takeover {
            former,
            successor,
            since: Instant::now(),
            used: cpu_ticks(pid),
            holders: Holders {
                process: pid,
                guests: guests.clone(),
            },
            lost: Lost::new(pid, guests),
            estate: Estate::of(pid),
            stage: Stage::Dying,
            led_in: None,
            session: Session::of(pid),
            told: false,
            outvoted: false,
            cut: Cut::default(),
        }
    }

    /// A successor was lost, too: what it had not made its own is still to be taken over.
    fn succeed(&mut self, before: Takeover) {
        self.session.come_after(&before.session);
        if before.stage == Stage::Asked {
            let left_all = self.lost.has_executed();
            self.estate.come_after(before.estate, left_all);
            self.lost.come_after(before.lost);
        } else {
            // It had not begun to lead: nothing has changed but who is to.
            self.former = before.former;
            self.lost = before.lost;
            self.session.id = before.session.id;
            self.since = before.since;
            self.used = before.used.max(self.used);
            self.stage = before.stage;
            self.outvoted = before.outvoted;
            self.estate = before.estate;
        }
    }

    /// Has a former leader's kernel given this child to a wait that is not in the log, and that says so?
    fn may_have_reaped(&self, child: Pid) -> bool {
        self.outvoted || self.estate.may_have_reaped(child)
    }

    /// What is left of the former leaders: threads that stand where they are about to end.
    pub(crate) fn remains(&self) -> impl Iterator<Item = Pid> {
        self.lost.threads()
    }
}
