//! A process group: the replicas of one logical process, who leads, and what is open between them.

use super::End;
use super::forks::Forks;
use super::job::Job;
use crate::code::Areas;
use crate::segment::Segment;
use crate::takeover::Takeover;
use geryon_tracee::Pid;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Names a process group (the replicas of one logical process).
pub type GroupId = u32;

/// The replicas of one logical process.
pub struct Group {
    /// The shared log.
    pub segment: Segment,
    /// Each replica's part in it, by the replica's index.
    pub members: Vec<Member>,
    /// Index of the leader.
    pub leader: usize,
    /// When the leader ended, or left for another program.
    pub leader_gone: Option<Instant>,
    /// The leader is about to die of a signal, which is the program's end.
    pub ending: bool,
    /// The program has said that it is about to kill it by force.
    pub doomed: bool,
    /// Its leader is gone, and a follower is to lead.
    pub takeover: Option<Takeover>,
    /// What the program calls the process and its parent.
    pub name: Name,
    /// Is it stopped?
    pub job: Job,
    /// Where the trampolines lie.
    pub areas: Areas,
    /// What has come of its forks.
    pub forks: Forks,
    /// Its vforks' children.
    pub guests: Guests,
    /// Who else has its leader's descriptors.
    pub descriptors: Descriptors,
    /// Which children are its own.
    pub parenthood: Parenthood,
    /// In what its replicas differ.
    pub dispute: Dispute,
}

/// Vforks' children, which run in the memory of their group's members.
#[derive(Debug, Default)]
pub struct Guests {
    /// Followers' vforks' children that have ended last, by replica and slot: what the program calls them,
    /// and how. The leader's may not have ended yet.
    pub ends: HashMap<(usize, u64), (Pid, End)>,
    /// Leaders' vforks' children of whose ends the program has been told last, by slot: by which replica, and
    /// what the program calls it. The next leader's may not have ended yet.
    pub told: HashMap<u64, (usize, Pid)>,
}

/// Processes that have descriptors in a leader's place.
#[derive(Debug, Default)]
pub struct Descriptors {
    /// Its leader, which leads from its birth on, fetches the descriptors of this process.
    pub heir_of: Option<Pid>,
    /// Processes that had its leader's descriptors before it, and that may have yet to end.
    pub remains: Vec<Pid>,
    /// Since when its leader waits for their ends.
    pub closes_since: Option<Instant>,
}

/// Which children a process has, for its kernel and for the program.
#[derive(Debug, Default)]
pub struct Parenthood {
    /// Another replica leads than at first, or others' children are the process's: its kernel knows others as its children
    /// than the program.
    pub adopted: bool,
    /// The signal that its lost leader's last wait has taken was given to the program's first one, by its kernel.
    pub given_by_first: bool,
    /// It is to have the children that its descendants leave (PR_SET_CHILD_SUBREAPER).
    pub reaps_orphans: bool,
}

/// In what replicas differ, and who says so.
#[derive(Debug, Default)]
pub struct Dispute {
    /// Replicas stopped by a fatal signal of their own, waiting for the others' verdict.
    pub crashes: Vec<Crash>,
    /// The last follower that crashed inside the agent: slot, position, program counter.
    pub agent_crash: Option<(usize, (u32, u64, u64))>,
    /// Replicas that reported a divergence.
    pub reports: Vec<Reported>,
}

impl Dispute {
    /// Is a verdict due?
    pub fn is_open(&self) -> bool {
        !(self.reports.is_empty() && self.crashes.is_empty())
    }
}

/// Is another signal than SIGCHLD sent at the process's end, or none?
pub fn made_as_clone(pid: Pid) -> bool {
    geryon_tracee::exit_signal(pid).is_some_and(|s| s != libc::SIGCHLD)
}

/// Process ids as the program knows them; 0 where it knows none. They outlive takeovers and execs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// The process.
    pub shown: Pid,
    /// Its parent.
    pub parent: Pid,
    /// That one does not know it as its own: another process has left it (PR_SET_CHILD_SUBREAPER), or the parent had another
    /// program when it made it.
    pub is_orphan: bool,
    /// Its end is told by another signal than SIGCHLD, or by none (clone): a wait finds it that asks for such.
    pub is_clone: bool,
}

impl Name {
    /// A process by the one that has made it.
    pub fn child_of(parent: Pid, shown: Pid) -> Name {
        Name {
            shown,
            parent,
            is_orphan: false,
            is_clone: false,
        }
    }
}

/// One replica's part in a group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Member {
    /// Its process; None before its birth and after its end.
    pub pid: Option<Pid>,
    /// How it ended.
    pub end: Option<End>,
    /// How often the leader was found waiting for it after that.
    pub missed: u32,
}

impl Group {
    /// A group of `n` replicas, none of them born yet.
    pub fn new(segment: Segment, n: usize, leader: usize, areas: Areas) -> Group {
        Group {
            segment,
            members: vec![Member::default(); n],
            leader,
            leader_gone: None,
            ending: false,
            doomed: false,
            takeover: None,
            name: Name::default(),
            areas,
            job: Job::default(),
            forks: Forks::of(n),
            guests: Guests::default(),
            descriptors: Descriptors::default(),
            parenthood: Parenthood::default(),
            dispute: Dispute::default(),
        }
    }

