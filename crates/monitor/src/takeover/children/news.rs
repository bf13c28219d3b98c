//! SIGCHLD of a process that goes on in another replica: what it says, and of which children it has spoken already.

use super::{Ended, Reaped};
use crate::state::{GroupId, Monitor};
use geryon_tracee::{Pid, Queue, Siginfo, Stopped, kill};

impl Monitor {
    /// An adopted process is sent a SIGCHLD: one of the program's children has ended.
    pub(in crate::takeover) fn send_child_signal(&mut self, pid: Pid) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.pending.child_signal = true;
        }
        kill(pid, libc::SIGCHLD);
    }

    /// The siginfo of a SIGCHLD that has come to an adopted process's thread; None: it is none of the
    /// program's. (Where the kernel's own, of a child that the program does not know, is pending already, it
    /// keeps that one and drops ours: then that is ours.)
    pub(crate) fn child_signal(
        &mut self,
        tid: Pid,
        pid: Pid,
        info: &[u64; 16],
    ) -> Option<[u64; 16]> {
        let ours = std::process::id();
        if matches!(info[1] as i32, libc::CLD_STOPPED | libc::CLD_CONTINUED) {
            // Of a child that is one to the kernel, too. (It has asked whether this is wanted.)
            let (id, replica) = self.membership(info[2] as u32 as Pid)?;
            let g = self.groups.get(&id).filter(|g| g.leader == replica)?;
            let own = self
                .membership(pid)
                .and_then(|(id, _)| self.groups.get(&id))?;
            let is_child = g.name.parent == own.name.shown;
            return is_child.then(|| crate::signals::with_sender(*info, g.name.shown));
        }
        if info[1] as i32 <= 0 && info[2] as u32 != ours {
            // The program, or another process, has sent it.
            let waiting = Stopped(tid).queued(Queue::Process).unwrap_or_default();
            let is_ours = |i: &Siginfo| i[0] as i32 == libc::SIGCHLD && i[2] as u32 == ours;
            let process = self.processes.get_mut(&pid)?;
            if process.pending.child_signal && !waiting.iter().any(is_ours) {
                // Ours was dropped since that one was pending, as the kernel's own would have been.
                process.pending.child_signal = false;
                process.pending.child_owed = None;
                let own = self
                    .membership(pid)
                    .and_then(|(id, _)| self.groups.get(&id));
                if let Some(own) = own.map(|g| g.name.shown) {
                    self.tell_of_all(own);
                }
            }
            return Some(self.as_known(*info));
        }
        let from = info[2] as u32;
        let (id, _) = self.membership(pid)?;
        let shown = self.groups.get(&id)?.name.shown;
        let process = self.processes.get_mut(&pid)?;
        let sent = std::mem::take(&mut process.pending.child_signal);
        if from != ours && !sent {
            return None;
        }
        if let Some(info) = process.pending.child_owed.take() {
            self.tell_of_all(shown);
            return Some(info);
        }
        let info = self.news_of_children(shown)?;
        self.tell_of_all(shown);
        Some(info)
    }

    /// What a SIGCHLD would say to this process now; None: it has been told all. (A wait takes the child and leaves the
    /// signal. Of one whom a former leader's kernel has given to a wait, that kernel's queue says whether the signal came.)
    pub(in crate::takeover) fn news_of_children(&self, own: Pid) -> Option<Siginfo> {
        let mut all = self.family.ended.iter();
        let tells = |e: &Ended| e.name.parent == own && !e.name.is_clone;
        let is_news = |e: &&Ended| !e.told && e.reaped != Reaped::ByKernel && tells(e);
        all.rfind(is_news).map(Ended::siginfo)
    }

    /// Does this siginfo, which a wait of a former leader's has taken, name a child as the program knows it? (The first leader's
    /// kernel knows no other ones.)
    pub(in crate::takeover) fn speaks_of_child(&self, id: GroupId, info: &Siginfo) -> bool {
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let child = info[2] as u32 as Pid;
        let is_it = |e: &Ended| e.name.parent == g.name.shown && e.name.shown == child;
        info[1] as i32 > 0 && (g.parenthood.given_by_first || self.family.ended.iter().any(is_it))
    }

    /// A SIGCHLD of the kernel's has come to a leader: it speaks of all who have ended until then.
    pub(crate) fn child_signal_came(&mut self, id: GroupId, info: &[u64; 16]) {
        let of_child = info[0] as i32 == libc::SIGCHLD && info[1] as i32 > 0;
        let own = self.groups.get(&id).map(|g| g.name.shown);
        if let Some(own) = own.filter(|_| of_child) {
            self.tell_of_all(own);
        }
    }

    /// Of all its children that have ended.
    pub(in crate::takeover) fn tell_of_all(&mut self, own: Pid) {
        for e in self
            .family
            .ended
            .iter_mut()
            .filter(|e| e.name.parent == own)
        {
            e.told = true;
        }
    }

    /// The signal that was to tell of this child has reached nobody.
    pub(in crate::takeover) fn child_untold(&mut self, child: Pid) {
        for e in self
            .family
            .ended
            .iter_mut()
            .filter(|e| e.name.shown == child)
        {
            e.told = false;
        }
    }
}
