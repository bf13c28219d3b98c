//! Two replicas with checkpoints: one of them is damaged, and what comes out is right all the same, or
//! the run stops with a report where it must. See `support/settings.rs` for the variables.

#[path = "support/guest.rs"]
mod guest;
#[allow(dead_code)] // the smaller inputs are for repetitions of the real programs
#[path = "support/inputs.rs"]
mod inputs;
#[allow(dead_code)] // numbers of replicas and differences matter to the other tests only
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use support::{Ended, Load, Outcome, Program, TempDir, settings, tail};

/// A run that takes longer hangs.
const LIMIT_S: u64 = 120;
/// Seconds between two checkpoints.
const EVERY: &str = "0.2";
/// Output calls of the guest in front of the one that is damaged.
const BEFORE: u64 = 6;

/// A run of the guest: the flags, and what is waited for in the journal before the guest goes on.
struct Run {
    dir: TempDir,
    outcome: Outcome,
    journal: Vec<String>,
    line: String,
}

/// The guest, built once for all tests.
fn cells() -> PathBuf {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    BUILT.get_or_init(|| built("checkpoint_cells")).clone()
}

fn built(name: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests-checkpoint");
    fs::create_dir_all(&out).expect("the folder can be made");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests");
    let (found, headers) = guest::find(&folder);
    let guest = found.into_iter().flatten().find(|g| g.name == name);
    let guest = guest.expect("the guest is there");
    guest.build(&out, headers).expect("it builds")
}

