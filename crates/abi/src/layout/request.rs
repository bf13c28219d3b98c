//! What requests to the monitor carry.

/// A wait for a child, whose parent goes on in another replica than that which the kernel knows as
/// its parent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reap {
    /// As waitid(2) has it: 0 any, 1 a process, 2 a process group.
    pub which: u64,
    /// Which one, as the program knows it.
    pub id: u64,
    /// Of what: see [`reap`].
    pub asked: u64,
    /// Answer (with [`reap::TOLD`]: said): the status as wait4 shows it.
    pub status: u64,
}

/// What [`Reap::asked`] is made of.
pub mod reap {
    /// Children that have ended,
    pub const ENDED: u64 = 1;
    /// were stopped,
    pub const STOPPED: u64 = 2;
    /// or go on.
    pub const CONTINUED: u64 = 4;
    /// It stays to be waited for.
    pub const KEEPS: u64 = 8;
    /// The process does not want to hear of its children's ends: there are none to be told.
    pub const DISCARDS: u64 = 16;
    /// Of those whose end is told by another signal than SIGCHLD, or by none, in place of others (`__WCLONE`).
    pub const CLONES: u64 = 32;
    /// Of those as well (`__WALL`).
    pub const ALL: u64 = 64;
    /// A kernel has told the program of it, with this status if that is not 0: nobody else is to be told.
    pub const TOLD: u64 = 128;
}

/// What a replica tells the monitor when it differs from the log.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Report {
    /// See [`super::why`].
    pub why: u32,
    /// Thread group.
    pub slot: u32,
    /// Position of the record in the ring.
    pub pos: u64,
    /// The record as the leader wrote it (first eight words).
    pub theirs: [u64; 8],
    /// What this replica would have written there.
    pub ours: [u64; 8],
    /// Application state of this replica's thread (address of its frame; 0 in a hook).
    pub frame: u64,
    /// Return address of the application code.
    pub pc: u64,
}

/// What [`super::rpc::FETCH`] asks for.
pub mod enclosed {
    /// The leader's.
    pub const LEADERS: u64 = 0;
    /// The former leader's.
    pub const FORMERS: u64 = 1;
    /// Instead of a descriptor's number that of an object: this replica's own ([`super::object`]).
    pub const OBJECTS: u64 = 2;
    /// Instead of a descriptor's number: its working directory.
    pub const DIRECTORY: u32 = u32::MAX;
    /// Its root.
    pub const ROOT: u32 = u32::MAX - 1;
    /// The log of the group of the process that asks.
    pub const LOG: u32 = u32::MAX - 2;
}

/// What [`super::rpc::FAILED`] tells of.
pub mod failed {
    /// A forked child cannot get its log from the monitor, and ends.
    pub const SEND: u64 = 0;
    /// It cannot map it, and ends.
    pub const MAP: u64 = 1;
    /// A process cannot take over what others share with its former leader.
    pub const COMMON: u64 = 2;
    /// A process that takes over has another root than its lost leader, which it cannot enter.
    pub const ROOT: u64 = 4;
    /// The same of its working directory.
    pub const DIRECTORY: u64 = 5;
    /// The ids of all threads are changed by a signal to each, as glibc does it, where that is not repeated.
    pub const IDS_OF_THREADS: u64 = 3;
}
