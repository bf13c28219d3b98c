//! What `geryon run` does about faults as its options say: whom it believes, how often it repairs, on
//! which cores, with whose pages; and what it says at the end.

#[path = "support/command.rs"]
#[allow(dead_code)] // some of it is for other tests
mod command;
#[path = "support/guest.rs"]
#[allow(dead_code)] // guests are run by another test
mod guest;
#[allow(dead_code)] // each test asks it something else
#[path = "support/journal.rs"]
mod journal;
#[allow(dead_code)] // the tests of recovery kill at other moments
#[path = "support/replicas.rs"]
mod replicas;
#[allow(dead_code)] // numbers of replicas and busy loops matter to the other tests only
mod support;

use command::{USAGE, events, geryon, program, says, stderr, stdout};
use guest::built;
use journal::Journal;
use replicas::Replicas;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use support::{Ended, Outcome, Program, TempDir, settings, tail};

/// What a test waits for is there by then, or never.
const PATIENCE_S: u64 = 50;

/// A run, its folder and its journal.
struct Run {
    dir: TempDir,
    program: Program,
}

impl Run {
    /// `geryon run` with these flags and a journal, of this program.
    fn of(flags: &[&str], argv: &[&str]) -> Run {
        let dir = TempDir::new();
        let journal = dir.path().join("journal");
        let geryon = settings::geryon();
        let mut words = vec![&geryon, "run", "--journal"];
        let path = journal.to_string_lossy();
        words.push(&path);
        words.extend(flags);
        words.push("--");
        words.extend(argv);
        let program = program(dir.path(), &words);
        Run { dir, program }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// To its end; what `meanwhile` does is done while it runs.
    fn with(&self, meanwhile: impl FnOnce(&Run)) -> Outcome {
        let program = self.program.clone();
        let run = thread::spawn(move || command::run(&program));
        meanwhile(self);
        run.join().expect("it ran")
    }

    fn journal(&self) -> String {
        fs::read_to_string(self.path("journal")).expect("the journal was written")
    }

    /// Its events of this name.
    fn told(&self, event: &str) -> Vec<Value> {
        let journal = Journal::read(&self.path("journal"));
        journal.told(event).cloned().collect()
    }

    /// Its replicas at this moment.
    fn replicas(&self) -> Replicas {
        Replicas::read(&self.path("journal"))
    }

    /// Wait until the journal has an event so often. A run that never has it fails by what it lacks.
    fn wait_for(&self, event: &str, times: usize) {
        let begin = Instant::now();
        while Journal::read(&self.path("journal")).count(event) < times
            && begin.elapsed() < Duration::from_secs(PATIENCE_S)
        {
            thread::sleep(Duration::from_millis(support::POLL_MS));
        }
    }

    fn touch(&self, name: &str) {
        fs::write(self.path(name), "").expect("the test's own folder is writable");
    }
}

/// The cores that this test, and so the run, may use.
fn cores() -> Vec<usize> {
    cores_of("thread-self")
}

/// The cores that a process may use.
fn cores_of(process: &str) -> Vec<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    let number = |n: &str| n.parse::<usize>().expect("a number");
    let range = |r: &str| match r.split_once('-') {
        Some((from, to)) => number(from)..=number(to),
        None => number(r)..=number(r),
    };
    let list = list.expect("it says so").trim();
    list.split(',').flat_map(range).collect()
}

// --on-divergence leader

/// Two lines, with time for repairs between them, and no other program.
const TWO_LINES: &str = "echo one; while [ ! -e go ]; do :; done; echo two";

/// `TWO_LINES` by replicas some of which do something wrong; so many are replaced meanwhile.
fn believing(n: &str, sabotages: &[&str], replaced: usize) -> (Run, Outcome) {
    let mut flags = vec!["-n", n, "--on-divergence", "leader"];
    for s in sabotages {
        flags.extend(["--sabotage", *s]);
    }
    let run = Run::of(&flags, &["sh", "-c", TWO_LINES]);
    let outcome = run.with(|run| {
        run.wait_for("replaced", replaced);
        run.touch("go");
    });
    (run, outcome)
}

fn of_two_that_differ_the_leader_is_believed() {
    for kind in ["argument", "content", "order", "extra"] {
        let (run, outcome) = believing("2", &[&format!("1:{kind}:1")], 1);
        says(
            &outcome,
            0,
            &[
                "2 replicas differ, and no majority says who is wrong",
                "WARNING: the leader (replica 1) is believed, right or wrong",
                "replica 2 is taken out",
                "replica 2 is replaced by a copy of replica 1",
            ],
        );
        assert_eq!(stdout(&outcome), "one\ntwo\n", "{kind}");
        let expected = [
            "start",
            "fault-seen",
            "leader-believed",
            "dropped",
            "replaced",
            "end",
        ];
        assert_eq!(events(&run.journal()), expected, "{kind}");
        let believed = &run.told("leader-believed")[0];
        assert_eq!(believed["replica"], json!(0));
        assert_eq!(believed["against"], json!([1]));
    }
}

