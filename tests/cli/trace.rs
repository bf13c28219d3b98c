//! `geryon trace`.

use crate::begun::{begun, replicas};
use crate::command::{OWN, USAGE, geryon, in_both_orders, says, stdout};
use crate::support::TempDir;
use serde_json::Value;
use std::fs;

in_both_orders! {
    what_threads_do_is_traced,
}

fn what_threads_do_is_traced() {
    let dir = TempDir::new();
    let file = dir.path().join("trace.json");
    let file = file.to_string_lossy();
    let mut run = begun(&["-n", "2"], "echo begun; read line; true");
    let pids = replicas(&run);
    let pid = run.id().to_string();
    let outcome = geryon(&["trace", &pid, "--seconds", "0.5", "--out", &file]);
    assert!(
        stdout(&outcome).contains("looks in 0."),
        "{}",
        stdout(&outcome)
    );
    let text = fs::read_to_string(&*file).expect("a trace");
    let all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    for (pid, name, does) in [
        (pids[0], "replica 1, leads: sh", "is in read"),
        (pids[1], "replica 2, follows: sh", "waits for the leader"),
    ] {
        let of_it = |e: &&Value| e["pid"] == pid;
        let named = all.iter().filter(of_it).find(|e| e["ph"] == "M");
        assert!(named.is_some_and(|e| e["args"]["name"] == name), "{text}");
        let spans = all.iter().filter(of_it).filter(|e| e["ph"] == "X");
        let longest = spans.max_by_key(|e| e["dur"].as_u64());
        assert!(longest.is_some_and(|e| e["name"] == does), "{text}");
    }
    let nowhere = ["trace", &pid, "--out", "/nonexistent/trace.json"];
    let said = "cannot write /nonexistent/trace.json";
    says(&geryon(&nowhere), OWN, &[said]);
    drop(run.stdin.take());
    assert!(run.wait().expect("it ends").success());
    says(
        &geryon(&["trace", &pid, "--out", &file]),
        OWN,
        &["is no run"],
    );
}

#[test]
fn what_makes_no_trace_is_refused() {
    let own = std::process::id().to_string();
    says(
        &geryon(&["trace", &own, "--seconds", "0"]),
        USAGE,
        &["SECONDS"],
    );
    says(&geryon(&["trace"]), USAGE, &["PID"]);
}