fn events(journal: &Path) -> Vec<String> {
    let text = fs::read_to_string(journal).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn is(line: &str, event: &str) -> bool {
    line.contains(&format!("\"event\":\"{event}\""))
}

/// Is there a checkpoint, behind the first of the events named if there is one to be?
fn is_ready(journal: &[String], behind: Option<&str>) -> bool {
    let from = match behind {
        None => Some(0),
        Some(event) => journal.iter().position(|l| is(l, event)),
    };
    from.is_some_and(|at| journal[at..].iter().any(|l| is(l, "checkpoint")))
}

/// Run the guest with these flags; it goes on when the journal is `ready`.
fn run(flags: &[&str], ready: impl Fn(&[String]) -> bool) -> Run {
    run_reading(0, flags, ready)
}

/// The same; it reads so many megabytes then.
fn run_reading(megabytes: u32, flags: &[&str], ready: impl Fn(&[String]) -> bool) -> Run {
    support::no_core_files();
    let dir = TempDir::new();
    let (journal, go) = (dir.path().join("journal"), dir.path().join("go"));
    let mut argv = vec![settings::geryon(), "run".into(), "-n".into(), "2".into()];
    argv.extend(["--checkpoint".into(), EVERY.into(), "--journal".into()]);
    argv.push(journal.to_string_lossy().into_owned());
    argv.extend(flags.iter().map(|f| (*f).to_owned()));
    argv.push("--".into());
    argv.push(cells().to_string_lossy().into_owned());
    argv.push(go.to_string_lossy().into_owned());
    argv.push(megabytes.to_string());
    let mut program = Program {
        argv,
        env: Default::default(),
        stdin: None,
        dir: dir.path().to_owned(),
        send: None,
        limit: settings::limit(LIMIT_S),
    };
    if let Some(cpus) = settings::taskset() {
        program.prefix(&["taskset", "-c", &cpus]);
    }
    let line = program.command_line();
    let runner = thread::spawn(move || program.run());
    while !runner.is_finished() && !ready(&events(&journal)) {
        thread::sleep(Duration::from_millis(2));
    }
    fs::write(&go, "").expect("the test's own folder is writable");
    let outcome = runner.join().expect("the runner does not panic");
    let outcome = outcome.expect("it can be started");
    let run = Run {
        journal: events(&journal),
        dir,
        outcome,
        line,
    };
    let faults = run.outcome.faults();
    assert!(faults.is_empty(), "{}\n{}", faults.join("\n"), run.tell());
    run
}

impl Run {
    fn tell(&self) -> String {
        format!(
            "ended by {}; repeat: {}\njournal:\n{}\nend of stderr:\n{}",
            self.outcome.ended,
            self.line,
            self.journal.join("\n"),
            tail(&self.outcome.stderr)
        )
    }

    fn at(&self, event: &str) -> Option<usize> {
        self.journal.iter().position(|l| is(l, event))
    }

    /// All of its output is right.
    fn is_right(&self) -> bool {
        let native = Command::new(cells())
            .env("TMPDIR", self.dir.path())
            .output()
            .expect("the guest runs");
        self.outcome.ended == Ended::Exit(0) && self.outcome.stdout == native.stdout
    }

    fn assert_repaired(&self, outvoted: u32) {
        assert!(self.is_right(), "{}", self.tell());
        let verdict = self.at("arbitrated").map(|at| &self.journal[at]);
        let named = format!("\"outvoted\":{outvoted},");
        assert!(
            verdict.is_some_and(|l| l.contains(&named)),
            "{}",
            self.tell()
        );
        assert!(self.at("rollback").is_some(), "{}", self.tell());
    }
}

fn checkpoint_is_there(journal: &[String]) -> bool {
    is_ready(journal, None)
}

#[test]
fn who_differs_after_a_checkpoint_is_found_and_replaced() {
    let _load = Load::from_settings();
    for _ in 0..settings::repeat() {
        for kind in ["argument", "content", "order", "extra"] {
            for replica in 0..2 {
                let sabotage = format!("{replica}:{kind}:{BEFORE}");
                let run = run(&["--sabotage", &sabotage], checkpoint_is_there);
                run.assert_repaired(replica);
            }
        }
    }
}

#[test]
fn with_clocks_too() {
    let _load = Load::from_settings();
    for _ in 0..settings::repeat() {
        for replica in 0..2 {
            // While the guest waits it has one thread, which can be copied; later on it may be impossible.
            let sabotage = format!("{replica}:content:2");
            let flags = ["--order", "clocks", "--sabotage", &sabotage];
            let run = run(&flags, checkpoint_is_there);
            run.assert_repaired(replica);
        }
    }
}

#[test]
fn who_stands_still_after_a_checkpoint_is_found() {
    for replica in 0..2 {
        let fault = format!("replica={replica},when=delay:600000,target=stop");
        let run = run(&["--fault", &fault], |journal| {
            checkpoint_is_there(journal) && journal.iter().any(|l| is(l, "fault-injected"))
        });
        run.assert_repaired(replica);
    }
}

#[test]
fn a_crash_needs_no_arbitration() {
    for replica in 0..2 {
        let sabotage = format!("{replica}:crash:{BEFORE}");
        let run = run(&["--sabotage", &sabotage], checkpoint_is_there);
        assert!(run.is_right(), "{}", run.tell());
        assert!(run.at("arbitrated").is_none(), "{}", run.tell());
        assert!(run.at("replaced").is_some(), "{}", run.tell());
    }
}

#[test]
fn a_fault_from_before_the_checkpoint_stops_the_run() {
    // The numbers are most of the heap: nearly every byte of it is in the sum.
    let mut stopped = 0;
    for round in 0..4 {
        let (replica, byte) = (round % 2, 2_000_000 * (round + 1));
        let fault = format!("replica={replica},when=delay:500000,target=heap:{byte}:3");
        let run = run(&["--fault", &fault], |journal| {
            is_ready(journal, Some("fault-injected"))
                || journal.iter().any(|l| is(l, "fault-missed"))
        });
        if run.is_right() {
            continue;
        }
        stopped += 1;
        assert_eq!(run.outcome.ended, Ended::Exit(125), "{}", run.tell());
        let text = String::from_utf8_lossy(&run.outcome.stderr).into_owned();
        let said = text.contains("older than the last checkpoint");
        assert!(said, "{}", run.tell());
    }
    assert!(stopped > 0, "the fault never hit what is summed up");
}

#[test]
fn flipped_bits_in_memory_are_repaired_if_the_checkpoint_is_older() {
    let _load = Load::from_settings();
    let mut repaired = 0;
    for round in 0..6 * settings::repeat() {
        let (replica, byte) = (round % 2, 1_000_000 * (round + 1));
        let delay = 700_000 + 13_000 * (round % 7);
        let fault = format!("replica={replica},when=delay:{delay},target=heap:{byte}:5");
        let run = run(&["--fault", &fault], |journal| {
            let told = |l: &String| is(l, "fault-injected") || is(l, "fault-missed");
            checkpoint_is_there(journal) && journal.iter().any(told)
        });
        // The journal says whether a checkpoint was made in between.
        let last = run.journal.iter().enumerate().rev();
        let rollback = run.at("rollback").unwrap_or(run.journal.len());
        let mut before = last.filter(|(at, l)| *at < rollback && is(l, "checkpoint"));
        let checkpoint = before.next().map(|(at, _)| at);
        let injected = run.at("fault-injected");
        if run.is_right() {
            repaired += usize::from(run.at("arbitrated").is_some());
        } else {
            assert_eq!(run.outcome.ended, Ended::Exit(125), "{}", run.tell());
            assert!(
                checkpoint.is_none() || checkpoint > injected,
                "{}",
                run.tell()
            );
        }
    }
    assert!(repaired > 0, "no run was repaired");
}

#[test]
fn sleepers_that_are_killed_are_made_anew() {
    let killed = std::cell::Cell::new(0);
    let sabotage = format!("1:content:{BEFORE}");
    let run = run(&["--sabotage", &sabotage], |journal| {
        let made = journal.iter().filter(|l| is(l, "checkpoint")).count();
        if made == 2 && killed.get() == 0 {
            killed.set(kill_sleepers());
        }
        killed.get() != 0 && made >= 4
    });
    assert!(killed.get() > 0, "nobody slept; {}", run.tell());
    run.assert_repaired(1);
}

/// Kill the guest's processes that stand still in their tracer's hands.
fn kill_sleepers() -> usize {
    let mut killed = 0;
    let guest = cells();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<i32>().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let stopped = stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('t'));
        let exe = fs::read_link(entry.path().join("exe"));
        if stopped && exe.is_ok_and(|e| e == guest) {
            // SAFETY: kill takes no pointer; the process runs this test's guest.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            killed += 1;
        }
    }
    killed
}

