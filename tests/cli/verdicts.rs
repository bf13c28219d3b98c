//! Replicas that do something wrong: who is found to be, what follows from it, and what the journal
//! says of that.

use crate::command::{OWN, USAGE, events, geryon, journalled, says, shell, stderr, stdout};
use crate::guest;
use crate::support::{Outcome, quoted};

/// Two lines of output by a program one of whose replicas does something wrong at its first
/// output.
fn sabotaged(n: u32, replica: u32, kind: &str) -> Outcome {
    geryon(&[
        "run",
        "-n",
        &n.to_string(),
        "--sabotage",
        &format!("{replica}:{kind}:1"),
        "--",
        "sh",
        "-c",
        "echo one; echo two",
    ])
}

fn two_replicas_that_differ_are_stopped() {
    for kind in ["argument", "content", "order", "extra"] {
        for replica in 0..2 {
            let outcome = sabotaged(2, replica, kind);
            says(&outcome, OWN, &["geryon: divergence", "geryon: stopped"]);
            // One call too many comes behind the confirmed first line.
            let confirmed = if kind == "extra" { "one\n" } else { "" };
            assert!(
                confirmed.starts_with(&stdout(&outcome)),
                "{kind} {replica}: {}",
                stdout(&outcome)
            );
        }
    }
}

fn faulty_follower_is_named_and_left_out() {
    for kind in ["argument", "content", "order", "extra", "crash"] {
        for replica in 1..3 {
            let outcome = sabotaged(3, replica, kind);
            let named = format!("replica {} of 3 is outvoted", replica + 1);
            says(
                &outcome,
                0,
                &["geryon: divergence", &named, "going on with 2 replicas"],
            );
            assert_eq!(stdout(&outcome), "one\ntwo\n", "{kind} {replica}");
        }
    }
}

fn faulty_leader_is_named_and_another_one_takes_over() {
    // Which follower the monitor hears first is a matter of time.
    const ROUNDS: u32 = 8;
    for kind in ["argument", "content", "order", "extra", "crash"] {
        for _ in 0..ROUNDS {
            let outcome = sabotaged(3, 0, kind);
            let named = match kind {
                "crash" => "replica 1 got signal 11",
                _ => "replica 1 (the leader) of 3 is outvoted",
            };
            says(&outcome, 0, &[named, "takes over"]);
            let text = stderr(&outcome);
            assert!(
                !text.contains("going on"),
                "an honest replica was accused: {text}"
            );
            assert_eq!(stdout(&outcome), "one\ntwo\n", "{kind}");
        }
    }
}

fn two_replicas_survive_a_crash() {
    for replica in 0..2 {
        let outcome = sabotaged(2, replica, "crash");
        let named = format!("replica {} got signal 11", replica + 1);
        says(&outcome, 0, &[&named]);
        assert_eq!(stdout(&outcome), "one\ntwo\n", "{replica}");
    }
}

// The journal, faults on request, and what follows from a verdict.

fn journal_that_cannot_be_written() {
    for path in ["/no/such/folder/journal", "/tmp"] {
        let outcome = geryon(&["run", "--journal", path, "--", "echo", "started"]);
        says(&outcome, OWN, &["cannot write the journal", path, "try:"]);
        assert_eq!(stdout(&outcome), "", "the program was started all the same");
    }
}

fn journal_of_a_quiet_run() {
    let (outcome, journal) = journalled(&[], "echo one; exit 3");
    says(&outcome, 3, &[]);
    assert_eq!(events(&journal), ["start", "end"]);
    assert!(journal.contains("\"status\":3"), "{journal}");
    assert!(
        !stderr(&outcome).contains("geryon:"),
        "{}",
        stderr(&outcome)
    );
}

fn outvoted_replica_is_replaced() {
    let flags = ["--sabotage", "1:content:1", "--on-divergence", "replace"];
    let (outcome, journal) = journalled(&flags, "echo one; sleep 1; echo two");
    let summary = "geryon: 1 fault seen, 1 replica replaced, 0 promotions, 0 given up,";
    says(&outcome, 0, &["is replaced by a copy of replica", summary]);
    assert_eq!(stdout(&outcome), "one\ntwo\n");
    assert_eq!(
        events(&journal),
        ["start", "fault-seen", "dropped", "replaced", "end"]
    );
}

