//! Replicas that are killed from outside, again and again, while programs run: what comes out is
//! right, and each that was killed is replaced. See `support/settings.rs` for the variables.

#[path = "support/guest.rs"]
mod guest;
#[allow(dead_code)] // the smaller inputs are for repetitions of the real programs
#[path = "support/inputs.rs"]
mod inputs;
#[path = "support/replicas.rs"]
mod replicas;
#[allow(dead_code)] // numbers of replicas and differences matter to the other tests only
mod support;

use replicas::{MARK, built, count, replicas};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use support::{Ended, Load, Outcome, Program, TempDir, Verdicts, settings, tail};

/// A run that takes longer hangs.
const LIMIT_S: u64 = 120;
/// How long a replacement may take before the next kill comes all the same.
const REPLACED_S: u64 = 10;
/// Kills in one run at most.
const KILLS: usize = 6;

/// A program, and what says that its output is right.
struct Case {
    name: &'static str,
    argv: Vec<String>,
    /// A shell command; `stdout` is a file.
    check: &'static str,
}

#[test]
fn killed_replicas_are_replaced() {
    support::no_core_files();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = target.with_file_name("real");
    inputs::make(&folder, &inputs::USUAL);
    let _load = Load::from_settings();
    let mut verdicts = Verdicts::default();
    for case in cases(&folder, &target.with_file_name("guests")) {
        if !settings::selected(case.name) {
            continue;
        }
        let (mut kills, mut replaced, mut failures) = (0, 0, Vec::new());
        for order in ["serial", "clocks"] {
            for round in 1..=settings::repeat() {
                let seed = u64::from(round) * 7919 + case.name.len() as u64;
                match killed(&case, &folder, order, seed) {
                    Ok(n) => (kills, replaced) = (kills + n.0, replaced + n.1),
                    Err(e) => failures.push(format!("{order}, run {round}: {e}")),
                }
            }
        }
        if failures.is_empty() && replaced == 0 {
            failures.push(format!("{kills} kills, and nobody was ever replaced"));
        }
        verdicts.add(
            case.name,
            &format!("{kills} killed, {replaced} replaced"),
            &failures,
        );
    }
    verdicts.finish();
}

fn cases(inputs: &Path, guests: &Path) -> Vec<Case> {
    let text = inputs.join("text").to_string_lossy().into_owned();
    let case = |name, argv: &[&str], check| Case {
        name,
        argv: argv.iter().map(|w| (*w).to_owned()).collect(),
        check,
    };
    let patchwork = built("recover_patchwork", guests);
    vec![
        case(
            "patchwork",
            &[&patchwork.to_string_lossy()],
            "tail -1 stdout | grep -qx 'GUEST-OK recover_patchwork'",
        ),
        case(
            "pbzip2",
            &["pbzip2", "-p4", "-c", &text],
            "bzip2 -dc stdout | cmp - $IN/text",
        ),
        case(
            "xz",
            &["xz", "-T4", "-1", "--block-size=1MiB", "-c", &text],
            "xz -dc <stdout | cmp - $IN/text",
        ),
        case(
            "python",
            &["/usr/bin/python3", "-c", include_str!("real/json.py")],
            "tail -1 stdout | grep -qx done",
        ),
    ]
}

/// One run with kills; how many there were, and how many replacements.
fn killed(case: &Case, inputs: &Path, order: &str, seed: u64) -> Result<(usize, usize), String> {
    let dir = TempDir::new();
    let mark = format!("{}-{}", case.name, dir.path().display());
    let journal = dir.path().join("journal");
    let mut argv = vec![settings::geryon(), "run".into(), "-n".into(), "3".into()];
    argv.extend(["--order".into(), order.into(), "--journal".into()]);
    argv.extend([journal.to_string_lossy().into_owned(), "--".into()]);
    argv.extend(case.argv.iter().cloned());
    let program = Program {
        argv,
        env: [(MARK.to_owned(), mark.clone())].into(),
        stdin: None,
        dir: dir.path().to_owned(),
        send: None,
        limit: settings::limit(LIMIT_S),
    };
    let line = program.command_line();
    let run = thread::spawn(move || program.run());
    let kills = kill_replicas(&mark, &journal, seed, || run.is_finished());
    let outcome = run.join().expect("the runner does not panic")?;
    let replaced = count(&journal, "replaced");
    match wrong(case, inputs, &outcome, dir.path()) {
        None => Ok((kills, replaced)),
        Some(what) => Err(format!(
            "{what}\nafter {kills} kills, {replaced} replaced; end of stderr:\n{}\nwithout kills: {line}",
            tail(&outcome.stderr)
        )),
    }
}

/// Kill one replica after the other, each when the last is replaced; the leader as often as any.
fn kill_replicas(mark: &str, journal: &Path, seed: u64, ended: impl Fn() -> bool) -> usize {
    let mut random = seed;
    let mut kills = 0;
    while kills < KILLS && !ended() {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        thread::sleep(Duration::from_millis(40 + (random >> 33) % 160));
        let waiting = Instant::now();
        while count(journal, "replaced") < kills
            && !ended()
            && waiting.elapsed() < Duration::from_secs(REPLACED_S)
        {
            thread::sleep(Duration::from_millis(2));
        }
        let replicas = replicas(mark);
        if count(journal, "start") == 0 || replicas.len() < 3 {
            continue;
        }
        let chosen = replicas[(random >> 40) as usize % replicas.len()];
        let pid = i32::try_from(chosen).expect("a pid fits");
        // SAFETY: kill takes no pointer; the process carries this run's mark.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        kills += 1;
    }
    kills
}

/// What is wrong with an outcome.
fn wrong(case: &Case, inputs: &Path, outcome: &Outcome, dir: &Path) -> Option<String> {
    let faults = outcome.faults();
    if !faults.is_empty() {
        return Some(faults.join("\n"));
    }
    if outcome.ended != Ended::Exit(0) {
        return Some(format!("ended by {}", outcome.ended));
    }
    fs::write(dir.join("stdout"), &outcome.stdout).expect("the test's own folder is writable");
    let checked = Command::new("bash")
        .args(["-c", &format!("set -e -o pipefail; {}", case.check)])
        .current_dir(dir)
        .env("IN", inputs)
        .output()
        .expect("bash is there");
    (!checked.status.success()).then(|| format!("check `{}` fails", case.check))
}
