//! The processes of one run, found by a mark in their environment: what they
//! are doing when the run hangs, which are left when it is over, their end.

use super::POLL_MS;
use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// The variable whose value marks every process that belongs to one run.
pub const VARIABLE: &str = "GERYON_TEST_ID";
/// How long processes that are already dying may take to be gone.
const STRAY_GRACE_MS: u64 = 300;
/// How long the processes of a failed run may take to die of SIGKILL.
const KILL_MS: u64 = 5000;

/// Sends a signal to one process of ours.
pub fn kill(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).expect("a pid fits");
    // SAFETY: kill takes no pointer; the pid was found by this run's mark or is
    // that of our own child, which has not been waited for.
    unsafe { libc::kill(pid, signal) };
}

/// The processes that carry this mark in their environment.
fn with(mark: &str) -> Vec<u32> {
    let wanted = format!("{VARIABLE}={mark}");
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes())
    })
    .collect()
}

/// Does it belong to a run that has not ended?
#[allow(dead_code)] // pids that were used again matter where replicas are killed
pub fn is_of_a_run(pid: i32) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = format!("{VARIABLE}=");
    environ
        .split(|b| *b == 0)
        .any(|v| v.starts_with(mark.as_bytes()))
}

/// Do the first threads of all processes of a run sleep? (A signal that is sent when a program has said that
/// it is about to wait for one, and before it does, would be none of what it waits for.)
pub fn all_sleep(mark: &str) -> bool {
    with(mark).iter().all(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        state == Some('S')
    })
}

/// Kills all processes of a run, those they still make included.
pub fn kill_all(mark: &str) {
    let begin = Instant::now();
    loop {
        let pids = with(mark);
        if pids.is_empty() {
            return;
        }
        assert!(
            begin.elapsed().as_millis() < KILL_MS.into(),
            "{pids:?} survive SIGKILL"
        );
        for pid in pids {
            kill(pid, libc::SIGKILL);
        }
        thread::sleep(Duration::from_millis(POLL_MS));
    }
}

/// Names what a finished run left behind, and kills it.
pub fn strays(mark: &str) -> Vec<String> {
    let begin = Instant::now();
    while begin.elapsed().as_millis() < STRAY_GRACE_MS.into() {
        if with(mark).is_empty() {
            return Vec::new();
        }
        thread::sleep(Duration::from_millis(POLL_MS));
    }
    let named = with(mark)
        .iter()
        .map(|pid| format!("{pid} ({})", command_of(*pid)))
        .collect();
    kill_all(mark);
    named
}

fn command_of(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .replace('\0', " ")
        .trim_end()
        .to_owned()
}

/// What every thread of a run is doing: status, wait channel, kernel stack.
pub fn describe(mark: &str) -> String {
    let mut text = String::new();
    for pid in with(mark) {
        let _ = writeln!(text, "process {pid}: {}", command_of(pid));
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let of = |name: &str| match fs::read_to_string(task.path().join(name)) {
                Ok(content) => content.trim_end().to_owned(),
                Err(e) => format!("({e})"),
            };
            let _ = writeln!(
                text,
                "  thread {} wchan {} syscall {}",
                task.file_name().display(),
                of("wchan"),
                of("syscall")
            );
            let keep = [
                "State",
                "NSpid",
                "TracerPid",
                "SigPnd",
                "ShdPnd",
                "SigBlk",
                "SigCgt",
            ];
            for line in of("status").lines() {
                if keep.iter().any(|k| line.starts_with(k)) {
                    let _ = writeln!(text, "    {}", line.replace('\t', " "));
                }
            }
            for line in of("stack").lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    text
}
