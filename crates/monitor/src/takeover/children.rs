//! Children of a process that goes on in another replica: the kernel knows others as its children
//! than the program does. Who has ended, and whom that is told, is known here.

mod jobs;
mod news;

use crate::jobs::Led;
use crate::private_field;
use crate::state::{Asker, End, Family, Group, GroupId, Monitor, Name, made_as_clone};
use crate::whom::group_of;
use anyhow::Result;
use geryon_abi::layout::{MAX_THREADS, Reap, reap};
use geryon_tracee::{Pid, state};
use std::mem::offset_of;
use std::sync::atomic::Ordering;

/// What [`Reap::which`] says.
const OF_PROCESS: u64 = 1;
const OF_GROUP: u64 = 2;
/// Beyond so many, those are forgotten that were waited for.
const MANY: usize = 256;

/// A process of the program that has ended, and that its parent has not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    name: Name,
    end: End,
    /// The process group that it was in, as the program calls it; 0: not known.
    group: Pid,
    /// Its parent was told by a signal.
    told: bool,
    reaped: Reaped,
}

/// Has a leader waited for a child that has ended? If it is lost, whether the log says so is yet to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaped {
    No,
    /// Its kernel has given it to a wait, or to nobody.
    ByKernel,
    /// It was told here.
    Here,
}

impl Ended {
    fn is_reaped(&self) -> bool {
        self.reaped != Reaped::No
    }

    /// As wait4 shows it.
    fn status(&self) -> u64 {
        match self.end {
            End::Exited(code) => ((code & 0xff) << 8) as u64,
            End::Killed(signal) => signal as u64,
        }
    }

    /// The signal's siginfo.
    fn siginfo(&self) -> [u64; 16] {
        let pair = |low: i32, high: i32| u64::from(low as u32) | u64::from(high as u32) << 32;
        let (code, value) = match self.end {
            End::Exited(c) => (libc::CLD_EXITED, c & 0xff),
            End::Killed(s) => (libc::CLD_KILLED, s),
        };
        let mut info = [0; 16];
        info[0] = pair(libc::SIGCHLD, 0);
        info[1] = pair(code, 0);
        info[2] = pair(self.name.shown, 0);
        info[3] = pair(value, 0);
        info
    }
}

impl Family {
    /// Which of its children has the kernel given to a wait of this process, or to nobody? (Of an orphan the log says
    /// whether it was waited for: `orphan_reaped`.)
    fn ask_kernel(&mut self, own: Pid) {
        let of_it = |e: &&mut Ended| e.name.parent == own && !e.name.is_orphan && !e.is_reaped();
        for e in self.ended.iter_mut().filter(of_it) {
            if !is_there(e.name.shown) {
                e.reaped = Reaped::ByKernel;
            }
        }
    }
}

impl Monitor {
    /// A process of the program has ended.
    pub(crate) fn child_ended(&mut self, name: Name, end: End) {
        self.child_ended_in(name, end, 0);
    }

    /// The same, of this process group as the program calls it; 0: that is not known.
    pub(crate) fn child_ended_in(&mut self, name: Name, end: End, group: Pid) {
        self.tell_orphans(name.shown);
        self.leave_orphans(name);
        if self.family.ended.len() > MANY && !self.family.taken_over {
            self.family.ended.retain(|e| is_there(e.name.shown));
        }
        let is_parent = |(_, g): &(&GroupId, &Group)| g.name.shown == name.parent;
        let parent = self.groups.iter().find(is_parent);
        let Some((id, parent)) = parent.filter(|_| name.parent != 0) else {
            return;
        };
        let (id, first) = (*id, parent.living().next());
        let asked = parent.leader_pid().or(first.map(|(_, pid)| pid));
        if !name.is_clone && asked.is_some_and(|pid| self.discards(pid)) {
            // Nobody waits for it, but who waits for others may find that there is none left.
            self.fewer_children(id);
            return;
        }
        self.family.ended.push(Ended {
            name,
            end,
            group,
            told: false,
            reaped: Reaped::No,
        });
        if let Some(parent) = self.groups.get(&id).filter(|g| g.parenthood.adopted) {
            look_again(parent);
            // (Another signal than SIGCHLD is the kernel's to send.)
            if let Some(p) = parent.leader_pid().filter(|_| !name.is_clone) {
                self.send_child_signal(p);
            }
        }
    }

