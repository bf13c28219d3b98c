//! A run that goes on until its stdin ends, while a test looks at it.

use crate::command::{geryon, order, says, stdout};
use crate::support::settings;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A run of a shell script with these options; the script has said `begun`.
pub fn begun(options: &[&str], script: &str) -> Child {
    let mut run = Command::new(settings::geryon())
        .args(["run", "--order", order().unwrap_or("serial")])
        .args(options)
        .args(["sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(run.stdout.as_mut().expect("piped"))
        .read_line(&mut line)
        .expect("a line");
    assert_eq!(line, "begun\n");
    run
}

/// What `geryon ps` says of it.
pub fn seen(run: &Child) -> Value {
    let outcome = geryon(&["ps", "--json", &run.id().to_string()]);
    says(&outcome, 0, &[]);
    let all: Vec<Value> = serde_json::from_str(&stdout(&outcome)).expect("JSON");
    assert_eq!(all.len(), 1);
    all[0].clone()
}

/// The processes of its first group, the first replica's first.
pub fn replicas(run: &Child) -> Vec<i32> {
    let group = seen(run)["groups"][0].clone();
    let all = group.as_array().expect("an array").iter();
    all.map(|p| p["pid"].as_i64().expect("a number") as i32)
        .collect()
}
