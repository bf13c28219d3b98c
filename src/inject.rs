//! `geryon inject`: run a program again and again, each time with another fault, and tell what came
//! of them.

pub mod bare;
mod golden;
mod process;
mod progress;
mod setting;
pub mod tables;
mod trial;

use crate::{USAGE, program};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::MAX_REPLICAS;
use geryon_bench::scratch::{self, Scratch};
use geryon_fault::campaign::SCHEMA;
use geryon_fault::results::Results;
use geryon_fault::summary::Summary;
use geryon_fault::{Campaign, Kind, Record, Side, Times, kind, page};
use golden::Golden;
use progress::Progress;
use setting::Setting;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::mpsc;

/// There was silent corruption, a hang or an error that could not be repaired.
const BAD: u8 = 1;
/// Wrong usage, as clap's own errors.
/// More at once only wait for each other.
const JOBS_MAX: i64 = 256;

/// What was typed.
#[derive(clap::Args)]
pub struct Args {
    /// Number of replicas.
    #[arg(short = 'n', long = "replicas", value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=MAX_REPLICAS as i64))]
    replicas: u32,
    /// Number of trials, each of which makes one fault.
    #[arg(long, value_name = "T", default_value_t = 200,
          value_parser = clap::value_parser!(u64).range(1..))]
    trials: u64,
    /// Chooses the faults: the same seed makes the same ones.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// What is hit: gpr, flags, ip, xmm, ymm, zmm, stack, heap, data, code, stuck, skip, crash,
    /// stop, slow, log, progress, monitor; or groups of them: cpu, memory, control, geryon, all.
    /// And canary: output that is wrong and that nobody can notice, an SDC.
    #[arg(long, value_name = "LIST", default_value = kind::DEFAULT, value_parser = targets)]
    targets: Targets,
    /// When it is hit: delay (at any instant), event (at any word of the log), or at:PLACE:MOST (when
    /// an instruction is executed for the n-th time, n up to MOST). PLACE is an address or SYMBOL+0x5
    /// in the program, or behind FILE! in a library.
    #[arg(long, value_name = "TIME", default_value = "delay")]
    when: Times,
    /// Run the program without Geryon as well, with the same faults where that can be done;
    /// `--bare=only`: only so.
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_missing_value = "beside")]
    bare: Option<Bare>,
    /// Trials at once [default: as many as there is room for on the cores]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u32).range(1..=JOBS_MAX))]
    jobs: Option<u32>,
    /// Write what came of each trial to this file, as JSON lines.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Write a page with charts to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Keep what Geryon said in trials that went wrong in this folder, a file for each.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Go on with the campaign in the file of --results.
    #[arg(long, requires = "results")]
    resume: bool,
    /// Files that the program writes, to be compared as stdout and stderr are. They are named from
    /// its working directory: each trial has an empty one of its own, into which files that are
    /// named as arguments by relative paths are copied.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    files: Vec<String>,
    /// A trial hangs that takes so many times as long as without a fault (and some seconds).
    #[arg(long, value_name = "F", default_value_t = 10.0, value_parser = factor)]
    timeout_factor: f64,
    /// Inject into this Geryon instead of the one that runs the campaign.
    #[arg(long, value_name = "PROGRAM", hide = true)]
    geryon: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// `--bare`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Bare {
    /// Beside the trials with Geryon.
    Beside,
    /// Instead of them.
    Only,
}

/// `--targets`.
#[derive(Clone)]
struct Targets(Vec<Kind>);

fn targets(text: &str) -> Result<Targets, String> {
    kind::parse_list(text).map(Targets)
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if (1.0..=1e6).contains(&f) => Ok(f),
        _ => Err("not a number from 1 to 1000000".into()),
    }
}

/// Run a campaign.
///
/// # Errors
/// Geryon's own failures; what came of the trials is in the status.
pub fn main(args: Args) -> Result<ExitCode> {
    if let Some(wrong) = wrong_usage(&args) {
        eprintln!("geryon: {wrong}");
        return Ok(ExitCode::from(USAGE));
    }
    if let Some(page) = &args.html {
        writable(page)?;
    }
    scratch::remove_stale();
    let scratch = Scratch::new()?;
    let own = std::env::current_exe().context("where is geryon?")?;
    let geryon = match &args.geryon {
        Some(path) => std::path::absolute(path)?,
        None => own.clone(),
    };
    let setting = Setting {
        line: line(&args.command)?,
        geryon,
        own,
        replicas: args.replicas,
        files: args.files.clone(),
        inputs: setting::copy_inputs(scratch.path(), &args.command[1..])?,
        scratch: scratch.path().to_owned(),
        keep: args.keep.clone(),
    };
    eprintln!("geryon: inject: running without a fault first");
    let golden = Golden::find(&setting, args.bare != Some(Bare::Only))?;
    let (campaign, done, mut results) = match begin(&args, &golden)? {
        Ok(begun) => begun,
        Err(wrong) => {
            eprintln!("geryon: {wrong}");
            return Ok(ExitCode::from(USAGE));
        }
    };
    let records = run(&args, &setting, &golden, &campaign, done, results.as_mut())?;
    let summary = Summary {
        campaign: &campaign,
        records: &records,
    };
    print!("{}", summary.text());
    if let Some(path) = &args.html {
        std::fs::write(path, page::render(summary))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::from(if summary.bad().is_empty() {
        0
    } else {
        BAD
    }))
}

