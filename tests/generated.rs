//! Random programs of system calls (`tests/generated`): each seed's is run natively, twice, and as 2 and 3 replicas in
//! both orders, and has to print the same. A failure names the first line that differs, and how to repeat it;
//! CALLS_ONLY in the environment reduces it (see `tests/generated/calls.c`).
//! `KILLS=n`: up to n times a replica is killed meanwhile, any of them, at moments that follow from the seed.
//! `SEED=n`, `SEEDS=first..last`, `SECONDS=n` and `STEPS=n` choose; see `support/settings.rs`.

#[allow(dead_code)] // each test asks it something else
#[path = "support/journal.rs"]
mod journal;
#[allow(dead_code)] // whole runs with kills are other tests' affair
#[path = "support/kills.rs"]
mod kills;
#[allow(dead_code)] // checkpoints matter to another test
#[path = "support/replicas.rs"]
mod replicas;
mod support;

use kills::{Choice, Scene};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use support::{Ended, Load, Outcome, Program, TempDir, Verdicts, settings, tail};

/// A program that takes longer hangs.
const LIMIT_S: u64 = 60;
/// New seeds are begun for so long, where nobody says which.
const USUAL_S: u64 = 110;
/// Calls of one program.
const USUAL_STEPS: u64 = 250;
/// More seeds that fail tell nothing more.
const MOST_FAILURES: usize = 5;

#[test]
fn generated() {
    support::no_core_files();
    let mut verdicts = Verdicts::default();
    let binary = match build() {
        Ok(binary) => binary,
        Err(e) => {
            verdicts.add("calls", "", &[e]);
            return verdicts.finish();
        }
    };
    let _load = Load::from_settings();
    let steps = settings::steps().unwrap_or(USUAL_STEPS);
    let (seeds, seconds) = match settings::seeds() {
        Some(seeds) => (seeds, settings::seconds()),
        None => (1..=u64::MAX, settings::seconds().or(Some(USUAL_S))),
    };
    let begin = Instant::now();
    let is_over = || seconds.is_some_and(|seconds| begin.elapsed() >= Duration::from_secs(seconds));
    let next = AtomicU64::new(*seeds.start());
    let failed = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !is_over() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let failures = || failed.lock().expect("no worker panics");
                    if !seeds.contains(&seed) || failures().len() >= MOST_FAILURES {
                        break;
                    }
                    let wrong = try_seed(&binary, seed, steps);
                    if !wrong.is_empty() {
                        failures().insert(seed, wrong);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no worker panics");
    for (seed, wrong) in &failed {
        verdicts.add(&format!("seed {seed}"), "", wrong);
    }
    let last = next.into_inner().min(*seeds.end());
    let note = format!("seeds {} to {last}, {steps} steps each", seeds.start());
    verdicts.add("calls", &note, &[]);
    verdicts.finish();
}

/// Killed shortly after one another: these programs take a tenth of a second.
const SCENE: Scene = Scene {
    replicas: 0,
    order: "",
    every_ms: (0, 60),
    strikes: 0,
    seconds: 0,
    runs: 1,
    choice: Choice::One,
    may_stop: false,
};

/// Run a program whose replicas are killed meanwhile. What Geryon says of that is left out of its outcome.
fn run_with_kills(mut program: Program, scene: Scene, seed: u64) -> Result<Outcome, String> {
    let dir = TempDir::new();
    let journal = dir.path().join("journal");
    program.option("--journal", &journal.to_string_lossy());
    let run = thread::spawn(move || program.run());
    let missing = kills::strike(scene, &journal, seed, || run.is_finished());
    let mut outcome = run.join().expect("the runner does not panic")?;
    if let Some(missing) = missing {
        return Err(missing);
    }
    let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let (told, own): (Vec<&str>, Vec<&str>) = text
        .split_inclusive('\n')
        .partition(|l| l.starts_with("geryon: "));
    if told.iter().any(|l| l.starts_with("geryon: stopped")) {
        return Err(told.concat());
    }
    outcome.stderr = own.concat().into_bytes();
    Ok(outcome)
}

/// All sources of `tests/generated` as one program.
fn build() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("generated");
    fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    let lock = File::create(out.join("lock")).and_then(|l| l.lock().map(|()| l));
    let _until_built = lock.map_err(|e| e.to_string())?;
    let binary = out.join("calls");
    let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
    let mut sources = Vec::new();
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(folder).map_err(|e| e.to_string())?.flatten() {
        let path = entry.path();
        newest = newest.max(time(&path).unwrap_or_else(SystemTime::now));
        if path.extension().is_some_and(|e| e == "c") {
            sources.push(path);
        }
    }
    sources.sort();
    if time(&binary).is_some_and(|b| b > newest) {
        return Ok(binary);
    }
    let partial = out.join("calls.partial");
    let mut command = Command::new("gcc");
    command.args(["-O2", "-g", "-Wall", "-Wextra", "-pthread", "-o"]);
    command.arg(&partial).args(sources);
    let result = command
        .output()
        .map_err(|e| format!("cannot run gcc: {e} (see tests/packages.txt)"))?;
    let said = String::from_utf8_lossy(&result.stderr);
    if !result.status.success() || said.contains("warning:") {
        return Err(format!("{command:?}\n{said}"));
    }
    fs::rename(&partial, &binary).map_err(|e| e.to_string())?;
    Ok(binary)
}

