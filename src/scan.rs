//! `geryon scan`: what Geryon would rewrite in programs and libraries, and what it leaves as it is.

use crate::OWN_FAILURE;
use anyhow::{Context, Result};
use geryon_abi::hooks::{HOOKS, REPLACED};
use geryon_patch::{Found, Options, Plan, SiteKind, survey};
use geryon_sites::{Known, build_id};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to scan, and how to tell.
#[derive(clap::Args)]
pub struct Args {
    /// Programs and shared libraries (ELF, x86-64). Code that a program makes itself is not in its file: its calls
    /// trap one by one, and its atomic instructions are not seen.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Tell of each place, too.
    #[arg(long, short)]
    verbose: bool,
    /// As JSON: an array with an object for each file.
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
}

/// What is counted together, in this order.
const KINDS: [&str; 9] = [
    "system calls",
    "atomic instructions",
    "places that may wait",
    "loads that decide about order",
    "stores of what these look at",
    "lock functions",
    "time stamp counter",
    "random numbers",
    "registers saved",
];

fn kind(kind: SiteKind) -> &'static str {
    KINDS[match kind {
        SiteKind::Syscall => 0,
        SiteKind::Rmw => 1,
        SiteKind::Wait => 2,
        SiteKind::Load => 3,
        SiteKind::Store => 4,
        SiteKind::Entry(_) => 5,
        SiteKind::Rdtsc | SiteKind::Rdtscp => 6,
        SiteKind::Rdrand => 7,
        SiteKind::Xsavec => 8,
    }]
}

/// Prints what was found; a file that cannot be scanned does not keep the others from it.
///
/// # Errors
/// When the output cannot be written.
pub fn main(args: &Args) -> Result<ExitCode> {
    let (mut text, mut objects, mut code) = (String::new(), Vec::new(), ExitCode::SUCCESS);
    let known = Known::read()?.by_build();
    for file in &args.files {
        let asked = build_id(file).and_then(|b| known.get(&b));
        match scan(file, asked.map_or(&[], Vec::as_slice)) {
            Ok((plan, found)) if args.json => objects.push(object(file, &plan, &found)),
            Ok((plan, found)) => put(&mut text, file, &plan, &found, args.verbose),
            Err(e) => {
                eprintln!("geryon: {}: {e:#}", file.display());
                code = ExitCode::from(OWN_FAILURE);
            }
        }
    }
    if args.json {
        text = serde_json::to_string_pretty(&Value::Array(objects))? + "\n";
    }
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(code), // `| head`
        result => Ok(result.map(|()| code)?),
    }
}

/// `asked`: places that are known to race (`geryon sites`).
fn scan(file: &Path, asked: &[u64]) -> Result<(Plan, Vec<Found>)> {
    let bytes = std::fs::read(file).context("cannot be read")?;
    let options = Options {
        entries: HOOKS,
        rmw: true,
        waits: true,
        loads: true,
        asked,
    };
    let plan = Plan::new(&bytes, &options).context("cannot be scanned")?;
    let mut found = survey(&plan);
    for f in &mut found {
        if matches!(f.kind, SiteKind::Entry(id) if REPLACED.contains(&id)) && f.left.is_some() {
            // The whole function is, not its first instructions.
            (f.left, f.instruction) = (None, "replaced".into());
        }
    }
    Ok((plan, found))
}

fn put(text: &mut String, file: &Path, plan: &Plan, found: &[Found], verbose: bool) {
    // (Writing to a string does not fail.)
    let _ = writeln!(
        text,
        "{}: {:.1} MB of code in {} functions",
        file.display(),
        plan.stats.covered_bytes as f64 / 1e6,
        plan.stats.ranges
    );
    for name in KINDS {
        let all: Vec<&Found> = found.iter().filter(|f| kind(f.kind) == name).collect();
        let left = all.iter().filter(|f| f.left.is_some()).count();
        let mut by_instruction: BTreeMap<&str, usize> = BTreeMap::new();
        for f in all.iter().filter(|f| !f.instruction.is_empty()) {
            *by_instruction.entry(&f.instruction).or_default() += 1;
        }
        let several = matches!(name, "atomic instructions" | "places that may wait");
        let mut rest: Vec<String> = match several {
            true => by_instruction
                .iter()
                .map(|(i, n)| format!("{i} {n}"))
                .collect(),
            false => Vec::new(),
        };
        if left > 0 {
            rest.push(format!("{left} not rewritten"));
        }
        let rest = match rest.is_empty() {
            true => String::new(),
            false => format!("  {}", rest.join(", ")),
        };
        let _ = writeln!(text, "  {name:20} {:6}{rest}", all.len());
    }
    let (local, fences) = (plan.stats.rmw_thread_local, plan.stats.rmw_fences);
    let _ = writeln!(
        text,
        "  not ordered: {local} atomic instructions on memory of one thread, {fences} that are fences"
    );
    if plan.stats.leaves_much() {
        let (bytes, atomics) = (plan.stats.unseen_bytes, plan.stats.unseen_rmw);
        let _ = writeln!(
            text,
            "  not seen: {:.1} MB that no unwind table and no symbol describes, with {atomics} atomic instructions",
            bytes as f64 / 1e6
        );
    }
    if verbose {
        for f in found {
            let what = match &f.left {
                Some(why) => format!("not rewritten: {why}"),
                None => f.instruction.clone(),
            };
            let _ = writeln!(text, "  {:#010x} {:20} {what}", f.vaddr, kind(f.kind));
        }
    }
}

fn object(file: &Path, plan: &Plan, found: &[Found]) -> Value {
    let site = |f: &Found| {
        json!({
            "address": f.vaddr,
            "kind": kind(f.kind),
            "instruction": (!f.instruction.is_empty()).then_some(&f.instruction),
            "not_rewritten": f.left,
        })
    };
    json!({
        "file": file.to_string_lossy(),
        "code_bytes": plan.stats.covered_bytes,
        "unseen_bytes": plan.stats.unseen_bytes,
        "unseen_atomics": plan.stats.unseen_rmw,
        "functions": plan.stats.ranges,
        "thread_local_atomics": plan.stats.rmw_thread_local,
        "fences": plan.stats.rmw_fences,
        "sites": found.iter().map(site).collect::<Vec<_>>(),
    })
}
