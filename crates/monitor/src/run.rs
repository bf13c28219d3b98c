//! The event loop: every stop of every thread of every replica comes here, and goes to the module
//! that knows what it means.

mod birth;
mod exec;
mod exit;
mod found;
mod ids;
mod known;
mod newborn;
mod orphans;
mod rpc;
mod tsc;

pub use newborn::Newborn;

use crate::checkpoint::{self, Checkpoints};
use crate::image::Image;
use crate::inject::Injection;
use crate::journal::Journal;
use crate::kin::KinTurn;
use crate::launch::launch;
use crate::limits::FileSize;
use crate::options::{Options, Outcome, cores};
use crate::plans::Plans;
use crate::programs::Programs;
use crate::recover::{Recovery, can_populate};
use crate::signals::Signals;
use crate::state::{Console, End, Family, Kit, Monitor, Otherwise, Process, Running, Thread};
use crate::watch::Watch;
use anyhow::{Context, Result};
use geryon_abi::point::FaultPoint;
use geryon_tracee::{Event, Passage, Stop, Stopped, kill, points, reaches_all, wait_any};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How often the watchdog looks, in milliseconds.
const WATCH_MS: u64 = 100;
/// How often one that is to be replaced, or that a verdict is due on, is looked after, in
/// milliseconds.
const URGENT_MS: u64 = 1;
/// How often it is looked how far a takeover has come, in microseconds: nobody leads meanwhile.
const TAKEOVER_US: u64 = 100;
/// How long the killed may take to be gone, in seconds.
const REAP_S: u64 = 10;

/// Run a program as replicas until it ends.
///
/// # Errors
/// Geryon's own failures; the program's are in the outcome.
pub fn run(mut options: Options) -> Result<Outcome> {
    let injection = options
        .fault
        .map(|f| Injection::new(f, options.replicas as usize))
        .transpose()?;
    if options.eager_copy {
        can_populate().map_err(|e| {
            anyhow::anyhow!(
                "--eager-copy needs MADV_POPULATE_WRITE, which this kernel does not know: {e}\n  try: Linux 5.14 or newer, or no --eager-copy: a copy then shares pages with its source until one of them writes"
            )
        })?;
    }
    let programs = Programs::of(&options)?;
    points::arm(&options.fail_at);
    let journal = Journal::create(options.journal.as_deref())?;
    let limit = FileSize::lift()?;
    let image = Image::load()?;
    let kin = KinTurn::new(&image, 0)?;
    become_subreaper();
    let signals = Signals::block()?;
    let (pid, pipe) = launch(&options, image.gate(), signals.original(), limit)?;
    let ascends = options.ascends(cores());
    let has_checkpoints = options.checkpoint.is_some() || ascends;
    let replicas = checkpoint::seats(options.replicas as usize, has_checkpoints);
    let seats = replicas.len();
    let is_serial = options.order.is_serial(options.replicas);
    let asked = std::mem::take(&mut options.asked);
    // (Who has one replica, or goes over to serial order, needs no order there.)
    let tells = !is_serial && !ascends && options.replicas > 1;
    let mut m = Monitor {
        replicas,
        checkpoints: options.checkpoint.map(Checkpoints::new),
        kit: Kit {
            image,
            plans: Plans::new(is_serial && !ascends, tells, Rc::new(asked)),
            programs,
            passage: Passage::open().context("a socket for the replicas")?,
            reaches_all: reaches_all(),
            tsc_mult: tsc::mult(),
        },
        running: Running::new(is_serial, ascends, kin),
        groups: HashMap::new(),
        processes: HashMap::from([(pid, Process::new(0))]),
        threads: HashMap::from([(pid, Thread::of(pid))]),
        family: Family::new(pid),
        console: Console::new(journal, pipe),
        injection,
        recovery: Recovery::new(options.max_replacements, seats),
        shared: crate::objects::Shared::default(),
        watch: Watch::default(),
        outcome: None,
        options,
    };
    let result = m.serve(&signals);
    m.family.stand_ins.end();
    if result.is_err() || m.outcome == Some(Outcome::Diverged) {
        m.kill_all();
    }
    reap();
    signals.restore();
    m.tell_end();
    result?;
    m.outcome
        .context("the program vanished without an exit status")
}

