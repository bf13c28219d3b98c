//! A trial without Geryon: the program runs under ptrace, and is stopped for the fault only.

mod launch;
mod strike;

use crate::program;
use anyhow::{Context, Result, bail};
use geryon_fault::fault::STUCK_SAMPLE_US;
use geryon_fault::journal::{Event as Line, event};
use geryon_fault::outcome::End;
use geryon_fault::{Fault, Target, When};
use geryon_monitor::Watched;
use geryon_tracee::{Event, Pid, Stop, Stopped, wait_any};
use launch::Children;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest wait for news of the program.
const WAIT: Duration = Duration::from_secs(1);

/// What was typed.
#[derive(clap::Args)]
pub struct Args {
    /// The fault to make.
    #[arg(long, value_name = "SPEC")]
    fault: Option<Fault>,
    /// Write what happens to this file, as JSON lines.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Run and exit as the program did.
///
/// # Errors
/// Geryon's own failures.
pub fn main(args: Args) -> Result<ExitCode> {
    let program = match program::find(&args.command[0]) {
        Ok(program) => program,
        Err(e) => bail!("{}", e.message),
    };
    let journal = args
        .journal
        .as_ref()
        .map(|path| File::create(path).with_context(|| format!("cannot write {}", path.display())));
    let children = Children::block()?;
    let root = launch::launch(&program, &args.command, &children)?;
    let mut tracer = Tracer {
        root,
        threads: BTreeSet::from([root]),
        start: None,
        plan: args.fault.map(Plan::of),
        victim: None,
        journal: journal.transpose()?,
        end: None,
    };
    tracer.serve(&children)?;
    let missed = tracer.plan.as_ref().is_some_and(|plan| !plan.struck);
    if missed {
        let plan = tracer.plan.as_ref();
        let why = plan.and_then(|p| p.watched.why());
        let why = why.unwrap_or("the program had ended").to_owned();
        tracer.say(event::MISSED, Some(why))?;
    }
    tracer.say(event::END, None)?;
    match tracer.end {
        Some(End::Exited(status)) => Ok(ExitCode::from(status as u8)),
        Some(End::Killed(signal)) => Ok(launch::die_of(signal)),
        _ => bail!("the program vanished without an exit status"),
    }
}

/// When the fault is made, and how often it still is.
struct Plan {
    fault: Fault,
    due: Duration,
    left: u32,
    /// It was made once at least, or it was told why it cannot be.
    struck: bool,
    /// The instruction that is waited for.
    watched: Watched,
}

impl Plan {
    fn of(fault: Fault) -> Plan {
        let due = match fault.when {
            When::Delay { us } => Duration::from_micros(us),
            // Told at the first opportunity.
            When::Event { .. } | When::Address { .. } => Duration::ZERO,
        };
        let left = match fault.target {
            Target::Stuck { samples, .. } => samples,
            _ => 1,
        };
        Plan {
            fault,
            due,
            left,
            struck: false,
            watched: Watched::of(&fault),
        }
    }
}

struct Tracer {
    root: Pid,
    threads: BTreeSet<Pid>,
    /// The exec.
    start: Option<Instant>,
    plan: Option<Plan>,
    /// Whose stop is awaited.
    victim: Option<Pid>,
    journal: Option<File>,
    end: Option<End>,
}

impl Tracer {
    fn serve(&mut self, children: &Children) -> Result<()> {
        while self.end.is_none() {
            match wait_any() {
                Ok(Some(stop)) => unless_gone(self.on_stop(stop))?,
                Ok(None) => children.wait(self.patience()),
                Err(_) => return Ok(()),
            }
            if self.patience().is_zero() {
                self.choose();
            }
        }
        Ok(())
    }

    /// Until the fault is due.
    fn patience(&self) -> Duration {
        match (&self.plan, self.start, self.victim) {
            (Some(plan), Some(start), None) if plan.left > 0 && !plan.watched.waits() => {
                plan.due.saturating_sub(start.elapsed()).min(WAIT)
            }
            _ => WAIT,
        }
    }

    /// Stop the thread that is to be hit.
    fn choose(&mut self) {
        let Some(plan) = &self.plan else { return };
        while !self.threads.is_empty() {
            let nth = plan.fault.thread % self.threads.len() as u64;
            let Some(tid) = self.threads.iter().nth(nth as usize).copied() else {
                return;
            };
            if Stopped(tid).interrupt().is_ok() {
                self.victim = Some(tid);
                return;
            }
            self.threads.remove(&tid);
        }
        // The last one is gone; its end is reported next.
        self.victim = Some(self.root);
    }