#[test]
fn rings_that_fill_up_hold_up_nothing() {
    // Many records, and one that is longer than a ring.
    let run = run_reading(24, &[], checkpoint_is_there);
    assert!(run.is_right(), "{}", run.tell());
}

#[test]
fn large_writes_stay_whole() {
    let guest = built("checkpoint_big_write").to_string_lossy().into_owned();
    for _ in 0..3 * settings::repeat() {
        let outcome = geryon(&["-n", "2", "--checkpoint", "0.02", "--", &guest]);
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.ended, Ended::Exit(0), "{text}");
    }
}

#[test]
fn pbzip2_is_repaired() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("real");
    inputs::make(&folder, &inputs::USUAL);
    let text = folder.join("text").to_string_lossy().into_owned();
    let mut repaired = 0;
    for round in 0..4 * settings::repeat() {
        let dir = TempDir::new();
        let journal = dir.path().join("journal");
        let sabotage = format!("{}:content:{}", round % 2, 3 + round % 6);
        let words = [
            &settings::geryon(),
            "run",
            "-n",
            "2",
            "--checkpoint",
            EVERY,
            "--sabotage",
            &sabotage,
            "--journal",
            &journal.to_string_lossy(),
            "--",
            "pbzip2",
            "-p4",
            "-c",
            &text,
        ];
        let program = Program {
            argv: words.iter().map(|w| (*w).to_owned()).collect(),
            env: Default::default(),
            stdin: None,
            dir: dir.path().to_owned(),
            send: None,
            limit: settings::limit(LIMIT_S),
        };
        let outcome = program.run().expect("it can be started");
        let journal = events(&journal);
        let say = || {
            let journal = journal.join("\n");
            format!(
                "{}\n{journal}\n{}",
                program.command_line(),
                tail(&outcome.stderr)
            )
        };
        assert!(outcome.faults().is_empty(), "{}", say());
        let rolled_back = journal.iter().any(|l| is(l, "rollback"));
        if !rolled_back {
            // It was so fast that there was no checkpoint.
            assert_eq!(outcome.ended, Ended::Exit(125), "{}", say());
            continue;
        }
        assert_eq!(outcome.ended, Ended::Exit(0), "{}", say());
        let packed = dir.path().join("packed");
        fs::write(&packed, &outcome.stdout).expect("the test's own folder is writable");
        let unpacked = Command::new("bzip2").arg("-dc").arg(&packed).output();
        let unpacked = unpacked.expect("bzip2 is there").stdout;
        assert!(
            unpacked == fs::read(&text).expect("the input is there"),
            "{}",
            say()
        );
        repaired += 1;
    }
    assert!(repaired > 0, "no run was repaired");
}

fn geryon(words: &[&str]) -> Outcome {
    let dir = TempDir::new();
    let mut argv = vec![settings::geryon(), "run".into()];
    argv.extend(words.iter().map(|w| (*w).to_owned()));
    let program = Program {
        argv,
        env: Default::default(),
        stdin: None,
        dir: dir.path().to_owned(),
        send: None,
        limit: settings::limit(LIMIT_S),
    };
    let outcome = program.run().expect("it can be started");
    assert!(outcome.faults().is_empty(), "{:?}", outcome.faults());
    outcome
}

#[test]
fn a_program_that_forks_is_told_and_runs() {
    let script = "echo one; sleep 0.5; (echo two); sleep 0.5; echo three";
    let outcome = geryon(&["-n", "2", "--checkpoint", "0.1", "--", "sh", "-c", script]);
    assert_eq!(outcome.ended, Ended::Exit(0));
    assert_eq!(outcome.stdout, b"one\ntwo\nthree\n");
    let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(
        text.contains("no checkpoints while it has several"),
        "{text}"
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused: [(&[&str], &str); 8] = [
        (&["-n", "1", "--checkpoint", "1"], "-n 2"),
        (&["-n", "3", "--checkpoint", "1"], "decide by themselves"),
        (&["--checkpoint", "1"], "decide by themselves"),
        (&["-n", "2", "--checkpoint", "0"], "SECONDS"),
        (&["-n", "2", "--checkpoint=-1"], "SECONDS"),
        (&["-n", "2", "--checkpoint", "soon"], "SECONDS"),
        (&["-n", "2", "--checkpoint", "nan"], "SECONDS"),
        (
            &["-n", "2", "--checkpoint", "1", "--on-divergence", "stop"],
            "--on-divergence",
        ),
    ];
    for (words, said) in refused {
        let mut all = words.to_vec();
        all.extend(["--", "true"]);
        let outcome = geryon(&all);
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.ended, Ended::Exit(2), "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}
