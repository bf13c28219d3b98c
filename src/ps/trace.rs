//! `geryon trace`: what the threads of all replicas do in a window of time, as a trace that Perfetto and Chrome show
//! (<https://ui.perfetto.dev>, chrome://tracing). It looks at them from outside, some thousand times a second: what lasts
//! shorter may be missed, and the run pays nothing for it.

mod events;

use super::seen::{Process, Run, threads};
use super::{behind, groups, those};
use anyhow::{Context, Result};
use events::Events;
use geryon_monitor::Totals;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Processes that come and go, and what has happened, are looked at so often.
const LOOK: Duration = Duration::from_millis(50);

/// Of which run, for how long, and where to.
#[derive(clap::Args)]
pub struct Args {
    /// The process id of a `geryon run`.
    pid: i32,
    /// For so many seconds, or until the run ends.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = seconds)]
    seconds: f64,
    /// Microseconds between two looks at a thread.
    #[arg(long, default_value_t = 500, value_name = "US", value_parser = clap::value_parser!(u64).range(50..=1_000_000))]
    every: u64,
    /// The file that is written.
    #[arg(long, default_value = "geryon-trace.json", value_name = "FILE")]
    out: PathBuf,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(s) if (0.01..=3600.0).contains(&s) => Ok(s),
        _ => Err("0.01 to 3600 seconds".into()),
    }
}

/// Looks, and writes the file.
///
/// # Errors
/// When there is no such run, or the file cannot be written.
pub fn main(args: &Args) -> Result<()> {
    let cannot = || format!("cannot write {}", args.out.display());
    let mut watched = Watched::of(&the(args.pid)?);
    // (Before anything is waited for; what is there is written over at the end.)
    let mut how = File::options();
    let how = how.create(true).truncate(false).write(true);
    let mut file = how.open(&args.out).with_context(cannot)?;
    let mut events = Events::default();
    let begin = Instant::now();
    let mut looked = begin;
    let mut looks = 0u64;
    while begin.elapsed().as_secs_f64() < args.seconds {
        let at = begin.elapsed().as_micros() as u64;
        watched.look(at, &mut events);
        looks += 1;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            let Ok(run) = the(args.pid) else {
                break;
            };
            watched.tell(at, &run, &mut events);
        }
        std::thread::sleep(Duration::from_micros(args.every));
    }
    let took = begin.elapsed();
    let text = events.end(took.as_micros() as u64);
    file.set_len(0)
        .and_then(|()| file.write_all(text.as_bytes()))
        .with_context(cannot)?;
    println!(
        "{}: {looks} looks in {:.1} s",
        args.out.display(),
        took.as_secs_f64()
    );
    Ok(())
}

fn the(pid: i32) -> Result<Run> {
    let mut all = those(Some(pid))?;
    all.pop().context("there is one")
}

/// The processes of a run, and what had happened to it.
struct Watched {
    memories: HashMap<i32, File>,
    totals: Totals,
}

impl Watched {
    fn of(run: &Run) -> Watched {
        let mut watched = Watched {
            memories: HashMap::new(),
            totals: run.totals,
        };
        watched.follow(run);
        watched
    }

    /// Those that are there now.
    fn follow(&mut self, run: &Run) {
        let is_there = |pid: &i32| run.processes.iter().any(|p| p.pid == *pid);
        self.memories.retain(|pid, _| is_there(pid));
        for p in &run.processes {
            if let Ok(memory) = File::open(format!("/proc/{}/mem", p.pid)) {
                self.memories.entry(p.pid).or_insert(memory);
            }
        }
    }

    /// What the threads do.
    fn look(&self, at: u64, events: &mut Events) {
        for (pid, memory) in &self.memories {
            for t in threads(memory) {
                events.does(at, (*pid, t.slot), &t.does);
            }
        }
    }

    /// Who is who, how far followers are behind, and what has happened since.
    fn tell(&mut self, at: u64, run: &Run, events: &mut Events) {
        self.follow(run);
        for p in &run.processes {
            events.named(p.pid, &name(p));
        }
        for group in groups(run) {
            let Some(leader) = group.iter().find(|p| p.leads) else {
                continue;
            };
            for p in group.iter().filter(|p| !p.leads) {
                events.counts(at, p.pid, "words behind", behind(leader, p));
            }
        }
        let (before, now) = (self.totals, run.totals);
        for (what, more) in [
            ("fault seen", now.faults > before.faults),
            ("replica replaced", now.replaced > before.replaced),
            ("promotion", now.promotions > before.promotions),
            ("replica given up", now.given_up > before.given_up),
            ("race replayed", now.races > before.races),
        ] {
            if more {
                events.happened(at, what);
            }
        }
        self.totals = now;
    }
}

fn name(p: &Process) -> String {
    let role = if p.leads { "leads" } else { "follows" };
    match p.replica < p.replicas {
        true => format!("replica {}, {role}: {}", p.replica + 1, p.name),
        false => format!("a copy that sleeps: {}", p.name),
    }
}
