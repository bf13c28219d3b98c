//! What is said to `geryon` itself: options, subcommands, help.

use crate::command::{OWN, USAGE, geryon, says, shell, stderr, stdout};

#[test]
fn numbers_of_replicas() {
    for n in [
        "0",
        "-1",
        "17",
        "1000",
        "x",
        "",
        "1.5",
        "99999999999999999999",
    ] {
        says(
            &geryon(&["run", "-n", n, "--", "true"]),
            USAGE,
            &["--replicas"],
        );
    }
    for n in ["1", "2", "16"] {
        says(&geryon(&["run", "-n", n, "--", "true"]), 0, &[]);
    }
}

#[test]
fn usage_errors() {
    says(&geryon(&["run", "-n", "2"]), USAGE, &["PROGRAM"]);
    says(&geryon(&["run", "-n", "2", "--"]), USAGE, &["PROGRAM"]);
    says(
        &geryon(&["run", "--no-such-flag", "--", "true"]),
        USAGE,
        &["--no-such-flag"],
    );
    says(
        &geryon(&["run", "--verify", "some", "--", "true"]),
        USAGE,
        &["--verify", "output"],
    );
    says(
        &geryon(&["no-such-command"]),
        USAGE,
        &["no-such-command", "--help"],
    );
    says(&geryon(&[]), USAGE, &["Usage"]);
}

#[test]
fn help_and_version() {
    let help = geryon(&["--help"]);
    says(&help, 0, &[]);
    for word in ["run", "syscalls", "doctor", "bench"] {
        assert!(stdout(&help).contains(word), "{word}");
    }
    let help = geryon(&["run", "--help"]);
    says(&help, 0, &[]);
    for word in ["--replicas", "--verify", "--report", "--journal", "PROGRAM"] {
        assert!(stdout(&help).contains(word), "{word}");
    }
    let version = stdout(&geryon(&["--version"]));
    assert_eq!(
        version.trim(),
        concat!("geryon ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn flags_behind_the_program_are_its_own() {
    let outcome = geryon(&[
        "run", "-n", "2", "printf", "%s|", "-n", "--verify", "--", "-h",
    ]);
    assert_eq!(
        stdout(&outcome),
        "-n|--verify|--|-h|",
        "{}",
        stderr(&outcome)
    );
}

#[test]
fn other_subcommands() {
    says(&geryon(&["syscalls", "nosuchcall"]), OWN, &["nosuchcall"]);
    let row = geryon(&["syscalls", "openat"]);
    says(&row, 0, &[]);
    assert!(stdout(&row).contains("openat"));
    says(&shell("$G syscalls >/dev/full"), OWN, &["No space left"]);
    says(&shell("$G doctor >/dev/full"), OWN, &["No space left"]);
    says(&shell("$G syscalls | head -n 1"), 0, &[]);
}
