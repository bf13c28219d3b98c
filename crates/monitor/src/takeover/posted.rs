//! Signals that processes of the program have sent one another: a leader tells of each before it sends it, and it is
//! kept until the receiver's leader has been stopped for it, or says that it has taken it. Both are lost together. The
//! successor of the receiver is sent what was sent and has not come; the sender's successor makes a call that was not
//! made yet, and tells of it again. (A thread of another process's is not told from its process.)

use super::Takeover;
use super::signals::Waiting;
use super::stage::Stage;
use super::untold::sent_by;
use crate::block_field;
use crate::signals::{bit, is_stop};
use crate::state::{Group, GroupId, Monitor};
use geryon_abi::layout::{block_address, flight};
use geryon_abi::point::FaultPoint;
use geryon_tracee::Pid;
use std::sync::atomic::Ordering;

/// Of the signals beyond these nothing is told.
const LAST: u64 = 31;

/// One of them, and one of those that are to get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Letter {
    /// The sender's group, and its thread's slot.
    from: (GroupId, u32),
    to: GroupId,
    signal: i32,
    /// What the program calls the sender.
    sender: Pid,
    /// Where the sender's log ended.
    pos: u64,
    /// It was sent: its sender has come to another one, or was looked at.
    is_sent: bool,
}

/// All that have not come.
#[derive(Debug, Default)]
pub(crate) struct Post {
    letters: Vec<Letter>,
    /// Those that the monitor has sent itself, and that may come from the sender as well, as long as that is in its
    /// call.
    twice: Vec<Letter>,
}

impl Post {
    /// The sender is about to make another call.
    fn goes_on(&mut self, from: (GroupId, u32)) {
        let own = self.letters.iter_mut().filter(|l| l.from == from);
        own.for_each(|l| l.is_sent = true);
        self.twice.retain(|l| l.from != from);
    }

    /// Its last call was not made, or has failed.
    fn take_back(&mut self, from: (GroupId, u32)) {
        self.letters.retain(|l| l.from != from || l.is_sent);
    }

    fn add(&mut self, letter: Letter) {
        let same = |l: &Letter| (l.from, l.to, l.signal) == (letter.from, letter.to, letter.signal);
        // (As the kernel does.)
        let undone = |l: &Letter| match letter.signal {
            libc::SIGCONT => is_stop(l.signal),
            signal => is_stop(signal) && l.signal == libc::SIGCONT,
        };
        self.letters
            .retain(|l| !(same(l) || l.to == letter.to && undone(l)));
        self.letters.push(letter);
    }

    fn came(&mut self, to: GroupId, signal: i32) {
        self.letters.retain(|l| l.to != to || l.signal != signal);
    }

    /// A signal has come: for the second time?
    fn is_second(&mut self, to: GroupId, signal: i32) -> bool {
        let same = |l: &Letter| l.to == to && l.signal == signal;
        let at = self.twice.iter().position(same);
        let is_second = at.is_some() && !self.letters.iter().any(same);
        if let Some(at) = at.filter(|_| is_second) {
            self.twice.remove(at);
        }
        is_second
    }

    /// The signals that are on their way to a group, as bits.
    fn set_for(&self, to: GroupId) -> u32 {
        let own = self.letters.iter().filter(|l| l.to == to);
        own.fold(0, |set, l| set | bit(l.signal) as u32)
    }

    /// What others have sent to a group, and what has not come, as its successor is to get it.
    pub(super) fn sent_to(&self, to: GroupId) -> Vec<Waiting> {
        let mut all: Vec<Waiting> = Vec::new();
        for l in self.letters.iter().filter(|l| l.to == to) {
            let is_same = |w: &Waiting| w.info[0] as i32 == l.signal;
            if !all.iter().any(is_same) {
                all.push(sent_by(l.sender, None, l.signal));
            }
        }
        all
    }
}