fn become_subreaper() {
    // SAFETY: plain prctl: orphans of the program are then ours to reap.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Wait for all who are being killed.
fn reap() {
    let start = Instant::now();
    loop {
        match wait_any() {
            Err(_) => return,
            Ok(Some(Stop::Exited(..) | Stop::Killed(..))) => {}
            Ok(Some(Stop::Event(p, Event::Exit))) => {
                Stopped(p).let_end().ok();
            }
            Ok(Some(s)) => {
                // A process born while the others died.
                kill(s.pid(), libc::SIGKILL);
            }
            Ok(None) => {
                if start.elapsed() > Duration::from_secs(REAP_S) {
                    return;
                }
                std::thread::yield_now();
            }
        }
    }
}

impl Monitor {
    fn serve(&mut self, signals: &Signals) -> Result<()> {
        let mut watched = Instant::now();
        let mut judged = Instant::now();
        loop {
            match wait_any() {
                Ok(Some(stop)) => self.on_stop(stop)?,
                Ok(None) => {
                    if let Some(s) = signals.wait(self.patience()) {
                        self.signal_program(s);
                    }
                }
                Err(_) => return Ok(()),
            }
            if self.outcome == Some(Outcome::Diverged) {
                return Ok(());
            }
            if self.threads.is_empty() && self.family.early.is_empty() {
                // Nobody else is waited for.
                self.family.stand_ins.end();
            }
            self.make_fault();
            self.tell_points();
            if self.has_takeovers() {
                self.take_over();
            }
            // (One that only shows whether the log can be replayed is nobody's source.)
            if points::fails(FaultPoint::OrderChanges) && self.hinders_descent().is_none() {
                self.descend("a test has chosen this moment", Otherwise::Stops);
            }
            if self.descends() && !self.has_takeovers() {
                unless_gone(self.descend_on())?;
            } else if self.recovers() && !self.replays_again() {
                unless_gone(self.recover())?;
            }
            self.recovery.bury_held();
            unless_gone(self.converge())?;
            unless_gone(self.checkpoint())?;
            self.ascend_on();
            if self.has_open_verdicts() && judged.elapsed() >= Duration::from_millis(URGENT_MS) {
                judged = Instant::now();
                unless_gone(self.judge_open())?;
            }
            if watched.elapsed() >= Duration::from_millis(WATCH_MS) {
                watched = Instant::now();
                self.hear();
                self.tell_outlived();
                self.keep_stand_ins();
                unless_gone(self.watch())?;
                self.watch_crowd();
            }
        }
    }

    /// How long nothing has to be done but to serve stops.
    fn patience(&self) -> Duration {
        let patience = if self.has_takeovers() {
            Duration::from_micros(TAKEOVER_US)
        } else if self.recovers() || self.descends() || self.has_open_verdicts() {
            Duration::from_millis(URGENT_MS)
        } else {
            Duration::from_millis(WATCH_MS)
        };
        let others = [
            self.fault_patience(),
            self.checkpoint_patience(),
            self.running.convergences.patience(),
            self.running.ascent_patience(),
        ];
        others.into_iter().flatten().fold(patience, Duration::min)
    }

    /// The last words.
    fn tell_end(&mut self) {
        self.fault_missed_its_time();
        self.tell_points();
        self.console.journal.end(self.outcome);
        if let Some(summary) = self.console.journal.summary() {
            eprintln!("geryon: {summary}");
        }
    }

    /// One stop of one thread.
    pub(crate) fn on_stop(&mut self, stop: Stop) -> Result<()> {
        let pid = stop.pid();
        if let Some(t) = self.threads.get_mut(&pid) {
            t.listens = false;
        }
        self.watch_address(stop);
        let result = match stop {
            Stop::Exited(_, code) => {
                self.on_end(pid, End::Exited(code));
                return Ok(());
            }
            Stop::Killed(_, signal, _) => {
                self.on_end(pid, End::Killed(signal));
                return Ok(());
            }
            Stop::Event(_, Event::Exit) if !self.threads.contains_key(&pid) => {
                Stopped(pid).let_end().ok();
                return Ok(());
            }
            _ if self.recovery.unsharing.contains_key(&pid) => {
                self.unshare(stop);
                return Ok(());
            }
            _ if !self.threads.contains_key(&pid) => {
                self.family.early.insert(pid);
                return Ok(());
            }
            Stop::Event(_, Event::Vfork) => self.on_birth(pid, true),
            Stop::Event(_, Event::Clone | Event::Fork) => self.on_birth(pid, false),
            Stop::Event(_, Event::Exec) => self.on_exec(pid),
            Stop::Event(_, Event::Seccomp) => self.on_call(pid),
            Stop::Event(_, Event::Exit) => self.on_exit(pid),
            Stop::Event(_, Event::Stop(signal)) => self.on_group_stop(pid, signal),
            Stop::Signal(_, signal) => self.on_signal(pid, signal),
            Stop::Syscall(_) | Stop::Event(_, Event::Other(_)) => {
                Stopped(pid).resume(0).map_err(Into::into)
            }
        };
        // A thread that was killed between its stop and our answer reports its end next.
        match unless_gone(result) {
            Err(e) if !is_own(&e) => self.cannot_serve(pid, e),
            other => other,
        }
    }

    /// Kill every process that belongs to the run.
    fn kill_all(&mut self) {
        for pid in self.processes.keys().chain(&self.family.early) {
            kill(*pid, libc::SIGKILL);
        }
        self.bury_all();
    }
}

/// That a thread is gone is no failure.
fn unless_gone(result: Result<()>) -> Result<()> {
    match result {
        Err(e) if is_gone(&e) => Ok(()),
        other => other,
    }
}

fn is_gone(e: &anyhow::Error) -> bool {
    errno(e) == Some(libc::ESRCH)
}

/// Is it Geryon that is short of something?
fn is_own(e: &anyhow::Error) -> bool {
    let short = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN];
    errno(e).is_some_and(|e| short.contains(&e))
}

fn errno(e: &anyhow::Error) -> Option<i32> {
    e.downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::raw_os_error)
}
