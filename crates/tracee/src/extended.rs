//! Vector registers of a stopped thread, and stopping a running one.

use crate::{Stopped, ptrace};
use std::io::{Error, Result};

/// Register set of what XSAVE writes.
const NT_X86_XSTATE: usize = 0x202;
/// No processor's area is larger yet (AMX has 8 KiB of tiles).
const AREA_BYTES_MAX: usize = 16384;
/// The processor's description of the area.
const CPUID_XSTATE: u32 = 0xd;

impl Stopped {
    /// Stop a seized thread that runs (the one operation for which it need not be stopped): it
    /// reports [`Event::Stop`](crate::Event::Stop).
    ///
    /// # Errors
    /// ESRCH when the thread is gone.
    pub fn interrupt(self) -> Result<()> {
        ptrace(libc::PTRACE_INTERRUPT, self.0, 0, 0)
    }

    /// The area with all vector registers.
    ///
    /// # Errors
    /// ESRCH when the thread is gone or runs.
    pub fn xstate(self) -> Result<Vec<u8>> {
        let mut area = vec![0; AREA_BYTES_MAX];
        let mut io = libc::iovec {
            iov_base: area.as_mut_ptr().cast(),
            iov_len: area.len(),
        };
        self.regset(libc::PTRACE_GETREGSET, &mut io)?;
        if io.iov_len > area.len() {
            return Err(Error::other("the vector registers do not fit"));
        }
        area.truncate(io.iov_len);
        Ok(area)
    }

    /// Set the area, as it was read and then changed.
    ///
    /// # Errors
    /// EINVAL for an area of another size.
    pub fn set_xstate(self, area: &[u8]) -> Result<()> {
        let mut io = libc::iovec {
            // The kernel only reads it.
            iov_base: area.as_ptr().cast_mut().cast(),
            iov_len: area.len(),
        };
        self.regset(libc::PTRACE_SETREGSET, &mut io)
    }

    /// `io` names a buffer of the caller's.
    fn regset(self, request: libc::c_uint, io: &mut libc::iovec) -> Result<()> {
        let io = std::ptr::from_mut(io) as usize;
        ptrace(request, self.0, NT_X86_XSTATE, io)
    }
}

/// Where the area has a component, by the processor's numbers (2: upper halves of ymm, 6: of zmm,
/// 7: zmm16 to zmm31); None when this processor has none.
#[allow(unused_unsafe)] // the instruction is safe for newer compilers than the oldest we take
pub fn xsave_offset(component: u32) -> Option<usize> {
    use std::arch::x86_64::{__cpuid_count, __get_cpuid_max};
    // SAFETY: every x86-64 processor has the instruction.
    if unsafe { __get_cpuid_max(0) }.0 < CPUID_XSTATE {
        return None;
    }
    // SAFETY: as above.
    let leaf = unsafe { __cpuid_count(CPUID_XSTATE, component) };
    (component >= 2 && leaf.eax != 0).then_some(leaf.ebx as usize)
}