    fn on_stop(&mut self, stop: Stop) -> Result<()> {
        let tid = stop.pid();
        let thread = Stopped(tid);
        match stop {
            Stop::Exited(_, status) => {
                self.gone(tid, End::Exited(status));
                return Ok(());
            }
            Stop::Killed(_, signal, _) => {
                self.gone(tid, End::Killed(signal));
                return Ok(());
            }
            _ => {}
        }
        self.threads.insert(tid);
        match stop {
            Stop::Signal(..) if self.on_breakpoint(thread)? => thread.resume(0)?,
            Stop::Signal(_, signal) => thread.resume(signal)?,
            Stop::Event(_, Event::Exec) => {
                // Threads that an exec ends say so, but for the one that made it.
                let former = thread.event_message()? as Pid;
                if former != tid {
                    self.threads.remove(&former);
                }
                if self.start.is_none() {
                    self.start = Some(Instant::now());
                    self.say(event::START, None)?;
                }
                if tid == self.root
                    && let Some(plan) = &mut self.plan
                {
                    plan.watched.begin();
                }
                self.arm(tid);
                thread.resume(0)?;
            }
            Stop::Event(_, Event::Stop(signal)) => {
                self.arm(tid);
                if self.victim == Some(tid) {
                    self.victim = None;
                    self.strike(thread)?;
                }
                // A program that was stopped by a signal stays so.
                if signal == libc::SIGTRAP {
                    thread.resume(0)?;
                } else {
                    thread.listen()?;
                }
            }
            Stop::Event(_, Event::Exit) => thread.let_end()?,
            _ => thread.resume(0)?,
        }
        Ok(())
    }

    /// Give a thread of the first process the breakpoint that the fault waits at.
    fn arm(&mut self, tid: Pid) {
        let ours =
            tid == self.root || Path::new(&format!("/proc/{}/task/{tid}", self.root)).exists();
        if let Some(plan) = self.plan.as_mut().filter(|p| ours && p.watched.waits()) {
            plan.watched.arm(tid, self.root);
        }
    }

    /// Whether it was hit; if that was the time that the fault waits for, it is made.
    fn on_breakpoint(&mut self, thread: Stopped) -> Result<bool> {
        let Some(plan) = self.plan.as_mut() else {
            return Ok(false);
        };
        if !plan.watched.watches(thread.0) || !thread.is_breakpoint(&thread.siginfo()?) {
            return Ok(false);
        }
        if plan.watched.executed(thread.0, self.root) {
            if let Some(start) = self.start {
                plan.due = start.elapsed();
            }
            self.strike(thread)?;
        }
        Ok(true)
    }

    fn gone(&mut self, tid: Pid, end: End) {
        self.threads.remove(&tid);
        if let Some(plan) = &mut self.plan {
            plan.watched.forget(tid);
        }
        if self.victim == Some(tid) {
            self.victim = None;
        }
        if tid == self.root {
            self.end = Some(end);
        }
    }

    fn strike(&mut self, thread: Stopped) -> Result<()> {
        let Some(plan) = &mut self.plan else {
            return Ok(());
        };
        let first = !std::mem::replace(&mut plan.struck, true);
        let result = match plan.fault.when {
            When::Delay { .. } | When::Address { .. } => {
                strike::strike(thread, &plan.fault.target)?
            }
            When::Event { .. } => Err("a bare run has no log".into()),
        };
        plan.left -= 1;
        plan.due += Duration::from_micros(STUCK_SAMPLE_US);
        match result {
            Ok(()) if first => self.say(event::INJECTED, None),
            Ok(()) => Ok(()),
            Err(why) => {
                plan.left = 0;
                self.say(event::MISSED, Some(why))
            }
        }
    }

    fn say(&mut self, event: &str, why: Option<String>) -> Result<()> {
        let t_us = self.start.map_or(0, |s| s.elapsed().as_micros() as u64);
        if let Some(journal) = &mut self.journal {
            let line = Line {
                t_us,
                event: event.to_owned(),
                why,
                ..Line::default()
            };
            // In one piece.
            journal
                .write_all(format!("{line}\n").as_bytes())
                .context("cannot write the journal")?;
        }
        Ok(())
    }
}

/// A thread that was killed between its stop and our answer reports its end next.
fn unless_gone(result: Result<()>) -> Result<()> {
    match result {
        Err(e) if is_gone(&e) => Ok(()),
        other => other,
    }
}

fn is_gone(e: &anyhow::Error) -> bool {
    let error = e.downcast_ref::<std::io::Error>();
    error.and_then(std::io::Error::raw_os_error) == Some(libc::ESRCH)
}
