//! `geryon metrics --listen`: what Prometheus scrapes.

use crate::begun::begun;
use crate::command::{OWN, USAGE, geryon, in_both_orders, order, says};
use crate::support::{TempDir, settings};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

in_both_orders! {
    metrics_are_served,
}

/// Ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // (It may have ended.)
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, and what it says of where it listens.
fn serving(address: &str) -> (Server, String) {
    let mut child = Command::new(settings::geryon())
        .args(["metrics", "--listen", address])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let told = child.stderr.take().expect("piped");
    let server = Server(child);
    let mut line = String::new();
    BufReader::new(told).read_line(&mut line).expect("text");
    (server, line)
}

/// What curl gets with these words: status, type and body.
fn got(words: &[&str]) -> (String, String, String) {
    let outcome = Command::new("curl")
        .args(["-s", "-w", "\n%{http_code} %{content_type}"])
        .args(words)
        .output()
        .expect("curl, see tests/packages.txt");
    let text = String::from_utf8(outcome.stdout).expect("text");
    let (body, last) = text.rsplit_once('\n').expect("a last line");
    let (status, kind) = last.split_once(' ').expect("two words");
    (status.into(), kind.into(), body.into())
}

fn metrics_are_served() {
    let mut run = begun(&["-n", "2"], "echo begun; read line; true");
    let (_server, told) = serving("127.0.0.1:0");
    let url = told.trim().rsplit(' ').next().expect("an address");
    let (status, kind, body) = got(&[url]);
    assert_eq!(
        (&*status, kind.starts_with("text/plain; version=0.0.4")),
        ("200", true),
        "{kind}"
    );
    let line = format!("geryon_run_info{{run=\"{}\"", run.id());
    let order = format!("order=\"{}\"", order().unwrap_or("serial"));
    let found = body.lines().find(|l| l.starts_with(&line));
    assert!(found.is_some_and(|l| l.contains(&order)), "{body}");
    assert_eq!(got(&[&url.replace("/metrics", "/")]).0, "404");
    assert_eq!(got(&["-d", "x", url]).0, "405");
    drop(run.stdin.take());
    assert!(run.wait().expect("it ends").success());
    // It tells of what is there when it is asked.
    assert!(!got(&[url]).2.contains(&line));
}

#[test]
fn metrics_are_served_at_a_socket_in_the_file_system() {
    let dir = TempDir::new();
    let path = dir.path().join("metrics");
    let address = format!("unix:{}", path.display());
    for _ in 0..2 {
        // (The first one is killed, and leaves its socket behind.)
        let (_server, told) = serving(&address);
        assert!(told.contains(&address), "{told}");
        let socket = path.to_string_lossy();
        let (status, _, body) = got(&["--unix-socket", &socket, "http://geryon/metrics"]);
        assert_eq!(status, "200");
        assert!(body.contains("# TYPE geryon_run_info gauge"), "{body}");
    }
}

#[test]
fn where_nobody_can_listen_it_says_so() {
    let dir = TempDir::new();
    let listens = |address: &str| geryon(&["metrics", "--listen", address]);
    says(&listens("9100"), USAGE, &["HOST:PORT", "unix:PATH"]);
    let nowhere = format!("unix:{}/none/metrics", dir.path().display());
    says(&listens(&nowhere), OWN, &["cannot listen at", &nowhere]);
    // What is no socket is left alone.
    let file = dir.path().join("file");
    std::fs::write(&file, "text").expect("the test's own folder is writable");
    let taken = format!("unix:{}", file.display());
    says(&listens(&taken), OWN, &["cannot listen at", &taken]);
    assert!(Path::new(&file).is_file());
}
