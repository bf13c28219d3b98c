//! What the monitor knows: groups of replicas, their processes, their threads.

use crate::code::Areas;
use crate::segment::Segment;
use geryon_tracee::{Pid, RemoteMemory};
use std::collections::HashMap;
use std::time::Instant;

/// Names a process group (the replicas of one logical process).
pub type GroupId = u32;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exited(i32),
    /// By a signal.
    Killed(i32),
}

/// The replicas of one logical process.
pub struct Group {
    /// The shared log.
    pub segment: Segment,
    /// Process of each replica; None before its birth and after its end.
    pub members: Vec<Option<Pid>>,
    /// How each ended.
    pub ends: Vec<Option<End>>,
    /// Index of the leader.
    pub leader: usize,
    /// Where the trampolines lie.
    pub areas: Areas,
    /// Groups of forked children by the fork's number.
    pub children: HashMap<u64, GroupId>,
    /// Replicas stopped by a fatal signal of their own, waiting for the others' verdict.
    pub crashes: Vec<Crash>,
    /// Replicas that reported a divergence.
    pub reports: Vec<Reported>,
    /// When the leader ended.
    pub leader_gone: Option<Instant>,
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
    /// Faulting address.
    pub address: u64,
    /// When.
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

/// One process of one replica.
pub struct Process {
    /// Its group; None before the agent has said who it is.
    pub group: Option<GroupId>,
    /// Replica index.
    pub replica: usize,
    /// Its memory.
    pub memory: Option<RemoteMemory>,
    /// Group and replica of the process that forked it.
    pub parent: Option<(GroupId, usize)>,
    /// Number of threads.
    pub threads: usize,
    /// A vfork's child, in the memory of its group's member: the thread slot it runs on.
    pub guest: Option<u64>,
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its process.
    pub pid: Pid,
    /// The signal that the monitor itself has sent it, to be shown with this siginfo.
    pub inject: Option<[u64; 16]>,
    /// The thread's mask, while a signal waits for its safe point: all others wait in the kernel,
    /// which knows their order and the masks of handlers.
    pub held_mask: Option<u64>,
    /// The mask that the delivered signal's frame must show.
    pub frame_mask: Option<u64>,
}