    /// A process of the program has ended: who has its children now?
    fn leave_orphans(&mut self, of: Name) {
        let has_left = |name: &Name| name.parent == of.shown;
        let ended = self.family.ended.iter().any(|e| has_left(&e.name));
        if !ended && !self.groups.values().any(|g| has_left(&g.name)) {
            return;
        }
        let Some(id) = self.reaper(of.parent) else {
            return;
        };
        let Some((reaper, asked)) = self.groups.get(&id).map(|g| (g.name.shown, g.leader_pid()))
        else {
            return;
        };
        let left = |name: &mut Name| {
            name.parent = reaper;
            name.is_orphan = true;
            name.is_clone = false;
        };
        for g in self.groups.values_mut().filter(|g| has_left(&g.name)) {
            left(&mut g.name);
            // (Its parent is not the kernel's.)
            g.segment.header().taken_over.store(1, Ordering::SeqCst);
        }
        let discards = asked.is_some_and(|pid| self.discards(pid));
        self.family
            .ended
            .retain(|e| !has_left(&e.name) || !discards && !e.is_reaped());
        let mut is_news = false;
        for e in self.family.ended.iter_mut().filter(|e| has_left(&e.name)) {
            left(&mut e.name);
            e.told = false;
            is_news = true;
        }
        if let Some(g) = self.groups.get(&id).filter(|g| g.parenthood.adopted) {
            look_again(g);
            if let Some(pid) = g.leader_pid().filter(|_| is_news) {
                self.send_child_signal(pid);
            }
        }
    }

    /// A leader that its kernel answers is about to end: for whom has it waited? (What it leaves another one may have waited
    /// for when its end is heard of.)
    pub(super) fn note_reaped(&mut self, pid: Pid) {
        let own = self.membership(pid).and_then(|(id, replica)| {
            let g = self.groups.get(&id)?;
            (g.leader == replica && !g.parenthood.adopted).then_some(g.name.shown)
        });
        if let Some(own) = own {
            self.family.ask_kernel(own);
        }
    }

    /// Has no wait of the program's found this process yet, which has ended, and whose own is a zombie?
    pub(super) fn is_awaited(&self, (shown, parent): Led) -> bool {
        let mut ended = self.family.ended.iter().rev();
        match ended.find(|e| e.name.shown == shown) {
            Some(e) => !e.is_reaped(),
            // The kernel answers its parent's waits, or it is forgotten, as it has been found.
            None => {
                let mut all = self.groups.values();
                all.any(|g| g.name.shown == parent && !g.parenthood.adopted)
            }
        }
    }

    /// From now on the process is told here who of its children has ended.
    pub(crate) fn adopt(&mut self, id: GroupId) {
        let Some(g) = self.groups.get_mut(&id).filter(|g| !g.parenthood.adopted) else {
            return;
        };
        g.parenthood.adopted = true;
        let own = g.name.shown;
        self.family.ask_kernel(own);
        if let Some(g) = self.groups.get(&id) {
            look_again(g);
        }
    }

    /// The process is about to have another program, which has the children of the one before. That one has not made them.
    pub(crate) fn keeps_children(&mut self, id: GroupId, pid: Pid) {
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let (own, adopted, reaps_orphans) = (
            g.name.shown,
            g.parenthood.adopted,
            g.parenthood.reaps_orphans,
        );
        if !adopted {
            self.family.ask_kernel(own);
        }
        self.family
            .ended
            .retain(|e| e.name.parent != own || !e.is_reaped());
        let living = self.groups.values_mut().map(|g| &mut g.name);
        let ended = self.family.ended.iter_mut().map(|e| &mut e.name);
        for name in living.chain(ended).filter(|n| n.parent == own) {
            name.is_orphan = true;
        }
        if let Some(p) = self.processes.get_mut(&pid) {
            p.adopted = adopted;
            p.reaps_orphans = reaps_orphans;
        }
    }

    /// This child, which its parent has not made in this program, was waited for, and the log says so.
    pub(crate) fn orphan_reaped(&mut self, pid: Pid, child: Pid) {
        let own = self
            .membership(pid)
            .and_then(|(id, _)| self.groups.get(&id));
        let own = own.map(|g| g.name.shown);
        let is = |e: &Ended| e.name.shown == child && Some(e.name.parent) == own;
        self.family.ended.retain(|e| !is(e));
    }

    /// Does the process not want to hear of its children's ends?
    fn discards(&mut self, pid: Pid) -> bool {
        let mut said = [0; 4];
        let known = self
            .memory(pid)
            .map(|m| m.read(private_field!(discards), &mut said));
        // (One that has executed another program meanwhile may ignore them since before.)
        matches!(known, Ok(Ok(()))) && said != [0; 4] || crate::signals::ignores(pid, libc::SIGCHLD)
    }

    /// A process is gone that was forked in this group: perhaps there is none left to wait for.
    pub(crate) fn fewer_children(&self, id: GroupId) {
        if let Some(g) = self.groups.get(&id).filter(|g| g.parenthood.adopted) {
            look_again(g);
        }
    }

