//! What a process does with its signals, as its kernel tells.

use geryon_tracee::Pid;

/// What a process does with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    Ignored,
    Stops,
    Ends,
    Caught,
}

/// What a process does with all signals: bits by their numbers, from 1 on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dispositions {
    pub(super) caught: u64,
    ignored: u64,
}

impl Dispositions {
    pub(super) fn of(pid: Pid) -> Dispositions {
        let [caught, ignored] = sets(pid, ["SigCgt:", "SigIgn:"]);
        Dispositions { caught, ignored }
    }
}

/// Sets of signals that the kernel tells of a thread.
pub(super) fn sets<const N: usize>(tid: Pid, names: [&str; N]) -> [u64; N] {
    let text = geryon_tracee::text(format!("/proc/{tid}/status")).unwrap_or_default();
    names.map(|name| {
        text.lines()
            .find_map(|l| l.strip_prefix(name))
            .and_then(|v| u64::from_str_radix(v.trim(), 16).ok())
            .unwrap_or(0)
    })
}

/// Signals that an instruction raises.
pub(super) const RAISED: u64 = bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGFPE)
    | bit(libc::SIGILL)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGSYS);

pub(crate) const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// May an instruction have raised it?
pub(crate) fn is_raised(signal: i32) -> bool {
    RAISED & bit(signal) != 0
}

/// The signals for which a process has handlers, as bits.
pub(crate) fn caught(pid: Pid) -> u64 {
    Dispositions::of(pid).caught
}

/// The signals that are shut out of a thread, as bits.
pub(crate) fn blocked(tid: Pid) -> u64 {
    let [blocked] = sets(tid, ["SigBlk:"]);
    blocked
}

/// Would the process's kernel keep this signal for it, although nothing would come of it now? Its first thread blocks it.
pub(crate) fn keeps(pid: Pid, signal: i32) -> bool {
    let is_ignored = disposition(pid, signal) == Disposition::Ignored;
    is_ignored && signal != libc::SIGCONT && blocked(pid) & bit(signal) != 0
}

/// Is it a descriptor from which a process reads its signals?
pub(crate) fn are_read_from(pid: Pid, fd: u64) -> bool {
    let name = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    name.is_ok_and(|name| name.as_os_str() == "anon_inode:[signalfd]")
}

/// Does the process ignore this signal because it has said so?
pub(crate) fn ignores(pid: Pid, signal: i32) -> bool {
    Dispositions::of(pid).ignored & bit(signal) != 0
}

/// Is it a signal of job control that stops, where nothing else is said?
pub(crate) fn is_stop(signal: i32) -> bool {
    matches!(
        signal,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU
    )
}

/// Would this signal stop the process?
pub(crate) fn stops(pid: Pid, signal: i32) -> bool {
    disposition(pid, signal) == Disposition::Stops
}

/// Would this signal end the process?
pub(crate) fn ends(pid: Pid, signal: i32) -> bool {
    disposition(pid, signal) == Disposition::Ends
}

pub(super) fn disposition(pid: Pid, signal: i32) -> Disposition {
    let all = Dispositions::of(pid);
    if all.caught & bit(signal) != 0 {
        return Disposition::Caught;
    }
    if all.ignored & bit(signal) != 0 {
        return Disposition::Ignored;
    }
    match signal {
        libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT => Disposition::Ignored,
        stop if is_stop(stop) => Disposition::Stops,
        _ => Disposition::Ends,
    }
}
