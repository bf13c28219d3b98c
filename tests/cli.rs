//! What a person or a script meets at the command line: bad input, exit statuses, signals,
//! closed and full streams, an ordinary user. `Program` gives each run its time limit and
//! finds what it leaves behind.

#[path = "support/command.rs"]
mod command;
#[allow(dead_code)] // numbers of replicas and busy loops matter to the other tests only
mod support;

use command::{events, file, geryon, journalled, program, run, says, shell, stderr, stdout};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::{Ended, Outcome, TempDir, quoted, settings};

/// Usage errors.
const USAGE: i32 = 2;
/// Geryon's own failures, and a run that was stopped.
const OWN: i32 = 125;
/// The program is there and cannot be run.
const NOT_RUNNABLE: i32 = 126;
/// There is no such program.
const NOT_FOUND: i32 = 127;
/// An ordinary user that every Debian has.
const NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=nobody",
    "--regid=nogroup",
    "--clear-groups",
];

/// The first bytes of an ELF file: class, type, machine.
fn elf_head(class: u8, kind: u16, machine: u16) -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
    head[16..18].copy_from_slice(&kind.to_le_bytes());
    head[18..20].copy_from_slice(&machine.to_le_bytes());
    head
}

/// A folder that everybody may enter, with a copy of the binary that everybody may run;
/// None, with a message, when this test does not run as root.
fn for_nobody() -> Option<(PathBuf, String)> {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become another user");
        return None;
    }
    let name = format!(
        "geryon-cli-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let dir = std::env::temp_dir().join(name.replace(['(', ')'], ""));
    fs::create_dir_all(&dir).expect("the temporary folder is writable");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let binary = dir.join("geryon");
    fs::copy(settings::geryon(), &binary).expect("the binary can be copied");
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).expect("it is ours");
    Some((dir, binary.to_string_lossy().into_owned()))
}

// Programs that cannot be run.

#[test]
fn no_such_program() {
    says(
        &geryon(&["run", "--", "no-such-program-here"]),
        NOT_FOUND,
        &["geryon: no-such-program-here", "try:"],
    );
    says(
        &geryon(&["run", "--", "./missing"]),
        NOT_FOUND,
        &["./missing", "No such file"],
    );
    says(
        &geryon(&["run", "--", "/bin/sh/x"]),
        NOT_RUNNABLE,
        &["/bin/sh/x", "Not a directory"],
    );
}

#[test]
fn empty_name() {
    says(
        &geryon(&["run", "--", ""]),
        NOT_FOUND,
        &["name is empty", "try:"],
    );
}

#[test]
fn name_that_is_too_long() {
    let name = format!("./{}", "x".repeat(300));
    says(&geryon(&["run", "--", &name]), NOT_RUNNABLE, &["too long"]);
}

#[test]
fn directory() {
    says(
        &geryon(&["run", "--", "/tmp"]),
        NOT_RUNNABLE,
        &["/tmp", "directory"],
    );
}

#[test]
fn not_executable() {
    let dir = TempDir::new();
    let path = file(&dir, "plain", b"#!/bin/sh\n", 0o644);
    says(
        &geryon(&["run", "--", &path]),
        NOT_RUNNABLE,
        &[&path, "not executable", "chmod +x"],
    );
}

#[test]
fn wrong_architecture() {
    let dir = TempDir::new();
    let i386 = file(&dir, "i386", &elf_head(1, 2, 3), 0o755);
    says(
        &geryon(&["run", "--", &i386]),
        NOT_RUNNABLE,
        &[&i386, "architecture", "32-bit"],
    );
    let arm = file(&dir, "arm", &elf_head(2, 2, 183), 0o755);
    says(
        &geryon(&["run", "--", &arm]),
        NOT_RUNNABLE,
        &[&arm, "architecture", "183"],
    );
}

