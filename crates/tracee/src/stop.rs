//! What waitpid reports.

use crate::points;
use geryon_abi::point::FaultPoint;
use std::cell::RefCell;
use std::io::{Error, Result};

/// Process or thread id.
pub type Pid = libc::pid_t;

/// ptrace events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread was created.
    Clone,
    /// A process was forked.
    Fork,
    /// A process was vforked.
    Vfork,
    /// A new program was loaded.
    Exec,
    /// The seccomp filter asks.
    Seccomp,
    /// Stop of a seized thread: first stop, interrupt, or group stop (then with the signal).
    Stop(i32),
    /// A thread is about to end: its registers and memory are still there.
    Exit,
    /// Another event.
    Other(i32),
}

/// One report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Exited with a status.
    Exited(Pid, i32),
    /// Killed by a signal (and whether it dumped core).
    Killed(Pid, i32, bool),
    /// About to receive a signal.
    Signal(Pid, i32),
    /// Start or end of a system call.
    Syscall(Pid),
    /// An event.
    Event(Pid, Event),
}

impl Stop {
    /// Whom it concerns.
    pub fn pid(self) -> Pid {
        match self {
            Stop::Exited(p, _)
            | Stop::Killed(p, _, _)
            | Stop::Signal(p, _)
            | Stop::Syscall(p)
            | Stop::Event(p, _) => p,
        }
    }

    fn decode(pid: Pid, status: i32) -> Stop {
        if libc::WIFEXITED(status) {
            return Stop::Exited(pid, libc::WEXITSTATUS(status));
        }
        if libc::WIFSIGNALED(status) {
            return Stop::Killed(pid, libc::WTERMSIG(status), libc::WCOREDUMP(status));
        }
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 if signal == libc::SIGTRAP | 0x80 => Stop::Syscall(pid),
            0 => Stop::Signal(pid, signal),
            libc::PTRACE_EVENT_CLONE => Stop::Event(pid, Event::Clone),
            libc::PTRACE_EVENT_FORK => Stop::Event(pid, Event::Fork),
            libc::PTRACE_EVENT_VFORK => Stop::Event(pid, Event::Vfork),
            libc::PTRACE_EVENT_EXEC => Stop::Event(pid, Event::Exec),
            libc::PTRACE_EVENT_SECCOMP => Stop::Event(pid, Event::Seccomp),
            libc::PTRACE_EVENT_EXIT => Stop::Event(pid, Event::Exit),
            libc::PTRACE_EVENT_STOP => Stop::Event(pid, Event::Stop(signal)),
            other => Stop::Event(pid, Event::Other(other)),
        }
    }
}

thread_local! {
    /// Ends that were reported while something else was waited for.
    static ENDS: RefCell<Vec<Stop>> = const { RefCell::new(Vec::new()) };
}

/// The thread ended while something else was expected of it: its end is reported again by
/// [`wait_any`], and whoever waits gets ESRCH.
pub(crate) fn ended(stop: Stop) -> Error {
    ENDS.with_borrow_mut(|e| e.push(stop));
    Error::from_raw_os_error(libc::ESRCH)
}

/// The next report of any child or tracee; None when there is none now.
///
/// # Errors
/// ECHILD when there is nobody left.
pub fn wait_any() -> Result<Option<Stop>> {
    if let Some(end) = ENDS.with_borrow_mut(Vec::pop) {
        return Ok(Some(end));
    }
    if points::any() {
        kill_unseen();
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) };
    match pid {
        -1 => Err(Error::last_os_error()),
        0 => Ok(None),
        p => Ok(Some(Stop::decode(p, status))),
    }
}

/// A test may have the next one who has stopped for a signal killed before that is reported.
#[cold]
fn kill_unseen() {
    let options = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: plain calls with a local structure, which is valid if it is zero.
    let (pid, status) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, options);
        (info.si_pid(), info.si_status())
    };
    let is_signal = pid != 0 && status != libc::SIGTRAP && (1..=64).contains(&status);
    if is_signal && points::fails(FaultPoint::StopKilled) {
        crate::kill(pid, libc::SIGKILL);
    }
}

/// One thread's next report, if there is one now.
///
/// # Errors
/// ECHILD when it is not ours.
pub fn poll_for(pid: Pid) -> Result<Option<Stop>> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL | libc::WNOHANG) } {
        -1 => Err(Error::last_os_error()),
        0 => Ok(None),
        p => Ok(Some(Stop::decode(p, status))),
    }
}

/// Wait for one thread.
///
/// # Errors
/// ECHILD when it is not ours.
pub fn wait_for(pid: Pid) -> Result<Stop> {
    wait(pid)
}

/// Wait for any child or tracee.
///
/// # Errors
/// ECHILD when there is nobody left.
pub fn wait_next() -> Result<Stop> {
    wait(-1)
}

fn wait(whom: Pid) -> Result<Stop> {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        let pid = unsafe { libc::waitpid(whom, &raw mut status, libc::__WALL) };
        if pid > 0 {
            return Ok(Stop::decode(pid, status));
        }
        let e = Error::last_os_error();
        if e.raw_os_error() != Some(libc::EINTR) {
            return Err(e);
        }
    }
}

/// Sleep until some child or tracee has something to report (SIGCHLD, which the caller blocks), at most
/// for so long. Others run meanwhile, who may be what is waited for.
pub fn await_report(limit: std::time::Duration) {
    let t = libc::timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    // SAFETY: plain calls with local structures; no information is asked for.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const t);
    }
}
