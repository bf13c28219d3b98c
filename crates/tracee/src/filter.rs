//! The seccomp filter: a system call passes only when its instruction lies in the agent's
//! gate; any other one stops in the monitor. No crate matches on the instruction pointer.

use crate::Stopped;
use std::io::{Error, Result};

/// Addresses (behind the `syscall` instructions) from which calls pass.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// What the event's message says of a call of another architecture; of other calls it says 0.
const FOREIGN: u32 = 1;
/// Offsets in struct seccomp_data.
const ARCH: u32 = 4;
const IP_LOW: u32 = 8;
const IP_HIGH: u32 = 12;

fn op(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

impl Stopped {
    /// Is the call that the filter has stopped one of another architecture, by `int 0x80`?
    ///
    /// # Errors
    /// ESRCH when the thread is gone.
    pub fn is_foreign_call(self) -> Result<bool> {
        Ok(self.event_message()? == u64::from(FOREIGN))
    }
}

/// The filter's program.
fn program(gate: Gate) -> Vec<libc::sock_filter> {
    assert_eq!(
        gate.start >> 32,
        gate.end >> 32,
        "the gate must not cross 4 GiB"
    );
    vec![
        op(LOAD, ARCH, 0, 0),
        op(EQUAL, AUDIT_ARCH_X86_64, 0, 6),
        op(LOAD, IP_HIGH, 0, 0),
        op(EQUAL, (gate.start >> 32) as u32, 0, 3),
        op(LOAD, IP_LOW, 0, 0),
        op(AT_LEAST, gate.start as u32, 0, 1),
        op(AT_LEAST, gate.end as u32, 0, 2),
        op(RETURN, libc::SECCOMP_RET_TRACE, 0, 0),
        // Calls of another architecture (int 0x80) do not exist here, and the monitor says so.
        op(RETURN, libc::SECCOMP_RET_TRACE | FOREIGN, 0, 0),
        op(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    ]
}

/// Install it in the calling thread; needs no privilege because new ones are given up first.
///
/// # Errors
/// What prctl(2) says.
pub fn install_filter(gate: Gate) -> Result<()> {
    let mut code = program(gate);
    let fprog = libc::sock_fprog {
        len: code.len() as u16,
        filter: code.as_mut_ptr(),
    };
    // SAFETY: plain prctl calls; `fprog` and its program outlive them.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(Error::last_os_error());
        }
        if libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const fprog,
        ) != 0
        {
            return Err(Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel would, on (arch, ip).
    fn answer(arch: u32, ip: u64) -> u32 {
        let code = program(Gate {
            start: 0x2000_0000_7485,
            end: 0x2000_0000_7537,
        });
        let (mut pc, mut acc) = (0, 0u32);
        loop {
            let i = code[pc];
            pc += 1;
            match i.code {
                LOAD => {
                    acc = match i.k {
                        ARCH => arch,
                        IP_LOW => ip as u32,
                        _ => (ip >> 32) as u32,
                    }
                }
                EQUAL => pc += usize::from(if acc == i.k { i.jt } else { i.jf }),
                AT_LEAST => pc += usize::from(if acc >= i.k { i.jt } else { i.jf }),
                _ => return i.k,
            }
        }
    }

    #[test]
    fn only_the_gate_passes() {
        const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
        const TRACE: u32 = libc::SECCOMP_RET_TRACE;
        assert_eq!(answer(AUDIT_ARCH_X86_64, 0x2000_0000_7485), ALLOW);
        assert_eq!(answer(AUDIT_ARCH_X86_64, 0x2000_0000_7536), ALLOW);
        assert_eq!(answer(AUDIT_ARCH_X86_64, 0x2000_0000_7537), TRACE);
        assert_eq!(answer(AUDIT_ARCH_X86_64, 0x2000_0000_7484), TRACE);
        assert_eq!(answer(AUDIT_ARCH_X86_64, 0x7fff_0000_7485), TRACE);
        assert_eq!(answer(3, 0x2000_0000_7485), TRACE | FOREIGN);
    }
}