#[test]
fn damaged_elf_and_object_file() {
    let dir = TempDir::new();
    let cut = file(
        &dir,
        "cut",
        &fs::read("/bin/true").expect("it is there")[..64],
        0o755,
    );
    says(
        &geryon(&["run", "--", &cut]),
        NOT_RUNNABLE,
        &[&cut, "cut off"],
    );
    let tiny = file(&dir, "tiny", b"\x7fELF", 0o755);
    says(
        &geryon(&["run", "--", &tiny]),
        NOT_RUNNABLE,
        &[&tiny, "cut off"],
    );
    let object = file(&dir, "object", &elf_head(2, 1, 62), 0o755);
    says(
        &geryon(&["run", "--", &object]),
        NOT_RUNNABLE,
        &[&object, "not a program"],
    );
}

#[test]
fn neither_elf_nor_script() {
    let dir = TempDir::new();
    for (name, content) in [("text", "echo hello\n"), ("empty", ""), ("hash", "#")] {
        let path = file(&dir, name, content.as_bytes(), 0o755);
        says(
            &geryon(&["run", "--", &path]),
            NOT_RUNNABLE,
            &[&path, "neither", "try:"],
        );
    }
}

#[test]
fn script_without_its_interpreter() {
    let dir = TempDir::new();
    let gone = file(&dir, "gone", b"#!/no/such/interpreter -x\n", 0o755);
    says(
        &geryon(&["run", "--", &gone]),
        NOT_FOUND,
        &[&gone, "/no/such/interpreter"],
    );
    let none = file(&dir, "none", b"#! \nhello\n", 0o755);
    says(
        &geryon(&["run", "--", &none]),
        NOT_RUNNABLE,
        &[&none, "no interpreter"],
    );
    let own = dir.path().join("own").to_string_lossy().into_owned();
    file(&dir, "own", format!("#!{own}\n").as_bytes(), 0o755);
    says(
        &geryon(&["run", "--", &own]),
        NOT_RUNNABLE,
        &["interpreters"],
    );
}

#[test]
fn scripts_run() {
    let dir = TempDir::new();
    let inner = file(
        &dir,
        "inner",
        b"#!/bin/sh -e\necho \"$0|$*\"\nexit 3\n",
        0o755,
    );
    let outer = file(&dir, "outer", format!("#!{inner}\n").as_bytes(), 0o755);
    for script in [&inner, &outer] {
        let native = run(&program(dir.path(), &[script, "a b"]));
        let replicas = run(&program(dir.path(), &[script, "a b"]).under(3));
        assert_eq!(native.ended, Ended::Exit(3));
        assert_eq!(replicas.ended, native.ended, "{}", stderr(&replicas));
        assert_eq!(stdout(&replicas), stdout(&native));
    }
}

#[test]
fn unreadable_program() {
    let Some((dir, binary)) = for_nobody() else {
        return;
    };
    let hidden = dir.join("hidden");
    fs::copy("/bin/true", &hidden).expect("it can be copied");
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o711)).expect("it is ours");
    let mut p = program(&dir, &[&binary, "run", "--", &hidden.to_string_lossy()]);
    p.prefix(&NOBODY);
    let outcome = run(&p);
    fs::remove_dir_all(&dir).expect("it is ours");
    says(
        &outcome,
        NOT_RUNNABLE,
        &["hidden", "cannot be read", "chmod +r"],
    );
}

// Usage.

#[test]
fn numbers_of_replicas() {
    for n in [
        "0",
        "-1",
        "17",
        "1000",
        "x",
        "",
        "1.5",
        "99999999999999999999",
    ] {
        says(
            &geryon(&["run", "-n", n, "--", "true"]),
            USAGE,
            &["--replicas"],
        );
    }
    for n in ["1", "2", "16"] {
        says(&geryon(&["run", "-n", n, "--", "true"]), 0, &[]);
    }
}

