//! Runs programs, several at once if asked, and takes the time.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::CpuSet;
use serde::Serialize;

/// How long a process has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
/// As much of what a failed run said as is reported.
const STDERR_BYTES_MAX: usize = 4096;
/// Variables with which users configure the programs that are measured.
const UNSET: &[&str] = &[
    "BZIP",
    "BZIP2",
    "GZIP",
    "LBZIP2",
    "PIGZ",
    "XZ_DEFAULTS",
    "XZ_OPT",
    "ZSTD_CLEVEL",
    "ZSTD_NBTHREADS",
];

/// A process to run, and the files for what it says.
#[derive(Clone, Debug)]
pub struct Job {
    /// Program and arguments.
    pub line: Vec<OsString>,
    /// Created.
    pub stdout: PathBuf,
    /// Created.
    pub stderr: PathBuf,
}

/// How a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What happened, in a line.
    pub what: String,
    /// The end of what it said on stderr.
    pub stderr: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        match self.stderr.trim_end() {
            "" => Ok(()),
            stderr => write!(f, "\n{stderr}"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure {
            what: format!("{error:#}"),
            stderr: String::new(),
        }
    }
}

/// Which cores a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Those that we may use.
    All,
    /// The first of them.
    One,
}

/// Starts all jobs at once. The time from the first start to the last end, or the
/// first failure. No process is left when this returns.
pub fn run_together(jobs: &[Job], cores: Cores, limit: Duration) -> Result<Duration, Failure> {
    let mut running = Vec::with_capacity(jobs.len());
    let begin;
    {
        let _pinned = match cores {
            Cores::All => None,
            Cores::One => Some(Pinned::new()?),
        };
        begin = Instant::now();
        for job in jobs {
            running.push(Running::start(job)?);
        }
    }
    let mut time = Duration::ZERO;
    // All are waited for in turn; the last to end decides, whichever that is.
    for (process, job) in running.iter_mut().zip(jobs) {
        if !process.wait(limit.saturating_sub(begin.elapsed()))? {
            process.stop();
            let what = format!("not done after {} s, ended", limit.as_secs());
            return Err(Failure {
                what,
                stderr: tail(&job.stderr),
            });
        }
        time = begin.elapsed();
        let status = process.reap()?;
        if !status.success() {
            return Err(Failure {
                what: status.to_string(),
                stderr: tail(&job.stderr),
            });
        }
    }
    Ok(time)
}

/// The end of a file, as text.
pub fn tail(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let from = bytes.len().saturating_sub(STDERR_BYTES_MAX);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// Where a program is, by PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| {
            fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}

/// A child that is ended and waited for when dropped.
struct Running {
    child: Child,
    /// Names the child for sure, unlike its number.
    pidfd: OwnedFd,
    reaped: bool,
}

