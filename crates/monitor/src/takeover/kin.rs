//! Processes that share memory take over together: as long as one of them has still to replay what the lost leader
//! has logged, nobody else may have the turn.

use super::Takeover;
use super::stage::Stage;
use crate::private_field;
use crate::state::{Group, GroupId, Monitor, Process};
use anyhow::Result;
use geryon_abi::layout::{promotion, role};
use geryon_tracee::Pid;
use std::sync::atomic::Ordering;

impl Monitor {
    /// Does this process hand the turn over to others that share memory with it?
    pub(crate) fn is_kin(&self, pid: Pid) -> bool {
        self.half(pid, private_field!(kin)) != 0
    }

    /// Has its leader become one of the kin? Then who replays what it has logged is one, or becomes one on the way.
    pub(crate) fn was_kin(&self, id: GroupId) -> bool {
        let g = self.groups.get(&id);
        g.is_some_and(|g| g.segment.header().open.kin.load(Ordering::SeqCst) != 0)
    }

    /// A word of a process's private structure; 0 where it is gone.
    fn half(&self, pid: Pid, field: u64) -> u32 {
        let memory = self.processes.get(&pid).and_then(|p| p.memory.as_ref());
        let word = memory.and_then(|m| m.word(field).ok());
        word.map_or(0, |w| w as u32)
    }

    /// This group's process of the replica that is to lead is at the end of the log: are all that share memory
    /// there as well? The turn is set up then. (One that shares none may come to, as soon as it leads.)
    pub(super) fn kin_may_lead(&mut self, id: GroupId, t: &Takeover) -> bool {
        let successor = t.successor;
        if self.running.kin.is_led_by(successor) {
            return true;
        }
        // (Who is still dying may still log something, and become one of the kin by that.)
        let dies = |g: &Group| g.takeover.as_ref().is_some_and(|t| t.stage == Stage::Dying);
        if self.takes_turns() && self.groups.values().any(dies) {
            return false;
        }
        let led = self.groups.iter().filter(|(_, g)| {
            g.leader == successor && g.leader_gone.is_none() && g.members[successor].end.is_none()
        });
        let led: Vec<(GroupId, Option<Pid>)> =
            led.map(|(id, g)| (*id, g.members[successor].pid)).collect();
        // (One that has ended in the lost leader takes its last turns yet, for which nobody else may go on.)
        let groups = self.groups.iter().filter(|(_, g)| g.leader != successor);
        let ended: Vec<(GroupId, Pid)> = groups
            .filter_map(|(id, g)| Some((*id, g.members[successor].pid?)))
            .collect();
        let is_one =
            |id: GroupId, pid: Option<Pid>| self.was_kin(id) || pid.is_some_and(|p| self.is_kin(p));
        let are_some = led.iter().any(|(id, pid)| is_one(*id, *pid))
            || ended.iter().any(|(id, pid)| is_one(*id, Some(*pid)));
        let mut others = led.into_iter().filter(|(other, _)| *other != id);
        let is_there = |(other, pid): (GroupId, Option<Pid>)| match pid {
            // It is yet to be born, by one that is still to fork it, or to say who it is.
            None => false,
            Some(pid) => {
                !(self.was_kin(other) || self.is_kin(pid))
                    || self.half(pid, private_field!(role)) == role::LEADER
                    || self.half(pid, private_field!(promotion)) != promotion::NONE
                    || self.has_replayed(other, pid)
            }
        };
        if are_some && !others.all(is_there) {
            return false;
        }
        let is_over = |(id, pid): (GroupId, Pid)| {
            !(self.was_kin(id) || self.is_kin(pid)) || self.has_replayed(id, pid)
        };
        if are_some && !ended.into_iter().all(is_over) {
            return false;
        }
        if !self.files_change_hands(t) {
            return false;
        }
        let groups = &self.groups;
        let lives = |g: GroupId| {
            groups
                .get(&g)
                .is_some_and(|g| g.members[successor].pid.is_some())
        };
        self.running.kin.promote(successor, lives);
        true
    }

    /// What the kin have stored in files that they map comes into the files, which they map from now on. False: one of
    /// them did not stand still.
    fn files_change_hands(&mut self, t: &Takeover) -> bool {
        let successor = t.successor;
        if self.shared.is_empty() {
            return true;
        }
        // (It maps what its parent did when it was forked, and says soon who it is.)
        let is_newborn = |p: &Process| {
            let is_of = p.parent.is_some_and(|(_, replica)| replica == successor);
            is_of && p.group.is_none() && p.birth.fork.is_some()
        };
        if self.processes.values().any(is_newborn) {
            return false;
        }
        let groups = self.groups.values();
        let own: Vec<Pid> = groups.filter_map(|g| g.members[successor].pid).collect();
        let own: Vec<Pid> = own.into_iter().filter(|p| self.is_kin(*p)).collect();
        let mut halted: Vec<Vec<Pid>> = Vec::new();
        for pid in own {
            match self.halt(pid) {
                Ok(Some(threads)) => halted.push(threads),
                _ => break,
            }
        }
        let firsts: Vec<Pid> = halted.iter().filter_map(|t| t.first().copied()).collect();
        let all = self
            .groups
            .values()
            .filter_map(|g| g.members[successor].pid);
        let all = all.filter(|p| self.is_kin(*p)).count();
        let done = match firsts.len() == all {
            true => Some(
                self.mirror_all(t)
                    .and_then(|()| self.map_files(successor, &firsts)),
            ),
            false => None,
        };
        halted.iter().for_each(|threads| self.release(threads));
        match done {
            None => false,
            Some(Ok(())) => true,
            Some(Err(e)) => {
                self.give_up(&format!(
                    "stopped: the lost leader has mapped files (mmap) to be shared and writable, and nobody can \
                     lead in its place: {e:#}; run the program again"
                ));
                false
            }
        }
    }

    /// What the lost leaders' last calls have changed comes into what the successor has of the files.
    fn mirror_all(&self, t: &Takeover) -> Result<()> {
        let others = self.groups.values().filter_map(|g| g.takeover.as_ref());
        let others = others.filter(|o| o.successor == t.successor);
        [t].into_iter()
            .chain(others)
            .try_for_each(|t| self.mirror_last_calls(t))
    }
}
