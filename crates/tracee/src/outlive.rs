//! Signals that would end us while a child is waited for, of which something is to be said when it has ended.

use crate::stop::Pid;
use std::io::{Error, Result};
use std::sync::atomic::{AtomicI32, Ordering};

/// To whom SIGTERM is passed on.
static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: libc::c_int) {
    let child = CHILD.load(Ordering::Relaxed);
    if signal == libc::SIGTERM && child > 0 {
        // SAFETY: a call that a handler may make.
        unsafe { libc::kill(child, signal) };
    }
}

/// From now on SIGTERM ends this child and not us; SIGINT and SIGHUP do not, which come from a terminal, for the child as
/// well. (A program that the child executes has its usual actions for them.)
///
/// # Errors
/// None that a kernel is known to give.
pub fn outlive(child: Pid) -> Result<()> {
    CHILD.store(child, Ordering::Relaxed);
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: plain calls with a local structure, which is valid if it is zero; the handler makes one call only.
        let done = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = pass_on as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if done != 0 {
            return Err(Error::last_os_error());
        }
    }
    Ok(())
}
