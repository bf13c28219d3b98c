//! The signals that the monitor itself receives: it blocks them, and waits for them.

use anyhow::Result;
use std::time::Duration;

/// The monitor's own blocked signals.
pub struct Signals {
    set: libc::sigset_t,
    original: libc::sigset_t,
}

const OURS: [i32; 8] = [
    libc::SIGCHLD,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
];

impl Signals {
    /// Block what is to be waited for.
    ///
    /// # Errors
    /// When the kernel refuses (it does not).
    pub fn block() -> Result<Signals> {
        // SAFETY: plain calls on local sets.
        unsafe {
            let mut set = std::mem::zeroed();
            let mut original = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for s in OURS {
                libc::sigaddset(&raw mut set, s);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut original) != 0 {
                return Err(std::io::Error::last_os_error().into());
            }
            Ok(Signals { set, original })
        }
    }

    /// The mask that the program inherits.
    pub fn original(&self) -> &libc::sigset_t {
        &self.original
    }

    /// Wait for news of tracees; a signal that a person sent to the monitor is returned.
    pub fn wait(&self, limit: Duration) -> Option<i32> {
        let t = libc::timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        // SAFETY: plain call with local structures.
        let (s, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (
                libc::sigtimedwait(&raw const self.set, &raw mut info, &raw const t),
                info,
            )
        };
        // What a terminal sends (SI_KERNEL) has reached the leader as well.
        (s > 0 && s != libc::SIGCHLD && info.si_code <= 0).then_some(s)
    }

    /// As before.
    pub fn restore(&self) {
        // SAFETY: plain call.
        unsafe {
            libc::sigprocmask(
                libc::SIG_SETMASK,
                &raw const self.original,
                std::ptr::null_mut(),
            )
        };
    }
}
