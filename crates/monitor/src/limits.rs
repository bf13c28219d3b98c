//! A limit of the size of files (`ulimit -f`) holds for the memory that the replicas share, too: it is a file
//! to the kernel. The monitor lifts it for itself, as far as it may; the program keeps it.

/// What it was.
#[derive(Clone, Copy)]
pub struct FileSize {
    limit: libc::rlimit,
    signal: libc::sighandler_t,
}

impl FileSize {
    /// From here on what is too large is an error and no signal.
    pub fn lift() -> FileSize {
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
            }
            FileSize { limit, signal }
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
