//! What a filter's verdict asks for.

use geryon_abi::layout::filter::{ENDS_PROCESS, ENDS_THREAD};

const ENOSYS: i64 = -38;
const MAX_ERRNO: u32 = 4095;

/// What a verdict asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The call is made.
    Allow,
    /// It is not, and returns this.
    Answer(i64),
    /// It is not, and the handler of SIGSYS is told this number.
    Trap(u32),
    /// The thread ends, or its process, as this says (see `geryon_abi::layout::filter`).
    End(u64),
}

/// The half of a verdict that says what is done. The lower, the graver.
pub fn action_of(verdict: u32) -> i32 {
    (verdict & 0xffff_0000) as i32
}

impl Action {
    /// What this verdict asks for.
    pub fn of(verdict: u32) -> Action {
        let number = verdict & 0xffff;
        match verdict >> 16 {
            0x0000 => Action::End(ENDS_THREAD),
            0x0003 => Action::Trap(number),
            0x0005 => Action::Answer(-i64::from(number.min(MAX_ERRNO))),
            // To a listener or a tracer; there is none.
            0x7fc0 | 0x7ff0 => Action::Answer(ENOSYS),
            // It would be logged by the kernel.
            0x7ffc | 0x7fff => Action::Allow,
            _ => Action::End(ENDS_PROCESS),
        }
    }
}
