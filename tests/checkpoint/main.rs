//! Two replicas with checkpoints: one of them is damaged, and what comes out is right all the same, or
//! the run stops with a report where it must. See `support/settings.rs` for the variables.

#[allow(dead_code)] // some of it is for other tests
#[path = "../support/command.rs"]
mod command;
#[allow(dead_code)] // guests are run by another test
#[path = "../support/guest.rs"]
mod guest;
#[allow(dead_code)] // the smaller inputs are for repetitions of the real programs
#[path = "../support/inputs.rs"]
mod inputs;
#[allow(dead_code)] // each test asks it something else
#[path = "../support/journal.rs"]
mod journal;
mod races;
#[allow(dead_code)] // other tests kill others
#[path = "../support/replicas.rs"]
mod replicas;
#[allow(dead_code)] // numbers of replicas and differences matter to the other tests only
#[path = "../support/mod.rs"]
mod support;

use command::{USAGE, program, says, stderr, stdout};
use guest::built;
use journal::Journal;
use races::{
    a_leader_that_its_own_copy_does_not_agree_with_is_outvoted,
    a_leader_that_no_replay_agrees_with_is_outvoted, a_race_is_replayed,
    a_race_is_replayed_that_shows_much_later,
    a_race_is_replayed_where_all_others_stand_against_the_leader,
    a_race_stops_the_run_if_that_is_asked_for,
    what_led_all_others_astray_before_they_were_copied_outvotes_no_leader,
    where_it_may_be_a_race_no_leader_is_outvoted,
    who_computes_for_ever_is_found_while_the_leader_spins,
    who_races_again_and_again_goes_on_in_serial_order,
    who_waits_in_a_circle_is_found_and_its_log_replayed,
};
use replicas::Replicas;
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

/// A run with checkpoints that is over.
struct Run {
    dir: TempDir,
    outcome: Outcome,
    journal: Journal,
    line: String,
}

/// The guest, built once for all tests.
fn cells() -> PathBuf {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    BUILT.get_or_init(|| built("checkpoint_cells")).clone()
}

/// `geryon` with these words.
fn geryon(dir: &Path, words: &[&str]) -> Program {
    let binary = settings::geryon();
    let mut program = program(dir, &[&[binary.as_str()], words].concat());
    program.limit = settings::limit(LIMIT_S);
    program
}

/// Run a program as two replicas with checkpoints and these flags. Meanwhile make one file after the
/// other, each as soon as the journal is as it says.
fn play(flags: &[&str], argv: &[&str], gates: &[(&str, Ready)]) -> Run {
    support::no_core_files();
    let dir = TempDir::new();
    let path = dir.path().join("journal");
    let replicas: &[&str] = if flags.contains(&"-n") {
        &[]
    } else {
        &["-n", "2"]
    };
    let every: &[&str] = if flags.contains(&"--checkpoint") {
        &[]
    } else {
        &["--checkpoint", EVERY]
    };
    let usual = [&["run"], replicas, every, &["--journal"]].concat();
    let journal = path.to_string_lossy();
    let words = [&usual[..], &[&*journal], flags, &["--"], argv].concat();
    let mut program = geryon(dir.path(), &words);
    if let Some(cpus) = settings::taskset() {
        program.prefix(&["taskset", "-c", &cpus]);
    }
    let line = program.command_line();
    let runner = thread::spawn(move || program.run());
    for (file, ready) in gates {
        while !runner.is_finished() && !ready(&path) {
            thread::sleep(Duration::from_millis(support::POLL_MS));
        }
        fs::write(dir.path().join(file), "").expect("the test's own folder is writable");
    }
    let outcome = runner.join().expect("the runner does not panic");
    let run = Run {
        journal: Journal::read(&path),
        outcome: outcome.expect("it can be started"),
        dir,
        line,
    };
    let faults = run.outcome.faults();
    assert!(faults.is_empty(), "{}\n{}", faults.join("\n"), run.tell());
    run
}

/// Is the run, of which this is the journal's path, where it should be?
type Ready<'a> = &'a dyn Fn(&Path) -> bool;

/// Run the guest with these flags; it goes on when the journal is `ready`.
fn run(flags: &[&str], ready: impl Fn(&Journal) -> bool) -> Run {
    let ready = |path: &Path| ready(&Journal::read(path));
    play(
        flags,
        &[&cells().to_string_lossy(), "go"],
        &[("go", &ready)],
    )
}

impl Run {
    fn tell(&self) -> String {
        format!(
            "ended by {}; repeat: {}\njournal:\n{}\nend of stderr:\n{}",
            self.outcome.ended,
            self.line,
            self.journal,
            tail(&self.outcome.stderr)
        )
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
        // (With clocks a follower's difference may be a race: a copy of it that agrees takes its place.)
        let verdict = self.journal.told("arbitrated").next();
        let replayed = self.journal.told("race-replayed").next();
        let is_named = verdict.is_some_and(|l| l["outvoted"] == outvoted)
            || replayed.is_some_and(|l| l["replica"] == outvoted && outvoted != 0);
        assert!(is_named, "{}", self.tell());
        assert!(self.journal.has("rollback"), "{}", self.tell());
    }
}

