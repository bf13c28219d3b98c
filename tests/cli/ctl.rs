//! `geryon ctl`: what a run does when it is asked.

use crate::begun::{begun, seen};
use crate::command::{OWN, USAGE, geryon, in_both_orders, order, says, stdout};
use crate::guest::built;
use crate::support::settings;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

in_both_orders! {
    replicas_are_replaced_taken_out_and_brought_back,
    threads_go_on_while_their_replicas_are_replaced,
    threads_go_on_in_serial_order,
    who_waits_in_a_hooked_function_is_copied_in_serial_order,
    the_program_itself_may_not_ask,
}

/// Ask; what it says. It is asked again while something else is being done.
fn ask(run: &Child, words: &[&str]) -> String {
    let pid = run.id().to_string();
    let start = Instant::now();
    loop {
        let outcome = geryon(&[&["ctl", &pid], words].concat());
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        if !said.contains("ask again") {
            return stdout(&outcome) + &said;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{said}");
    }
}

/// Wait until there are so many replicas, and what has happened is so.
fn wait_for(run: &Child, replicas: usize, totals: &Value) {
    let start = Instant::now();
    loop {
        let now = seen(run);
        let count = now["groups"][0].as_array().map(Vec::len);
        let told = &now["totals"];
        let as_wanted = totals.as_object().expect("an object").iter();
        if count == Some(replicas) && as_wanted.clone().all(|(k, v)| told[k] == *v) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{now}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn leader(run: &Child) -> u64 {
    let group = seen(run)["groups"][0].as_array().expect("a group").clone();
    let leads = group.iter().find(|p| p["leads"] == true);
    leads.and_then(|p| p["replica"].as_u64()).expect("a leader")
}

fn replicas_are_replaced_taken_out_and_brought_back() {
    let mut run = begun(&["-n", "3"], "echo begun; read line; echo $line");
    let first = leader(&run).to_string();
    let second = (leader(&run) % 3 + 1).to_string();
    let said = ask(&run, &["replace", &second]);
    assert!(said.contains("taken out, and replaced"), "{said}");
    wait_for(&run, 3, &json!({"replaced": 1, "promotions": 0}));
    ask(&run, &["replace", &first]);
    wait_for(&run, 3, &json!({"replaced": 2, "promotions": 1}));
    assert_ne!(leader(&run).to_string(), first);
    ask(&run, &["drop", &first]);
    wait_for(&run, 2, &json!({"given_up": 1, "replaced": 2}));
    let said = ask(&run, &["replace", &first]);
    assert!(said.contains("was taken out"), "{said}");
    let now = leader(&run).to_string();
    let third = (6 - first.parse::<u64>().expect("a number") - leader(&run)).to_string();
    ask(&run, &["drop", &third]);
    wait_for(&run, 1, &json!({"given_up": 2}));
    let said = ask(&run, &["drop", &now]);
    assert!(said.contains("nobody but replica"), "{said}");
    let said = ask(&run, &["add"]);
    assert!(said.contains("made anew"), "{said}");
    // None of that was a fault.
    wait_for(&run, 3, &json!({"faults": 0, "replaced": 4}));
    let said = ask(&run, &["replace", "4"]);
    assert!(said.contains("they are 1 to 3"), "{said}");
    let said = ask(&run, &["pause-checkpoints"]);
    assert!(said.contains("--checkpoint"), "{said}");
    let said = ask(&run, &["add"]);
    assert!(said.contains("no replica was taken out"), "{said}");
    let mut stdin = run.stdin.take().expect("piped");
    stdin.write_all(b"word\n").expect("it reads");
    drop(stdin);
    assert!(run.wait().expect("it ends").success());
}

fn threads_go_on_while_their_replicas_are_replaced() {
    let guest = built("recover_blocked").to_string_lossy().into_owned();
    let mut run = Command::new(settings::geryon())
        .args(["run", "-n", "2", "--order", order().unwrap_or("serial")])
        .args(["--", &guest, "8", "40"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut asked = 0;
    for k in 0.. {
        let replica = (k % 2 + 1).to_string();
        let said = ask(&run, &["replace", &replica]);
        asked += u32::from(said.contains("and replaced"));
        if run.try_wait().expect("it is a child").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let outcome = run.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&outcome.stderr);
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(text.ends_with("GUEST-OK recover_blocked\n"), "{told}");
    assert!(outcome.status.success() && asked > 0, "{asked}: {told}");
    assert!(told.contains("geryon: 0 faults seen"), "{told}");
}

fn threads_go_on_in_serial_order() {
    let guest = built("recover_blocked").to_string_lossy().into_owned();
    let order = order().unwrap_or("serial");
    let run = Command::new(settings::geryon())
        .args(["run", "-n", "2", "--order", order])
        .args(["--", &guest, "8", "40"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    wait_for(&run, 2, &json!({}));
    let said = ask(&run, &["serial"]);
    assert_eq!(said.contains("from now on"), order == "clocks", "{said}");
    assert_eq!(said.contains("already"), order == "serial", "{said}");
    wait_for(&run, 2, &json!({"faults": 0}));
    let said = ask(&run, &["serial"]);
    assert!(said.contains("already"), "{said}");
    let outcome = run.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&outcome.stderr);
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(text.ends_with("GUEST-OK recover_blocked\n"), "{told}");
    assert!(outcome.status.success(), "{told}");
}

/// With clocks a copy of a thread that waits in pthread_cond_wait would have to begin before that.
fn who_waits_in_a_hooked_function_is_copied_in_serial_order() {
    let guest = built("recover_joined").to_string_lossy().into_owned();
    let order = order().unwrap_or("serial");
    let run = Command::new(settings::geryon())
        .args(["run", "-n", "2", "--order", order])
        .args(["--", &guest, "9000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    wait_for(&run, 2, &json!({}));
    ask(&run, &["replace", "2"]);
    wait_for(&run, 2, &json!({"replaced": 1}));
    let outcome = run.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&outcome.stderr);
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(text.ends_with("GUEST-OK recover_joined\n"), "{told}");
    assert!(outcome.status.success(), "{told}");
    assert_eq!(
        told.contains("in serial order"),
        order == "clocks",
        "{told}"
    );
}

fn the_program_itself_may_not_ask() {
    let binary = settings::geryon();
    let script = format!("echo begun; read line; {binary} ctl $line drop 2 2>&1; true");
    let mut run = begun(&["-n", "2"], &script);
    let mut stdin = run.stdin.take().expect("piped");
    writeln!(stdin, "{}", run.id()).expect("it reads");
    drop(stdin);
    let outcome = run.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(text.contains("nobody of the run itself"), "{text}");
}

#[test]
fn whoever_is_no_run_cannot_be_asked() {
    let own = std::process::id().to_string();
    says(
        &geryon(&["ctl", &own, "add"]),
        OWN,
        &[&own, "is no run", "geryon ps"],
    );
    says(&geryon(&["ctl", &own, "replace", "0"]), USAGE, &["1.."]);
    says(&geryon(&["ctl", &own]), USAGE, &["replace", "drop"]);
    says(&geryon(&["ctl", "x", "add"]), USAGE, &["PID"]);
}