fn a_leader_that_is_believed_may_be_wrong() {
    let (_, outcome) = believing("2", &["0:content:1"], 1);
    says(&outcome, 0, &["right or wrong"]);
    // A bit of the first letter is another one.
    assert_eq!(stdout(&outcome), "nne\ntwo\n");
}

fn without_a_majority_of_many_the_leader_is_believed() {
    // All three differ; and two against two.
    for (n, sabotages) in [
        ("3", ["1:content:1", "2:argument:1"]),
        ("4", ["1:content:1", "2:content:1"]),
    ] {
        let (run, outcome) = believing(n, &sabotages, 2);
        says(&outcome, 0, &["replicas 2, 3 are taken out"]);
        assert_eq!(stdout(&outcome), "one\ntwo\n", "{n}");
        assert_eq!(run.told("leader-believed")[0]["against"], json!([1, 2]));
        assert_eq!(run.told("replaced").len(), 2, "{n}: {}", run.journal());
    }
}

fn a_majority_is_believed_all_the_same() {
    let (run, outcome) = believing("3", &["0:content:1"], 1);
    says(&outcome, 0, &["replica 1 (the leader) of 3 is outvoted"]);
    assert_eq!(stdout(&outcome), "one\ntwo\n");
    assert!(run.told("leader-believed").is_empty(), "{}", run.journal());
}

fn two_that_differ_are_stopped_if_nothing_else_is_said() {
    let flags = ["run", "-n", "2", "--sabotage", "1:content:1", "--"];
    let outcome = geryon(&[&flags[..], &["echo", "one"]].concat());
    says(&outcome, 125, &["stopped before", "--on-divergence leader"]);
    assert_eq!(stdout(&outcome), "");
}

// --max-replacements

/// Lines for as long as the file `go` is not there.
const COUNT: &str = "i=0; while [ ! -e go ]; do i=$((i+1)); echo $i; done";

/// Replica 2 and each copy of it fail at each output, until it is given up.
fn storm(flags: &[&str], kind: &str) -> (Run, Outcome) {
    let sabotage = format!("1:{kind}:1:any:1000");
    let flags = [flags, &["--sabotage", &sabotage]].concat();
    let run = Run::of(&flags, &["sh", "-c", COUNT]);
    let outcome = run.with(|run| {
        run.wait_for("given-up", 1);
        run.touch("go");
    });
    counts(&outcome);
    (run, outcome)
}

/// What it wrote is each number once.
fn counts(outcome: &Outcome) {
    let text = stdout(outcome);
    let lines = text.lines().count();
    let expected: String = (1..=lines).map(|i| format!("{i}\n")).collect();
    assert_eq!(text, expected);
}

fn after_so_many_replacements_a_replica_is_given_up() {
    for (n, left) in [
        ("3", "going on with 2 replicas"),
        ("2", "going on with 1 replica: nothing is compared any more"),
    ] {
        let flags = ["-n", n, "--max-replacements", "3/600"];
        let (run, outcome) = storm(&flags, "crash");
        let why = "is given up: 3 replacements within 600 s are enough (--max-replacements 3/600)";
        says(
            &outcome,
            0,
            &["geryon: replica 2, which ran on core", why, left],
        );
        assert_eq!(run.told("replaced").len(), 3, "{}", run.journal());
        let given_up = run.told("given-up");
        assert_eq!(given_up.len(), 1, "{}", run.journal());
        assert_eq!(given_up[0]["replica"], json!(1));
        let on = given_up[0]["cores"].as_array().expect("a list");
        let on: Vec<u64> = on.iter().filter_map(Value::as_u64).collect();
        let allowed = cores();
        let is_allowed = |c: &u64| allowed.contains(&(*c as usize));
        assert!(!on.is_empty() && on.iter().all(is_allowed), "{on:?}");
        let end = &run.told("end")[0];
        assert_eq!(end["faults"], json!(4), "{}", run.journal());
    }
}

fn no_replacement_at_all() {
    let (run, outcome) = storm(&["--max-replacements", "0"], "content");
    says(&outcome, 0, &["0 replacements within 3600 s are enough"]);
    let expected = ["start", "fault-seen", "dropped", "given-up", "end"];
    assert_eq!(events(&run.journal()), expected);
}

