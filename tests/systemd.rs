//! A service of systemd's under Geryon: one READY=1, signs of life, also from the next leader, sockets that systemd has
//! opened, reload and stop by signals to Geryon.

#[allow(dead_code)] // these tests ask little of it
#[path = "support/journal.rs"]
mod journal;
#[path = "support/manager.rs"]
mod manager;
#[allow(dead_code)] // these tests ask little of it
#[path = "support/replicas.rs"]
mod replicas;
#[allow(dead_code)] // these tests run their programs themselves
mod support;

use manager::{Message, Service};
use replicas::Replicas;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use support::{TempDir, settings};

/// Ask for a sign of life so often.
const WATCHDOG: Duration = Duration::from_millis(400);
const SERVER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/packaging/examples/example-server"
);
/// Where redis-tools has the server's binary, which goes by its name.
const REDIS: &str = "/usr/bin/redis-check-rdb";

/// The test, natively and in each order with 1, 2 and 3 replicas.
fn everywhere(test: fn(order: &str, replicas: u32)) {
    support::no_core_files();
    test("native", 0);
    for order in settings::orders() {
        eprintln!("{order}");
        for replicas in settings::replicas(&[1, 2, 3]) {
            test(order, replicas);
        }
    }
}

#[test]
fn a_service() {
    everywhere(example);
}

#[test]
fn redis() {
    let there = Path::new(REDIS).exists();
    assert!(
        there,
        "{REDIS} is missing\n  try: apt-get install redis-tools"
    );
    everywhere(supervised_redis);
}

/// (systemd's variables named Geryon: the program did not take the socket, and gave no signs of life.)
fn example(order: &str, replicas: u32) {
    let dir = TempDir::new();
    let path = dir.path().join("answer");
    fs::write(&path, "first").expect("a file");
    let answer = path.to_string_lossy().into_owned();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let program = ["/usr/bin/python3", SERVER, &answer];
    let mut service = Service::start(dir, &program, order, replicas, listener, WATCHDOG);

    let ready = service.await_line("READY=1", 0);
    is_acceptable(&service, &ready, replicas);
    service.check(asked(address) == "first", "another answer");
    signs_of_life(&mut service, ready.pid);
    if replicas > 1 {
        lose_leader(&mut service, ready.pid);
        service.check(asked(address) == "first", "another answer");
    }

    let before = service.said.len();
    fs::write(&path, "second").expect("a file");
    service.signal(libc::SIGHUP);
    service.await_line("RELOADING=1", before);
    let again = service.await_line("READY=1", before);
    service.check(asked(address) == "second", "another answer");
    signs_of_life(&mut service, again.pid);

    service.signal(libc::SIGTERM);
    let status = service.end();
    service.check(status.code() == Some(0), &format!("{status}"));
    for (line, times) in [("READY=1", 2), ("RELOADING=1", 1), ("STOPPING=1", 1)] {
        service.check(
            service.count(line) == times,
            &format!("{line}: not {times}"),
        );
    }
    let said = fs::read_to_string(service.file("stdout")).expect("its output");
    service.check(said == "ready\nread again\ngood bye\n", "another output");
    let most = if replicas > 1 { 2 } else { 1 };
    service.check(service.senders().len() == most, "others have spoken");
    nobody_is_left(&service);
}

fn supervised_redis(order: &str, replicas: u32) {
    let dir = TempDir::new();
    let server = dir.path().join("redis-server");
    std::os::unix::fs::symlink(REDIS, &server).expect("a link");
    let server = server.to_string_lossy().into_owned();
    let socket = dir.path().join("socket");
    let options = ["--port", "0", "--save", "", "--unixsocket", "socket"];
    let program = [&[&*server, "--supervised", "systemd"], &options[..]].concat();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let mut service = Service::start(dir, &program, order, replicas, listener, WATCHDOG);

    let ready = service.await_line("READY=1", 0);
    is_acceptable(&service, &ready, replicas);
    service.check(told(&socket, "SET a 1") == "+OK\r\n", "it did not take it");
    if replicas > 1 {
        // (Of two in clocks the lost one is made anew in serial order only, after some seconds: a thread of the other one waits
        // for a condition, always.)
        let journal = service.file("journal");
        replicas::kill(ready.pid);
        service.await_that("another leader", || Replicas::read(&journal).leader != 0);
    }
    let one = "$1\r\n1\r\n";
    service.check(told(&socket, "GET a") == one, "it did not keep it");
    service.signal(libc::SIGTERM);
    let status = service.end();
    service.check(status.code() == Some(0), &format!("{status}"));
    service.check(service.count("READY=1") == 1, "it is ready but once");
    nobody_is_left(&service);
}

/// As systemd decides with NotifyAccess=all: the sender belongs to the service. It is the leader, and not the main
/// process, so that NotifyAccess=main would not do.
fn is_acceptable(service: &Service, message: &Message, replicas: u32) {
    let group = |pid: i32| fs::read_to_string(format!("/proc/{pid}/cgroup")).ok();
    let is_its = group(message.pid).is_some_and(|g| Some(g) == group(service.main_pid()));
    service.check(is_its, "sent from outside the service's control group");
    if replicas == 0 {
        service.check(message.pid == service.main_pid(), "another one has sent it");
        return;
    }
    let run = Replicas::read(&service.file("journal"));
    service.check(
        run.pid(run.leader) == Some(message.pid),
        "not sent by the leader",
    );
}

/// Two of them, one behind the other, from this process.
fn signs_of_life(service: &mut Service, pid: i32) {
    for _ in 0..2 {
        service.listen();
        let from = service.said.len();
        let sign = service.await_line("WATCHDOG=1", from);
        service.check(sign.pid == pid, "another one gives signs of life");
    }
}

/// All replicas are there again, and the signs of life go on, from a process that is the leader.
fn lose_leader(service: &mut Service, pid: i32) {
    let journal = service.file("journal");
    replicas::kill(pid);
    service.await_that("another replica", || {
        let run = Replicas::read(&journal);
        run.replaced == 1 && run.are_all_there()
    });
    service.listen();
    let from = service.said.len();
    let sign = service.await_message("WATCHDOG=1", from, |m| m.pid != pid);
    let run = Replicas::read(&service.file("journal"));
    service.check(run.pid(run.leader) == Some(sign.pid), "not the new leader");
    signs_of_life(service, sign.pid);
}

/// What the example's server says.
fn asked(address: SocketAddr) -> String {
    let mut text = String::new();
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.read_to_string(&mut text).expect("it answers");
    text
}

/// What Redis says.
fn told(socket: &Path, command: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream
        .write_all(format!("{command}\r\nQUIT\r\n").as_bytes())
        .expect("it takes it");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text.strip_suffix("+OK\r\n").unwrap_or(&text).to_owned()
}

fn nobody_is_left(service: &Service) {
    let all = Replicas::read(&service.file("journal"));
    for pid in all.pids.into_iter().flatten().chain(service.senders()) {
        let is_gone = !Path::new(&format!("/proc/{pid}")).exists();
        service.check(is_gone, &format!("{pid} is left"));
    }
}
