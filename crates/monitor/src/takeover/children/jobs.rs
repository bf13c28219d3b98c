//! Stopping and going on: a new leader stands still where its predecessor did, and its parent hears of that.

use super::look_again;
use crate::state::{GroupId, Monitor};
use geryon_tracee::{Pid, kill};

impl Monitor {
    /// A leader's process was stopped by a signal, or (None) goes on.
    pub(crate) fn job_changes(&mut self, pid: Pid, stopped_by: Option<i32>) {
        let Some((id, replica)) = self.membership(pid) else {
            return;
        };
        if !self.leads(id, replica) {
            return;
        }
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        let is_news = g.job.changes(stopped_by);
        if is_news {
            self.tell_of_job(id);
        }
    }

    /// A leader's process was sent a SIGCONT. (It may not have been stopped yet as its predecessor was, or was to be: then
    /// it tells of nothing else.)
    pub(crate) fn job_is_let_go_on(&mut self, id: GroupId) {
        if self
            .groups
            .get_mut(&id)
            .is_some_and(|g| g.job.is_let_go_on())
        {
            self.tell_of_job(id);
        }
    }

    /// Its parent may wait for that.
    fn tell_of_job(&self, id: GroupId) {
        let parent = self.groups.get(&id).map_or(0, |g| g.name.parent);
        let mut all = self.groups.values();
        let parent = all.find(|g| g.parenthood.adopted && parent != 0 && g.name.shown == parent);
        if let Some(parent) = parent {
            look_again(parent);
        }
    }

    /// The group has a new leader: it stands still if the former one did.
    pub(in crate::takeover) fn goes_on_stopped(&mut self, id: GroupId) {
        match self.take_job_letter(id) {
            Some(libc::SIGCONT) => self.job_is_let_go_on(id),
            Some(signal) => {
                if let Some(g) = self.groups.get_mut(&id) {
                    g.job.stops_later(signal);
                }
            }
            None => {}
        }
        if let Some(g) = self.groups.get_mut(&id)
            && let Some(signal) = g.job.is_to_stop()
            && let Some(pid) = g.leader_pid()
        {
            match crate::signals::stops(pid, signal) {
                true => kill(pid, signal),
                false => g.job.does_not_stop(),
            }
        }
    }
}
