//! `geryon` on the command line: what tests say to it, and what they make of its answers.

use crate::support::{Ended, Outcome, Program, TempDir, settings, tail};
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Longer than this is a hang.
const LIMIT_S: u64 = 60;

/// Usage errors.
pub const USAGE: i32 = 2;
/// Geryon's own failures, and a run that was stopped.
pub const OWN: i32 = 125;
/// The program is there and cannot be run.
pub const NOT_RUNNABLE: i32 = 126;
/// There is no such program.
pub const NOT_FOUND: i32 = 127;

thread_local! {
    /// The order that this thread's programs get.
    static ORDER: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// A test that runs in this order, if it was not asked for the other one: what it starts gets it unless it
/// names one itself.
pub fn in_order(order: &'static str, test: fn()) {
    if settings::orders().contains(&order) {
        ORDER.set(Some(order));
        test();
    }
}

/// The order that this thread's programs get.
#[allow(dead_code)] // most tests leave that to `program`
pub fn order() -> Option<&'static str> {
    ORDER.get()
}

/// Each of these functions is a test in serial order and one in clocks.
macro_rules! in_both_orders {
    ($($name:ident,)*) => {
        mod serial {
            $(#[test] fn $name() { crate::command::in_order("serial", super::$name); })*
        }
        mod clocks {
            $(#[test] fn $name() { crate::command::in_order("clocks", super::$name); })*
        }
    };
}
pub(crate) use in_both_orders;

/// A test in serial order only, and why it cannot be one in clocks.
#[allow(unused_macros)] // most tests run in both
macro_rules! in_serial {
    ($name:ident: $why:literal) => {
        mod serial_only {
            #[test]
            fn $name() {
                eprintln!("not in clocks: {}", $why);
                crate::command::in_order("serial", super::$name);
            }
        }
    };
}
#[allow(unused_imports)] // most tests run in both
pub(crate) use in_serial;

/// These words as a program in `dir`.
pub fn program(dir: &Path, words: &[&str]) -> Program {
    let order = ORDER.get().map(|o| ("GERYON_ORDER".into(), o.into()));
    Program {
        argv: words.iter().map(|w| (*w).to_owned()).collect(),
        env: order.into_iter().collect(),
        stdin: None,
        dir: dir.to_owned(),
        send: None,
        limit: settings::limit(LIMIT_S),
    }
}

/// Runs it; no run may hang or leave a process behind.
pub fn run(program: &Program) -> Outcome {
    let outcome = program.run().expect("it can be started");
    let faults = outcome.faults();
    assert!(
        faults.is_empty(),
        "{}\nrepeat: {}\nend of stderr:\n{}",
        faults.join("\n"),
        program.command_line(),
        tail(&outcome.stderr)
    );
    outcome
}

/// `geryon` with these words.
pub fn geryon(words: &[&str]) -> Outcome {
    let dir = TempDir::new();
    let binary = settings::geryon();
    let mut all = vec![binary.as_str()];
    all.extend(words);
    run(&program(dir.path(), &all))
}

/// A shell script in which `$G` is the binary under test.
pub fn shell(script: &str) -> Outcome {
    let dir = TempDir::new();
    run(&with_binary(program(dir.path(), &["sh", "-c", script])))
}

fn with_binary(mut program: Program) -> Program {
    program.env.insert("G".into(), settings::geryon());
    program
}

pub fn stderr(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stderr).into_owned()
}

pub fn stdout(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

/// It ended with this status, and said each of these on stderr.
#[track_caller]
pub fn says(outcome: &Outcome, status: i32, words: &[&str]) {
    let text = stderr(outcome);
    assert_eq!(outcome.ended, Ended::Exit(status), "stderr: {text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is missing in: {text}");
    }
}

/// A file of the test's folder, executable or not.
pub fn file(dir: &TempDir, name: &str, content: &[u8], mode: u32) -> String {
    let path = dir.path().join(name);
    fs::write(&path, content).expect("the test's own folder is writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
    path.to_string_lossy().into_owned()
}

/// Three replicas of a shell script, with these flags: what came of it, and its journal.
pub fn journalled(flags: &[&str], script: &str) -> (Outcome, String) {
    let dir = TempDir::new();
    let path = file(&dir, "journal", b"of an earlier run\n", 0o644);
    let mut words = vec!["run", "-n", "3", "--journal", &path];
    words.extend(flags);
    words.extend(["--", "sh", "-c", script]);
    let outcome = geryon(&words);
    let journal = fs::read_to_string(&path).expect("the journal was written");
    (outcome, journal)
}

/// The names of a journal's events.
pub fn events(journal: &str) -> Vec<String> {
    journal
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            assert!(line["t_us"].is_u64(), "{line}");
            line["event"].as_str().expect("it has a name").to_owned()
        })
        .collect()
}
