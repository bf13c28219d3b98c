//! The id that a program has written to a file reaches it after its leader was lost, too.

#[allow(dead_code)] // this test runs its program itself
mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use support::{TempDir, settings};

/// Nothing that is waited for takes longer.
const LIMIT: Duration = Duration::from_secs(60);
const PROGRAM: &str = "
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: print('usr1', flush=True))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
open('new', 'w').write(str(os.getpid()))
os.rename('new', 'pid')
while True:
    time.sleep(0.002)
";

/// (Nobody was there: kill(2) said ESRCH, and what the signal was to do was not done.)
#[test]
fn signals_come_by_the_first_leaders_id() {
    support::no_core_files();
    if !may_choose_ids() {
        println!("not tried: it needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN");
        return;
    }
    for order in ["serial", "clocks"] {
        for replicas in ["2", "3"] {
            trial(order, replicas);
        }
    }
}

/// As the kernel asks before it makes a process of a given id.
fn may_choose_ids() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    const CHECKPOINT_RESTORE: u64 = 1 << 40;
    let status = fs::read_to_string("/proc/self/status").expect("it is there");
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let effective = effective.and_then(|c| u64::from_str_radix(c.trim(), 16).ok());
    effective.expect("a number") & (SYS_ADMIN | CHECKPOINT_RESTORE) != 0
}

/// It does not outlive the test.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        // (One that has ended is none any more.)
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn trial(order: &str, replicas: &str) {
    let dir = TempDir::new();
    let file = |name: &str| dir.path().join(name);
    let output = |name: &str| Stdio::from(fs::File::create(file(name)).expect("a file"));
    let argv = ["run", "-n", replicas, "--order", order];
    let mut run = Run(Command::new(settings::geryon())
        .args(argv)
        .args(["--", "/usr/bin/python3", "-c", PROGRAM])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(output("stdout"))
        .stderr(output("stderr"))
        .spawn()
        .expect("it starts"));
    let said = |name: &str, what: &str| {
        let text = fs::read_to_string(file(name)).unwrap_or_default();
        text.contains(what)
    };
    let what = format!("{order}, {replicas} replicas");
    await_that(&mut run, &what, "its id", || file("pid").exists());
    let pid = id_in(&file("pid"));
    assert_eq!(signal(pid, libc::SIGKILL), 0, "{what}");
    await_that(&mut run, &what, "a new leader", || {
        said("stderr", "leads from now on")
    });
    // (Until the first leader's remains are gone they get what is sent.)
    await_that(&mut run, &what, "the signal", || {
        signal(pid, libc::SIGUSR1);
        said("stdout", "usr1")
    });
    assert_eq!(signal(pid, libc::SIGTERM), 0, "{what}");
    let mut status = None;
    let start = Instant::now();
    while status.is_none() && start.elapsed() < LIMIT {
        status = run.0.try_wait().expect("a child");
        thread::sleep(Duration::from_millis(5));
    }
    let said = fs::read_to_string(file("stderr")).unwrap_or_default();
    assert_eq!(status.and_then(|s| s.code()), Some(7), "{what}\n{said}");
    assert_ne!(signal(pid, 0), 0, "{what}: who stood in is left behind");
}

fn await_that(run: &mut Run, name: &str, what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        if start.elapsed() > LIMIT {
            run.0.kill().expect("a child");
            panic!("{name}: no sign of {what}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn id_in(file: &Path) -> i32 {
    let text = fs::read_to_string(file).expect("the program's id");
    text.trim().parse().expect("a number")
}

fn signal(pid: i32, number: i32) -> i32 {
    // SAFETY: a plain call; the process is the test's own grandchild, or stands in for it.
    unsafe { libc::kill(pid, number) }
}
