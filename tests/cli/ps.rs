//! `geryon ps` and `geryon top`.

use crate::command::{OWN, USAGE, geryon, in_both_orders, order, says, stdout};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

in_both_orders! {
    a_run_and_its_replicas_are_listed,
}

/// A run that goes on until its stdin ends; its program has begun.
fn begun(replicas: &str) -> Child {
    let mut run = Command::new(env!("CARGO_BIN_EXE_geryon"))
        .args([
            "run",
            "-n",
            replicas,
            "--order",
            order().unwrap_or("serial"),
        ])
        .args(["sh", "-c", "echo begun; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(run.stdout.as_mut().expect("piped"))
        .read_line(&mut line)
        .expect("a line");
    assert_eq!(line, "begun\n");
    run
}

fn seen(run: &Child) -> Value {
    let outcome = geryon(&["ps", "--json", &run.id().to_string()]);
    says(&outcome, 0, &[]);
    let all: Vec<Value> = serde_json::from_str(&stdout(&outcome)).expect("JSON");
    assert_eq!(all.len(), 1);
    all[0].clone()
}

fn a_run_and_its_replicas_are_listed() {
    let mut run = begun("3");
    let run_seen = seen(&run);
    let program: Vec<&str> = run_seen["program"]
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(program, ["sh", "-c", "echo begun; read line"]);
    assert_eq!(run_seen["replicas"], 3);
    assert_eq!(run_seen["order"], order().unwrap_or("serial"));
    let group = run_seen["groups"][0].as_array().expect("an array").clone();
    assert_eq!(group.len(), 3, "{run_seen}");
    assert_eq!(group.iter().filter(|p| p["leads"] == true).count(), 1);
    let text = stdout(&geryon(&["ps", "--threads", &run.id().to_string()]));
    assert!(
        text.contains(" leads") && text.contains("is in read"),
        "{text}"
    );
    let text = stdout(&geryon(&[
        "top",
        "--every",
        "0.1",
        "--count",
        "2",
        &run.id().to_string(),
    ]));
    assert_eq!(text.matches("WORDS/S").count(), 2, "{text}");
    assert!(
        text.contains(" 3/3 ") && text.contains("1 is in read"),
        "{text}"
    );
    // One that is lost is made anew, under another id.
    let follower = group.iter().find(|p| p["leads"] == false).expect("one");
    let lost = follower["pid"].as_i64().expect("an id");
    // SAFETY: plain call; the process is a replica of the run above.
    unsafe { libc::kill(lost as i32, libc::SIGKILL) };
    let start = Instant::now();
    loop {
        let group = seen(&run)["groups"][0]
            .as_array()
            .expect("an array")
            .clone();
        if group.len() == 3 && group.iter().all(|p| p["pid"] != lost) {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{group:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(run.stdin.take());
    run.wait().expect("it ends");
    says(
        &geryon(&["ps", &run.id().to_string()]),
        OWN,
        &["is no run of Geryon's", "geryon ps"],
    );
}

#[test]
fn whoever_is_no_run_is_not_taken_for_one() {
    let own = std::process::id().to_string();
    says(&geryon(&["ps", &own]), OWN, &[&own, "is no run"]);
    says(&geryon(&["top", &own]), OWN, &[&own, "is no run"]);
    says(&geryon(&["top", "--every", "0"]), USAGE, &["--every"]);
}
