//! The turn of processes that share memory, where one thread of all of them runs at a time.
//!
//! One for the run: all processes of the program that share memory with another one are *kin*. The memory
//! lies behind the agent's image and is shared by all replicas.

use super::MAX_REPLICAS;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Where it lies.
pub const KIN_BASE: u64 = 0x2fe5_1800_0000;
/// Bytes of it.
pub const KIN_BYTES: u64 = 0x4000;

/// [`super::Private::kin`]: the process is one of the kin.
pub const JOINED: u32 = 1;
/// The same: it becomes one at the end of the call that it makes.
pub const IS_TO_JOIN: u32 = 2;

/// [`Kin::turn`]: nobody has it.
pub const FREE: u32 = 0;
/// The same, and others waited when it was given away: it is for one of them.
pub const OFFERED: u32 = 1;
/// Its replica is lost, and the next one has not come to where it was: nobody gets it.
pub const RESTS: u32 = u32::MAX;
/// Who had it last makes a call that is over soon, and goes on then.
pub const LENT: u32 = 2;
/// Plus a group's number and one: its leader's process has it.
pub const TAKEN: u32 = 2;

/// Where a thread stood that cannot say so any more: its process has ended with the turn.
pub const ENDED: u64 = u64::MAX;
/// The process has not come yet to where it gives the turn away.
pub const RUNS: u64 = u64::MAX - 1;

/// A place in the log of a process.
pub const fn place(slot: u32, pos: u64) -> u64 {
    const POSITION_BITS: u32 = 54;
    (slot as u64) << POSITION_BITS | pos & ((1 << POSITION_BITS) - 1)
}

/// The turn.
#[repr(C)]
pub struct Kin {
    /// In the replica that leads: [`FREE`], [`OFFERED`], [`LENT`], [`RESTS`], or [`TAKEN`] plus who has it.
    pub turn: AtomicU32,
    /// How many processes wait for it there.
    pub waiting: AtomicU32,
    /// The number of the last turn that was taken.
    pub number: AtomicU32,
    /// One more than the group of who took that one; 0: nobody has yet.
    pub owner: AtomicU32,
    /// Where it was given away last ([`place`], or [`ENDED`]).
    pub last: AtomicU64,
    /// In replicas that follow.
    pub followers: [Follower; MAX_REPLICAS],
}

/// The turn in a replica that follows.
#[repr(C, align(64))]
pub struct Follower {
    /// The number of the present turn.
    pub number: AtomicU32,
    /// One more than the group of the process that has it; 0: nobody has had it yet.
    pub owner: AtomicU32,
    /// Where that process stands without doing anything ([`place`]); [`RUNS`], [`ENDED`].
    pub stands: AtomicU64,
    /// Changes when something of that does.
    pub events: AtomicU32,
    /// So many wait for that.
    pub sleepers: AtomicU32,
}

const _: () = assert!(size_of::<Kin>() as u64 <= KIN_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_one_of_the_words() {
        let last = place(super::super::MAX_THREADS as u32 - 1, u64::MAX);
        const { assert!(RUNS < ENDED) };
        assert!(last < RUNS);
        assert_ne!(place(1, 7), place(2, 7));
    }
}
