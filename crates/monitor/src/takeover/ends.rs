//! Threads that come to their ends: is their process lost, and who could lead in its place?

use super::Takeover;
use crate::options::OnDivergence;
use crate::state::{End, GroupId, Member, Monitor};
use anyhow::Result;
use geryon_tracee::{Pid, Stopped, kill};
use std::sync::atomic::Ordering;

impl Monitor {
    /// A thread is about to end.
    pub(crate) fn on_exit(&mut self, tid: Pid) -> Result<()> {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return Ok(());
        };
        thread.ends = true;
        let pid = thread.pid;
        let tracee = Stopped(tid);
        let status = tracee.event_message()? as i32;
        let killed = status & 0x7f;
        let end = match killed {
            0 => End::Exited(status >> 8 & 0xff),
            signal => End::Killed(signal),
        };
        self.guest_ends(pid, end);
        self.note_reaped(pid);
        if self.leaves_a_body(tid, pid)? {
            return Ok(());
        }
        if killed != 0 {
            self.note_dying(pid);
            self.newborn_dies(pid, killed);
            self.guest_dies(pid, killed);
            if self.leaves_a_body(tid, pid)? {
                return Ok(());
            }
        }
        let member = self.membership(pid).filter(|(id, replica)| {
            let members = self.groups.get(id).map(|g| &g.members);
            members.is_some_and(|m| m[*replica].pid == Some(pid))
        });
        if killed != 0
            && let Some((id, replica)) = member
            && !self.ends(id)
            && self.outcome.is_none()
            && (self.options.on_divergence != OnDivergence::Stop
                || self.replicas[replica].asked_out)
        {
            if !self.leads(id, replica) {
                // Its memory is freed yet, which may take long: nobody is to wait for that.
                if self.processes[&pid].guest.is_none() {
                    self.lost(id, replica, End::Killed(killed));
                }
                self.recovery.bury(tid, replica);
                return Ok(());
            }
            if !self.has_survivors(id) && !self.is_confirmed_exit(id, pid) {
                return Ok(tracee.let_end()?);
            }
            self.lost(id, replica, End::Killed(killed));
            let regs = tracee.regs()?;
            // (A successor that had not begun to lead leaves nothing: its predecessor is taken over.)
            if let Some(t) = self.groups.get_mut(&id).and_then(|g| g.takeover.as_mut())
                && t.lost.process == pid
            {
                t.lost.bodies.insert(tid, regs);
                return Ok(());
            }
        }
        self.count_events(tid);
        let replica = self.processes.get(&pid).map(|p| p.replica);
        match replica.filter(|_| killed != 0) {
            Some(replica) => self.recovery.bury(tid, replica),
            None => tracee.let_end()?,
        }
        Ok(())
    }

    /// Is the thread, at its end, one of a former leader? It stays there, with its registers.
    fn leaves_a_body(&mut self, tid: Pid, pid: Pid) -> Result<bool> {
        let Some(body) = self.body(pid) else {
            return Ok(false);
        };
        let regs = Stopped(tid).regs()?;
        let group = self.groups.get_mut(&body);
        if let Some(t) = group.and_then(|g| g.takeover.as_mut()) {
            t.lost.bodies.insert(tid, regs);
        }
        Ok(true)
    }

    /// The group whose former leader this process is.
    fn body(&self, pid: Pid) -> Option<GroupId> {
        let is = |t: &Takeover| t.lost.is_of(pid);
        let found = self
            .groups
            .iter()
            .find(|(_, g)| g.takeover.as_ref().is_some_and(is));
        found.map(|(id, _)| *id)
    }

    /// The leader was killed when all its followers had ended by themselves already: the program's
    /// process has ended as they did. The leader is lost nevertheless, if somebody waits for its process:
    /// that one would be told of the kill.
    fn is_confirmed_exit(&mut self, id: GroupId, pid: Pid) -> bool {
        let Some(end) = self.confirmed_exit(id) else {
            return false;
        };
        if pid == self.family.root {
            self.outcome.get_or_insert(end.into());
        }
        pid != self.family.root
    }

    /// The program's leader comes to nothing more when all its followers have ended by themselves already:
    /// then there is nothing left to do but to end, and how is known.
    pub(crate) fn ends_as_agreed(&mut self, id: GroupId) -> bool {
        let leader = self.groups.get(&id).and_then(|g| g.leader_pid());
        let is_over = leader == Some(self.family.root)
            && !self.has_survivors(id)
            && self.confirmed_exit(id).is_some();
        if is_over {
            self.say("all others have ended already, and it ends as they did");
            kill(self.family.root, libc::SIGKILL);
        }
        is_over
    }

    /// How the leader's process is to end, if its followers have come to their ends before it.
    pub(crate) fn confirmed_exit(&self, id: GroupId) -> Option<End> {
        let g = self.groups.get(&id)?;
        let mut ends = g.members.iter().enumerate().filter_map(|(r, m)| {
            let end = m.end.filter(|e| matches!(e, End::Exited(_)))?;
            (r != g.leader && !self.is_dropped(r)).then_some(end)
        });
        ends.next().filter(|_| g.followers().next().is_none())
    }

    /// Could somebody lead in the leader's place, now or as soon as it is born?
    pub(crate) fn has_survivors(&self, id: GroupId) -> bool {
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let alive = g.segment.header().alive.load(Ordering::SeqCst);
        let comes = |(r, m): (usize, &Member)| {
            r != g.leader && alive & (1 << r) != 0 && m.end.is_none() && !self.is_dropped(r)
        };
        g.followers().next().is_some() || g.members.iter().enumerate().any(comes)
    }
}