fn outvoted_replica_is_dropped() {
    let flags = ["--sabotage", "1:content:1", "--on-divergence", "drop"];
    let (outcome, journal) = journalled(&flags, "echo one; sleep 1; echo two");
    says(
        &outcome,
        0,
        &[
            "going on with 2 replicas",
            "1 fault seen, 0 replicas replaced, 0 promotions, 1 given up",
        ],
    );
    assert_eq!(stdout(&outcome), "one\ntwo\n");
    let expected = ["start", "fault-seen", "dropped", "given-up", "end"];
    assert_eq!(events(&journal), expected);
}

fn outvoted_replica_stops_the_run() {
    let flags = ["--sabotage", "1:content:1", "--on-divergence", "stop"];
    let (outcome, journal) = journalled(&flags, "echo one; echo two");
    says(&outcome, OWN, &["outvoted", "--on-divergence stop"]);
    assert_eq!(stdout(&outcome), "", "unconfirmed output left");
    assert_eq!(events(&journal), ["start", "fault-seen", "stopped", "end"]);
    assert!(journal.contains("\"status\":125"), "{journal}");
}

fn crash_on_request_is_repaired() {
    let flags = ["--fault", "replica=2,when=delay:300000,target=crash"];
    let (outcome, journal) = journalled(&flags, "echo one; sleep 1; echo two");
    says(&outcome, 0, &["replica 3 got signal 11"]);
    assert_eq!(stdout(&outcome), "one\ntwo\n");
    let expected = [
        "start",
        "fault-injected",
        "fault-seen",
        "dropped",
        "replaced",
        "end",
    ];
    assert_eq!(events(&journal), expected);
}

fn replica_that_stands_still_is_repaired() {
    let flags = ["--fault", "replica=1,when=delay:1000,target=stop"];
    let (outcome, _) = journalled(&flags, "echo one; echo two");
    says(&outcome, 0, &["replica 2 stands still"]);
    assert_eq!(stdout(&outcome), "one\ntwo\n");
}

/// The leader sleeps in its write meanwhile: what is hit has been agreed on long ago, and is not out.
fn memory_that_is_hit_before_a_pipe_takes_it() {
    let guest = guest::built("full_pipe");
    let guest = quoted(&guest.to_string_lossy());
    let expected = stdout(&shell(&format!("{guest} | cksum")));
    // (On a machine that is busy it takes its time to come to that write.)
    for place in [300_000, 500_000, 900_000] {
        let fault = format!("replica=0,when=delay:2500000,target=data:{place}:5");
        let run = format!("\"$G\" run -n 3 --fault {fault} -- {guest}");
        let outcome = shell(&format!("{run} | (sleep 4; cksum)"));
        says(&outcome, 0, &["replica 1"]);
        assert_eq!(stdout(&outcome), expected, "{fault}");
    }
}

fn fault_that_comes_too_late() {
    let flags = ["--fault", "replica=1,when=delay:1000000000,target=crash"];
    let (outcome, journal) = journalled(&flags, "echo one");
    says(&outcome, 0, &[]);
    assert_eq!(events(&journal), ["start", "fault-missed", "end"]);
}

fn faults_that_cannot_be_made() {
    let fault = |spec| geryon(&["run", "-n", "2", "--fault", spec, "--", "true"]);
    says(
        &fault("replica=2,when=delay:1,target=crash"),
        OWN,
        &["no replica 2", "try:"],
    );
    says(&fault("when=delay:1,target=sun"), USAGE, &["no target"]);
}

crate::command::in_both_orders! {
    two_replicas_that_differ_are_stopped,
    faulty_follower_is_named_and_left_out,
    faulty_leader_is_named_and_another_one_takes_over,
    two_replicas_survive_a_crash,
    journal_that_cannot_be_written,
    journal_of_a_quiet_run,
    outvoted_replica_is_replaced,
    outvoted_replica_is_dropped,
    outvoted_replica_stops_the_run,
    crash_on_request_is_repaired,
    replica_that_stands_still_is_repaired,
    memory_that_is_hit_before_a_pipe_takes_it,
    fault_that_comes_too_late,
    faults_that_cannot_be_made,
}
