//! Ends: what a thread's or a process's end means to its group and to the run.

use super::rpc::answer;
use crate::launch::exec_error;
use crate::options::Outcome;
use crate::state::{End, Family, Group, GroupId, Monitor, Name, Process};
use crate::whom::group_of;
use geryon_tracee::{Pid, Stopped, kill};
use std::time::{Duration, Instant};

impl Family {
    /// Newborn processes whose creator has died before it could tell of them. (They may be heard of when their
    /// creator is gone already, so it is looked again and again.)
    pub(crate) fn end_foundlings(&self) {
        let own = std::process::id().to_string();
        for pid in &self.early {
            let status = geryon_tracee::text(format!("/proc/{pid}/status")).unwrap_or_default();
            let field = |name| status.lines().find_map(|l| l.strip_prefix(name));
            // A thread of a process that lives, whose own parent has ended, is none.
            let is_process = field("Tgid:").is_some_and(|t| t.trim() == pid.to_string());
            if is_process && field("PPid:").is_some_and(|p| p.trim() == own) {
                kill(*pid, libc::SIGKILL);
            }
        }
    }
}

impl Monitor {
    /// A thread has ended, and with the first thread its process.
    pub(super) fn on_end(&mut self, tid: Pid, end: End) {
        self.family.early.remove(&tid);
        self.recovery.unsharing.remove(&tid);
        let Some(thread) = self.threads.remove(&tid) else {
            self.stand_in_ended(tid);
            return;
        };
        if thread.pid != tid {
            if let Some(p) = self.processes.get_mut(&thread.pid) {
                p.threads -= 1;
            }
            return;
        }
        let Some(mut p) = self.processes.remove(&tid) else {
            return;
        };
        self.family.stand_ins.lost(tid);
        self.awaits_its_parent(tid, &p);
        if p.birth.creator.is_some() {
            self.on_stillbirth(&mut p, end);
        }
        self.threads.retain(|_, t| t.pid != tid);
        self.sleeper_ended(tid);
        self.family.end_foundlings();
        if !self.family.retired.is_empty() {
            self.forget_retired();
        }
        match p.group {
            Some(g) if p.guest.is_some() => self.on_guest_end(g, &p, tid, end),
            Some(g) => self.on_member_end(g, p.replica, tid, end),
            None if tid == self.family.root && self.console.exec_pipe.is_some() => {
                self.on_failed_exec()
            }
            None => self.on_root_end(tid, end),
        }
        if let Some((id, _)) = p.parent.and_then(|(id, _)| self.parent_of(id)) {
            self.fewer_children(id);
        }
    }

    /// A leader's child has ended before it could say who it is: nobody could take over from it, but from
    /// its parent, which has not logged that it forked it. Nobody has one: its parent, which waits for its name, makes another.
    fn on_stillbirth(&mut self, p: &mut Process, end: End) {
        if let (Some(member), Some(fork), Some(creator)) = (p.parent, p.birth.fork, p.birth.creator)
            && self.forget_lost_newborn(member, fork)
            && let Ok(mut regs) = Stopped(creator).regs()
        {
            // (If it is gone, its end is heard of next.)
            answer(Stopped(creator), &mut regs, -i64::from(libc::EAGAIN)).ok();
        }
        if let Some((id, replica)) = p.parent
            && self.is_creators(id, replica, p)
            && !self.is_wanted(id, p)
            && !self.is_dropped(replica)
            && self.outcome.is_none()
            && self.has_survivors(id)
        {
            self.lost(id, replica, end);
        }
        Monitor::release_creator(p);
    }

    /// Was the newborn forked by who is the group's member now? (A replica that was taken out has been made
    /// anew, perhaps, before all its processes are gone.)
    fn is_creators(&self, id: GroupId, replica: usize, newborn: &Process) -> bool {
        let creator = newborn.birth.creator.and_then(|tid| self.threads.get(&tid));
        let Some(pid) = creator.map(|t| t.pid) else {
            return false;
        };
        let guest = |p: &Process| p.guest.is_some() && p.group == Some(id);
        let member = self.groups.get(&id).and_then(|g| g.members[replica].pid);
        member == Some(pid) || self.processes.get(&pid).is_some_and(guest)
    }

    /// The program could not be executed: say why.
    fn on_failed_exec(&mut self) {
        let e = self
            .console
            .exec_pipe
            .as_mut()
            .and_then(exec_error)
            .map_or_else(
                || "it died before it could be executed".to_owned(),
                |e| std::io::Error::from_raw_os_error(e).to_string(),
            );
        eprintln!(
            "geryon: {}: cannot be executed: {e}",
            self.options.program.display()
        );
        self.outcome = Some(Outcome::Exited(126));
    }

    /// The run ends as the launched process did, unless there was a verdict before.
    fn on_root_end(&mut self, pid: Pid, end: End) {
        if pid == self.family.root {
            self.outcome.get_or_insert(end.into());
        }
    }

    /// A signal was sent to Geryon: it is for the program's first process, in the leader; who follows hears of it
    /// from the log. When that one has ended it is for all that it has left, which nobody could find otherwise. If
    /// it is a signal that ends, whatever is there and belongs to no leader goes by force: it would end never.
    pub(super) fn signal_program(&self, signal: i32) {
        const ENDS: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
        if self.processes.contains_key(&self.family.root) {
            return kill(self.family.root, signal);
        }
        for pid in self.groups.values().filter_map(Group::leader_pid) {
            kill(pid, signal);
        }
        for (pid, p) in self.processes.iter().filter(|_| ENDS.contains(&signal)) {
            let group = p.group.filter(|_| p.guest.is_none());
            let is_led = |id| {
                let g = self.groups.get(&id).filter(|g| g.leader_pid().is_some());
                g.is_some_and(|g| g.members[p.replica].pid == Some(*pid))
            };
            if group.is_some_and(|id| !is_led(id)) {
                kill(*pid, libc::SIGKILL);
            }
        }
    }