/// What is wrong with one seed's program.
fn try_seed(binary: &Path, seed: u64, steps: u64) -> Vec<String> {
    let words = [
        binary.to_string_lossy().into_owned(),
        seed.to_string(),
        steps.to_string(),
    ];
    let asked = std::env::vars().filter(|(name, _)| name.starts_with("CALLS_"));
    let env: BTreeMap<String, String> = asked.collect();
    let strikes = settings::kills();
    let run = |replicas: u32, order: &'static str| {
        // (Each in an empty folder.)
        let dir = TempDir::new();
        let program = Program {
            argv: words.to_vec(),
            env: env.clone(),
            stdin: None,
            dir: dir.path().to_owned(),
            send: None,
            limit: settings::limit(LIMIT_S),
        };
        let program = program.in_order(replicas, order);
        let line = program.command_line();
        let line = line.replace(&*dir.path().to_string_lossy(), "$(mktemp -d)");
        if replicas < 2 || strikes == 0 {
            return (program.run(), line);
        }
        let scene = Scene {
            replicas: replicas as usize,
            order,
            strikes,
            ..SCENE
        };
        (run_with_kills(program, scene, seed), line)
    };
    let (native, line) = match run(0, "auto") {
        (Ok(native), line) => (native, line),
        (Err(e), _) => return vec![e],
    };
    let mut wrong = native.faults();
    if native.ended != Ended::Exit(0) {
        wrong.push(format!("natively ended by {}", native.ended));
        wrong.push(tail(&native.stderr));
    }
    match run(0, "auto") {
        (Ok(again), _) => wrong.extend(differences(&native, &again)),
        (Err(e), _) => wrong.push(e),
    }
    if !wrong.is_empty() {
        wrong.insert(0, "the generator is wrong: natively".to_owned());
        wrong.push(format!("repeat: {line}"));
        return wrong;
    }
    for (replicas, order) in settings::replicas_and_orders(&[2, 3]) {
        for _ in 0..settings::repeat() {
            let (outcome, line) = run(replicas, order);
            match outcome {
                Ok(outcome) => wrong.extend(differences(&native, &outcome)),
                Err(e) => wrong.push(e),
            }
            if !wrong.is_empty() {
                let kills = match strikes {
                    0 => String::new(),
                    n => format!(" (KILLS={n})"),
                };
                wrong.insert(0, format!("-n {replicas} --order {order}{kills}:"));
                wrong.push(format!("repeat: {line}"));
                return wrong;
            }
        }
    }
    wrong
}

/// What a run has that a native one has not.
fn differences(native: &Outcome, other: &Outcome) -> Vec<String> {
    let mut wrong = other.faults();
    if other.ended != native.ended {
        wrong.push(format!(
            "ended by {}, natively {}",
            other.ended, native.ended
        ));
    }
    let lines = |outcome: &Outcome| -> Vec<String> {
        let text = String::from_utf8_lossy(&outcome.stdout);
        text.split('\n').map(str::to_owned).collect()
    };
    let (expected, got) = (lines(native), lines(other));
    let missing = "(nothing)".to_owned();
    let count = expected.len().max(got.len());
    let line = |of: &[String], at: usize| of.get(at).unwrap_or(&missing).clone();
    if let Some(at) = (0..count).find(|at| expected.get(*at) != got.get(*at)) {
        wrong.push(format!("line {} of stdout", at + 1));
        wrong.push(format!("  natively: {}", line(&expected, at)));
        wrong.push(format!("  here:     {}", line(&got, at)));
    }
    if other.stderr != native.stderr {
        wrong.push(format!("stderr ends with\n{}", tail(&other.stderr)));
    }
    wrong
}