fn bounds_that_are_none() {
    for bound in ["x", "1/0", "=-1", "3/"] {
        let outcome = geryon(&["run", &format!("--max-replacements={bound}"), "--", "echo"]);
        says(&outcome, USAGE, &["--max-replacements"]);
        assert_eq!(stdout(&outcome), "");
    }
}

// Cores.

/// Have a process run on one core.
fn send(pid: i32, core: usize) {
    // SAFETY: the set outlives the call that reads it; all zeros is a set, and the core has its place
    // in it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        // One that is gone has failed already.
        libc::sched_setaffinity(pid, size_of_val(&set), &raw const set);
    }
}

/// As `COUNT`, and 500 lines more; then how many cores there are.
const LINES: &str = "i=0; while [ ! -e go ]; do i=$((i+1)); echo $i; done; \
                     n=500; while [ $n -gt 0 ]; do n=$((n-1)); echo $n; done; nproc";

/// So many failures in a row on one core move a replica.
const IN_A_ROW: usize = 3;

/// Replica 2 and so many copies of it fail at each output on the first core, to which it is sent;
/// `meanwhile` begins when it was moved and replaced.
fn on_a_broken_core(n: usize, times: usize, meanwhile: impl FnOnce(&Run)) -> (Run, Outcome) {
    let core = cores()[0];
    let sabotage = format!("1:crash:1:{core}:{times}");
    let run = Run::of(
        &["-n", &n.to_string(), "--sabotage", &sabotage],
        &["sh", "-c", LINES],
    );
    let outcome = run.with(|run| {
        for failures in 0..IN_A_ROW {
            run.wait_for("replaced", failures);
            run.wait_for("start", 1);
            // One that has failed already need not be sent, and who has taken its place must not be.
            let replicas = run.replicas();
            if let Some(pid) = replicas.pid(1).filter(|_| replicas.replaced == failures) {
                send(pid, core);
            }
            run.wait_for("fault-seen", failures + 1);
        }
        run.wait_for("replaced", IN_A_ROW);
        meanwhile(run);
        run.touch("go");
    });
    assert_eq!(outcome.ended, Ended::Exit(0), "{}", tail(&outcome.stderr));
    // What is said of cores to the program is what would be natively.
    let text = stdout(&outcome);
    let nproc = cores().len().to_string();
    assert_eq!(text.lines().last(), Some(nproc.as_str()));
    (run, outcome)
}

fn a_replica_that_fails_on_one_core_is_moved() {
    let cores = cores();
    if cores.len() < 2 {
        eprintln!("skipped: there is one core only");
        return;
    }
    let (run, outcome) = on_a_broken_core(3, 1000, |run| {
        let copy = run.replicas().pid(1).expect("it was replaced");
        assert_eq!(cores_of(&copy.to_string()), cores[1..]);
    });
    let moved = run.told("moved");
    assert_eq!(moved.len(), 1, "{}", run.journal());
    assert_eq!(moved[0]["replica"], json!(1));
    assert_eq!(moved[0]["from"], json!([cores[0]]));
    assert_eq!(moved[0]["to"], json!(cores[1..]));
    let seen = run.told("fault-seen");
    assert_eq!(seen.len(), 3, "{}", run.journal());
    assert!(seen.iter().all(|s| s["cores"] == json!([cores[0]])));
    let said = format!("replica 2 has failed again and again on core {}", cores[0]);
    says(&outcome, 0, &[&said, "3 faults seen, 3 replicas replaced"]);
}

fn a_moved_replica_that_leads_may_run_anywhere() {
    if cores().len() < 2 {
        eprintln!("skipped: there is one core only");
        return;
    }
    let (run, outcome) = on_a_broken_core(2, IN_A_ROW, |run| {
        replicas::kill(run.replicas().pid(0).expect("it leads"));
        run.wait_for("promoted", 1);
    });
    says(&outcome, 0, &["replica 2 leads from now on"]);
    assert_eq!(run.told("promoted")[0]["replica"], json!(1));
}

fn where_there_is_no_other_core_it_is_said() {
    let core = cores()[0].to_string();
    let sabotage = format!("1:crash:1:{core}:1000");
    let flags = ["--max-replacements", "4", "--sabotage", &sabotage];
    let mut run = Run::of(&flags, &["sh", "-c", COUNT]);
    run.program.prefix(&["taskset", "-c", &core]);
    let outcome = run.with(|run| {
        run.wait_for("given-up", 1);
        run.touch("go");
    });
    let said =
        format!("replica 2 fails again and again on core {core}, and there is no other core");
    says(&outcome, 0, &[&said, "try:", "is given up"]);
    counts(&outcome);
    assert_eq!(run.told("no-other-core")[0]["cores"], json!([cores()[0]]));
    assert!(run.told("moved").is_empty(), "{}", run.journal());
}

