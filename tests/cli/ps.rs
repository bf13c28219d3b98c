//! `geryon ps` and `geryon top`.

use crate::begun::{begun, seen};
use crate::command::{OWN, USAGE, geryon, in_both_orders, order, says, stdout};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

in_both_orders! {
    a_run_and_its_replicas_are_listed,
    who_stands_in_for_a_lost_leader_is_no_run,
}

fn a_run_and_its_replicas_are_listed() {
    let mut run = begun(&["-n", "3"], "echo begun; read line");
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

/// Two of a run's metrics, as the parser of Prometheus's own client library has them.
fn scraped(run: &Child) -> String {
    const PARSE: &str = "\
import sys
from prometheus_client.parser import text_string_to_metric_families as families
samples = [s for f in families(sys.stdin.read()) for s in f.samples if s.labels['run'] == sys.argv[1]]
wanted = ('geryon_replicas', 'geryon_promotions_total')
print(sorted((s.name, s.value) for s in samples if s.name in wanted))
";
    let mut parser = Command::new("/usr/bin/python3")
        .args(["-c", PARSE, &run.id().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3, see tests/packages.txt");
    let text = stdout(&geryon(&["metrics"]));
    let mut to = parser.stdin.take().expect("piped");
    to.write_all(text.as_bytes()).expect("it reads");
    drop(to);
    let outcome = parser.wait_with_output().expect("it ends");
    assert!(outcome.status.success(), "{text}");
    String::from_utf8(outcome.stdout).expect("text")
}

/// The monitor keeps a child under the id of a lost leader; it is called as the monitor is.
fn who_stands_in_for_a_lost_leader_is_no_run() {
    let script = format!(
        "echo begun; read line; : {} {}",
        std::process::id(),
        order().unwrap_or("serial")
    );
    let mut run = begun(&["-n", "2"], &script);
    let leader = |run: &Value| {
        let group = run["groups"][0].as_array()?.clone();
        let leads = group.iter().find(|p| p["leads"] == true)?["pid"].as_i64();
        leads.filter(|_| group.len() == 2)
    };
    let first = leader(&seen(&run)).expect("somebody leads");
    // SAFETY: sends a signal to a replica of a run that this test has started.
    assert_eq!(unsafe { libc::kill(first as i32, libc::SIGKILL) }, 0);
    let start = Instant::now();
    while leader(&seen(&run)).is_none_or(|pid| pid == first) {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    let of_this = |_| {
        let outcome = geryon(&["ps", "--json"]);
        let all: Vec<Value> = serde_json::from_str(&stdout(&outcome)).expect("JSON");
        all.iter()
            .filter(|r| r["program"][2] == script.as_str())
            .count()
    };
    assert_eq!((0..20).map(of_this).max(), Some(1));
    let totals = seen(&run)["totals"].clone();
    assert_eq!(
        (&totals["promotions"], &totals["replaced"]),
        (&json!(1), &json!(1))
    );
    let text = stdout(&geryon(&["ps", &run.id().to_string()]));
    assert!(
        text.contains("1 fault seen, 1 replica replaced, 1 promotion"),
        "{text}"
    );
    let counted = "[('geryon_promotions_total', 1.0), ('geryon_replicas', 2.0)]\n";
    assert_eq!(scraped(&run), counted);
    drop(run.stdin.take());
    assert!(run.wait().expect("it ends").success());
}

#[test]
fn whoever_is_no_run_is_not_taken_for_one() {
    let own = std::process::id().to_string();
    says(&geryon(&["ps", &own]), OWN, &[&own, "is no run"]);
    says(&geryon(&["top", &own]), OWN, &[&own, "is no run"]);
    says(&geryon(&["top", "--every", "0"]), USAGE, &["--every"]);
}
