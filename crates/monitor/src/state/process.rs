//! A traced process and its threads, whichever replica they belong to.

use super::GroupId;
use crate::options::Outcome;
use crate::setup::filters::Filters;
use geryon_tracee::{Pid, RemoteMemory, Siginfo};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exited(i32),
    /// By a signal.
    Killed(i32),
}

impl From<End> for Outcome {
    fn from(end: End) -> Outcome {
        match end {
            End::Exited(c) => Outcome::Exited(c),
            End::Killed(s) => Outcome::Killed(s),
        }
    }
}

/// One process of one replica.
#[derive(Debug)]
pub struct Process {
    /// Its group; None before the agent has said who it is.
    pub group: Option<GroupId>,
    /// Replica index.
    pub replica: usize,
    /// Its memory, once it was needed.
    pub memory: Option<RemoteMemory>,
    /// Group and replica of the process that forked it.
    pub parent: Option<(GroupId, usize)>,
    /// The program has killed it before it had a group of its own.
    pub doomed: bool,
    /// Number of threads.
    pub threads: usize,
    /// A vfork's child, in the memory of its group's member: the thread slot it runs on.
    pub guest: Option<u64>,
    /// What the program calls a vfork's child that is about to leave that memory; 0: what the kernel does.
    pub shown: Pid,
    /// Seccomp filters of the program that the thread has which was about to have another one.
    pub filters: Option<Filters>,
    /// The same of what that one wants at its parent's end, as `Block::at_parents_end`.
    pub at_parents_end: u32,
    /// A vfork's child, or one with a new program: as in `Parenthood`.
    pub reaps_orphans: bool,
    /// One with a new program: as in `Parenthood`.
    pub adopted: bool,
    /// How far its birth has come.
    pub birth: Birth,
    /// Signals that it has not taken yet.
    pub pending: Pending,
    /// How far its end has.
    pub leaving: Leaving,
}

/// A process that another one has forked, and that may have yet to say who it is.
#[derive(Debug, Default)]
pub struct Birth {
    /// Which of its parent's forks it is; None once it has said who it is.
    pub fork: Option<u64>,
    /// The leader's thread that has forked it (or whose process has come to lead since), and stands still until it
    /// has said who it is.
    pub creator: Option<Pid>,
    /// That one's descriptors are its own, too: it stands still until this one needs none to begin.
    pub common: bool,
}

/// Signals that a process was sent, or is to be.
#[derive(Debug, Default)]
pub struct Pending {
    /// Signals of a former leader that were sent on to it, as they were before.
    pub inherited: Vec<Siginfo>,
    /// Signals that it catches and was sent before it had said who it is.
    pub held: Vec<Siginfo>,
    /// It was sent a SIGCHLD, and has not taken it.
    pub child_signal: bool,
    /// A SIGCHLD that its predecessor was given and the program was not: as such the next one comes.
    pub child_owed: Option<Siginfo>,
}

/// A process that is about to end.
#[derive(Debug, Default)]
pub struct Leaving {
    /// Its end is known to whom it concerns.
    pub told: bool,
    /// A thread of it was found at its end, killed.
    pub dying: bool,
    /// A leader that is about to end: what it maps to be shared is nobody's concern any more.
    pub left_shared: bool,
}

impl Process {
    /// A process of one thread, without a group yet.
    pub fn new(replica: usize) -> Process {
        Process {
            group: None,
            replica,
            memory: None,
            parent: None,
            doomed: false,
            threads: 1,
            guest: None,
            shown: 0,
            filters: None,
            at_parents_end: 0,
            reaps_orphans: false,
            adopted: false,
            birth: Birth::default(),
            pending: Pending::default(),
            leaving: Leaving::default(),
        }
    }

    /// What the program calls the process that the kernel calls `pid`: a vfork's child that leaves.
    pub fn shown_as(&self, pid: Pid) -> Pid {
        match self.shown {
            0 => pid,
            shown => shown,
        }
    }
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its process.
    pub pid: Pid,
    /// It has come to its end: it executes nothing any more, and is still there.
    pub ends: bool,
    /// It was stopped by a signal for job control.
    pub listens: bool,
    /// The signal that the monitor itself has sent it, to be shown with this siginfo.
    pub inject: Option<[u64; 16]>,
    /// Signals that came before that one, though they were sent later: to be sent again behind it.
    pub overtaken: Vec<[u64; 16]>,
    /// What they show when they come again.
    pub resent: Vec<[u64; 16]>,
    /// Signals that the kernel had given to it when it was killed, and that are not in its block.
    pub untold: Vec<[u64; 16]>,
    /// The thread's mask, while a signal waits for its safe point: all others wait in the kernel,
    /// which knows their order and the masks of handlers.
    pub held_mask: Option<u64>,
    /// The mask that the delivered signal's frame must show.
    pub frame_mask: Option<u64>,
    /// Signals that it is sent as soon as it stands at the first instruction of the handler before, in this order.
    pub on_top: Vec<[u64; 16]>,
    /// It is about to stop there.
    pub enters_handler: bool,
    /// The trap of a sentry that was taken away waits for it in the kernel: it stood at the sentry's end when it
    /// was halted, and stands elsewhere now.
    pub trap_left: bool,
}

impl Thread {
    /// Is a handler's frame being built, or mended, or the next one's to be?
    pub fn takes_signal(&self) -> bool {
        self.inject.is_some() || self.frame_mask.is_some() || !self.on_top.is_empty()
    }

    /// A thread of the process, with no signal under way.
    pub fn of(pid: Pid) -> Thread {
        Thread {
            pid,
            ..Thread::default()
        }
    }
}
