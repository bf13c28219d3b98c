//! Process groups of processes that take over: which one each enters, and which ones the program means meanwhile.

use super::Takeover;
use crate::jobs::{NONE, is_there, session_of};
use crate::state::{Group, GroupId, Monitor, Process};
use crate::whom::group_of;
use geryon_tracee::Pid;

impl Monitor {
    /// A process is about to lead in place of another one: the group that it is to enter; 0: none.
    pub(crate) fn joins(&mut self, pid: Pid) -> Pid {
        let Some(former) = self.former(pid) else {
            return 0;
        };
        let own: Option<GroupId> = self.membership(pid).map(|(id, _)| id);
        let g = own.and_then(|id| self.groups.get(&id));
        let is_heir = g.is_some_and(|g| g.heir_of.is_some());
        if g.and_then(|g| g.takeover.as_ref())
            .is_some_and(Takeover::is_in_group)
        {
            // The program has put it into one meanwhile.
            return 0;
        }
        let is_apart = session_of(former) != session_of(pid);
        let (from, now) = (group_of(former), group_of(pid));
        let ours = group_of(std::process::id() as Pid);
        if is_heir && now != ours {
            // So was one that leads from its birth on, or it has inherited it.
            return 0;
        }
        let to = if is_apart { now } else { from };
        if from <= 0 || to <= 0 {
            return 0;
        }
        if from == ours || to != ours {
            let shown = self.shown_group(from);
            self.jobs.goes_on(to, shown);
        }
        if is_apart || from == now {
            self.moved(pid, 0);
            return 0;
        }
        from
    }

    /// Is a process in another session than its leader is, or than the lost one was?
    pub(crate) fn is_apart(&self, pid: Pid) -> bool {
        let own = self.membership(pid);
        let Some(g) = own.and_then(|(id, _)| self.groups.get(&id)) else {
            return false;
        };
        let session = match &g.takeover {
            Some(t) => t.session(),
            None => g.leader_pid().map_or(-1, session_of),
        };
        session >= 0 && session != session_of(pid)
    }

    /// A process is in the group that it was to enter, or the program has put it into one.
    pub(crate) fn moved(&mut self, pid: Pid, id: Pid) {
        let own = self.membership(pid).map(|(id, _)| id);
        for (group, g) in &mut self.groups {
            if g.name.shown == id || (id == 0 && Some(*group) == own) {
                g.takeover.iter_mut().for_each(Takeover::joins);
            }
        }
    }

    /// What the program calls the group of a process that it calls `id`; 0: there is none.
    pub(crate) fn shown_group_of(&self, id: Pid) -> Pid {
        let mut groups = self.groups.values();
        let process = groups.find(|g| g.name.shown == id);
        let process = process.and_then(Group::in_group_of);
        process.map_or(0, |p| self.shown_group(group_of(p)))
    }

    /// What the program calls a group: by default as the process that has made it.
    pub(crate) fn shown_group(&self, group: Pid) -> Pid {
        let mut groups = self.groups.values();
        let mut made = || groups.find(|g| g.living().any(|(_, p)| p == group));
        let noted = self.jobs.shown(group);
        noted
            .or_else(|| made().map(|g| g.name.shown))
            .or_else(|| self.shown_before(group))
            .unwrap_or(group)
    }

    /// Which group that is to the kernel. Where nobody leads who is in it, but followers or what is left of lost
    /// replicas are, one that is none.
    pub(crate) fn actual_group(&self, shown: Pid) -> Pid {
        let mut groups = self.groups.values();
        let noted = self.jobs.actual(shown);
        let made = || {
            let named = groups.find(|g| g.name.shown == shown);
            named.and_then(Group::leader_pid).filter(|p| is_there(*p))
        };
        let actual = noted.or_else(made).unwrap_or(shown);
        let is_in = |p: &Pid| group_of(*p) == actual;
        let leads = |g: &Group| g.in_group_of().is_some_and(|p| is_in(&p));
        // (Who has not said yet who it is is in none of the program's processes.)
        let leads_soon = |(pid, p): (&Pid, &Process)| {
            let maker = p.parent.filter(|_| p.group.is_none());
            maker.is_some_and(|(id, replica)| self.leads(id, replica)) && is_in(pid)
        };
        let is_there = self.groups.values().any(leads) || self.processes.iter().any(leads_soon);
        let mut ours = self.processes.keys().chain(&self.deposed);
        match !is_there && ours.any(is_in) {
            true => NONE,
            false => actual,
        }
    }
}

impl Group {
    /// Its leader, or in whose place that leads: whose process group is the program's.
    pub(crate) fn in_group_of(&self) -> Option<Pid> {
        let before = self.takeover.as_ref().and_then(Takeover::whose_group);
        self.leader_pid().map(|leader| before.unwrap_or(leader))
    }
}
