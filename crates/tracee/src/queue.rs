//! Signals that wait in the kernel: those of a stopped thread can be read, and others be put there.

use crate::{Pid, Stopped};
use std::io::{Error, Result};

/// What the kernel says of a signal.
pub type Siginfo = [u64; 16];

/// So many are read at once.
const AT_ONCE: usize = 16;

/// Whose they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The thread's own.
    Thread,
    /// Its process's.
    Process,
}

impl Stopped {
    /// Signals that wait for the thread, or for any of its process, the oldest first. They stay there.
    /// At its end (PTRACE_EVENT_EXIT) a thread has them still, however it was killed.
    ///
    /// # Errors
    /// ESRCH when the thread is gone.
    pub fn queued(self, queue: Queue) -> Result<Vec<Siginfo>> {
        let mut all = Vec::new();
        loop {
            let args = libc::ptrace_peeksiginfo_args {
                off: all.len() as u64,
                flags: match queue {
                    Queue::Thread => 0,
                    Queue::Process => libc::PTRACE_PEEKSIGINFO_SHARED,
                },
                nr: AT_ONCE as i32,
            };
            let mut some = [[0u64; 16]; AT_ONCE];
            // SAFETY: the kernel reads `args` and writes up to `nr` structures of 128 bytes each.
            let n = unsafe {
                libc::ptrace(
                    libc::PTRACE_PEEKSIGINFO,
                    self.0,
                    &raw const args,
                    some.as_mut_ptr(),
                )
            };
            if n < 0 {
                return Err(Error::last_os_error());
            }
            all.extend(&some[..(n as usize).min(AT_ONCE)]);
            if (n as usize) < AT_ONCE {
                return Ok(all);
            }
        }
    }
}

/// Put a signal with its siginfo in a process's queue, or in that of one thread of it.
///
/// # Errors
/// EPERM for a siginfo that only the kernel or the process itself may make (`si_code` from 0 on, and
/// SI_TKILL); EAGAIN when there are too many; ESRCH when it is gone.
pub fn queue_signal(pid: Pid, tid: Option<Pid>, info: &Siginfo) -> Result<()> {
    let signal = info[0] as i32;
    let at = info.as_ptr();
    // SAFETY: the kernel reads 128 bytes.
    let r = unsafe {
        match tid {
            Some(tid) => libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, at),
            None => libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal, at),
        }
    };
    if r == -1 {
        return Err(Error::last_os_error());
    }
    Ok(())
}