#[test]
fn usage_errors() {
    says(&geryon(&["run", "-n", "2"]), USAGE, &["PROGRAM"]);
    says(&geryon(&["run", "-n", "2", "--"]), USAGE, &["PROGRAM"]);
    says(
        &geryon(&["run", "--no-such-flag", "--", "true"]),
        USAGE,
        &["--no-such-flag"],
    );
    says(
        &geryon(&["run", "--verify", "some", "--", "true"]),
        USAGE,
        &["--verify", "output"],
    );
    says(
        &geryon(&["no-such-command"]),
        USAGE,
        &["no-such-command", "--help"],
    );
    says(&geryon(&[]), USAGE, &["Usage"]);
}

#[test]
fn help_and_version() {
    let help = geryon(&["--help"]);
    says(&help, 0, &[]);
    for word in ["run", "syscalls", "doctor", "bench"] {
        assert!(stdout(&help).contains(word), "{word}");
    }
    let help = geryon(&["run", "--help"]);
    says(&help, 0, &[]);
    for word in ["--replicas", "--verify", "--report", "--journal", "PROGRAM"] {
        assert!(stdout(&help).contains(word), "{word}");
    }
    let version = stdout(&geryon(&["--version"]));
    assert_eq!(
        version.trim(),
        concat!("geryon ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn flags_behind_the_program_are_its_own() {
    let outcome = geryon(&[
        "run", "-n", "2", "printf", "%s|", "-n", "--verify", "--", "-h",
    ]);
    assert_eq!(
        stdout(&outcome),
        "-n|--verify|--|-h|",
        "{}",
        stderr(&outcome)
    );
}

#[test]
fn other_subcommands() {
    says(&geryon(&["syscalls", "nosuchcall"]), OWN, &["nosuchcall"]);
    let row = geryon(&["syscalls", "openat"]);
    says(&row, 0, &[]);
    assert!(stdout(&row).contains("openat"));
    says(&shell("$G syscalls >/dev/full"), OWN, &["No space left"]);
    says(&shell("$G doctor >/dev/full"), OWN, &["No space left"]);
    says(&shell("$G syscalls | head -n 1"), 0, &[]);
}

// The report.

#[test]
fn report_that_cannot_be_written() {
    let run = |path: &str| geryon(&["run", "--report", path, "--", "echo", "started"]);
    for path in ["/no/such/folder/report", "/tmp"] {
        let outcome = run(path);
        says(&outcome, OWN, &["cannot write the report", "try:"]);
        assert_eq!(stdout(&outcome), "", "the program was started all the same");
    }
}

#[test]
fn report_without_divergence_leaves_no_file() {
    let dir = TempDir::new();
    let path = dir.path().join("report.json");
    says(
        &geryon(&[
            "run",
            "-n",
            "2",
            "--report",
            &path.to_string_lossy(),
            "--",
            "true",
        ]),
        0,
        &[],
    );
    assert!(!path.exists());
}

#[test]
fn divergence_is_stopped_and_reported() {
    let dir = TempDir::new();
    let path = dir.path().join("report.json");
    let outcome = geryon(&[
        "run",
        "-n",
        "2",
        "--sabotage",
        "1:content:1",
        "--report",
        &path.to_string_lossy(),
        "--",
        "echo",
        "secret",
    ]);
    says(&outcome, OWN, &["geryon:", "thread group"]);
    assert_eq!(stdout(&outcome), "", "unconfirmed output left");
    let report = fs::read_to_string(&path).expect("the report was written");
    assert!(report.contains("\"thread_group\""), "{report}");
}

#[test]
fn full_disk_for_the_report() {
    let outcome = geryon(&[
        "run",
        "-n",
        "2",
        "--sabotage",
        "1:content:1",
        "--report",
        "/dev/full",
        "--",
        "echo",
        "secret",
    ]);
    says(
        &outcome,
        OWN,
        &["thread group", "/dev/full", "No space left"],
    );
    assert_eq!(stdout(&outcome), "", "unconfirmed output left");
}

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

#[test]
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

#[test]
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

#[test]
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

#[test]
fn two_replicas_survive_a_crash() {
    for replica in 0..2 {
        let outcome = sabotaged(2, replica, "crash");
        let named = format!("replica {} got signal 11", replica + 1);
        says(&outcome, 0, &[&named]);
        assert_eq!(stdout(&outcome), "one\ntwo\n", "{replica}");
    }
}

// The journal, faults on request, and what follows from a verdict.

#[test]
fn journal_that_cannot_be_written() {
    for path in ["/no/such/folder/journal", "/tmp"] {
        let outcome = geryon(&["run", "--journal", path, "--", "echo", "started"]);
        says(&outcome, OWN, &["cannot write the journal", path, "try:"]);
        assert_eq!(stdout(&outcome), "", "the program was started all the same");
    }
}

#[test]
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

#[test]
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

#[test]
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

#[test]
fn outvoted_replica_stops_the_run() {
    let flags = ["--sabotage", "1:content:1", "--on-divergence", "stop"];
    let (outcome, journal) = journalled(&flags, "echo one; echo two");
    says(&outcome, OWN, &["outvoted", "--on-divergence stop"]);
    assert_eq!(stdout(&outcome), "", "unconfirmed output left");
    assert_eq!(events(&journal), ["start", "fault-seen", "stopped", "end"]);
    assert!(journal.contains("\"status\":125"), "{journal}");
}

#[test]
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

#[test]
fn replica_that_stands_still_is_repaired() {
    let flags = ["--fault", "replica=1,when=delay:1000,target=stop"];
    let (outcome, _) = journalled(&flags, "echo one; echo two");
    says(&outcome, 0, &["replica 2 stands still"]);
    assert_eq!(stdout(&outcome), "one\ntwo\n");
}

#[test]
fn fault_that_comes_too_late() {
    let flags = ["--fault", "replica=1,when=delay:1000000000,target=crash"];
    let (outcome, journal) = journalled(&flags, "echo one");
    says(&outcome, 0, &[]);
    assert_eq!(events(&journal), ["start", "fault-missed", "end"]);
}

#[test]
fn faults_that_cannot_be_made() {
    let fault = |spec| geryon(&["run", "-n", "2", "--fault", spec, "--", "true"]);
    says(
        &fault("replica=2,when=delay:1,target=crash"),
        OWN,
        &["no replica 2", "try:"],
    );
    says(&fault("when=delay:1,target=sun"), USAGE, &["no target"]);
}

#[test]
fn report_names_who_is_outvoted() {
    for (n, replica, outvoted) in [("3", 0, vec![0]), ("3", 2, vec![2]), ("2", 1, vec![])] {
        let dir = TempDir::new();
        let path = dir.path().join("report.json");
        let report = path.to_string_lossy();
        let sabotage = format!("{replica}:content:1");
        let flags = ["run", "-n", n, "--report", &report, "--sabotage", &sabotage];
        geryon(&[&flags[..], &["--", "echo", "secret"]].concat());
        let text = fs::read_to_string(&path).expect("the report was written");
        let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(report["outvoted"], serde_json::json!(outvoted), "{text}");
    }
}

// Streams.

/// Natively and as replicas, what the shell makes of `script` is the same; `$RUN` stands for
/// the replicas, or for nothing.
#[track_caller]
fn alike(script: &str) {
    let dir = TempDir::new();
    let of = |words: &str| {
        // Empty for each, under the same name.
        let folder = dir.path().join("folder");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("the test's own folder is writable");
        let mut p = program(&folder, &["sh", "-c", script]);
        p.env.insert("RUN".into(), words.into());
        run(&p)
    };
    let native = of("");
    let replicas = of(&format!("{} run -n 3 --", quoted(&settings::geryon())));
    assert_eq!(
        replicas.ended,
        native.ended,
        "{script}: {}",
        stderr(&replicas)
    );
    assert_eq!(stdout(&replicas), stdout(&native), "{script}");
    assert_eq!(stderr(&replicas), stderr(&native), "{script}");
}

const OPEN_STREAMS: &str = r#"sh -c 'for i in 0 1 2; do [ -e /proc/self/fd/$i ] && l="$l$i"; done; echo "open:$l" >"$0"' "$PWD/list""#;

#[test]
fn closed_streams_stay_closed() {
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"] {
        alike(&format!("$RUN {OPEN_STREAMS} {closed}; echo $?; cat list"));
    }
}

#[test]
fn writing_to_a_closed_stdout() {
    alike("$RUN /bin/echo hello >&-; echo $?");
    alike("$RUN sh -c 'echo hello >&2' 2>&-; echo $?");
    alike("$RUN cat <&-; echo $?");
}

#[test]
fn full_device_as_stdout() {
    alike("$RUN /bin/echo hello >/dev/full; echo $?");
    alike("$RUN seq 100000 >/dev/full; echo $?");
}

#[test]
fn pipes_that_close_early() {
    alike("$RUN seq 1000000 | head -n 3");
    alike("seq 1000000 | $RUN head -n 3");
}

#[test]
fn input_is_read_once() {
    alike("printf '1\\n2\\n3\\n' | { $RUN sh -c 'read a; echo got $a'; cat; }");
    alike("echo content >file; $RUN sh -c 'cat; echo more >>file' <file; cat file");
}

// What the program inherits.

#[test]
fn environment_and_arguments() {
    alike("$RUN env | sort | grep -v -e ^RUN= -e ^GERYON_TEST_ID=");
    alike(r#"$RUN /bin/printf '%s|' '' "$(printf '\377\1')" 'a b' '*'"#);
    alike("$RUN head -c 4 /proc/self/cmdline");
    alike("GLIBC_TUNABLES=glibc.malloc.perturb=1 $RUN sh -c 'echo $GLIBC_TUNABLES'");
}

#[test]
fn ignored_signals_stay_ignored() {
    alike("trap '' PIPE INT; $RUN grep SigIgn /proc/self/status");
    alike("$RUN grep SigBlk /proc/self/status");
}

#[test]
fn folder_and_limits() {
    alike("cd /; $RUN /bin/pwd");
    alike("umask 027; $RUN sh -c 'umask; : >made; stat -c %a made'");
    alike("ulimit -n 57; $RUN sh -c 'ulimit -n'");
    alike("$RUN sh -c 'mkdir d; cd d; pwd >x; cat x'; cat d/x");
}

// How it ends.

#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
fn signals_to_geryon_run_the_programs_handler() {
    let script = "exec perl -e '$| = 1; $SIG{TERM} = sub { print \"caught\\n\"; exit 3 }; print \"READY\\n\"; sleep 1 while 1'";
    let outcome = sent(libc::SIGTERM, 3, script);
    assert_eq!(outcome.ended, Ended::Exit(3), "{}", stderr(&outcome));
    assert_eq!(stdout(&outcome), "READY\ncaught\n");
}

#[test]
fn killing_geryon_leaves_nothing() {
    let outcome = sent(libc::SIGKILL, 3, "sleep 30 & echo READY; wait");
    assert_eq!(outcome.ended, Ended::Signal(libc::SIGKILL));
}

// An ordinary user.

#[test]
fn ordinary_user() {
    let Some((dir, binary)) = for_nobody() else {
        return;
    };
    let script = format!(
        "id -un; {0} doctor >/dev/null || exit 9; {0} run -n 3 -- sh -c 'id -un' &&\
         head -c 3000000 {0} >in && {0} run -n 3 -- xz -T2 -0 -c --block-size=500000 in | xz -dc | cmp - in && echo same",
        quoted(&binary)
    );
    let mut p = program(&dir, &["sh", "-c", &script]);
    p.prefix(&NOBODY);
    let outcome = run(&p);
    fs::remove_dir_all(&dir).expect("it is ours");
    assert_eq!(
        stdout(&outcome),
        "nobody\nnobody\nsame\n",
        "{}",
        stderr(&outcome)
    );
    says(&outcome, 0, &[]);
}
