//! Real programs of the distribution as replicas: what they give must equal what
//! they give natively where that is fixed, and pass a check of its own always.
//! See `support/settings.rs` for the variables that choose and repeat; packages
//! are listed in `packages.txt`.

#[path = "real/cases.rs"]
mod cases;
#[path = "support/inputs.rs"]
mod inputs;
mod support;

use cases::{CASES, Case, NOT_IN};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use support::{Ended, Load, Outcome, Program, TempDir, Verdicts, difference, settings, tail};

/// A program that takes longer hangs.
const LIMIT_S: u64 = 180;
/// What a report of a divergence must name.
const REPORT_NAMES: &str = "thread group";
/// Where a case's stdout is put for its check.
const STDOUT: &str = "stdout";

#[test]
fn real_programs() {
    support::no_core_files();
    let (name, size) = if settings::short() {
        ("real-short", inputs::SHORT)
    } else {
        ("real", inputs::USUAL)
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(name);
    inputs::make(&folder, &size);
    let verdicts = Mutex::new(Verdicts::default());
    let _load = Load::from_settings();
    let chosen = CASES.iter().filter(|c| settings::selected(c.name));
    support::beside(&chosen.collect::<Vec<_>>(), |case| {
        let mut notes = Vec::new();
        let failures = try_case(case, &folder, &mut notes);
        let mut verdicts = verdicts.lock().expect("no case panics");
        verdicts.add(case.name, &notes.join("  "), &failures);
    });
    verdicts.into_inner().expect("no case panics").finish();
}

/// What one run left: how it went, and the files it is judged by.
struct Finished {
    outcome: Outcome,
    files: BTreeMap<String, Vec<u8>>,
}

/// One case natively, then with each number of replicas as often as asked.
fn try_case(case: &Case, inputs: &Path, notes: &mut Vec<String>) -> Vec<String> {
    let native = match run(case, inputs, 0, "auto") {
        Err(failures) => return failures,
        Ok(native) => native,
    };
    notes.push(format!("native {} ms", native.outcome.took.as_millis()));
    let mut failures = Vec::new();
    let not_in = NOT_IN.iter().filter(|(name, ..)| *name == case.name);
    for (_, order, why) in not_in.clone() {
        notes.push(format!("not in {order}: {why}"));
    }
    for (n, order) in settings::replicas_and_orders(&[2, 3]) {
        if not_in.clone().any(|(_, o, _)| *o == order) {
            continue;
        }
        let (mut slowest, mut stopped) = (0, 0);
        for round in 1..=settings::repeat() {
            match run(case, inputs, n, order) {
                Ok(result) => {
                    slowest = slowest.max(result.outcome.took.as_millis());
                    let reported = !result.outcome.geryon_lines().is_empty();
                    stopped += u32::from(reported);
                    let differs = differences(case, &native, &result);
                    if reported || differs.is_empty() {
                        continue;
                    }
                    failures.push(format!(
                        "-n {n}, {order}, run {round}: {}",
                        differs.join("\n")
                    ));
                }
                Err(wrong) => failures.push(format!(
                    "-n {n}, {order}, run {round}: {}",
                    wrong.join("\n")
                )),
            }
            break;
        }
        let stops = if stopped > 0 {
            format!(" ({stopped} stopped)")
        } else {
            String::new()
        };
        notes.push(format!("n{n} {order} {slowest} ms{stops}"));
    }
    failures
}

/// One run in a folder of its own, checked.
fn run(case: &Case, inputs: &Path, replicas: u32, order: &str) -> Result<Finished, Vec<String>> {
    let dir = TempDir::new();
    let input = inputs.to_string_lossy();
    let program = Program {
        argv: case
            .argv
            .iter()
            .map(|word| word.replace("@IN", &input))
            .collect(),
        env: BTreeMap::from([("IN".to_owned(), input.clone().into_owned())]),
        stdin: case
            .stdin
            .map(|name| fs::read(inputs.join(name)).expect("the input was made")),
        dir: dir.path().to_owned(),
        send: None,
        limit: settings::limit(LIMIT_S),
    }
    .in_order(replicas, order);
    let wrong = |what: String, outcome: Option<&Outcome>| {
        let mut wrong = vec![what];
        if let Some(outcome) = outcome {
            wrong.push(format!("end of stderr:\n{}", tail(&outcome.stderr)));
        }
        let line = program.command_line();
        wrong.push(format!(
            "repeat: {}",
            line.replace(&*dir.path().to_string_lossy(), "/tmp")
        ));
        Err(wrong)
    };
    let outcome = match program.run() {
        Ok(outcome) => outcome,
        Err(e) => return wrong(e, None),
    };
    let mut faults = outcome.faults();
    let mut said = outcome.geryon_lines();
    if case.beyond {
        // That a call was refused is said; what the program makes of it must still be right.
        said.retain(|l| !l.contains(" is refused"));
    }
    if !said.is_empty() {
        // A racy program may be stopped if a report says where.
        let named = said.iter().any(|l| l.contains(REPORT_NAMES));
        if case.beyond && named && faults.is_empty() && outcome.ended != Ended::Exit(0) {
            return Ok(Finished {
                outcome,
                files: BTreeMap::new(),
            });
        }
        // Of three, one that has raced is outvoted and made anew: what comes out must still be right.
        if !(case.beyond && named) {
            faults.extend(said);
        }
    }
    if outcome.ended != Ended::Exit(0) {
        faults.push(format!("ended by {}", outcome.ended));
    }
    if !faults.is_empty() {
        return wrong(faults.join("\n"), Some(&outcome));
    }
    let mut files = BTreeMap::new();
    for name in case.files {
        match fs::read(dir.path().join(name)) {
            Ok(bytes) => files.insert((*name).to_owned(), bytes),
            Err(e) => return wrong(format!("{name}: {e}"), Some(&outcome)),
        };
    }
    fs::write(dir.path().join(STDOUT), &outcome.stdout).expect("the test's own folder is writable");
    let mut check = Command::new("bash");
    check.args(["-c", &format!("set -e -o pipefail; {}", case.check)]);
    check
        .current_dir(dir.path())
        .env("IN", inputs)
        .env("LC_ALL", "C");
    let checked = check.output().expect("bash is there");
    if !checked.status.success() {
        let said = String::from_utf8_lossy(&checked.stderr);
        return wrong(
            format!("check `{}` fails: {said}", case.check),
            Some(&outcome),
        );
    }
    Ok(Finished { outcome, files })
}

/// Where a run's output is not the native one, if it has to be.
fn differences(case: &Case, native: &Finished, run: &Finished) -> Vec<String> {
    if !case.same {
        return Vec::new();
    }
    let files = native
        .files
        .iter()
        .filter_map(|(name, bytes)| difference(name, bytes, &run.files[name]));
    difference(STDOUT, &native.outcome.stdout, &run.outcome.stdout)
        .into_iter()
        .chain(files)
        .collect()
}
