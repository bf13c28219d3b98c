//! Seccomp filters of the program. The kernel would apply them to the agent's own calls, which are many more and other
//! ones than the program's: so they are evaluated here, for the program's calls alone.
//!
//! Each replica does so by itself, with filters in its own memory, and comes to the same: what is said of a call depends on
//! its number, its arguments and its place. Nothing of that is logged.

mod action;
mod chain;
mod check;
mod install;
mod operation;
mod synchronise;
#[cfg(all(test, not(miri)))]
mod tests;
mod vdso;

pub use action::Action;
pub use install::{prctl, seccomp};

use geryon_abi::frame::Frame;
use geryon_abi::layout::filter::{FIRST_ADDRESS, KILLS_THREAD, NONE, STRICT};
use geryon_abi::table::nr;
use operation::Data;

/// Whose calls they are: x86-64 (AUDIT_ARCH_X86_64).
pub const ARCHITECTURE: u32 = 0xc000_003e;

/// What the program's filters, as `Block::filter` names them, say of the call in the frame.
pub fn judge(filter: u64, frame: &Frame) -> Action {
    match filter {
        NONE => Action::Allow,
        STRICT if is_allowed_when_strict(frame.rax) => Action::Allow,
        STRICT => Action::End(KILLS_THREAD),
        _ if filter < FIRST_ADDRESS => Action::End(filter),
        _ if vdso::answers(frame.rax, frame.rdi) => Action::Allow,
        _ => Action::of(chain::verdict(filter, &data(frame))),
    }
}

/// What a filter sees of a call. (An address in a register is what it is in this replica.)
fn data(frame: &Frame) -> Data {
    let number = frame.rax as u32;
    let mut words = [
        number,
        ARCHITECTURE,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    let wide = core::iter::once(frame.rcx).chain(frame.args());
    for (pair, value) in words[2..].chunks_exact_mut(2).zip(wide) {
        pair[0] = value as u32;
        pair[1] = (value >> 32) as u32;
    }
    Data(words)
}

fn is_allowed_when_strict(nr: u64) -> bool {
    const READ: u64 = nr::read;
    const WRITE: u64 = nr::write;
    const SIGRETURN: u64 = nr::rt_sigreturn;
    const EXIT: u64 = nr::exit;
    matches!(nr, READ | WRITE | SIGRETURN | EXIT)
}
