//! `geryon bench recovery`: how long does a program stand still when one of its replicas is killed, and
//! how long until it has all of them again?
//!
//! A guest of so much memory and so many threads is run natively, where it forks itself once (which is
//! the least that a copy of it can cost), and as replicas, of which one is killed from outside:
//! a follower of three, the only follower of two (then the leader itself is what is copied), or the
//! leader of three. The monitor says in its journal what it saw, the program what it felt.

mod table;
mod trial;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde::Serialize;

use crate::guest;
use crate::machine::Circumstances;
use crate::scratch::{self, Scratch};
use crate::stats::Series;
pub use trial::Sample;

/// What is left to the machine beside the guests, in MiB.
const SPARE_MIB: u64 = 1024;
/// Most threads of a guest.
const THREADS_MAX: i64 = 500;

/// The arguments of `geryon bench recovery`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Touched memory of the guest in MiB
    #[arg(
        long,
        value_name = "MIB",
        value_delimiter = ',',
        default_value = "10,100,1024,4096"
    )]
    pub sizes: Vec<u32>,

    /// Threads of the guest
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1,4,64",
          value_parser = clap::value_parser!(u32).range(1..=THREADS_MAX))]
    pub threads: Vec<u32>,

    /// Pages that its memory is in
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        default_value = "small,huge"
    )]
    pub pages: Vec<Pages>,

    /// Kills of each kind
    #[arg(long, value_name = "K", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Write raw results to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Measure this Geryon instead of the one that runs the bench
    #[arg(long, value_name = "PROGRAM")]
    pub geryon: Option<PathBuf>,
}

/// How large the pages are that the kernel is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Huge,
}

/// Who is killed, and who is therefore copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scene {
    /// Nobody; the guest forks itself, without Geryon.
    Fork,
    /// One of three copies that know nothing of each other, without Geryon; another one forks itself at
    /// that moment, the third one says what it felt of that: what the machine alone makes of it.
    Copies,
    /// A follower of three: the other follower is copied.
    Follower,
    /// The only follower: the leader is copied.
    Partner,
    /// The leader of three: a follower takes over, the other one or it is copied.
    Leader,
}

impl Scene {
    const ALL: [Scene; 5] = [
        Scene::Fork,
        Scene::Copies,
        Scene::Follower,
        Scene::Partner,
        Scene::Leader,
    ];

    /// How many replicas.
    fn replicas(self) -> u64 {
        match self {
            Scene::Fork => 1,
            Scene::Partner => 2,
            Scene::Copies | Scene::Follower | Scene::Leader => 3,
        }
    }

    /// The index of the one that is killed.
    fn victim(self) -> Option<usize> {
        match self {
            Scene::Fork => None,
            Scene::Copies | Scene::Follower | Scene::Partner => Some(1),
            Scene::Leader => Some(0),
        }
    }
}

/// A guest.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shape {
    /// Touched memory.
    pub mib: u32,
    /// Threads.
    pub threads: u32,
    /// Of the memory.
    pub pages: Pages,
}

/// All samples of a guest in one scene.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The guest.
    #[serde(flatten)]
    pub shape: Shape,
    /// What was done.
    pub scene: Scene,
    /// One for each round that went well.
    pub samples: Vec<Sample>,
    /// What went wrong in the others.
    pub failures: Vec<String>,
    /// Why it was not measured at all.
    pub skipped: Option<String>,
}

impl Row {
    /// A figure of all samples that have it.
    pub fn series(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<Series> {
        Series::new(self.samples.iter().filter_map(of).collect())
    }
}

/// What is written as JSON.
#[derive(Debug, Serialize)]
struct Results {
    schema: u32,
    #[serde(flatten)]
    circumstances: Circumstances,
    rounds: u32,
    rows: Vec<Row>,
}

/// Measures, prints a table, and writes the file that was asked for.
///
/// # Errors
/// After all that, when a run failed; before, when the guest cannot be built or the file not written.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let geryon = match &options.geryon {
        Some(path) => path.clone(),
        None => std::env::current_exe()?,
    };
    if let Some(file) = &options.json {
        let opened = fs::File::options().append(true).create(true).open(file);
        opened.with_context(|| format!("cannot write {}", file.display()))?;
    }
    scratch::remove_stale();
    let scratch = Scratch::new()?;
    let guest = guest::compile("recovery", scratch.path())?;
    let mut results = Results {
        schema: 1,
        circumstances: Circumstances::now(Some(&geryon)),
        rounds: options.rounds,
        rows: Vec::new(),
    };
    println!("{}", results.circumstances.line());
    println!("{}", table::HEADER);
    let run = trial::Bench {
        geryon: &geryon,
        guest: &guest,
        scratch: scratch.path(),
    };
    for mib in &options.sizes {
        for threads in &options.threads {
            for pages in &options.pages {
                let shape = Shape {
                    mib: *mib,
                    threads: *threads,
                    pages: *pages,
                };
                let rows = measure(&run, shape, options.rounds);
                println!("{}", table::line(&rows));
                results.rows.extend(rows);
            }
        }
    }
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&results)? + "\n";
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let failed = results.rows.iter().map(|r| r.failures.len()).sum::<usize>();
    if failed != 0 {
        bail!("{failed} runs failed");
    }
    Ok(())
}

/// All scenes of one guest, in turn, round by round.
fn measure(bench: &trial::Bench, shape: Shape, rounds: u32) -> Vec<Row> {
    let mut rows = Scene::ALL.map(|scene| Row {
        shape,
        scene,
        samples: Vec::new(),
        failures: Vec::new(),
        skipped: lacks_memory(shape, scene),
    });
    for round in 1..=rounds {
        for row in rows.iter_mut().filter(|r| r.skipped.is_none()) {
            match bench.run(shape, row.scene) {
                Ok(sample) => row.samples.push(sample),
                Err(e) => {
                    let text = format!("{shape:?} {:?}, round {round}: {e:#}", row.scene);
                    eprintln!("failed: {text}");
                    row.failures.push(text);
                }
            }
        }
    }
    rows.into()
}

/// The replicas touch the memory each for itself: only a copy that was made later shares it.
fn lacks_memory(shape: Shape, scene: Scene) -> Option<String> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let free = line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1024;
    let needed = u64::from(shape.mib) * scene.replicas() + SPARE_MIB;
    (free < needed).then(|| format!("needs {needed} MiB, {free} are free"))
}