    /// A leader is lost: which of its processes' children had been waited for, its kernel knows. It may
    /// have been told in a call that was not logged.
    pub(super) fn doubt_reaped(&mut self, replica: usize) {
        let led = self.groups.values();
        let led = led.filter(|g| g.leader == replica && !g.parenthood.adopted);
        let led: Vec<Pid> = led.map(|g| g.name.shown).collect();
        for own in led {
            self.family.ask_kernel(own);
        }
        // (An answer that was given here may not be in the log.)
        let led = |own| {
            let mut all = self.groups.values();
            all.any(|g| g.leader == replica && g.name.shown == own)
        };
        for e in self.family.ended.iter_mut().filter(|e| e.name.is_orphan) {
            if led(e.name.parent) {
                e.reaped = Reaped::No;
            }
        }
    }

    /// By all that was logged, the successor has not waited for this child. (Nor has it for one of whose end the program
    /// wanted to hear nothing, or that the kernel has given to a wait without a place to say so: there is no such
    /// wait under way, and that one is gone. Whom a former leader was told of here the log would name.)
    pub(crate) fn is_unreaped(&mut self, pid: Pid, child: Pid) {
        let own = self
            .membership(pid)
            .and_then(|(id, _)| self.groups.get(&id));
        let Some(own) = own else {
            return;
        };
        let takeover = own.takeover.as_ref();
        let may_be_told = takeover.is_none_or(|t| t.may_have_reaped(child));
        let parent = own.name.shown;
        let is_it = |name: &Name| (name.parent, name.shown) == (parent, child);
        for e in self.family.ended.iter_mut().filter(|e| is_it(&e.name)) {
            if e.reaped == Reaped::Here || may_be_told {
                e.reaped = Reaped::No;
            }
        }
    }

    /// The group has a new leader, which has said for whom it has not waited.
    pub(super) fn forget_reaped(&mut self, id: GroupId) {
        if let Some(own) = self.groups.get(&id).map(|g| g.name.shown) {
            let over = |e: &Ended| e.is_reaped() && !e.name.is_orphan && e.name.parent == own;
            self.family.ended.retain(|e| !over(e));
        }
    }

    /// Does a process that has ended in a former leader still follow in this replica, before a fork whose child is to be
    /// left to this group's?
    fn has_orphan_to_come(&self, id: GroupId, replica: usize) -> bool {
        let is_to_fork = |g: &Group| {
            let known =
                |fork: &u64| g.forks.names.contains_key(fork) || g.forks.stillborn.contains(fork);
            let is_made = |fork: u64| g.forks.births[replica].has(fork);
            let mut made = g.forks.births.iter().flat_map(|b| b.all());
            made.any(|fork| !is_made(fork) && !known(&fork))
        };
        let mut all = self.groups.values();
        all.any(|g| {
            g.leader_gone.is_some()
                && g.members[replica].pid.is_some()
                && is_to_fork(g)
                && self.reaper(g.name.parent) == Some(id)
        })
    }

    /// The leader's thread in this slot, which waits.
    fn asker(&self, id: GroupId, slot: u64) -> Option<Asker> {
        let slot = usize::try_from(slot).ok().filter(|s| *s < MAX_THREADS)?;
        let head = &self.groups.get(&id)?.segment.ring(slot).head;
        Some(Asker {
            id,
            slot,
            head: head.load(Ordering::SeqCst),
        })
    }

