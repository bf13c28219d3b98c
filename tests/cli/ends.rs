//! How it ends: statuses, signals from inside and from outside.

use crate::command::{geryon, program, run, says, stderr, stdout};
use crate::support::{self, Ended, Outcome, TempDir, settings};
use std::path::Path;
use std::time::Duration;

fn exit_statuses_pass() {
    for status in [0, 1, 2, 7, 125, 126, 127, 128, 255] {
        for n in ["1", "2", "3"] {
            says(
                &geryon(&["run", "-n", n, "--", "sh", "-c", &format!("exit {status}")]),
                status,
                &[],
            );
        }
    }
}

fn death_by_signal_is_passed_on() {
    for (name, signal) in support::SIGNALS {
        let script = format!("kill -{} $$; sleep 5", name.trim_start_matches("SIG"));
        for n in ["1", "3"] {
            let mut p = program(
                Path::new("/"),
                &[
                    &settings::geryon(),
                    "run",
                    "-n",
                    n,
                    "--",
                    "sh",
                    "-c",
                    &script,
                ],
            );
            // A test that itself runs in the background ignores SIGINT.
            p.prefix(&["env", "--default-signal"]);
            let outcome = run(&p);
            assert_eq!(
                outcome.ended,
                Ended::Signal(signal),
                "{name} -n {n}: {}",
                stderr(&outcome)
            );
        }
    }
}

fn crash_of_the_program_is_passed_on() {
    let script = "import ctypes; ctypes.string_at(8)";
    let outcome = geryon(&["run", "-n", "3", "--", "python3", "-c", script]);
    assert_eq!(
        outcome.ended,
        Ended::Signal(libc::SIGSEGV),
        "{}",
        stderr(&outcome)
    );
}

/// A program that has printed READY, sent a signal through Geryon.
fn sent(signal: i32, n: u32, script: &str) -> Outcome {
    let dir = TempDir::new();
    let mut p = program(dir.path(), &["sh", "-c", script]).under(n);
    p.prefix(&["env", "--default-signal"]);
    p.send = Some(signal);
    p.limit = Duration::from_secs(20);
    run(&p)
}

fn signals_to_geryon_end_the_program() {
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGUSR1,
    ] {
        for n in [1, 3] {
            let outcome = sent(signal, n, "echo READY; exec sleep 30");
            assert_eq!(
                outcome.ended,
                Ended::Signal(signal),
                "-n {n}: {}",
                stderr(&outcome)
            );
            assert!(
                outcome.took < Duration::from_secs(15),
                "it slept to its end"
            );
        }
    }
}

/// (It was sent to the first process, which was gone, or to whoever had its id by then.)
fn signals_to_geryon_end_what_the_program_has_left() {
    for n in [1, 3] {
        let outcome = sent(
            libc::SIGTERM,
            n,
            "(sleep 2; echo READY; exec sleep 30) & exit 3",
        );
        assert_eq!(
            outcome.ended,
            Ended::Exit(3),
            "-n {n}: {}",
            stderr(&outcome)
        );
        assert!(
            outcome.took < Duration::from_secs(15),
            "it slept to its end"
        );
    }
}

fn signals_to_geryon_end_a_busy_program() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let outcome = sent(
            signal,
            3,
            "exec perl -e '$| = 1; print \"READY\\n\"; 1 while 1'",
        );
        assert_eq!(outcome.ended, Ended::Signal(signal), "{}", stderr(&outcome));
    }
}

fn signals_to_geryon_run_the_programs_handler() {
    let script = "exec perl -e '$| = 1; $SIG{TERM} = sub { print \"caught\\n\"; exit 3 }; print \"READY\\n\"; sleep 1 while 1'";
    let outcome = sent(libc::SIGTERM, 3, script);
    assert_eq!(outcome.ended, Ended::Exit(3), "{}", stderr(&outcome));
    assert_eq!(stdout(&outcome), "READY\ncaught\n");
}

fn killing_geryon_leaves_nothing() {
    let outcome = sent(libc::SIGKILL, 3, "sleep 30 & echo READY; wait");
    assert_eq!(outcome.ended, Ended::Signal(libc::SIGKILL));
}

fn who_is_waited_for_is_said() {
    let outcome = geryon(&["run", "-n", "3", "--", "sh", "-c", "sleep 9 & exit 3"]);
    says(
        &outcome,
        3,
        &["the program has ended", "left running: sleep ("],
    );
}

crate::command::in_both_orders! {
    exit_statuses_pass,
    death_by_signal_is_passed_on,
    crash_of_the_program_is_passed_on,
    signals_to_geryon_end_the_program,
    signals_to_geryon_end_a_busy_program,
    signals_to_geryon_end_what_the_program_has_left,
    signals_to_geryon_run_the_programs_handler,
    killing_geryon_leaves_nothing,
    who_is_waited_for_is_said,
}
