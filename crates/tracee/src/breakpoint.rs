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

impl Stopped {
    /// Does this signal (as 16 words) say that a breakpoint of this thread was hit? (Virtual machines that are short of
    /// cores lose now and then what the processor tells of it: the kernel takes it for an `int1` then.)
    #[must_use]
    pub fn is_breakpoint(self, info: &[u64; 16]) -> bool {
        const TRAP_BRKPT: i32 = 1;
        const TRAP_HWBKPT: i32 = 4;
        let is_trap = info[0] as i32 == libc::SIGTRAP;
        is_trap
            && match info[1] as i32 {
                TRAP_HWBKPT => true,
                TRAP_BRKPT => self.breakpoint() == Some(info[2]),
                _ => false,
            }
    }

    /// The address that was last given to [`Stopped::set_breakpoint`]; 0: none was.
    fn breakpoint(self) -> Option<u64> {
        // SAFETY: the request takes integers.
        let address = unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, self.0, debug_register(0), 0) };
        (address != -1).then_some(address as u64)
    }

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