    /// The child that has ended and that the agent asks for.
    pub(crate) fn reap_for(&mut self, pid: Pid, at: u64, slot: u64) -> Result<i64> {
        let Some((id, replica)) = self.membership(pid) else {
            return Ok(-i64::from(libc::ECHILD));
        };
        let Some(own) = self.groups.get(&id).map(|g| g.name.shown) else {
            return Ok(-i64::from(libc::ECHILD));
        };
        let m = self.memory(pid)?;
        let words = m.words::<3>(at)?;
        let asked = words[2];
        if asked & reap::DISCARDS != 0 {
            self.family
                .ended
                .retain(|e| e.name.parent != own || e.name.is_clone);
        }
        let of_group = match (words[0], words[1]) {
            (OF_GROUP, 0) => self.shown_group(group_of(pid)),
            (OF_GROUP, group) => group as Pid,
            _ => 0,
        };
        let is_kind =
            |is_clone: bool| asked & reap::ALL != 0 || is_clone == (asked & reap::CLONES != 0);
        let wanted = |name: &Name, group: Pid| {
            name.parent == own
                && is_kind(name.is_clone)
                && match words[0] {
                    OF_PROCESS => name.shown as u64 == words[1],
                    // (In which one it is may not be known.)
                    OF_GROUP => group <= 0 || group == of_group || name.shown == of_group,
                    _ => true,
                }
        };
        let found =
            |e: &Ended| asked & reap::ENDED != 0 && !e.is_reaped() && wanted(&e.name, e.group);
        if let Some(i) = self.family.ended.iter().position(found) {
            let e = self.family.ended[i];
            if asked & reap::KEEPS == 0 {
                // Kept as long as the wait may be lost with its leader before it is logged.
                self.family.ended[i].reaped = Reaped::Here;
                let reaped = |e: &Ended| e.is_reaped() && e.name.parent == own;
                if self.family.ended.iter().filter(|e| reaped(e)).count() > MANY
                    && let Some(oldest) = self.family.ended.iter().position(reaped)
                {
                    self.family.ended.remove(oldest);
                }
            }
            let m = self.memory(pid)?;
            m.set_word(at.wrapping_add(offset_of!(Reap, status) as u64), e.status())?;
            return Ok(i64::from(e.name.shown));
        }
        let is_asked = |m: &Monitor, g: &Group| {
            let group = match words[0] {
                OF_GROUP => m.shown_group_of(g.name.shown),
                _ => 0,
            };
            wanted(&g.name, group)
        };
        let all = self.groups.iter().filter(|(_, g)| is_asked(self, g));
        let children: Vec<GroupId> = all.map(|(id, _)| *id).collect();
        let Some(asker) = self.asker(id, slot) else {
            return Ok(-i64::from(libc::ECHILD));
        };
        if asked & reap::TOLD != 0 {
            let [_, _, _, status] = self.memory(pid)?.words::<4>(at)?;
            let child = children.first().and_then(|id| self.groups.get_mut(id));
            match (child, status) {
                (None, _) => {}
                // (It has no place to say of which kind it was.)
                (Some(g), 0) => drop(g.job.tell(asked, asker)),
                (Some(g), status) => g.job.was_told(status, asker),
            }
            return Ok(0);
        }
        let job = |id| {
            let g = self.groups.get_mut(id)?;
            Some((g.name.shown, g.job.tell(asked, asker)?))
        };
        if let Some((child, status)) = children.iter().find_map(job) {
            let m = self.memory(pid)?;
            m.set_word(at.wrapping_add(offset_of!(Reap, status) as u64), status)?;
            return Ok(i64::from(child));
        }
        // (Who is an orphan may be yet to be born: the process that makes it still follows.)
        let is_there = |g: &Group| {
            let has_come = g.living().next().is_some() || !g.forks.early.is_empty();
            g.leader_gone.is_none() && (has_come || g.name.is_orphan)
        };
        let mut living = children.iter().filter_map(|id| self.groups.get(id));
        let lives = living.any(is_there)
            || self.processes.iter().any(|(pid, p)| {
                // A child that has not said who it is, or a vfork's, whose parent goes on before its
                // exec is told. (Not one that has come to its end, of which it has been told; and its own: a
                // follower may still have such a one.)
                let parent = p.parent.filter(|(_, r)| *r == replica);
                let parent = parent.and_then(|(of, _)| self.parent_of(of));
                let is_own = parent.is_some_and(|(of, _)| of == id);
                let runs = self.threads.get(pid).is_some_and(|t| !t.ends);
                let comes = p.group.is_none() || p.guest.is_some() && runs;
                comes && is_own && is_kind(made_as_clone(*pid))
            })
            || is_kind(false) && self.has_orphan_to_come(id, replica);
        Ok(if lives { 0 } else { -i64::from(libc::ECHILD) })
    }
}

/// Whoever waits for a child there looks again.
fn look_again(g: &Group) {
    let events = &g.segment.header().child_events;
    events.fetch_add(1, Ordering::SeqCst);
    crate::segment::wake_half(events);
}

/// Has nobody waited for it? (It is a zombie, or about to be one.)
fn is_there(pid: Pid) -> bool {
    !matches!(state(pid), None | Some('X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: End) -> Ended {
        Ended {
            name: Name::child_of(3, 7),
            end,
            group: 0,
            told: false,
            reaped: Reaped::No,
        }
    }

    #[test]
    fn a_status_is_as_the_kernel_shows_it() {
        assert_eq!(ended(End::Exited(3)).status(), 0x300);
        assert_eq!(ended(End::Killed(9)).status(), 9);
    }

    #[test]
    fn the_signal_names_the_child() {
        let info = ended(End::Exited(3)).siginfo();
        assert_eq!(info[0] as i32, libc::SIGCHLD);
        assert_eq!(info[1] as i32, libc::CLD_EXITED);
        assert_eq!(info[2] as i32, 7);
        assert_eq!(info[3] as i32, 3);
    }
}