// --eager-copy

/// What the guest fills.
const KIB: u64 = 48 << 10;
/// What malloc adds.
const MORE_KIB: u64 = 1 << 10;

/// Of the mapping that the guest has filled, in KiB: what the process shares, and what it does not.
fn pages_of(pid: i32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let (mut inside, mut shared, mut own) = (false, 0, 0);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or("");
        let kib = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
        match name {
            "Size:" => inside = (KIB..KIB + MORE_KIB).contains(&kib),
            "Shared_Clean:" | "Shared_Dirty:" if inside => shared += kib,
            "Private_Clean:" | "Private_Dirty:" if inside => own += kib,
            _ => {}
        }
    }
    (shared, own)
}

/// Of the copy of a replica that was replaced while it had 48 MiB, when the event was told: what it
/// shares and what it does not, in KiB.
fn copied(flags: &[&str], event: &str) -> (u64, u64) {
    let guest = built("recover_big");
    // All confirm the guest's first line: with a majority the copy's source may be filling yet.
    let flags = [flags, &["--verify", "output", "--sabotage", "2:crash:2"]].concat();
    let run = Run::of(&flags, &[&guest.to_string_lossy(), "go"]);
    let mut pages = (0, 0);
    let outcome = run.with(|run| {
        run.wait_for(event, 1);
        pages = run.replicas().pid(2).map_or((0, 0), pages_of);
        run.touch("go");
    });
    says(&outcome, 0, &["replica 3 is replaced"]);
    assert_eq!(stdout(&outcome), "filled\nGUEST-OK recover_big\n");
    assert_eq!(run.told(event).len(), 1, "{}", run.journal());
    if let [unshared] = &run.told("unshared")[..] {
        assert!(unshared["bytes"].as_u64() >= Some(KIB << 10), "{unshared}");
        assert_eq!(unshared["left"], json!(0));
    }
    pages
}

fn an_eager_copy_shares_nothing_that_can_be_written() {
    let (shared, own) = copied(&["--eager-copy"], "unshared");
    assert!(shared == 0 && own >= KIB, "{shared} KiB shared, {own} not");
    let (shared, _) = copied(&[], "replaced");
    assert!(shared >= KIB, "{shared} KiB shared: the test shows nothing");
}

// The end.

fn the_last_line_and_the_last_event_say_the_same() {
    let (run, outcome) = storm(&["--max-replacements", "2"], "crash");
    let journal = run.journal();
    let last: Value = serde_json::from_str(journal.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["event"], json!("end"));
    let n = |name: &str| last[name].as_u64().expect("a number");
    assert_eq!((n("faults"), n("replaced"), n("given_up")), (3, 2, 1));
    let said = format!(
        "geryon: 3 faults seen, 2 replicas replaced, 0 promotions, 1 given up, {:.1} ms lost",
        n("lost_us") as f64 / 1e3
    );
    assert_eq!(stderr(&outcome).lines().last(), Some(said.as_str()));
    let pauses = run.told("replaced");
    let pauses = pauses.iter().filter_map(|r| r["pause_us"].as_u64());
    assert!(n("lost_us") >= pauses.sum(), "{journal}");
}

crate::command::in_both_orders! {
    of_two_that_differ_the_leader_is_believed,
    a_leader_that_is_believed_may_be_wrong,
    without_a_majority_of_many_the_leader_is_believed,
    a_majority_is_believed_all_the_same,
    two_that_differ_are_stopped_if_nothing_else_is_said,
    after_so_many_replacements_a_replica_is_given_up,
    no_replacement_at_all,
    bounds_that_are_none,
    a_replica_that_fails_on_one_core_is_moved,
    a_moved_replica_that_leads_may_run_anywhere,
    where_there_is_no_other_core_it_is_said,
    an_eager_copy_shares_nothing_that_can_be_written,
    the_last_line_and_the_last_event_say_the_same,
}

#[test]
fn a_thread_may_have_any_name() {
    let guest = built("proc_odd_name");
    let flags = ["-n", "3", "--order", "serial", "--sabotage", "1:extra:4"];
    let run = Run::of(&flags, &[&guest.to_string_lossy()]);
    let outcome = run.with(|_| {});
    says(&outcome, 0, &["replica 2 sleeps where the others went on"]);
    assert_eq!(run.told("replaced").len(), 1, "{}", stderr(&outcome));
}