    /// The program's first process has ended, and others that it has left keep the run from ending: after a
    /// while the user is told which, once.
    pub(super) fn tell_outlived(&mut self) {
        const AFTER: Duration = Duration::from_secs(5);
        let Some(Outcome::Exited(_) | Outcome::Killed(_)) = self.outcome else {
            return;
        };
        let (since, told) = *self.family.outlived.get_or_insert((Instant::now(), false));
        if told || since.elapsed() < AFTER {
            return;
        }
        let mut left: Vec<String> = self
            .groups
            .values()
            .filter_map(|g| {
                let name = geryon_tracee::text(format!("/proc/{}/comm", g.leader_pid()?));
                Some(format!("{} ({})", name.ok()?.trim_end(), g.name.shown))
            })
            .collect();
        left.sort();
        if !left.is_empty() {
            self.family.outlived = Some((since, true));
            eprintln!(
                "geryon: the program has ended; the run ends with what it has left running: {}",
                left.join(", ")
            );
        }
    }

    /// A member of a group has ended.
    fn on_member_end(&mut self, id: GroupId, replica: usize, pid: Pid, end: End) {
        if self.leads(id, replica) {
            // Nothing comes any more that sleepers could be woken for.
            self.end_sleepers();
        }
        // (It may have been about to take over, and in no group of the program's yet.)
        let awaited = self.groups.get(&id).and_then(Group::group_to_join);
        let in_group = self.shown_group(awaited.unwrap_or_else(|| group_of(pid)));
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        // One that was taken out before is a member no more.
        let member = g.members[replica].pid == Some(pid);
        if member {
            self.running.kin.ended(id, replica);
            g.members[replica].pid = None;
            g.members[replica].end = Some(end);
        }
        if !member {
        } else if replica == g.leader {
            g.leader_gone = Some(Instant::now());
            if let End::Killed(_) = end {
                g.ending = true;
                for (_, p) in g.living() {
                    kill(p, libc::SIGKILL);
                }
            }
            let name = g.name;
            self.family.note_gone(pid, name.shown);
            self.leave_out_at_end(pid);
            self.on_root_end(pid, end);
            self.child_ended_in(name, end, in_group);
        } else if let End::Killed(_) = end {
            self.lost(id, replica, end);
        }
        // A follower may end before its leader: an exit is confirmed before it happens. That it
        // ended where the leader did not shows as a missing confirmation.
        self.compare_ends(id);
        if let Some(g) = self.groups.get(&id)
            && g.living().next().is_none()
            && g.leader_gone.is_some()
        {
            self.retire(id);
        }
    }

    /// Nobody is left in the group. Children that its members have forked and that have not come to
    /// their own group yet find it by this one.
    pub(super) fn retire(&mut self, id: GroupId) {
        if let Some(group) = self.groups.remove(&id) {
            self.family.retired.insert(id, group);
            self.forget_retired();
        }
    }

    /// Forget the groups whose children have all come, or ended.
    pub(super) fn forget_retired(&mut self) {
        let over: Vec<GroupId> = self
            .family
            .retired
            .iter()
            .filter(|(id, g)| !self.has_newborn(**id) && !self.has_heir(g))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            let Some(mut group) = self.family.retired.remove(&id) else {
                continue;
            };
            if let Some(t) = group.takeover.take() {
                self.family.note_lost(group.name.shown, &t);
                self.end_takeover(&t);
            }
        }
    }

    /// Is a child of the group's processes yet to say who it is?
    fn has_newborn(&self, id: GroupId) -> bool {
        let expected = |p: &Process| p.group.is_none() && p.parent.is_some_and(|m| m.0 == id);
        self.processes.values().any(expected)
    }

    /// Does a child of the group's new leader fetch the descriptors of the former one?
    fn has_heir(&self, g: &Group) -> bool {
        g.takeover.as_ref().is_some_and(|t| self.has_heir_of(t))
    }

    /// A vfork's child has ended without exec.
    fn on_guest_end(&mut self, id: GroupId, guest: &Process, pid: Pid, end: End) {
        let replica = guest.replica;
        let follows = self
            .groups
            .get(&id)
            .is_some_and(|g| g.followers().any(|(r, _)| r == replica));
        let led = self.groups.get(&id).filter(|g| g.leader == replica);
        if let Some(g) = led.filter(|_| !guest.leaving.told) {
            let name = Name::child_of(g.name.shown, guest.shown_as(pid));
            self.child_ended(name, end);
        }
        if matches!(end, End::Killed(_)) && follows && !self.is_dropped(replica) {
            self.lost(id, replica, end);
        }
    }

    /// Once leader and followers are gone: did they end alike?
    fn compare_ends(&mut self, id: GroupId) {
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let Some(End::Exited(a)) = g.members[g.leader].end else {
            return;
        };
        let differs = g.members.iter().enumerate().find_map(|(r, m)| match m.end {
            Some(End::Exited(b)) if b != a && !self.is_dropped(r) => Some((r, b)),
            _ => None,
        });
        if let Some((r, b)) = differs {
            self.diverged_after(id, r, &format!("exited with {b}, the leader with {a}"));
        }
    }
}
