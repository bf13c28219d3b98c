//! Operations that change nothing, one after the other.

/// Leader: the thread's last record is of an atomic operation that has left memory as it was, for what it has found there.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Vain {
    /// Behind that record. (Positions start at 1 word, so that 0 is none.)
    pub pos: u64,
    /// The instruction.
    pub site: u64,
    /// Its operand.
    pub at: u64,
    /// What it has found.
    pub value: u64,
    /// So many turns the thread waits for another value before it makes it again.
    pub turns: u64,
}
