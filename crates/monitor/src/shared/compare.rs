//! What the replicas have stored in the files that a process maps to be shared is compared, before such a
//! mapping goes away or is synchronised, and what is said where it cannot be.

use super::LATER;
use crate::journal::Event;
use crate::objects::{Mapped, Object, mapped};
use crate::state::{End, Member, Monitor};
use geryon_abi::layout::object::compare;
use geryon_tracee::{Pid, kill};
use std::ops::Range;

impl Monitor {
    /// All replicas stand at a call of the leader's thread `caller` that takes mappings away or synchronises
    /// them, see `rpc::COMPARE`.
    pub(crate) fn compare_shared(
        &mut self,
        pid: Pid,
        caller: Pid,
        range: Range<u64>,
        how: u64,
    ) -> i64 {
        let is_compared = self.is_compared(pid, caller, range, how & compare::ALONE != 0);
        if !is_compared {
            if how & compare::LAST == 0 {
                return LATER;
            }
            self.leave_out(
                pid,
                "other threads of the process run meanwhile; use --order serial",
            );
        }
        if how & compare::LEAVES != 0 {
            self.leaves_shared(pid);
        }
        0
    }

    /// A follower has come to its end, see `rpc::ENDS`.
    pub(crate) fn may_end(&self, pid: Pid) -> i64 {
        let group = self.membership(pid).and_then(|(g, _)| self.groups.get(&g));
        let leader = group.filter(|g| !g.ending).and_then(|g| g.leader_pid());
        let objects = &self.shared.objects;
        match leader.is_some_and(|l| objects.iter().any(|o| o.owners.contains(&l) && o.is_open)) {
            true => LATER,
            false => 0,
        }
    }

    /// A process dies of a signal that all replicas got at the same place, in this thread of the leader.
    pub(crate) fn compare_at_crash(&mut self, pid: Pid, caller: Pid) {
        let alone = self.is_serial();
        if !self.is_compared(pid, caller, 0..u64::MAX, alone) {
            self.leave_out(
                pid,
                "it dies of a signal while other threads of the process run",
            );
        }
        self.leaves_shared(pid);
    }

    /// A process dies of a signal from outside, wherever its replicas are.
    pub(crate) fn leave_out_at_signal(&mut self, pid: Pid) {
        self.leave_out(pid, "it is ended by a signal, which may come anywhere");
        self.leaves_shared(pid);
    }

    /// A leader's process has ended: all that it had mapped should have been compared by then.
    pub(crate) fn leave_out_at_end(&mut self, pid: Pid) {
        self.leave_out(pid, "it has ended without a call for that");
        self.leaves_shared(pid);
    }

    /// The user is to know of what nobody has compared: once.
    fn leave_out(&mut self, pid: Pid, why: &str) {
        let mut objects = self.shared.objects.iter();
        let Some(o) = objects.find(|o| o.owners.contains(&pid) && o.is_open) else {
            return;
        };
        let what = format!(
            "what the program has stored in {}, mapped (mmap) to be shared and writable, is not compared: {why}",
            o.name
        );
        if !std::mem::replace(&mut self.shared.is_left_out, true) {
            self.say(&what);
        }
        self.console.journal.tell(&Event::NotCompared { what });
    }

    /// False: other threads run. A difference ends the run.
    fn is_compared(&mut self, pid: Pid, caller: Pid, range: Range<u64>, alone: bool) -> bool {
        let mut objects = self.shared.objects.iter();
        if !objects.any(|o| o.owners.contains(&pid) && o.is_open) {
            return true;
        }
        let before = match alone {
            true => None,
            false => match self.standing(pid, caller) {
                None => return false,
                there => there,
            },
        };
        let difference = self.difference(pid, &range);
        if before.is_some() && self.standing(pid, caller) != before {
            return false;
        }
        if let Some(why) = difference {
            self.give_up(&why);
            // (It stands before the program's call, and must not come to it while all are ended.)
            kill(pid, libc::SIGKILL);
        }
        true
    }

    /// The first difference in what the process maps there of objects, or why it is not known.
    fn difference(&mut self, pid: Pid, range: &Range<u64>) -> Option<String> {
        let (group, leader) = self.membership(pid)?;
        let g = self.groups.get(&group)?;
        // (One that has ended already has stored all that it was to store.)
        let takes_part = |m: &Member| m.pid.is_some() || matches!(m.end, Some(End::Exited(_)));
        let members = g.members.iter().enumerate();
        let others = members.filter(|(r, m)| *r != leader && takes_part(m));
        let others: Vec<usize> = others.map(|m| m.0).collect();
        let touched = |m: &&Mapped| m.start < range.end && range.start < m.start + m.len;
        let all = match mapped(pid) {
            Ok(all) => all,
            Err(e) => {
                return Some(format!(
                    "stopped: what process {pid} maps to be shared and writable cannot be compared: {e}"
                ));
            }
        };
        let objects = &self.shared.objects;
        let of = |m: &Mapped| -> Vec<&Object> {
            let is_it = |o: &&Object| o.owners.contains(&pid) && o.identity.1 == m.inode;
            objects.iter().filter(is_it).collect()
        };
        for m in all.iter().filter(touched) {
            let skipped = range.start.saturating_sub(m.start);
            let bytes = (range.end.min(m.start + m.len) - m.start).saturating_sub(skipped);
            let at = m.offset + skipped;
            for (o, r) in of(m)
                .into_iter()
                .flat_map(|o| others.iter().map(move |r| (o, *r)))
            {
                match o.difference(r, at, bytes) {
                    Ok(None) => {}
                    Err(e) => {
                        return Some(format!(
                            "stopped: {}, mapped to be shared and writable, cannot be compared: {e}",
                            o.name
                        ));
                    }
                    Ok(Some(first)) => {
                        return Some(format!(
                            "stopped: what the leader (replica {}) has stored in {}, mapped to be shared and \
                             writable, differs from what replica {} has stored, first at byte {first}: the \
                             file is not to be trusted",
                            leader + 1,
                            o.name,
                            r + 1
                        ));
                    }
                }
            }
        }
        None
    }
}
