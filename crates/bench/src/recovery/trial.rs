//! One run: start the guest, let it get ready, kill a replica, and read what came of it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde_json::Value;

use super::{Pages, Scene, Shape};
use crate::process::tail;

/// The program runs undisturbed for so long, before and after.
const QUIET: Duration = Duration::from_millis(300);
/// The measurement has begun by then.
const SETTLE: Duration = Duration::from_millis(30);
/// How often the journal is looked at. Times are those in it.
const LOOK: Duration = Duration::from_millis(5);
/// A replacement that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(60);

/// What came of one kill; all in microseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// The guest's own fork.
    pub fork_us: Option<f64>,
    /// By the monitor: how long the source's threads stood still.
    pub source_pause_us: Option<f64>,
    /// From the kill until all replicas were there again.
    pub replaced_us: Option<f64>,
    /// From the kill until the new leader led.
    pub promoted_us: Option<f64>,
    /// By the program: its longest nap (of 0.2 ms) from the kill on.
    pub nap_us: f64,
    /// By the program: its longest write, which the followers have to confirm, from the kill on.
    pub write_us: f64,
    /// The longest nap in the time before.
    pub quiet_nap_us: f64,
    /// The longest write in the time before.
    pub quiet_write_us: f64,
}

/// What all runs have in common.
pub struct Bench<'a> {
    /// The program to measure.
    pub geryon: &'a Path,
    /// The program to run in it.
    pub guest: &'a Path,
    /// For files.
    pub scratch: &'a Path,
}

impl Bench<'_> {
    /// One run.
    pub fn run(&self, shape: Shape, scene: Scene) -> anyhow::Result<Sample> {
        match scene {
            Scene::Fork => self.alone(shape),
            Scene::Copies => self.copies(shape),
            Scene::Follower | Scene::Partner | Scene::Leader => self.replicated(shape, scene),
        }
    }

    fn alone(&self, shape: Shape) -> anyhow::Result<Sample> {
        let mut guest = Running::start(self.native(), shape, "fork", Stdio::inherit())?;
        thread::sleep(QUIET);
        guest.measure()?;
        thread::sleep(QUIET);
        let (mut sample, fork) = guest.end()?;
        sample.fork_us = Some(fork);
        Ok(sample)
    }

    /// The first one is measured, the second one killed, the third one forks.
    fn copies(&self, shape: Shape) -> anyhow::Result<Sample> {
        let start = |what| Running::start(self.native(), shape, what, Stdio::inherit());
        let mut measured = start("wait")?;
        let killed = start("wait")?;
        let mut forks = start("fork")?;
        thread::sleep(QUIET);
        measured.measure()?;
        thread::sleep(SETTLE);
        kill_process(Pid::from_child(&killed.child), Signal::KILL).context("cannot kill a copy")?;
        forks.measure()?;
        thread::sleep(QUIET);
        forks.end()?;
        Ok(measured.end()?.0)
    }

    fn replicated(&self, shape: Shape, scene: Scene) -> anyhow::Result<Sample> {
        let journal = self.scratch.join("journal");
        let stderr = self.scratch.join("recovery-stderr");
        let _ = fs::remove_file(&journal);
        let mut command = Command::new(self.geryon);
        command.args(["run", "-n", &scene.replicas().to_string(), "--journal"]);
        command.arg(&journal).arg("--").arg(self.guest);
        let stderr_file = File::create(&stderr)?.into();
        let watched = Running::start(command, shape, "wait", stderr_file)
            .and_then(|guest| self.watch(guest, scene, &journal));
        watched.with_context(|| format!("it said: {}", tail(&stderr).trim_end()))
    }

    fn native(&self) -> Command {
        Command::new(self.guest)
    }

    fn watch(&self, mut guest: Running, scene: Scene, journal: &Path) -> anyhow::Result<Sample> {
        thread::sleep(QUIET);
        guest.measure()?;
        thread::sleep(SETTLE);
        let mut struck = Sample::default();
        if let Some(victim) = scene.victim() {
            self.strike(victim, scene, journal, &mut struck)?;
        }
        thread::sleep(QUIET);
        let (felt, _) = guest.end()?;
        Ok(Sample {
            source_pause_us: struck.source_pause_us,
            replaced_us: struck.replaced_us,
            promoted_us: struck.promoted_us,
            ..felt
        })
    }

    /// Kill a replica, and wait until it is replaced.
    fn strike(
        &self,
        victim: usize,
        scene: Scene,
        journal: &Path,
        sample: &mut Sample,
    ) -> anyhow::Result<()> {
        let start = event(journal, "start").context("the journal has no start")?;
        let number = |v: &Value, key: &str| v[key].as_f64();
        let zero = number(&start, "clock_us").context("no clock in the journal")?;
        let pid = start["pids"][victim].as_i64().context("no such replica")?;
        let pid = Pid::from_raw(i32::try_from(pid)?).context("no such replica")?;
        let killed = monotonic_us() - zero;
        kill_process(pid, Signal::KILL).context("cannot kill a replica")?;
        let begin = Instant::now();
        let replaced = loop {
            if let Some(line) = event(journal, "replaced") {
                break line;
            }
            if begin.elapsed() > LIMIT {
                bail!("it was not replaced");
            }
            thread::sleep(LOOK);
        };
        let since = |v: &Value| number(v, "t_us").map(|t| t - killed);
        sample.replaced_us = since(&replaced);
        sample.source_pause_us = number(&replaced, "pause_us");
        if scene == Scene::Leader {
            let promoted = event(journal, "promoted").context("nobody was promoted")?;
            sample.promoted_us = since(&promoted);
        }
        Ok(())
    }
}

/// The first event of this name.
fn event(journal: &Path, name: &str) -> Option<Value> {
    let text = fs::read_to_string(journal).ok()?;
    let mut lines = text.lines().filter_map(|l| serde_json::from_str(l).ok());
    lines.find(|v: &Value| v["event"] == name)
}

fn monotonic_us() -> f64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as f64 * 1e6 + t.tv_nsec as f64 / 1e3
}

/// A guest that is ready. Killed when dropped; its replicas die with it.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(
        mut command: Command,
        shape: Shape,
        what: &str,
        stderr: Stdio,
    ) -> anyhow::Result<Running> {
        let pages = match shape.pages {
            Pages::Small => "small",
            Pages::Huge => "huge",
        };
        let mut child = command
            .args([&shape.mib.to_string(), &shape.threads.to_string()])
            .args([pages, what])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .context("cannot run the guest")?;
        let mut guest = Running {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().context("no stdout")?),
            child,
        };
        let mut line = String::new();
        guest.output.read_line(&mut line)?;
        if line != "ready\n" {
            bail!("the guest did not get ready");
        }
        Ok(guest)
    }

    /// What it notes from now on counts.
    fn measure(&mut self) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("no stdin")?;
        Ok(input.write_all(b"k")?)
    }

    /// What it noted, and how long its fork took.
    fn end(mut self) -> anyhow::Result<(Sample, f64)> {
        self.input = None;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the guest ended with {status}");
        }
        let figures: Vec<f64> = rest
            .split_whitespace()
            .filter_map(|w| w.parse().ok())
            .collect();
        let [quiet_nap_us, quiet_write_us, nap_us, write_us, fork] = figures[..] else {
            bail!("the guest said {rest:?}");
        };
        let sample = Sample {
            nap_us,
            write_us,
            quiet_nap_us,
            quiet_write_us,
            ..Sample::default()
        };
        Ok((sample, fork))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Errors mean that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
