//! Ends and words for the user.

use crate::gate::rpc;
use geryon_abi::layout::rpc as number;

/// This replica contradicts itself: it is broken, and crashes before anybody sees more of it.
#[cold]
pub fn broken() -> ! {
    // SAFETY: an undefined instruction; the monitor sees a crash inside the agent.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}

/// Show a message to the user (once for each bit of `once`).
pub fn message(text: &str) {
    rpc(number::MESSAGE, text.as_ptr() as u64, text.len() as u64, 0);
}

/// The same, with the number of a call: the monitor knows names and the program counter.
pub fn refused(nr: u64, detail: u64) {
    rpc(number::MESSAGE, 0, nr, detail);
}