    /// The leader's process, while it lives.
    pub fn leader_pid(&self) -> Option<Pid> {
        self.members[self.leader].pid
    }

    /// Those that have come before its leader, once that is there. As long as nobody leads each of them may have
    /// to: who is to lead in a lost leader's place may be lost before its process is born.
    pub fn take_early(&mut self) -> Vec<Pid> {
        match self.leader_pid() {
            Some(_) => std::mem::take(&mut self.forks.early),
            None => Vec::new(),
        }
    }

    /// The living members: replica and process.
    pub fn living(&self) -> impl Iterator<Item = (usize, Pid)> {
        self.members
            .iter()
            .enumerate()
            .filter_map(|(r, m)| Some((r, m.pid?)))
    }

    /// The living members except for the leader.
    pub fn followers(&self) -> impl Iterator<Item = (usize, Pid)> {
        self.living().filter(|(r, _)| *r != self.leader)
    }

    /// How many replicas have a say in it: those that live, those that have ended, and those that are
    /// yet to be born.
    pub fn voters(&self) -> usize {
        let there = self.members.iter();
        let there = there.filter(|m| m.pid.is_some() || m.end.is_some());
        there.count() + self.unborn()
    }

    /// How many followers have ended by themselves: they had agreed to the program's end, and are not there
    /// any more to say it again.
    pub fn ended(&self) -> usize {
        let agreed = |(r, m): &(usize, &Member)| {
            *r != self.leader && m.pid.is_none() && matches!(m.end, Some(End::Exited(_)))
        };
        self.members.iter().enumerate().filter(agreed).count()
    }

    /// How many replicas have still to come to it (a forked process's group).
    pub fn unborn(&self) -> usize {
        let alive = self.segment.header().alive.load(Ordering::SeqCst);
        let comes =
            |(r, m): &(usize, &Member)| alive & (1 << r) != 0 && m.pid.is_none() && m.end.is_none();
        self.members.iter().enumerate().filter(comes).count()
    }

    /// The replica is out of it: its process is no member any more, what it said does not count.
    pub fn forget(&mut self, replica: usize) {
        self.segment.drop_replica(replica);
        // (Also that it has ended: whoever was taken out for that agrees with nobody.)
        self.members[replica] = Member::default();
        self.dispute.reports.retain(|r| r.replica != replica);
        self.dispute.crashes.retain(|c| c.replica != replica);
    }
}

/// A replica's thread stopped at a fatal signal.
#[derive(Clone, Debug)]
pub struct Crash {
    /// Which replica.
    pub replica: usize,
    /// Thread.
    pub tid: Pid,
    /// Thread group.
    pub slot: u32,
    /// Signal.
    pub signal: i32,
    /// Program counter.
    pub pc: u64,
    /// Its name: the same in all layouts.
    pub pc_name: u64,
    /// Faulting address.
    pub address: u64,
    /// Position of the thread group up to which it had come.
    pub pos: u64,
    /// It waited in the agent.
    pub in_agent: bool,
    /// The agent's own code has come to its end: the program has no part in it, and no handler for it.
    pub broken: bool,
    /// How far those have come that had not crashed.
    pub others_done: u64,
    /// When, or when one of them last did anything.
    pub when: Instant,
}

/// A divergence that a follower reported; its thread is stopped.
#[derive(Clone, Debug)]
pub struct Reported {
    /// Which replica.
    pub replica: usize,
    /// Its thread.
    pub tid: Pid,
    /// What it said.
    pub report: ReportWords,
    /// When.
    pub when: Instant,
}

/// `geryon_abi::layout::Report`, read from the replica.
#[derive(Clone, Copy, Debug)]
pub struct ReportWords {
    /// See `geryon_abi::layout::why`.
    pub why: u32,
    /// Thread group.
    pub slot: u32,
    /// Position in the ring.
    pub pos: u64,
    /// The leader's record.
    pub theirs: [u64; 8],
    /// This replica's.
    pub ours: [u64; 8],
}

impl ReportWords {
    /// Where it differs: thread group and position.
    pub fn at(&self) -> (u32, u64) {
        (self.slot, self.pos)
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Member};
    use crate::code::Areas;
    use crate::segment::Segment;
    use crate::state::End;
    use geryon_abi::layout::RING_WORDS;

    #[test]
    fn who_was_taken_out_after_its_end_has_no_say() {
        let segment = Segment::new(RING_WORDS, 3, 0b111, 0, false).expect("a segment");
        let mut g = Group::new(segment, 3, 0, Areas::default());
        for pid in 1..=3 {
            g.members[pid as usize - 1].pid = Some(pid);
        }
        g.members[2] = Member {
            pid: None,
            end: Some(End::Exited(0)),
            missed: 4,
        };
        assert_eq!((g.voters(), g.ended()), (3, 1));
        g.forget(2);
        assert_eq!((g.voters(), g.ended()), (2, 0));
    }
}
