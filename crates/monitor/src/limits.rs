//! A limit of the size of files (`ulimit -f`) holds for the memory that the replicas share, too: it is a file
//! to the kernel. The monitor lifts it for itself, as far as it may; the program keeps it.

use anyhow::{Result, bail};
use geryon_abi::layout::{RING_WORDS, segment_bytes};

/// What it was.
#[derive(Clone, Copy)]
pub struct FileSize {
    limit: libc::rlimit,
    signal: libc::sighandler_t,
}

impl FileSize {
    /// From here on what is too large is an error and no signal.
    ///
    /// # Errors
    /// When what is left is too little: the hard limit is, and this user may not change it.
    pub fn lift() -> Result<FileSize> {
        // SAFETY: plain calls on a local structure.
        unsafe {
            let mut limit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit);
            let signal = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            let none = libc::rlimit {
                rlim_cur: libc::RLIM_INFINITY,
                rlim_max: libc::RLIM_INFINITY,
            };
            if libc::setrlimit(libc::RLIMIT_FSIZE, &raw const none) != 0 {
                let most = libc::rlimit {
                    rlim_cur: limit.rlim_max,
                    ..limit
                };
                libc::setrlimit(libc::RLIMIT_FSIZE, &raw const most);
                let needed = segment_bytes(RING_WORDS);
                if most.rlim_cur < needed {
                    bail!(
                        "files may have {} bytes only (RLIMIT_FSIZE), and the log of the replicas is one of {needed} bytes\n  try: a higher hard limit (ulimit -H -f), and ulimit -S -f for the program",
                        most.rlim_cur
                    );
                }
            }
            Ok(FileSize { limit, signal })
        }
    }

    /// As it was: for the program. (Between fork and exec: it calls what may be called there.)
    pub fn restore(self) {
        // SAFETY: plain calls.
        unsafe {
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const self.limit);
            libc::signal(libc::SIGXFSZ, self.signal);
        }
    }
}