impl Monitor {
    /// A leader's thread is about to send others of the program a signal (0: it has not sent the last one).
    pub(crate) fn sends(&mut self, pid: Pid, slot: u32, nr: u64, target: u64, signal: u64) {
        let Some((id, replica)) = self.membership(pid) else {
            return;
        };
        // (What a replica says may be anything.)
        if !self.leads(id, replica) || signal > LAST {
            return;
        }
        let from = (id, slot);
        if signal == 0 {
            self.family.post.take_back(from);
        } else if let Some(whom) = self.whom(pid, nr, target)
            && let Some(sender) = self.groups.get(&id).map(|g| g.name.shown)
        {
            self.family.post.goes_on(from);
            let pos = self.word_of_block(pid, slot, block_field!(pos));
            let all = self.groups.iter();
            let there =
                all.filter(|(_, g)| whom.includes(g.name.shown, g.leader_pid(), g.process_group()));
            let there: Vec<GroupId> = there.map(|(to, _)| *to).collect();
            let letter = |to| Letter {
                from,
                to,
                signal: signal as u32 as i32,
                sender,
                pos,
                is_sent: false,
            };
            for to in there {
                if let Some(addressee) = self.groups.get(&to).and_then(Group::leader_pid) {
                    self.dies_at(FaultPoint::AddresseeKilled, addressee);
                }
                self.family.post.add(letter(to));
                if whom.is_group() && self.send_to_late(to, sender, signal as i32) {
                    self.family.post.twice.push(letter(to));
                }
            }
        }
        let groups = &self.groups;
        self.family
            .post
            .letters
            .retain(|l| groups.contains_key(&l.to));
        self.tell_of_post();
    }

    /// The monitor itself sends a leader's process a signal, in the name of one of the program's that has ended.
    pub(crate) fn sends_for(&mut self, sender: Pid, to: GroupId, signal: i32) {
        let Some(pid) = self.groups.get(&to).and_then(Group::leader_pid) else {
            return;
        };
        if signal as u64 <= LAST {
            self.family.post.add(Letter {
                from: (to, u32::MAX),
                to,
                signal,
                sender,
                pos: 0,
                is_sent: true,
            });
            self.tell_of_post();
        }
        self.pass_on(pid, None, &sent_by(sender, None, signal).info);
    }

    /// A successor that is not in its process group yet is not reached by what is sent to that.
    fn send_to_late(&mut self, to: GroupId, sender: Pid, signal: i32) -> bool {
        let group = self.groups.get(&to);
        let late = group.filter(|g| {
            let takeover = g.takeover.as_ref();
            takeover.is_some_and(Takeover::is_late_for_group)
        });
        let Some(pid) = late.and_then(Group::leader_pid) else {
            return false;
        };
        self.pass_on(pid, None, &sent_by(sender, None, signal).info);
        true
    }

    fn word_of_block(&mut self, pid: Pid, slot: u32, field: u64) -> u64 {
        let at = block_address(slot as usize) + field;
        self.memory(pid)
            .ok()
            .and_then(|m| m.word(at).ok())
            .unwrap_or(0)
    }

    /// A leader's process has been given the signal, or never will be.
    pub(crate) fn came(&mut self, id: GroupId, signal: i32) {
        self.family.post.came(id, signal);
        self.tell_of_post();
    }

    /// A leader's process was stopped for a signal: is it one that has come already?
    pub(crate) fn has_come(&mut self, id: GroupId, signal: i32) -> bool {
        let is_second = self.family.post.is_second(id, signal);
        self.came(id, signal);
        is_second
    }

    /// Each process is to know what it is to tell of.
    fn tell_of_post(&self) {
        for (id, g) in &self.groups {
            let set = self.family.post.set_for(*id);
            let word = &g.segment.header().posted;
            if word.load(Ordering::Relaxed) != set {
                word.store(set, Ordering::Relaxed);
            }
        }
    }

