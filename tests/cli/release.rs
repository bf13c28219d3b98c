//! `--variant`: replicas of different programs. Two releases of one (`release.c`) run in lockstep: what only looks they may ask as
//! they like, what they do must be alike, but for what a file of rules says; and the second one takes over while it runs.

use crate::command::{OWN, USAGE, file, geryon, program, run, says, stderr, stdout};
use crate::support::{Ended, Outcome, TempDir, settings};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What is waited for is there by then, or never.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a release calls itself.
fn called(release: &str) -> &str {
    match release {
        "1" => "1",
        _ => "2.0",
    }
}

/// The releases, in a folder.
struct Releases(TempDir);

impl Releases {
    fn built(names: &[&str]) -> Releases {
        let folder = TempDir::new();
        for name in names {
            Releases::build(folder.path(), name);
        }
        Releases(folder)
    }

    /// `1` or `2`, and how it is built.
    fn build(folder: &Path, name: &str) {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/release.c");
        let release = &name[..1];
        let flags: &[&str] = match &name[1..] {
            "" => &[],
            "-fixed" => &["-no-pie"],
            "-static" => &["-static"],
            "-wrong" => &["-DBUG"],
            other => panic!("{other}"),
        };
        let optimised = if release == "1" { "-O0" } else { "-O2" };
        let status = Command::new("gcc")
            .args([optimised, "-pthread", "-o"])
            .arg(folder.join(name))
            .args([&format!("-DRELEASE={release}"), source])
            .arg(format!("-DRELEASE_NAME=\"{}\"", called(release)))
            .args(flags)
            .status();
        assert!(status.expect("gcc").success(), "{name} is not built");
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    /// The first one leads, and the others follow; with these options, what it is to do, and its input.
    fn run(&self, names: &[&str], flags: &[&str], what: &str, input: &str) -> Outcome {
        let binary = settings::geryon();
        let mut words = vec![binary, "run".to_owned()];
        for name in &names[1..] {
            words.extend(["--variant".to_owned(), self.path(name)]);
        }
        words.extend(flags.iter().map(|f| (*f).to_owned()));
        words.extend(["--".to_owned(), self.path(names[0]), what.to_owned()]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut program = program(self.0.path(), &words);
        program.stdin = Some(input.as_bytes().to_vec());
        run(&program)
    }

    fn native(&self, name: &str, what: &str, input: &str) -> Outcome {
        let path = self.path(name);
        let mut program = program(self.0.path(), &[&path, what]);
        program.stdin = Some(input.as_bytes().to_vec());
        run(&program)
    }
}

fn input() -> String {
    (0..5000).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn releases_that_behave_alike_run_in_lockstep() {
    let releases = Releases::built(&["1", "2", "1-fixed", "2-fixed", "1-static", "2-static"]);
    let native = releases.native("1", "lines", &input());
    assert_eq!(native.ended, Ended::Exit(3));
    let sets: [&[&str]; 6] = [
        &["1", "2"],
        &["2", "1"],
        &["1-fixed", "2-fixed"],
        &["1", "2-fixed", "1"],
        &["1-static", "2-static"],
        &["1", "1", "2", "2"],
    ];
    for set in sets {
        let outcome = releases.run(set, &[], "lines", &input());
        assert_eq!(outcome.ended, native.ended, "{set:?}: {}", stderr(&outcome));
        assert_eq!(stdout(&outcome), stdout(&native), "{set:?}");
        assert_eq!(stderr(&outcome), "", "{set:?}");
    }
}

#[test]
fn their_threads_run_in_one_order() {
    let releases = Releases::built(&["1", "2"]);
    for set in [["1", "2"], ["2", "1"]] {
        for _ in 0..3 {
            let outcome = releases.run(&set, &[], "threads", "");
            says(&outcome, 0, &[]);
            assert_eq!(stdout(&outcome).trim_end().len(), 4000);
            assert_eq!(stderr(&outcome), "", "{set:?}");
        }
    }
}

#[test]
fn they_hear_of_the_same_signals() {
    let releases = Releases::built(&["1", "2"]);
    for set in [["1", "2"], ["2", "1"]] {
        let outcome = releases.run(&set, &[], "signals", "");
        says(&outcome, 0, &[]);
        assert_eq!(stdout(&outcome), "two\none\n");
        assert_eq!(stderr(&outcome), "", "{set:?}");
    }
}

#[test]
fn a_release_that_behaves_otherwise_stops_the_run() {
    let releases = Releases::built(&["1", "2-wrong"]);
    let native = stdout(&releases.native("1", "lines", &input()));
    let words = ["differ", "run different programs", "2-wrong", "3000 lines"];
    let outcome = releases.run(&["1", "2-wrong"], &[], "lines", &input());
    says(&outcome, OWN, &words);
    let out = stdout(&outcome);
    assert!(native.starts_with(&out), "{out}");
    assert_eq!(out.lines().count(), 2, "{out}");
    // The leader is believed, if that is wanted: the new release is taken back.
    let flags = ["--on-divergence", "leader"];
    let outcome = releases.run(&["1", "2-wrong"], &flags, "lines", &input());
    says(&outcome, 3, &["2-wrong", "is believed"]);
    assert_eq!(stdout(&outcome), native);
}

#[test]
fn rules_say_what_may_differ() {
    let releases = Releases::built(&["1", "2"]);
    let run = |rules: &[&str]| {
        let rules = file(&releases.0, "rules", rules.join("\n").as_bytes(), 0o644);
        releases.run(&["1", "2"], &["--tolerate", &rules], "says", "")
    };
    let release = "same \"this is release 1\" \"this is release 2.0\"";
    let first = "leader \"only the first\"";
    let second = "follower \"only the second\"";
    let outcome = run(&[release, first, second]);
    says(&outcome, 0, &[]);
    assert_eq!(stderr(&outcome), "");
    let out = "this is release 1, as it says\nonce more: this is release 1\nonly the first says this\nboth say this\n";
    assert_eq!(stdout(&outcome), out);
    // (The line's end is another piece of what writev is given.)
    let alone = r#"same "release 1" "release 2.0""#;
    let outcome = run(&[r#"between "this is " ", as""#, alone, first, second]);
    says(&outcome, 0, &[]);
    assert_eq!(stdout(&outcome), out);
    let elsewhere = r#"between "once more" "goes""#;
    says(
        &run(&[elsewhere, first, second]),
        OWN,
        &["first difference"],
    );
    says(&run(&[first, second]), OWN, &["first difference"]);
    says(&run(&[release, second]), OWN, &["only the first"]);
    says(&run(&[release, first]), OWN, &["only the second"]);
    says(
        &run(&["same \"a\""]),
        USAGE,
        &["rules, line 1", "one of each"],
    );
}

#[test]
fn what_does_not_go_together_is_said() {
    let releases = Releases::built(&["1", "2", "2-static"]);
    let [one, two, alone] = ["1", "2", "2-static"].map(|name| releases.path(name));
    let with = |words: &[&str]| geryon(&[&["run"], words, &["--", &one, "lines"]].concat());
    says(
        &with(&["--variant", &two, "-n", "3"]),
        USAGE,
        &["there are 2 replicas"],
    );
    says(
        &with(&["--variant", &two, "--order", "clocks"]),
        USAGE,
        &["serial order"],
    );
    says(
        &with(&["--variant", &two, "--variants", "code"]),
        USAGE,
        &["different programs"],
    );
    says(
        &with(&["--variant", &two, "--checkpoint", "1"]),
        USAGE,
        &["alike"],
    );
    says(
        &with(&["--variant", &two, "--on-divergence", "drop"]),
        USAGE,
        &["leader"],
    );
    says(&with(&["--tolerate", &two]), USAGE, &["--variant"]);
    says(
        &with(&["--variant", &alone]),
        OWN,
        &["dynamic linkers", "readelf"],
    );
    says(
        &with(&["--variant", "/etc/passwd"]),
        126,
        &["not executable"],
    );
    says(&with(&["--variant", "/nothing"]), 127, &["/nothing"]);
    let script = file(&releases.0, "script", b"#!/bin/sh\n", 0o755);
    says(
        &with(&["--variant", &script]),
        OWN,
        &["no ELF file", "interpreter"],
    );
    let none = with(&["--variant", &two, "--tolerate", "/nothing"]);
    says(&none, USAGE, &["/nothing"]);
}

/// A run that serves, until it is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // (It has ended, or the test has failed.)
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serve with the first release, followed by the second; one of them is taken out while a client is served, which notices
/// nothing but the name of who answers.
fn is_switched(out: &str, then: &str) {
    let releases = Releases::built(&["1", "2"]);
    let rules = file(
        &releases.0,
        "rules",
        b"same \"release 1: \" \"release 2.0: \"\n",
        0o644,
    );
    let (path, errors) = (releases.path("socket"), releases.path("errors"));
    let child = Command::new(settings::geryon())
        .args([
            "run",
            "--tolerate",
            &rules,
            "--variant",
            &releases.path("2"),
            "--",
        ])
        .args([&releases.path("1"), "serve", &path])
        .stdin(Stdio::null())
        .stderr(std::fs::File::create(&errors).expect("a file"))
        .spawn();
    let mut served = Served(child.expect("geryon"));
    let pid = served.0.id().to_string();
    let since = Instant::now();
    let stream = loop {
        match UnixStream::connect(&path) {
            Ok(stream) => break stream,
            Err(e) => assert!(since.elapsed() < PATIENCE, "{e}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let mut answers = BufReader::new(stream.try_clone().expect("a descriptor"));
    let mut ask = |n: usize, release: &str| {
        (&stream).write_all(b"how many?\n").expect("it is there");
        let mut line = String::new();
        answers.read_line(&mut line).expect("an answer");
        let told = std::fs::read_to_string(&errors).unwrap_or_default();
        assert_eq!(
            line,
            format!("release {}: {n} how many?\n", called(release)),
            "{told}"
        );
    };
    (1..100).for_each(|n| ask(n, "1"));
    let who = stdout(&geryon(&["ps", &pid]));
    for (release, does) in [("1", "leads"), ("2", "follows")] {
        let said = format!(", {}) {does}", releases.path(release));
        assert!(who.contains(&said), "{who}");
    }
    says(&geryon(&["ctl", &pid, "drop", out]), 0, &[]);
    (100..200).for_each(|n| ask(n, then));
    let refused = geryon(&["ctl", &pid, "add"]);
    says(&refused, OWN, &["different programs"]);
    (&stream).write_all(b"quit\n").expect("it is there");
    let status = served.0.wait().expect("it ends");
    let told = std::fs::read_to_string(&errors).expect("messages");
    assert!(status.success(), "{status}: {told}");
    assert!(told.contains("taken out"), "{told}");
}

#[test]
fn the_second_release_takes_over() {
    is_switched("1", "2");
}

#[test]
fn the_first_release_goes_on_alone() {
    is_switched("2", "1");
}
