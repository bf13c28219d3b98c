//! `geryon scan`: what would be rewritten.

use crate::command::{OWN, USAGE, geryon, says, stderr, stdout};
use crate::support::TempDir;
use serde_json::Value;
use std::process::Command;

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

/// How many of them are there, in the line of that name?
fn number(text: &str, name: &str) -> u32 {
    let line = text.lines().find(|l| l.trim_start().starts_with(name));
    let rest = line.and_then(|l| l.trim_start().strip_prefix(name));
    let first = rest.and_then(|r| r.split_whitespace().next());
    first.and_then(|n| n.parse().ok()).expect(text)
}

#[test]
fn a_library_is_counted_by_kind() {
    let outcome = geryon(&["scan", LIBC]);
    says(&outcome, 0, &[]);
    let text = stdout(&outcome);
    assert!(text.starts_with(LIBC), "{text}");
    for name in [
        "system calls",
        "atomic instructions",
        "places that may wait",
        "lock functions",
    ] {
        assert!(number(&text, name) > 0, "{name}: {text}");
    }
    assert!(
        text.contains("lock cmpxchg ") && text.contains("pause "),
        "{text}"
    );
}

#[test]
fn all_sites_are_told_as_json() {
    let outcome = geryon(&["scan", "--json", LIBC, "/bin/true"]);
    says(&outcome, 0, &[]);
    let files: Vec<Value> = serde_json::from_str(&stdout(&outcome)).expect("JSON");
    assert_eq!(files.len(), 2);
    let sites = files[0]["sites"].as_array().expect("an array");
    let calls = sites.iter().filter(|s| s["kind"] == "system calls").count();
    let text = stdout(&geryon(&["scan", LIBC]));
    assert_eq!(calls as u32, number(&text, "system calls"));
    assert!(sites.iter().all(|s| s["address"].is_u64()));
}

#[test]
fn what_is_no_program_is_named_and_the_others_are_told() {
    let outcome = geryon(&["scan", "/etc/passwd", "/no/such/file", "/bin/true"]);
    says(
        &outcome,
        OWN,
        &[
            "/etc/passwd",
            "not an x86-64 ELF",
            "/no/such/file",
            "cannot be read",
        ],
    );
    assert!(
        stdout(&outcome).starts_with("/bin/true"),
        "{}",
        stderr(&outcome)
    );
    says(&geryon(&["scan"]), USAGE, &["FILES"]);
}

#[test]
fn code_that_no_table_describes_is_told_of_where_order_matters() {
    let dir = TempDir::new();
    let file = dir.path().join("unseen");
    let path = file.to_str().expect("text");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests/th_musl.c");
    let built = Command::new("musl-gcc")
        .args(["-static", "-s", "-pthread", "-o", path, source])
        .status();
    assert!(built.expect("musl-gcc").success());
    let told = stdout(&geryon(&["scan", path]));
    assert!(told.contains("not seen: "), "{told}");
    let run = |more: &[&str]| {
        let all = [&["run", "-n", "2"], more, &["--", path, "2", "8"]].concat();
        stderr(&geryon(&all))
    };
    let clocks = run(&["--order", "clocks"]);
    assert!(clocks.contains("no unwind table and no symbol"), "{clocks}");
    assert_eq!(run(&["--order", "serial"]), "");
}