/// (The first one may be made while ld.so maps a library, and end with the descriptor of that.)
fn checkpoint_is_there(journal: &Journal) -> bool {
    journal.count("checkpoint") > 1
}

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

fn who_polls_for_long_is_right() {
    let guest = built("wait_poll_long").to_string_lossy().into_owned();
    let outcome = outcome(&["-n", "2", "--order", "clocks", "--", &guest, "20"]);
    says(&outcome, 0, &[]);
    assert_eq!(stdout(&outcome), "GUEST-OK wait_poll_long\n");
}

fn who_stands_still_after_a_checkpoint_is_found() {
    for replica in 0..2 {
        // (How long the first checkpoint takes is the machine's affair.)
        let mut runs = [600_000, 2_000_000, 8_000_000].into_iter().map(|delay| {
            let fault = format!("replica={replica},when=delay:{delay},target=stop");
            run(&["--fault", &fault], |journal| {
                checkpoint_is_there(journal) && journal.has("fault-injected")
            })
        });
        let later = runs.find(|r| r.journal.has_behind("checkpoint", "fault-injected"));
        let run = later.expect("a checkpoint is there after 8 s");
        run.assert_repaired(replica);
    }
}

fn a_crash_needs_no_arbitration() {
    let guest = cells();
    for replica in 0..2 {
        let sabotage = format!("{replica}:crash:{BEFORE}");
        // It lasts until somebody has taken the place.
        let run = play(
            &["--sabotage", &sabotage],
            &[&guest.to_string_lossy(), "go", "0", "replaced"],
            &[
                ("go", &|path| Journal::read(path).has("checkpoint")),
                ("replaced", &|path| Journal::read(path).has("replaced")),
            ],
        );
        assert!(run.is_right(), "{}", run.tell());
        assert!(!run.journal.has("arbitrated"), "{}", run.tell());
        assert!(run.journal.has("replaced"), "{}", run.tell());
    }
}

fn a_fault_from_before_the_checkpoint_stops_the_run() {
    // The numbers are most of the heap: nearly every byte of it is in the sum.
    let mut stopped = 0;
    for round in 0..4 {
        let (replica, byte) = (round % 2, 2_000_000 * (round + 1));
        let fault = format!("replica={replica},when=delay:500000,target=heap:{byte}:3");
        let run = run(&["--fault", &fault], |journal| {
            journal.has_behind("fault-injected", "checkpoint") || journal.has("fault-missed")
        });
        if run.is_right() {
            continue;
        }
        stopped += 1;
        assert_eq!(run.outcome.ended, Ended::Exit(125), "{}", run.tell());
        let said = stderr(&run.outcome).contains("older than the last checkpoint");
        assert!(said, "{}", run.tell());
    }
    assert!(stopped > 0, "the fault never hit what is summed up");
}

