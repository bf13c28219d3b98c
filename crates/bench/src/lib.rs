//! `geryon bench`: what replication costs, measured.
//!
//! Every workload is run natively, as N uncoordinated copies, and as N replicas
//! under Geryon, interleaved round by round, so that a change of the machine's
//! mood hits all alike. What counts are the ratios: to native (what a user pays)
//! and to the copies (what coordination costs beyond running the program N times).
//! Contended locks are also run natively on one core, where they are often faster.
//!
//! A figure is a median, and is never asserted: a bench that was made on a busy
//! machine says so, and a failed run is reported beside the others.
#![forbid(unsafe_code)]

mod chart;
mod guest;
mod input;
mod machine;
mod measure;
mod options;
mod process;
mod recovery;
mod results;
pub mod scratch;
mod stats;
mod workload;

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, bail};

pub use options::Options;

use machine::Circumstances;
use results::Results;

/// A load above this says that something else runs.
const LOAD_REMARKABLE: f64 = 0.5;

/// Measures, prints a table to stdout (progress goes to stderr), and writes the
/// files that were asked for. Fails, after all that, when a workload failed.
pub fn run(options: Options) -> anyhow::Result<()> {
    if let Some(options::What::Recovery(options)) = &options.what {
        return recovery::run(options);
    }
    if options.list {
        print!("{}", list());
        return Ok(());
    }
    let plan = options.plan()?;
    // Better now than after ten minutes.
    for file in options.json.iter().chain(&options.svg) {
        let opened = File::options().append(true).create(true).open(file);
        opened.with_context(|| format!("cannot write {}", file.display()))?;
    }
    scratch::remove_stale();
    let scratch = scratch::Scratch::new()?;
    let mut results = Results {
        schema: results::SCHEMA,
        circumstances: Circumstances::now(plan.geryon.as_deref()),
        replicas: plan.replicas,
        rounds: plan.rounds,
        scale: plan.scale,
        workloads: Vec::new(),
    };
    let load = results.circumstances.load.unwrap_or(0.0);
    if load > LOAD_REMARKABLE {
        eprintln!("the load is {load}: end what else runs, or figures will be too large");
    }
    println!("{}", results.circumstances.line());
    println!(
        "medians of {} rounds, ± their median distance from it; less is better\n",
        plan.rounds
    );
    println!("{}", results::header(plan.replicas));
    let bench = measure::Bench::new(&plan, &scratch);
    for workload in &plan.workloads {
        let measured = bench.measure(workload);
        println!("{}", results::row(&measured));
        results.workloads.push(measured);
    }
    if let Some(file) = &options.json {
        write(file, &(serde_json::to_string_pretty(&results)? + "\n"))?;
    }
    if let Some(file) = &options.svg {
        write(file, &chart::draw(&results))?;
    }
    let failed: Vec<&str> = results
        .workloads
        .iter()
        .filter(|measured| !measured.failures.is_empty())
        .map(|measured| measured.name)
        .collect();
    if !failed.is_empty() {
        bail!(
            "{} of {} workloads failed: {}",
            failed.len(),
            plan.workloads.len(),
            failed.join(", ")
        );
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// A line for each workload.
fn list() -> String {
    let line = |workload: &workload::Workload| {
        let package = match workload.program {
            workload::Program::Guest(_) => guest::COMPILER_PACKAGES,
            workload::Program::Installed { package, .. } => package,
        };
        let (name, group) = (workload.name, workload.group());
        format!(
            "{name:<11} {group:<9} {:<52} needs {package}\n",
            workload.what
        )
    };
    workload::ALL.iter().map(line).collect()
}