    /// The former leader's threads are at their ends: had they sent what they told of last?
    pub(super) fn find_unsent(&mut self, id: GroupId, t: &Takeover) {
        let Some(memory) = t.estate.memory() else {
            return;
        };
        let word = |slot: u32, field: u64| memory.word(block_address(slot as usize) + field);
        let is_unmade = |l: &Letter| {
            let slot = l.from.1;
            let is_made = t
                .estate
                .legacy
                .iter()
                .any(|l| l.slot == slot && l.call.is_some());
            let is_begun =
                word(slot, block_field!(flight)).is_ok_and(|w| w as u32 == flight::BEGUN);
            is_begun && !is_made && word(slot, block_field!(pos)).is_ok_and(|pos| pos == l.pos)
        };
        let mut left = std::mem::take(&mut self.family.post.letters);
        left.retain(|l| l.from.0 != id || l.is_sent || !is_unmade(l));
        let own = left.iter_mut().filter(|l| l.from.0 == id);
        own.for_each(|l| l.is_sent = true);
        self.family.post.letters = left;
        self.tell_of_post();
    }

    /// The signal for job control that was sent to this group's leader, and that has not come.
    pub(super) fn take_job_letter(&mut self, id: GroupId) -> Option<i32> {
        let of_job = |s: i32| is_stop(s) || s == libc::SIGCONT;
        let mut own = self.family.post.letters.iter().filter(|l| l.to == id);
        let signal = own.find(|l| of_job(l.signal))?.signal;
        self.came(id, signal);
        Some(signal)
    }

    /// Is it known what was sent to this group? (Not as long as a sender is dying.)
    pub(super) fn post_is_known(&self, id: GroupId) -> bool {
        let dies = |from: GroupId| {
            let t = self.groups.get(&from).and_then(|g| g.takeover.as_ref());
            t.is_some_and(|t| t.stage == Stage::Dying)
        };
        let mut own = self.family.post.letters.iter().filter(|l| l.to == id);
        own.all(|l| l.is_sent || !dies(l.from.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(from: u32, to: GroupId, signal: i32) -> Letter {
        Letter {
            from: (1, from),
            to,
            signal,
            sender: 100,
            pos: 0,
            is_sent: false,
        }
    }

    #[test]
    fn what_was_not_sent_is_taken_back_and_what_was_is_not() {
        let mut post = Post::default();
        post.add(letter(0, 2, libc::SIGUSR1));
        post.goes_on((1, 0));
        post.add(letter(0, 2, libc::SIGUSR2));
        post.add(letter(3, 2, libc::SIGHUP));
        post.take_back((1, 0));
        let left = bit(libc::SIGUSR1) | bit(libc::SIGHUP);
        assert_eq!(post.set_for(2), left as u32);
    }

    #[test]
    fn what_the_monitor_has_sent_as_well_comes_once() {
        let mut post = Post::default();
        post.add(letter(0, 2, libc::SIGUSR1));
        post.twice.push(letter(0, 2, libc::SIGUSR1));
        assert!(!post.is_second(2, libc::SIGUSR1));
        post.came(2, libc::SIGUSR1);
        assert!(post.is_second(2, libc::SIGUSR1));
        assert!(!post.is_second(2, libc::SIGUSR1));
        // The next one of the same sender is another one.
        post.twice.push(letter(0, 2, libc::SIGUSR1));
        post.goes_on((1, 0));
        assert!(!post.is_second(2, libc::SIGUSR1));
    }

    #[test]
    fn the_same_one_is_there_once_until_it_has_come() {
        let mut post = Post::default();
        post.add(letter(0, 2, libc::SIGUSR1));
        post.add(letter(0, 2, libc::SIGUSR1));
        post.add(letter(0, 3, libc::SIGUSR1));
        assert_eq!(post.letters.len(), 2);
        post.came(2, libc::SIGUSR1);
        assert_eq!((post.set_for(2), post.letters.len()), (0, 1));
    }
}
