//! Breakpoints in the processor's debug registers: each thread has its own, nothing in memory
//! changes, and neither a new thread nor a new process inherits them.

use crate::{Stopped, ptrace};
use std::io::Result;
use std::mem::{offset_of, size_of};

/// Debug register 7: the address in register 0 stops this thread when it is executed.
const ENABLE_0: u64 = 1;
const CONTROL: usize = 7;

/// Where `PTRACE_POKEUSER` has a debug register.
const fn debug_register(number: usize) -> usize {
    offset_of!(libc::user, u_debugreg) + number * size_of::<libc::c_ulonglong>()
}

/// Does this signal (as 16 words) say that a breakpoint was hit?
pub fn is_breakpoint(info: &[u64; 16]) -> bool {
    const TRAP_HWBKPT: i32 = 4;
    info[0] as i32 == libc::SIGTRAP && info[1] as i32 == TRAP_HWBKPT
}

impl Stopped {
    /// Let the thread stop with a SIGTRAP each time before it executes the instruction at `address`;
    /// None: no more.
    ///
    /// # Errors
    /// ESRCH when the thread is gone or runs; EINVAL for an address that is none of a program;
    /// EBUSY or ENOSPC when there is no free debug register.
    pub fn set_breakpoint(self, address: Option<u64>) -> Result<()> {
        let poke = |register, value: u64| {
            ptrace(
                libc::PTRACE_POKEUSER,
                self.0,
                debug_register(register),
                value as usize,
            )
        };
        // The address may only change while it is not in use.
        poke(CONTROL, 0)?;
        if let Some(address) = address {
            poke(0, address)?;
            poke(CONTROL, ENABLE_0)?;
        }
        Ok(())
    }
}
