//! Process groups of processes that take over: which one each enters, and which ones the program means meanwhile.

use super::Takeover;
use crate::jobs::{Led, NONE, is_there, session_of};
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
        let is_heir = g.is_some_and(|g| g.descriptors.heir_of.is_some());
        if g.and_then(|g| g.takeover.as_ref())
            .is_some_and(Takeover::is_in_group)
        {
            // The program has put it into one meanwhile.
            return 0;
        }
        let is_apart = session_of(former) != session_of(pid);
        let kept = g.and_then(Group::group_to_join);
        let (from, now) = (kept.unwrap_or_else(|| group_of(former)), group_of(pid));
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
            self.family.jobs.goes_on(to, shown);
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
        let group = process.and_then(Group::process_group);
        group.map_or(0, |group| self.shown_group(group))
    }

    /// What the program calls a group: by default as the process that has made it.
    pub(crate) fn shown_group(&self, group: Pid) -> Pid {
        let mut groups = self.groups.values();
        let mut made = || groups.find(|g| g.living().any(|(_, p)| p == group));
        let noted = self.family.jobs.shown(group);
        noted
            .or_else(|| made().map(|g| g.name.shown))
            .or_else(|| self.shown_before(group))
            .unwrap_or(group)
    }

    /// Which group that is to the kernel. Where nobody leads who is in it, but followers or what is left of lost
    /// replicas are, one that is none.
    pub(crate) fn actual_group(&self, shown: Pid) -> Pid {
        let mut groups = self.groups.values();
        let noted = self.family.jobs.actual(shown);
        let made = || {
            let named = groups.find(|g| g.name.shown == shown);
            named.and_then(Group::leader_pid).filter(|p| is_there(*p))
        };
        let actual = noted.or_else(made).unwrap_or(shown);
        let is_in = |p: &Pid| group_of(*p) == actual;
        let leads = |g: &Group| g.process_group() == Some(actual);
        let leads_soon = |(pid, p): (&Pid, &Process)| self.is_led_from_birth(p) && is_in(pid);
        let is_there = self.groups.values().any(leads) || self.processes.iter().any(leads_soon);
        let unreaped = || self.family.jobs.unreaped().filter(|(pid, _)| is_in(pid));
        let is_awaited = |led: Option<Led>| led.is_some_and(|led| self.is_awaited(led));
        if is_there || unreaped().any(|(_, led)| is_awaited(*led)) {
            return actual;
        }
        let mut ours = self.processes.keys().chain(&self.family.deposed);
        match unreaped().next().is_some() || ours.any(is_in) {
            true => NONE,
            false => actual,
        }
    }

    /// Is it a leader's child that has yet to say who it is? (It is in none of the program's processes till then.)
    fn is_led_from_birth(&self, p: &Process) -> bool {
        let maker = p.parent.filter(|_| p.group.is_none());
        maker.is_some_and(|(id, replica)| self.leads(id, replica))
    }

    /// A process has ended, and is in its group until its parent has waited for it.
    pub(crate) fn awaits_its_parent(&mut self, pid: Pid, p: &Process) {
        if self.is_led_from_birth(p) {
            return;
        }
        let group = p.group.and_then(|id| self.groups.get(&id));
        let led = group.filter(|g| g.leader == p.replica);
        let name = |g: &Group| match p.guest {
            // (A vfork's child is in its parent's.)
            Some(_) => (p.shown_as(pid), g.name.shown),
            None => (g.name.shown, g.name.parent),
        };
        self.family.jobs.awaits_its_parent(pid, led.map(name));
    }
}

impl Group {
    /// The process group that the program's process is in: its leader's, or of the one in whose place that leads.
    pub(crate) fn process_group(&self) -> Option<Pid> {
        let leader = self.leader_pid();
        leader.map(|leader| self.group_to_join().unwrap_or_else(|| group_of(leader)))
    }

    /// The process group that its next leader has yet to join.
    pub(crate) fn group_to_join(&self) -> Option<Pid> {
        self.takeover.as_ref().and_then(Takeover::group)
    }
}
