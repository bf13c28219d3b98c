//! The program's first process, traced from before its exec; news of it; and its end.

use anyhow::{Context, Result, bail};
use geryon_tracee::{Pid, seize};
use std::ffi::{CString, OsString};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// SIGCHLD, blocked: it is waited for.
pub struct Children {
    set: libc::sigset_t,
    original: libc::sigset_t,
}

impl Children {
    /// Block it.
    ///
    /// # Errors
    /// When the kernel refuses (it does not).
    pub fn block() -> Result<Children> {
        // SAFETY: plain calls on local sets.
        unsafe {
            let mut set = std::mem::zeroed();
            let mut original = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut original) != 0 {
                return Err(std::io::Error::last_os_error().into());
            }
            Ok(Children { set, original })
        }
    }

    /// Wait until there may be news.
    pub fn wait(&self, limit: Duration) {
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        // SAFETY: plain call with local structures.
        unsafe { libc::sigtimedwait(&raw const self.set, std::ptr::null_mut(), &raw const limit) };
    }
}

/// Start the program; its exec is the first that is heard of it.
///
/// # Errors
/// When no process can be made or tracing is forbidden.
pub fn launch(program: &Path, args: &[OsString], children: &Children) -> Result<Pid> {
    let path = CString::new(program.as_os_str().as_bytes())?;
    let args: Vec<CString> = args
        .iter()
        .map(|a| CString::new(a.as_bytes()))
        .collect::<Result<_, _>>()?;
    let mut argv: Vec<*const libc::c_char> = args.iter().map(|a| a.as_ptr()).collect();
    argv.push(std::ptr::null());
    let (reader, mut writer) = std::io::pipe()?;
    let (go, other_end) = (reader.as_raw_fd(), writer.as_raw_fd());
    // SAFETY: the child calls only async-signal-safe functions until it execs or exits.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(std::io::Error::last_os_error()).context("fork");
    }
    if pid == 0 {
        let mut byte = 0u8;
        // SAFETY: as above; the strings live until the exec.
        unsafe {
            libc::close(other_end);
            while libc::read(go, (&raw mut byte).cast(), 1) == -1 {}
            libc::sigprocmask(
                libc::SIG_SETMASK,
                &raw const children.original,
                std::ptr::null_mut(),
            );
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::execv(path.as_ptr(), argv.as_ptr());
            libc::_exit(127);
        }
    }
    if let Err(e) = seize(pid) {
        geryon_tracee::kill(pid, libc::SIGKILL);
        bail!("cannot trace the program: {e}\n  try: geryon doctor");
    }
    writer.write_all(b"x").context("cannot start the program")?;
    Ok(pid)
}

/// Die as the program did.
pub fn die_of(signal: i32) -> ExitCode {
    // SAFETY: plain calls; the process has nothing left to do.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    ExitCode::from((128 + signal) as u8)
}