impl Running {
    fn start(job: &Job) -> anyhow::Result<Self> {
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("cannot create {}", path.display()))
        };
        let (program, arguments) = job.line.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        for name in UNSET {
            command.env_remove(name);
        }
        let mut child = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(create(&job.stdout)?)
            .stderr(create(&job.stderr)?)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        match rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Running {
                child,
                pidfd,
                reaped: false,
            }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error).context("cannot open a pidfd")
            }
        }
    }

    /// Whether it ended within this time.
    fn wait(&self, limit: Duration) -> anyhow::Result<bool> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).context("too long a limit")?;
            let mut ends = [PollFd::from_borrowed_fd(self.pidfd.as_fd(), PollFlags::IN)];
            match rustix::event::poll(&mut ends, Some(&left)) {
                Ok(ended) => return Ok(ended > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait"),
            }
        }
    }

    fn reap(&mut self) -> anyhow::Result<ExitStatus> {
        let status = self.child.wait().context("cannot wait")?;
        self.reaped = true;
        Ok(status)
    }

    /// Ends it: kindly, so that Geryon can end its replicas and say where they
    /// were, then for sure.
    fn stop(&mut self) {
        if self.reaped {
            return;
        }
        // Errors mean that it is gone already, which the last wait settles.
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::TERM);
        if !self.wait(GRACE).unwrap_or(false) {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        let _ = self.reap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Keeps this thread on one core, for its children to inherit, until dropped.
struct Pinned(CpuSet);

impl Pinned {
    fn new() -> anyhow::Result<Self> {
        let before = rustix::thread::sched_getaffinity(None)?;
        let first = (0..CpuSet::MAX_CPU).find(|core| before.is_set(*core));
        let mut one = CpuSet::new();
        one.set(first.context("no core may be used")?);
        rustix::thread::sched_setaffinity(None, &one).context("cannot pin to a core")?;
        Ok(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Fails only if the cores were taken from us meanwhile.
        let _ = rustix::thread::sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(scratch: &Scratch, number: usize, script: &str) -> Job {
        Job {
            line: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
            stdout: scratch.path().join(format!("out-{number}")),
            stderr: scratch.path().join(format!("err-{number}")),
        }
    }

    #[test]
    fn what_it_says_is_in_the_files() {
        let scratch = Scratch::new().expect("scratch");
        let job = shell(&scratch, 0, "echo out; echo err >&2");
        run_together(std::slice::from_ref(&job), Cores::All, LONG).expect("a run");
        assert_eq!(fs::read_to_string(&job.stdout).expect("stdout"), "out\n");
        assert_eq!(tail(&job.stderr), "err\n");
    }

    #[test]
    fn jobs_run_at_the_same_time() {
        let scratch = Scratch::new().expect("scratch");
        let fifo = scratch.path().join("fifo");
        let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
        assert!(made.success());
        // Each waits for the other to open the fifo.
        let write = shell(&scratch, 0, &format!("echo x > {}", fifo.display()));
        let read = shell(&scratch, 1, &format!("cat {}", fifo.display()));
        run_together(&[write, read], Cores::All, LONG).expect("a run");
    }

    #[test]
    fn a_failure_has_its_status_and_stderr() {
        let scratch = Scratch::new().expect("scratch");
        let jobs = [
            shell(&scratch, 0, "true"),
            shell(&scratch, 1, "echo no >&2; exit 3"),
        ];
        let failure = run_together(&jobs, Cores::All, LONG).expect_err("a failure");
        assert!(failure.what.contains('3'), "{failure}");
        assert_eq!(failure.stderr, "no\n");
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failure() {
        let scratch = Scratch::new().expect("scratch");
        let mut job = shell(&scratch, 0, "");
        job.line = vec!["/nonesuch".into()];
        let failure = run_together(&[job], Cores::All, LONG).expect_err("a failure");
        assert!(failure.what.contains("/nonesuch"), "{failure}");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let scratch = Scratch::new().expect("scratch");
        let job = shell(&scratch, 0, "echo begun >&2; exec sleep 1000");
        let failure = run_together(&[job], Cores::All, Duration::from_secs(1));
        let failure = failure.expect_err("a failure");
        assert!(failure.what.starts_with("not done after 1 s"), "{failure}");
        assert_eq!(failure.stderr, "begun\n");
    }

    #[test]
    fn one_core_is_one_core_and_is_given_back() {
        let scratch = Scratch::new().expect("scratch");
        let before = rustix::thread::sched_getaffinity(None).expect("cores");
        let job = shell(&scratch, 0, "nproc");
        run_together(std::slice::from_ref(&job), Cores::One, LONG).expect("a run");
        assert_eq!(fs::read_to_string(&job.stdout).expect("stdout"), "1\n");
        assert!(rustix::thread::sched_getaffinity(None).expect("cores") == before);
    }

    #[test]
    fn programs_are_found_by_path() {
        assert!(find("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(find("nonesuch-of-geryon"), None);
    }
}
