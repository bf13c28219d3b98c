//! The shared segment of a process group.

use super::MAX_REPLICAS;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// One follower's line in a ring's control page.
#[repr(C, align(64))]
pub struct FollowerLine {
    /// Words consumed; the leader may overwrite what lies below.
    pub tail: AtomicU64,
    /// Position up to which this follower has verified outputs.
    pub ack: AtomicU64,
}

/// Control page of one ring.
#[repr(C, align(4096))]
pub struct RingControl {
    /// Words published by the leader.
    pub head: AtomicU64,
    pad0: [u64; 7],
    /// Bit i: follower i sleeps on `head`.
    pub follower_sleeps: AtomicU32,
    pad1: [u32; 15],
    /// Non-zero while the leader sleeps on a follower's line.
    pub leader_sleeps: AtomicU32,
    pad2: [u32; 15],
    /// By replica index.
    pub followers: [FollowerLine; MAX_REPLICAS],
    /// Where they run.
    pub cores: CoreLine,
    /// How many marks the leader's thread has ever made. The last [`MARKS`] lie behind the ring's words, each at its number
    /// modulo that.
    pub marked: AtomicU64,
    /// How often the leader's thread has found the same again at loads that decide about order, and where: see
    /// [`super::Poll`].
    pub again: AtomicU64,
}

/// So many marks of a ring are kept.
pub const MARKS: usize = 1 << 13;

/// A mark: when the leader's thread came to a record, or polled, counted in loads of words that threads store plainly. All that it had
/// stored before could be found by the load with that number, and by those before.
#[repr(C)]
pub struct Mark {
    /// That number; 0 while the mark is made.
    pub epoch: AtomicU64,
    /// Where (`Poll::tells`).
    pub start: AtomicU64,
}

/// By replica index: one more than the core on which the thread was when it last began to wait; 0: unknown.
/// Written only where it has changed, and never more than a hint.
#[repr(C, align(64))]
pub struct CoreLine(pub [AtomicU32; MAX_REPLICAS]);

/// Head of the shared segment of one process group. The monitor writes it; all but `open` is
/// read-only in the replicas, for what they find here decides where they read and write: a fault in
/// one of them must not lead the others astray.
#[repr(C)]
pub struct Header {
    /// [`super::ABI_VERSION`].
    pub version: u32,
    /// Replicas at start.
    pub replicas: u32,
    /// Words in each ring, a power of two.
    pub ring_words: u64,
    /// Bit i: replica i takes part. Cleared by the monitor when it drops one.
    pub alive: AtomicU32,
    /// Index of the leader.
    pub leader: AtomicU32,
    /// Bit i: replica i is being made. Nothing that it has still to read is overwritten, and nobody
    /// waits for its confirmation yet.
    pub joining: AtomicU32,
    /// Bit i: replica i (which is in `joining`, too) stands still until it is needed: it reads nothing.
    pub sleeping: AtomicU32,
    /// Changes when a child of the process ends (counted once one of its replicas has taken over).
    pub child_events: AtomicU32,
    /// 1 once a process of the run goes on in another replica: ids as the program knows them name
    /// others now.
    pub taken_over: AtomicU32,
    /// The group's number.
    pub group: AtomicU32,
    /// Signals from 1 to 31 that other processes have sent this one, and that have not come.
    pub posted: AtomicU32,
    /// 1: a process that has led may have the program's descriptors, beside the leader.
    pub remains: AtomicU32,
    /// 1: who waits for copies to be made may go on, see [`super::ascent`].
    pub ascended: AtomicU32,
    /// Files of which each replica has its own: bits of their inode numbers ([`super::object::bit`]).
    pub shared: AtomicU64,
    /// What the replicas write, too.
    pub open: OpenHeader,
}

/// The part of the head that replicas may write, in pages of its own.
#[repr(C, align(4096))]
pub struct OpenHeader {
    /// Host process id of the leader (fds are fetched from there).
    pub leader_pid: AtomicU32,
    /// 1: the monitor knows that the sleeping ones hold up much of the log.
    pub crowded: AtomicU32,
    /// 1: its leader is one of the kin, or about to be, before that shows in the log (see [`super::kin`]).
    pub kin: AtomicU32,
    /// File mappings replayed, by replica: a descriptor is not closed before these agree.
    pub file_maps: [AtomicU64; MAX_REPLICAS],
    /// So many loads of words that threads store plainly the leader's threads have made.
    pub loads: Alone,
    /// The last stamp.
    pub stamps: Alone,
}

/// A word that many write, on a line of its own.
#[repr(C, align(64))]
pub struct Alone(pub AtomicU64);
