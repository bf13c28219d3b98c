//! The report of a divergence, and where it goes.

use crate::command::{OWN, geryon, says, stderr, stdout};
use crate::guest::built;
use crate::support::TempDir;
use std::fs;

fn report_that_cannot_be_written() {
    let run = |path: &str| geryon(&["run", "--report", path, "--", "echo", "started"]);
    for path in ["/no/such/folder/report", "/tmp"] {
        let outcome = run(path);
        says(&outcome, OWN, &["cannot write the report", "try:"]);
        assert_eq!(stdout(&outcome), "", "the program was started all the same");
    }
}

fn report_without_divergence_leaves_no_file() {
    let dir = TempDir::new();
    let path = dir.path().join("report.json");
    says(
        &geryon(&[
            "run",
            "-n",
            "2",
            "--report",
            &path.to_string_lossy(),
            "--",
            "true",
        ]),
        0,
        &[],
    );
    assert!(!path.exists());
}

fn divergence_is_stopped_and_reported() {
    let dir = TempDir::new();
    let path = dir.path().join("report.json");
    let outcome = geryon(&[
        "run",
        "-n",
        "2",
        "--sabotage",
        "1:content:1",
        "--report",
        &path.to_string_lossy(),
        "--",
        "echo",
        "secret",
    ]);
    says(&outcome, OWN, &["geryon:", "thread group"]);
    assert_eq!(stdout(&outcome), "", "unconfirmed output left");
    let report = fs::read_to_string(&path).expect("the report was written");
    assert!(report.contains("\"thread_group\""), "{report}");
}

fn full_disk_for_the_report() {
    let outcome = geryon(&[
        "run",
        "-n",
        "2",
        "--sabotage",
        "1:content:1",
        "--report",
        "/dev/full",
        "--",
        "echo",
        "secret",
    ]);
    says(
        &outcome,
        OWN,
        &["thread group", "/dev/full", "No space left"],
    );
    assert_eq!(stdout(&outcome), "", "unconfirmed output left");
}

fn report_names_who_is_outvoted() {
    for (n, replica, outvoted) in [("3", 0, vec![0]), ("3", 2, vec![2]), ("2", 1, vec![])] {
        let dir = TempDir::new();
        let path = dir.path().join("report.json");
        let report = path.to_string_lossy();
        let sabotage = format!("{replica}:content:1");
        let flags = ["run", "-n", n, "--report", &report, "--sabotage", &sabotage];
        geryon(&[&flags[..], &["--", "echo", "secret"]].concat());
        let text = fs::read_to_string(&path).expect("the report was written");
        let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(report["outvoted"], serde_json::json!(outvoted), "{text}");
    }
}

/// A thread that stands in a rewritten instruction, or in a function that is hooked, has saved where the program was.
#[test]
fn a_race_is_told_with_its_place_in_the_program() {
    let guest = built("race_once").to_string_lossy().into_owned();
    let mut raced = 0;
    for _ in 0..10 {
        let outcome = geryon(&["run", "-n", "2", "--order", "clocks", "--", &guest]);
        let told = stderr(&outcome);
        let Some((_, ours)) = told.split_once("(follower): ") else {
            continue;
        };
        assert!(!ours.contains("geryon-agent"), "{told}");
        let first = ours.lines().nth(1).unwrap_or_default();
        // (In the last round a thread may be about to end instead.)
        raced += u32::from(first.contains("#0") && first.contains("race_once.c:"));
    }
    assert!(raced > 0, "it did not race");
}

crate::command::in_both_orders! {
    report_that_cannot_be_written,
    report_without_divergence_leaves_no_file,
    divergence_is_stopped_and_reported,
    full_disk_for_the_report,
    report_names_who_is_outvoted,
}
