//! `geryon discover` and `geryon sites`: where threads race.

use crate::command::{OWN, USAGE, file, run, says, stderr, stdout};
use crate::guest::built;
use crate::support::Outcome;
use crate::support::TempDir;
use crate::support::settings;

/// `geryon` with these words; `folder` holds the files of places.
fn with(folder: &TempDir, words: &[&str]) -> Outcome {
    let binary = settings::geryon();
    let all = [&[binary.as_str()], words].concat();
    let mut program = crate::command::program(folder.path(), &all);
    let path = folder.path().to_string_lossy().into_owned();
    program.env.insert("GERYON_SITES".into(), path);
    run(&program)
}

/// The guest races; once that is known, replicas find the same without anything being replayed.
fn is_found_and_ordered(name: &str, few: [&str; 2], many: [&str; 2], word: &str) {
    let folder = TempDir::new();
    let guest = built(name);
    let guest = guest.to_str().expect("a path");
    let found = with(
        &folder,
        &[&["discover", "--runs", "2", "--", guest], &few[..]].concat(),
    );
    let words = ["loads", "kept in", "orders these places from now on"];
    says(&found, 0, &words);
    let ok = format!("GUEST-OK {name}");
    assert!(stdout(&found).contains(&ok), "{}", stdout(&found));
    let listed = with(&folder, &["sites", "list", "-v"]);
    says(&listed, 0, &[]);
    assert!(stdout(&listed).contains(word), "{}", stdout(&listed));
    let checked = with(&folder, &["sites", "check", guest]);
    says(&checked, 0, &[]);
    assert!(!stdout(&checked).contains("is not"), "{}", stdout(&checked));
    for replicas in ["2", "2", "3"] {
        let words = ["run", "-n", replicas, "--order", "clocks", "--", guest];
        let outcome = with(&folder, &[&words, &many[..]].concat());
        says(&outcome, 0, &[]);
        assert_eq!(stderr(&outcome), "", "nothing is replayed");
    }
    let words = ["sites", "remove", guest];
    says(&with(&folder, &words), 0, &[]);
    let words = with(&folder, &words);
    says(
        &words,
        OWN,
        &["no build that is known", "geryon sites list"],
    );
    let listed = with(&folder, &["sites", "list"]);
    says(&listed, 0, &[]);
    assert!(!stdout(&listed).contains(name), "{}", stdout(&listed));
    assert!(stdout(&listed).contains("built in"), "{}", stdout(&listed));
}

#[test]
fn what_races_is_found_and_ordered_from_then_on() {
    let word = "data symbol \"counter\"";
    is_found_and_ordered("race_counter", ["2", "200"], ["3", "2000"], word);
}

/// Arithmetic with what is loaded, and updates of memory that are not atomic.
#[test]
fn all_forms_that_race_are_ordered() {
    let word = "data symbol \"cell\"";
    is_found_and_ordered("race_forms", ["3", "1000"], ["3", "100000"], word);
}

/// A script, a program that executes another one, a child that is forked: what races there is found, and an address is that of
/// an instruction that loads or stores.
#[test]
fn what_races_in_processes_that_come_from_the_program_is_found() {
    let folder = TempDir::new();
    let guest = built("race_counter");
    let guest = guest.to_str().expect("a path");
    let script = format!("#!/bin/sh\n{guest} 2 200 && exec env {guest} 2 200\n");
    let script = file(&folder, "script", script.as_bytes(), 0o700);
    let found = with(&folder, &["discover", "--dry-run", "--", &script]);
    says(&found, 0, &["in 1 run, 2 processes"]);
    let places = stdout(&found);
    assert!(places.contains("data symbol \"counter\""), "{places}");
    assert!(!stderr(&found).contains("cannot be ordered"));
    let killed = format!("{guest} 2 200; kill -9 $$");
    let found = with(
        &folder,
        &["discover", "--dry-run", "--", "sh", "-c", &killed],
    );
    says(&found, 0, &["status 137", "in 1 run, 2 processes"]);
    assert!(stdout(&found).contains("data symbol \"counter\""));
}

/// What does not end by itself is ended: what was found until then is kept.
#[test]
fn what_is_ended_while_it_is_looked_at_is_kept() {
    let folder = TempDir::new();
    let guest = built("race_counter");
    let guest = guest.to_str().expect("a path");
    let script = format!("{guest} 2 200; kill -TERM $PPID; while :; do :; done");
    let found = with(&folder, &["discover", "--", "sh", "-c", &script]);
    says(&found, 0, &["ended with status 143", "kept in"]);
}

#[test]
fn a_damaged_file_of_places_is_named() {
    let folder = TempDir::new();
    let given = TempDir::new();
    let good = file(
        &given,
        "good.sites",
        b"build-id 12ab some lib\n0x10 load\n0x20 update\n",
        0o600,
    );
    let added = with(&folder, &["sites", "add", &good]);
    says(&added, 0, &[]);
    assert!(stdout(&added).contains("1 loads, 0 stores, 1 updates; 2 of them new"));
    assert!(stdout(&with(&folder, &["sites", "add", &good])).contains("0 of them new"));
    says(
        &with(&folder, &["run", "-n", "1", "--", "/bin/true"]),
        0,
        &[],
    );
    let bad = file(
        &given,
        "bad.sites",
        b"build-id 12ab some lib\n0x10 look\n",
        0o600,
    );
    let words = ["bad.sites, line 2: 'look' is none of load, store, update"];
    says(&with(&folder, &["sites", "add", &bad]), OWN, &words);
    file(
        &folder,
        "bad.sites",
        b"build-id 12ab some lib\n0x10 look\n",
        0o600,
    );
    says(&with(&folder, &["sites", "check"]), OWN, &words);
    let run = |order| {
        with(
            &folder,
            &["run", "-n", "2", "--order", order, "--", "/bin/true"],
        )
    };
    says(&run("clocks"), OWN, &[words[0], "geryon sites check"]);
    // Serial order has no use for such places.
    says(&run("serial"), 0, &[]);
}

#[test]
fn what_cannot_be_discovered_is_refused() {
    let folder = TempDir::new();
    says(&with(&folder, &["discover"]), USAGE, &["PROGRAM"]);
    says(
        &with(&folder, &["discover", "--runs", "0", "--", "true"]),
        USAGE,
        &["--runs"],
    );
    says(
        &with(&folder, &["discover", "--", "/no/such/program"]),
        127,
        &["/no/such/program"],
    );
    let binary = settings::geryon();
    let mut program =
        crate::command::program(folder.path(), &[&binary, "discover", "--", "/bin/true"]);
    program
        .env
        .insert("PATH".into(), folder.path().to_string_lossy().into_owned());
    says(
        &run(&program),
        OWN,
        &["valgrind is not installed", "apt-get install valgrind"],
    );
}