/// What clap cannot see.
fn wrong_usage(args: &Args) -> Option<String> {
    for file in &args.files {
        let parts: Vec<Component<'_>> = Path::new(file).components().collect();
        let plain = parts.iter().all(|p| matches!(p, Component::Normal(_)));
        if parts.is_empty() || !plain {
            return Some(format!(
                "--files {file:?}: not below the program's working directory\n  try: a relative path without .."
            ));
        }
    }
    let taken = |path: &&PathBuf| !args.resume && path.exists();
    if let Some(path) = args.results.as_ref().filter(taken) {
        return Some(format!(
            "{} is there already\n  try: --resume to go on with its campaign, or another file",
            path.display()
        ));
    }
    if args.bare == Some(Bare::Only) && !args.targets.0.iter().any(|k| k.hits_bare()) {
        return Some(
            "none of the targets can be hit without Geryon\n  try: without --bare=only".into(),
        );
    }
    None
}

/// A page that could not be written at the end would be lost: look before starting.
fn writable(path: &Path) -> Result<()> {
    let opened = std::fs::File::options()
        .append(true)
        .create(true)
        .open(path);
    opened.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// The command as it is run from another directory.
fn line(command: &[OsString]) -> Result<Vec<OsString>> {
    let mut line = command.to_vec();
    if let Err(e) = program::find(&line[0]) {
        bail!("{}", e.message);
    }
    if line[0].to_string_lossy().contains('/') {
        line[0] = std::path::absolute(&line[0])?.into();
    }
    Ok(line)
}

/// A campaign, what is done of it, and where the rest is written.
type Begun = (Campaign, Vec<Record>, Option<Results>);

/// Begin a campaign or go on with one; Ok(Err): it cannot be gone on with.
fn begin(args: &Args, golden: &Golden) -> Result<Result<Begun, String>> {
    let mut words = args
        .command
        .iter()
        .map(|w| w.to_string_lossy().into_owned());
    let mut campaign = Campaign {
        schema: SCHEMA,
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        replicas: args.replicas,
        trials: args.trials,
        seed: args.seed,
        targets: args.targets.0.clone(),
        times: args.when,
        files: args.files.clone(),
        timeout_factor: args.timeout_factor,
        golden: golden.written.digest(),
        span_us: golden.span_us,
        bare_span_us: golden.bare_span_us,
        span_events: golden.span_events,
    };
    let Some(path) = &args.results else {
        return Ok(Ok((campaign, Vec::new(), None)));
    };
    let shown = path.display();
    if !args.resume || !path.exists() {
        let results = Results::create(path, &campaign);
        let results = results.with_context(|| format!("cannot write {shown}"))?;
        return Ok(Ok((campaign, Vec::new(), Some(results))));
    }
    let (results, before, done) =
        Results::resume(path).with_context(|| format!("cannot go on with {shown}"))?;
    if let Err(why) = campaign.continues(&before) {
        return Ok(Err(format!(
            "{shown} has results of another campaign: {why}\n  try: the same options, or another file"
        )));
    }
    // Faults strike at parts of these times: the same ones, so that the trials are the same.
    (campaign.span_us, campaign.bare_span_us) = (before.span_us, before.bare_span_us);
    campaign.span_events = before.span_events;
    Ok(Ok((campaign, done, Some(results))))
}

/// Run what is not done. All records, the old ones too.
fn run(
    args: &Args,
    setting: &Setting,
    golden: &Golden,
    campaign: &Campaign,
    mut records: Vec<Record>,
    mut results: Option<&mut Results>,
) -> Result<Vec<Record>> {
    records.retain(|r| r.trial < campaign.trials && wanted(args, r.side, r.fault.target.kind()));
    let done: HashSet<(u64, Side)> = records.iter().map(|r| (r.trial, r.side)).collect();
    let all = (0..campaign.trials).flat_map(|i| [(i, Side::Geryon), (i, Side::Bare)]);
    let open: Vec<_> = all
        .filter(|(i, side)| wanted(args, *side, campaign.trial(*i).fault.target.kind()))
        .filter(|trial| !done.contains(trial))
        .collect();
    let mut progress = Progress::new(records.len(), open.len());
    let queue = Mutex::new(open.into_iter());
    // A worker that panics poisons nothing that the others could see half done.
    let next = || queue.lock().unwrap_or_else(|e| e.into_inner()).next();
    let (sender, receiver) = mpsc::channel();
    let result = std::thread::scope(|scope| {
        for _ in 0..jobs(args) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((number, side)) = next() {
                    let record = trial::run(setting, golden, campaign, number, side);
                    // Nobody listens any more: another trial has failed.
                    if sender.send(record).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        // By value, so that workers stop when this ends early.
        for record in receiver {
            let record = record?;
            if let Some(results) = results.as_mut() {
                results.add(&record).context("cannot write the results")?;
            }
            progress.add(&record);
            records.push(record);
        }
        Ok(())
    });
    progress.end();
    result.map(|()| records)
}

/// Whether this target is hit on this side.
fn wanted(args: &Args, side: Side, kind: Kind) -> bool {
    match side {
        Side::Geryon => args.bare != Some(Bare::Only),
        Side::Bare => args.bare.is_some() && kind.hits_bare(),
    }
}

/// Trials at once: each has as many busy processes as there are replicas.
fn jobs(args: &Args) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
    args.jobs.unwrap_or((cores / args.replicas).max(1))
}
