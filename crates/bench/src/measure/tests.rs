//! Whole measurements, of next to no work. A `geryon` of a shell script stands in
//! for the real one: what it does is not the question here.

use std::process::Command;
use std::time::Duration;

use super::*;
use crate::workload;

fn plan(geryon: Option<PathBuf>) -> Plan {
    Plan {
        replicas: 2,
        rounds: 3,
        scale: 0.0001,
        geryon,
        workloads: Vec::new(),
        time_limit: Duration::from_secs(60),
    }
}

fn named(name: &str) -> &'static Workload {
    workload::ALL
        .iter()
        .find(|workload| workload.name == name)
        .expect("a workload")
}

/// `geryon run -n N -- PROGRAM ...`, by a script that sees the program as "$@".
fn pretender(scratch: &Scratch, script: &str) -> Option<PathBuf> {
    let path = scratch.path().join("geryon");
    // Another process writes it: were it we, a child that another test forks just
    // then would hold it open for writing, and it could not be run.
    let written = Command::new("/bin/sh")
        .args([
            "-c",
            "printf '#!/bin/sh\nshift 4\n%s\n' \"$1\" > \"$2\" && chmod 755 \"$2\"",
            "sh",
        ])
        .arg(script)
        .arg(&path)
        .status();
    assert!(written.expect("sh").success());
    Some(path)
}

fn measure(name: &str, script: &str) -> Measured {
    let scratch = Scratch::new().expect("scratch");
    let plan = plan(pretender(&scratch, script));
    Bench::new(&plan, &scratch).measure(named(name))
}

#[test]
fn every_guest_runs_natively_and_in_copies() {
    let scratch = Scratch::new().expect("scratch");
    let plan = plan(None);
    let bench = Bench::new(&plan, &scratch);
    for workload in workload::ALL
        .iter()
        .filter(|w| matches!(w.program, Program::Guest(_)))
    {
        let measured = bench.measure(workload);
        assert!(
            measured.failures.is_empty(),
            "{}: {:?}",
            workload.name,
            measured.failures
        );
        let mut configs = vec![Config::Native];
        configs.extend(workload.pinned.then_some(Config::NativeOneCore));
        configs.push(Config::Copies);
        assert!(measured.series.keys().eq(&configs), "{}", workload.name);
        assert!(
            measured
                .series
                .values()
                .all(|series| series.samples.len() == 3)
        );
    }
}

#[test]
fn geryon_is_measured_beside_them() {
    let measured = measure("lock-2", "exec \"$@\"");
    assert!(measured.failures.is_empty(), "{:?}", measured.failures);
    assert_eq!(measured.series.len(), 4);
    assert!(measured.ratios.geryon_to_native.is_some());
}

#[test]
fn a_failing_geryon_leaves_the_other_figures() {
    let measured = measure("null-call", "echo diverged >&2; exit 70");
    let failure = measured.failures.get(&Config::Geryon).expect("a failure");
    assert!(failure.what.contains("70"), "{failure}");
    assert_eq!(failure.stderr, "diverged\n");
    assert!(measured.series.keys().eq(&[Config::Native, Config::Copies]));
}

#[test]
fn output_that_differs_from_native_is_a_failure() {
    let measured = measure("compute", "echo 0123");
    let failure = measured.failures.get(&Config::Geryon).expect("a failure");
    assert!(failure.what.contains("differs"), "{failure}");
}

#[test]
fn what_geryon_says_in_passing_is_a_remark_once() {
    let measured = measure("compute", "echo dropped replica 2 >&2; exec \"$@\"");
    assert!(measured.failures.is_empty(), "{:?}", measured.failures);
    let said = "geryon said: dropped replica 2";
    assert_eq!(
        measured
            .remarks
            .iter()
            .filter(|remark| *remark == said)
            .count(),
        1
    );
}

#[test]
fn what_the_program_says_itself_is_no_remark() {
    let mut said = Said::default();
    said.program("encoded 60 frames, 226.5 fps\r\n");
    said.geryon("\rencoded 60 frames, 19.25 fps\nreplica 1 is dropped\n");
    said.geryon("replica 2 is dropped\n");
    assert_eq!(said.remarks, ["geryon said: replica 1 is dropped"]);
}

#[test]
fn a_program_that_is_not_installed_names_its_package() {
    let program = Program::Installed {
        name: "nonesuch-of-geryon",
        package: "nonesuch-tools",
    };
    let why = missing(program).expect("missing");
    assert!(why.contains("apt install nonesuch-tools"), "{why}");
}

#[test]
fn files_are_compared_to_their_ends() {
    let scratch = Scratch::new().expect("scratch");
    let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
    for (a, b, at) in [
        ("same", "same", None),
        ("same", "sane", Some(2)),
        ("sa", "same", Some(2)),
    ] {
        fs::write(&one, a).expect("a file");
        fs::write(&other, b).expect("a file");
        assert_eq!(first_difference(&one, &other).expect("readable"), at);
        assert_eq!(first_difference(&other, &one).expect("readable"), at);
    }
}
