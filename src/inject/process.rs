//! One process of a campaign, in a group of its own that ends with it.

use anyhow::{Context, Result};
use geryon_fault::outcome::End;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that a fault has set to writing for ever does not fill the disk. Geryon's own shared
/// memory has to fit in as well.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Run it in `dir`, with files for what it says. How it ended and how long it took. No process of
/// its group is left.
pub fn run(
    line: &[OsString],
    dir: &Path,
    stdout: &Path,
    stderr: &Path,
    limit: Duration,
) -> Result<(End, Duration)> {
    let (program, args) = line.split_first().context("an empty command")?;
    let create = |path: &Path| {
        File::create(path).with_context(|| format!("cannot create {}", path.display()))
    };
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(create(stdout)?)
        .stderr(create(stderr)?)
        .process_group(0);
    // SAFETY: `in_child` makes plain system calls only.
    unsafe { command.pre_exec(in_child) };
    let begin = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut group = Group(child);
    let in_time = group.wait(limit)?;
    let took = begin.elapsed();
    let status = group.end()?;
    let end = match (in_time, status.code(), status.signal()) {
        (false, ..) => End::TimedOut,
        (_, Some(code), _) => End::Exited(code),
        (_, None, signal) => End::Killed(signal.unwrap_or(0)),
    };
    Ok((end, took))
}

/// No core files, no endless files, and no life without us.
fn in_child() -> std::io::Result<()> {
    let limits = [(libc::RLIMIT_CORE, 0), (libc::RLIMIT_FSIZE, FILE_BYTES_MAX)];
    for (what, bytes) in limits {
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: bytes,
        };
        // A lower limit that is set already stays: the error is one of raising it.
        // SAFETY: plain system call on a local structure.
        unsafe { libc::setrlimit(what, &raw const limit) };
    }
    // SAFETY: plain system call.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// A child that leads its group. It is reaped after the group was killed, so that the number of the
/// group cannot be anybody else's by then.
struct Group(Child);

impl Group {
    /// Whether it ended within this time.
    fn wait(&self, limit: Duration) -> Result<bool> {
        let pid = Pid::from_child(&self.0);
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        let begin = Instant::now();
        loop {
            let left = Timespec::try_from(limit.saturating_sub(begin.elapsed()))?;
            let mut ends = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
            match rustix::event::poll(&mut ends, Some(&left)) {
                Ok(ended) => return Ok(ended > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e).context("cannot wait"),
            }
        }
    }

    /// Kill all that is left, and reap.
    fn end(&mut self) -> Result<std::process::ExitStatus> {
        let group = Pid::from_child(&self.0);
        // An error means that nobody is left.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        self.0.wait().context("cannot wait")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Only after an error, else it is reaped; kill() of a reaped child does nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_bench::scratch::Scratch;

    fn shell(scratch: &Scratch, script: &str, limit_ms: u64) -> (End, String) {
        let line = ["/bin/sh", "-c", script].map(OsString::from);
        let path = |name: &str| scratch.path().join(name);
        let (out, err) = (path("stdout"), path("stderr"));
        let limit = Duration::from_millis(limit_ms);
        let (end, _) = run(&line, scratch.path(), &out, &err, limit).expect("a run");
        (end, std::fs::read_to_string(out).expect("stdout"))
    }

    #[test]
    fn ends_are_told_apart() {
        let scratch = Scratch::new().expect("scratch");
        let ended = |script| shell(&scratch, script, 60_000).0;
        assert_eq!(ended("exit 3"), End::Exited(3));
        assert_eq!(ended("kill -TERM $$"), End::Killed(libc::SIGTERM));
        assert_eq!(shell(&scratch, "sleep 1000", 100).0, End::TimedOut);
    }

    #[test]
    fn nobody_of_the_group_is_left() {
        let scratch = Scratch::new().expect("scratch");
        let (end, out) = shell(&scratch, "sleep 1000 & echo $!", 60_000);
        assert_eq!(end, End::Exited(0));
        let pid: i32 = out.trim().parse().expect("a number");
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let gone = || !state().contains(" (sleep) ") || state().contains(") Z ");
        let begin = Instant::now();
        while !gone() {
            assert!(begin.elapsed() < Duration::from_secs(10), "{}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn it_runs_where_it_is_told_without_core_files() {
        let scratch = Scratch::new().expect("scratch");
        let (_, out) = shell(&scratch, "pwd; ulimit -c", 60_000);
        let pwd = scratch.path().canonicalize().expect("a path");
        assert_eq!(out, format!("{}\n0\n", pwd.display()));
    }
}