fn flipped_bits_in_memory_are_repaired_if_the_checkpoint_is_older() {
    let _load = Load::from_settings();
    let mut repaired = 0;
    for round in 0..6 * settings::repeat() {
        let (replica, byte) = (round % 2, 1_000_000 * (round + 1));
        let delay = 700_000 + 13_000 * (round % 7);
        let fault = format!("replica={replica},when=delay:{delay},target=heap:{byte}:5");
        let run = run(&["--fault", &fault], |journal| {
            checkpoint_is_there(journal)
                && (journal.has("fault-injected") || journal.has("fault-missed"))
        });
        // The journal says whether a checkpoint was made in between.
        let injected = run.journal.at("fault-injected");
        let rollback = run.journal.at("rollback");
        let before = &run.journal.lines()[..rollback.unwrap_or(run.journal.lines().len())];
        let checkpoint = before.iter().rposition(|l| l["event"] == "checkpoint");
        if run.is_right() {
            repaired += usize::from(run.journal.has("arbitrated"));
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

fn sleepers_that_are_killed_are_made_anew() {
    let killed = std::cell::Cell::new(0);
    let sabotage = format!("1:content:{BEFORE}");
    let ready = |path: &Path| {
        let made = Journal::read(path).count("checkpoint");
        if made == 2 && killed.get() == 0 {
            let sleepers = Replicas::read(path).sleepers();
            sleepers.iter().for_each(|pid| replicas::kill(*pid));
            killed.set(sleepers.len());
        }
        killed.get() != 0 && made >= 4
    };
    let run = play(
        &["--sabotage", &sabotage],
        &[&cells().to_string_lossy(), "go"],
        &[("go", &ready)],
    );
    assert!(killed.get() > 0, "nobody slept; {}", run.tell());
    run.assert_repaired(1);
}

fn rings_that_fill_up_hold_up_nothing() {
    // Many records, and one that is longer than a ring.
    let run = play(
        &[],
        &[&cells().to_string_lossy(), "go", "24"],
        &[("go", &|path| Journal::read(path).has("checkpoint"))],
    );
    assert!(run.is_right(), "{}", run.tell());
}

fn large_writes_stay_whole() {
    let guest = built("checkpoint_big_write").to_string_lossy().into_owned();
    for _ in 0..3 * settings::repeat() {
        let outcome = outcome(&["-n", "2", "--checkpoint", "0.02", "--", &guest]);
        says(&outcome, 0, &[]);
    }
}

fn pbzip2_is_repaired() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("real");
    inputs::make(&folder, &inputs::USUAL);
    let text = folder.join("text").to_string_lossy().into_owned();
    let mut repaired = 0;
    for round in 0..4 * settings::repeat() {
        let sabotage = format!("{}:content:{}", round % 2, 3 + round % 6);
        let run = play(
            &["--sabotage", &sabotage],
            &["pbzip2", "-p4", "-c", &text],
            &[],
        );
        if !run.journal.has("rollback") {
            // It was so fast that there was no checkpoint.
            assert_eq!(run.outcome.ended, Ended::Exit(125), "{}", run.tell());
            continue;
        }
        assert_eq!(run.outcome.ended, Ended::Exit(0), "{}", run.tell());
        let packed = run.dir.path().join("packed");
        fs::write(&packed, &run.outcome.stdout).expect("the test's own folder is writable");
        let unpacked = Command::new("bzip2").arg("-dc").arg(&packed).output();
        let unpacked = unpacked.expect("bzip2 is there").stdout;
        assert!(
            unpacked == fs::read(&text).expect("the input is there"),
            "{}",
            run.tell()
        );
        repaired += 1;
    }
    assert!(repaired > 0, "no run was repaired");
}

/// What comes of `geryon run` with these words.
fn outcome(words: &[&str]) -> Outcome {
    let dir = TempDir::new();
    command::run(&geryon(dir.path(), &[&["run"], words].concat()))
}

fn a_program_that_forks_is_told_and_runs() {
    let script = "echo one; sleep 0.5; (echo two); sleep 0.5; echo three";
    let outcome = outcome(&["-n", "2", "--checkpoint", "0.1", "--", "sh", "-c", script]);
    says(&outcome, 0, &["no checkpoints while it has several"]);
    assert_eq!(stdout(&outcome), "one\ntwo\nthree\n");
}

fn what_makes_no_sense_is_refused() {
    let refused: [(&[&str], &str); 9] = [
        (&["-n", "1", "--checkpoint", "1"], "-n 2"),
        (
            &["-n", "3", "--order", "serial", "--checkpoint", "1"],
            "decide by themselves",
        ),
        (
            &["--order", "auto", "--checkpoint", "1"],
            "decide by themselves",
        ),
        (
            &["-n", "11", "--order", "clocks", "--checkpoint", "1"],
            "ten replicas at most",
        ),
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
        says(&outcome(&all), USAGE, &[said]);
    }
}

crate::command::in_both_orders! {
    who_differs_after_a_checkpoint_is_found_and_replaced,
    with_clocks_too,
    a_race_is_replayed,
    a_race_is_replayed_where_all_others_stand_against_the_leader,
    where_it_may_be_a_race_no_leader_is_outvoted,
    who_races_again_and_again_goes_on_in_serial_order,
    a_race_stops_the_run_if_that_is_asked_for,
    a_leader_that_no_replay_agrees_with_is_outvoted,
    who_computes_for_ever_is_found_while_the_leader_spins,
    who_waits_in_a_circle_is_found_and_its_log_replayed,
    who_polls_for_long_is_right,
    who_stands_still_after_a_checkpoint_is_found,
    a_crash_needs_no_arbitration,
    a_fault_from_before_the_checkpoint_stops_the_run,
    flipped_bits_in_memory_are_repaired_if_the_checkpoint_is_older,
    sleepers_that_are_killed_are_made_anew,
    rings_that_fill_up_hold_up_nothing,
    large_writes_stay_whole,
    a_program_that_forks_is_told_and_runs,
    what_makes_no_sense_is_refused,
}

crate::command::in_serial! {
    pbzip2_is_repaired: "a leader whose threads wait on condition variables cannot be copied there"
}

/// They say themselves that it is clocks that they are about.
mod in_parallel {
    #[test]
    fn what_led_all_others_astray_before_they_were_copied_outvotes_no_leader() {
        super::what_led_all_others_astray_before_they_were_copied_outvotes_no_leader();
    }

    #[test]
    fn a_race_is_replayed_that_shows_much_later() {
        super::a_race_is_replayed_that_shows_much_later();
    }

    #[test]
    fn a_leader_that_its_own_copy_does_not_agree_with_is_outvoted() {
        super::a_leader_that_its_own_copy_does_not_agree_with_is_outvoted();
    }
}
