//! A replica that leads is lost: who is to lead in its place, in each group, and what becomes of its processes.

use super::Takeover;
use crate::journal::Event;
use crate::state::{Group, Monitor, Process};
use crate::whom::group_of;
use geryon_tracee::{Pid, kill};
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Monitor {
    /// The replica leads no more: it is taken out of the run, and a follower takes its place in every
    /// group.
    pub(crate) fn depose(&mut self, replica: usize) {
        // They may stand behind what is cut off.
        self.end_sleepers();
        self.end_replay_of_several();
        self.relax();
        self.let_guests_leave(replica);
        if self.is_dropped(replica) || self.ends_for_shared_files() {
            // What they had to say was that it is lost. (Or nobody can lead in its place.)
            return;
        }
        let Some(successor) = self.successor(replica) else {
            return self.give_up("stopped: nobody is left who could lead");
        };
        self.watch.begin_anew();
        self.running.kin.rests();
        self.doubt_reaped(replica);
        self.unconfine(successor);
        self.replicas[replica].dropped = true;
        self.console.journal.tell(&Event::Dropped { replica });
        // What the program ends itself ends so.
        let ends = |p: &Process| {
            let g = p.group.and_then(|g| self.groups.get(&g));
            g.is_some_and(|g| g.leader == replica && g.ending)
        };
        let pids: Vec<Pid> = self
            .processes
            .iter()
            .filter(|(_, p)| p.replica == replica && (p.group.is_some() || p.parent.is_some()))
            .filter(|(_, p)| !ends(p))
            .map(|(p, _)| *p)
            .collect();
        // (It may be lost before it has made the call, and its successor calls another process so: nobody would end this one.)
        let doomed = |g: &&Group| g.leader == replica && g.ending && g.doomed;
        let doomed = self.groups.values().filter(doomed);
        let doomed: Vec<Pid> = doomed.filter_map(Group::leader_pid).collect();
        let guests = self.guests_of(replica);
        let over_too = self.guests_over(replica, successor);
        let (mut unled, mut over) = (Vec::new(), Vec::new());
        for (id, g) in &mut self.groups {
            let ended = g.members[replica].end.is_some();
            if g.leader == replica && (g.ending || ended) {
                // All that there is to do is in the log.
                continue;
            }
            let former = g.leader_pid().filter(|_| g.leader == replica);
            g.forget(replica);
            g.segment.header().taken_over.store(1, Ordering::SeqCst);
            if g.leader != replica {
                continue;
            }
            g.leader = successor;
            g.parenthood.adopted = true;
            let heir_of = g.descriptors.heir_of.take();
            let h = g.segment.header();
            h.leader.store(successor as u32, Ordering::SeqCst);
            // (Descriptors are the former one's until the successor has fetched them: its agent says so.)
            let Some(former) = former else {
                if let Some(p) = g.members[successor].pid {
                    h.open.leader_pid.store(p as u32, Ordering::SeqCst);
                }
                if let Some(t) = &mut g.takeover {
                    // Its former leader's was to be the one that is lost now, and was never born.
                    t.successor = successor;
                    continue;
                }
                // Its leader was never born: it is led from its birth on.
                unled.push(*id);
                continue;
            };
            if let (None, Some(end)) = (g.members[successor].pid, g.members[successor].end) {
                // The program's process has ended; it was killed on its way out.
                g.leader_gone = Some(Instant::now());
                let group = g.group_to_join().unwrap_or_else(|| group_of(former));
                over.push((*id, end, group, former == self.family.root));
                continue;
            }
            let before = g.takeover.take();
            let guests = guests.get(id).cloned().unwrap_or_default();
            let mut next = Takeover::new(replica, former, guests, successor);
            if let Some(holder) = heir_of {
                next.was_heir_of(holder);
            }
            if let Some(before) = before {
                next.hold(&before);
                next.succeed(before);
            }
            g.takeover = Some(next);
            if former == self.family.root
                && let Some(p) = g.members[successor].pid
            {
                self.family.root = p;
            }
        }
        for id in unled {
            self.answer_early(id);
        }
        for (id, end, group, root) in over {
            if root {
                self.outcome.get_or_insert(end.into());
            }
            // (Its parent may be one of those before it, and has left it to another one.)
            if let Some(name) = self.groups.get(&id).map(|g| g.name) {
                let group = self.shown_group(group);
                self.child_ended_in(name, end, group);
            }
        }
        for (name, end) in over_too {
            self.child_ended(name, end);
        }
        self.family.taken_over = true;
        self.family.deposed.extend(&pids);
        for p in pids {
            self.disown(p);
            kill(p, libc::SIGKILL);
        }
        doomed.into_iter().for_each(|p| kill(p, libc::SIGKILL));
        self.lose_another(successor);
    }
}
