//! Why a thread waits inside the agent.

/// It does not.
pub const NONE: u32 = 0;
/// Follower: for the leader's next record.
pub const RECORD: u32 = 1;
/// Follower: for its turn on a clock.
pub const TURN: u32 = 2;
/// Leader: for confirmation.
pub const CONFIRM: u32 = 3;
/// Leader: for room in the ring.
pub const ROOM: u32 = 4;
/// Anyone: inside a real system call.
pub const KERNEL: u32 = 5;
/// Follower: for memory to show a value that another thread stores, at the record of an atomic
/// instruction. The value's size is in the top byte of its address (see [`place_of`]).
pub const VALUE: u32 = 6;
/// Leader: for followers to have mapped a file.
pub const MAPS: u32 = 7;
/// Stopped for good, by a divergence.
pub const DIVERGED: u32 = 8;
/// For a word that another thread stores in the course of an operation that is behind its record.
pub const WORD: u32 = 9;
/// For the turn of processes that share memory.
pub const KIN: u32 = 10;
/// Follower that is strict: for records of other threads that come before its next one.
pub const ORDER: u32 = 11;
/// Leader: for serial order, see [`super::ascent`].
pub const DESCENT: u32 = 12;
/// Before the second thread is made: for copies to be made of all, see [`super::ascent`].
pub const ASCENT: u32 = 13;

const SIZE_SHIFT: u32 = 56;

/// What is waited for: an operand of so many bytes.
pub const fn operand(address: u64, size: u8) -> u64 {
    address | (size as u64) << SIZE_SHIFT
}

/// The address and the size of what [`operand`] made.
pub const fn place_of(operand: u64) -> (u64, u8) {
    (
        operand & ((1 << SIZE_SHIFT) - 1),
        (operand >> SIZE_SHIFT) as u8,
    )
}
