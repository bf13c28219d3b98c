//! What /proc/PID/stat says of a process or thread.

use crate::Pid;
use std::time::Duration;

/// Fields of proc_pid_stat(5), counted from the state on.
const UTIME: usize = 11;
const STIME: usize = 12;
const EXIT_SIGNAL: usize = 35;
const CORE: usize = 36;

/// The fields from the state on; the name before them may hold anything.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split_whitespace()
}

/// What a file below /proc says. A name in it (a thread's, a file's) may be bytes of any kind.
pub fn text(path: impl AsRef<std::path::Path>) -> std::io::Result<String> {
    let bytes = std::fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn of(tid: Pid) -> String {
    text(format!("/proc/{tid}/stat")).unwrap_or_default()
}

/// The letter of a thread's state; None when it is gone.
pub fn state(tid: Pid) -> Option<char> {
    fields(&of(tid)).next()?.chars().next()
}

/// The signal by which a process's parent is told of its end; 0: none. None when it is gone.
pub fn exit_signal(pid: Pid) -> Option<i32> {
    fields(&of(pid)).nth(EXIT_SIGNAL)?.parse().ok()
}

/// The core that a thread runs on, or ran on last; None when it is gone.
pub fn core_of(tid: Pid) -> Option<usize> {
    fields(&of(tid)).nth(CORE)?.parse().ok()
}

/// Processor time that a process has used, in clock ticks; 0 when it is gone.
pub fn cpu_ticks(pid: Pid) -> u64 {
    ticks(&of(pid))
}

/// The same of one thread of a process.
pub fn thread_ticks(pid: Pid, tid: Pid) -> u64 {
    // (What lies at /proc/TID is that of all threads, whichever of them is named.)
    ticks(&text(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default())
}

fn ticks(text: &str) -> u64 {
    let field = |i: usize| fields(text).nth(i).and_then(|v| v.parse::<u64>().ok());
    field(UTIME).unwrap_or(0) + field(STIME).unwrap_or(0)
}

/// Processor time that a process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// In its program and the agent.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl Used {
    /// What has been used since it was that.
    pub fn since(self, then: Used) -> Used {
        Used {
            user: self.user.saturating_sub(then.user),
            system: self.system.saturating_sub(then.system),
        }
    }
}

/// What a process has used of the processor so far; None when it is gone.
pub fn used(pid: Pid) -> Option<Used> {
    let text = of(pid);
    // SAFETY: plain call.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    let time = |i| {
        let ticks: u64 = fields(&text).nth(i)?.parse().ok()?;
        Some(Duration::from_millis(ticks * 1000 / a_second))
    };
    Some(Used {
        user: time(UTIME)?,
        system: time(STIME)?,
    })
}

/// What `prctl(PR_SET_MM_MAP)` is told of a process, in its order: begin and end of code and data, begin of
/// the heap (and its end, which is the same before the program runs), the stack, arguments, environment.
pub fn memory_layout(pid: Pid) -> Option<[u64; 11]> {
    const ORDER: [usize; 11] = [23, 24, 42, 43, 44, 44, 25, 45, 46, 47, 48];
    let text = of(pid);
    let all: Vec<u64> = fields(&text).map(|v| v.parse().unwrap_or(0)).collect();
    let mut layout = [0; 11];
    for (to, from) in layout.iter_mut().zip(ORDER) {
        *to = *all.get(from)?;
    }
    Some(layout)
}

/// Processor time that a thread has used, to the nanosecond while it stands still; None where the kernel does
/// not count it.
pub fn processor_time(tid: Pid) -> Option<Duration> {
    let text = text(format!("/proc/{tid}/schedstat")).ok()?;
    let ns = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

/// How often a thread has gone to sleep; 0 when it is gone.
pub fn sleeps(tid: Pid) -> u64 {
    let text = text(format!("/proc/{tid}/status")).unwrap_or_default();
    let mut lines = text.lines();
    let count = lines.find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|c| c.trim().parse().ok()).unwrap_or(0)
}

/// May this process reach those that are not dumpable, or are another user's (CAP_SYS_PTRACE)?
pub fn reaches_all() -> bool {
    const CAP_SYS_PTRACE: u64 = 1 << 19;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    held.and_then(|h| u64::from_str_radix(h.trim(), 16).ok())
        .is_some_and(|h| h & CAP_SYS_PTRACE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "42 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 \
                        23 24 25 26 27 28 29 30 31 32 33 34 35 3 37";

    #[test]
    fn a_name_may_look_like_the_rest() {
        assert_eq!(fields(LINE).next(), Some("S"));
        assert_eq!(fields(LINE).nth(UTIME), Some("11"));
        assert_eq!(fields(LINE).nth(CORE), Some("3"));
        assert_eq!(fields("").next(), None);
    }

    #[test]
    fn who_is_there_has_a_state_and_a_core() {
        let own = std::process::id() as Pid;
        assert!(state(own).is_some_and(|s| "RS".contains(s)));
        assert!(core_of(own).is_some());
        assert_eq!((state(-1), core_of(-1), cpu_ticks(-1)), (None, None, 0));
    }
}
