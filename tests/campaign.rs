//! Small campaigns of injected faults, as `campaign/run` makes large ones: three replicas survive
//! them, two notice them, and what nobody can notice is seen to be silent corruption; in both orders. See
//! `support/settings.rs` for the variables; REPEAT takes other faults each time.

#[allow(dead_code)] // programs are started by the campaign here
#[path = "support/command.rs"]
mod command;
#[allow(dead_code)] // programs are started by the campaign here
mod support;

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use support::settings;

/// The first campaign's; each repetition has the next hundred.
const SEED: u32 = 7;
const SEEDS_APART: u32 = 100;
/// A fault may spoil what a process of a tree has taken from a pipe: then the run stops.
const ALL_BUT_TREES: &str = "bitcount,matrix,locks,pbzip2,xz,sqlite,python";
/// What is not run in clocks, and why.
const NOT_IN_CLOCKS: (&str, &str) = (
    "python",
    "plain loads decide about CPython's interpreter lock",
);
/// More campaigns at once would only slow each other down; one alone leaves the cores idle while the last trial of
/// a program waits for a watchdog.
const AT_ONCE: usize = 2;
static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// One of those campaigns, while it lives.
struct Slot;

impl Slot {
    fn wait() -> Slot {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let free = ENDED.wait_while(running, |n| *n >= AT_ONCE);
        *free.unwrap_or_else(PoisonError::into_inner) += 1;
        Slot
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

/// What is run.
struct Campaign {
    name: &'static str,
    replicas: u32,
    programs: &'static str,
    /// Over all programs.
    faults: u32,
    targets: &'static str,
    /// When they strike.
    times: &'static str,
}

impl Campaign {
    /// All that hits a replica, at any instant.
    fn usual(name: &'static str, replicas: u32, faults: u32, programs: &'static str) -> Campaign {
        Campaign {
            name,
            replicas,
            programs,
            faults,
            targets: "cpu,memory,control",
            times: "delay",
        }
    }
}

/// What came of it.
struct Ran {
    /// What `campaign/run` printed: the tables, and commands that repeat what went wrong.
    said: String,
    /// The row of all programs.
    all: Value,
    /// Faults that had no effect, though they struck before the last twentieth of the run.
    masked_before_end: usize,
}

impl Ran {
    fn number(&self, name: &str) -> u64 {
        self.all[name].as_u64().unwrap_or(0)
    }

    fn outcome(&self, name: &str) -> u64 {
        self.all["outcomes"][name].as_u64().unwrap_or(0)
    }

    /// That nothing went wrong, and that there was something to survive.
    fn check_survived(&self) {
        assert_eq!(self.outcome("DUE"), 0, "{}", self.said);
        self.check_nothing_wrong();
    }

    /// That nothing was wrong or hung, and that there was something to survive. A run may have been stopped.
    fn check_nothing_wrong(&self) {
        let bad: u64 = ["SDC", "hang"].map(|o| self.outcome(o)).iter().sum();
        assert_eq!(bad, 0, "{}", self.said);
        let (injected, manifested) = (self.number("injected"), self.number("manifested"));
        assert!(injected > 0 && manifested > 0, "{}", self.said);
        let ended = self.number("survived") + self.outcome("DUE");
        assert_eq!(ended, manifested, "{}", self.said);
    }
}

fn three_replicas_survive_faults() {
    each_round(&Campaign::usual("three", 3, 196, ALL_BUT_TREES), |ran| {
        if command::order() == Some("clocks") && ran.outcome("DUE") > 0 {
            // A leader that a fault has led astray logs an order that its followers cannot repeat. They may
            // come to differ from each other, too: then there is no majority, and the run is stopped.
            eprintln!("stopped without a majority:\n{}", ran.said);
            ran.check_nothing_wrong();
        } else {
            ran.check_survived();
        }
        let repaired = ran.outcome("replaced") + ran.outcome("taken over");
        assert!(repaired > 0, "{}", ran.said);
        assert_eq!(ran.outcome("detected"), 0, "{}", ran.said);
    });
}

fn trees_of_processes_survive_a_lost_leader() {
    each_round(
        &Campaign {
            targets: "crash,stop",
            ..Campaign::usual("trees", 3, 24, "jobs")
        },
        Ran::check_survived,
    );
}

/// The leader reads and writes for all: what is hit in its buffer must not be believed before anybody has
/// looked at it, nor be left in the file after.
fn faults_in_what_the_leader_reads_and_writes_are_survived() {
    each_round(
        &Campaign {
            targets: "heap",
            ..Campaign::usual("buffers", 3, 80, "reads,writes")
        },
        Ran::check_survived,
    );
}

fn two_replicas_notice_faults() {
    each_round(
        &Campaign::usual("two", 2, 56, "bitcount,matrix,locks,python"),
        Ran::check_survived,
    );
}

fn faults_at_instructions_and_in_the_log_are_survived() {
    each_round(
        &Campaign {
            targets: "gpr,skip",
            times: "at:nibbles_again:500",
            ..Campaign::usual("instruction", 3, 16, "bitcount")
        },
        Ran::check_survived,
    );
    each_round(
        &Campaign {
            targets: "crash",
            times: "event",
            ..Campaign::usual("event", 3, 16, "locks,xz")
        },
        |ran| {
            ran.check_survived();
            // Each of them has an effect, but for a thread that its process's end has overtaken.
            assert_eq!(ran.masked_before_end, 0, "{}", ran.said);
        },
    );
}

fn what_nobody_can_notice_is_seen_as_silent_corruption() {
    each_round(
        &Campaign {
            name: "canary",
            replicas: 3,
            programs: "bitcount,matrix,locks",
            faults: 12,
            targets: "canary",
            times: "delay",
        },
        |ran| {
            // A fault behind the last output has nothing to spoil.
            let (sdc, injected) = (ran.outcome("SDC"), ran.number("injected"));
            assert!(sdc > 0 && 2 * sdc >= injected, "{}", ran.said);
            let others = ["DUE", "hang", "replaced", "taken over", "dropped"];
            let others: u64 = others.map(|o| ran.outcome(o)).iter().sum();
            assert_eq!(others, 0, "{}", ran.said);
        },
    );
}

fn each_round(campaign: &Campaign, check: impl Fn(&Ran)) {
    if !settings::selected(campaign.name) {
        return;
    }
    support::no_core_files();
    let _load = support::Load::from_settings();
    for round in 0..settings::repeat() {
        let _slot = Slot::wait();
        check(&run(campaign, SEED + SEEDS_APART * round));
    }
}

fn run(campaign: &Campaign, seed: u32) -> Ran {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let order = command::order().expect("each test is one in an order");
    let name = format!("campaign-{}-{order}", campaign.name);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // What an older Geryon did is no result of this one.
    let _ = fs::remove_dir_all(&out);
    let mut command = match settings::taskset() {
        None => Command::new(root.join("campaign/run")),
        Some(cpus) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpus]).arg(root.join("campaign/run"));
            command
        }
    };
    command
        .args(["--no-bare", "--programs", &programs(campaign, order)])
        .args(["--targets", campaign.targets, "--times", campaign.times])
        .arg("--out")
        .arg(&out)
        .args(["--replicas", &campaign.replicas.to_string()])
        .args(["--faults", &campaign.faults.to_string()])
        .args(["--seed", &seed.to_string()])
        .env("GERYON", settings::geryon())
        .env("GERYON_ORDER", order)
        .stdin(Stdio::null());
    let output = command.output().expect("bash is there");
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said += &String::from_utf8_lossy(&output.stderr);
    // Where the commands that it prints find the programs and their inputs.
    let _ = writeln!(said, "in {}", out.join("work").display());
    said += &reports(&out.join(format!("n{}", campaign.replicas)));
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 1)), "{status:?}: {said}");
    let text = fs::read_to_string(out.join("summary.json")).expect("a summary");
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let rows = tables[0]["rows"].as_array().expect("rows");
    let all = rows.last().expect("a row of all").clone();
    let masked_before_end = masked_before_end(&out.join(format!("n{}", campaign.replicas)));
    Ran {
        said,
        all,
        masked_before_end,
    }
}

fn masked_before_end(results: &Path) -> usize {
    let files = fs::read_dir(results).into_iter().flatten().flatten();
    let texts = files
        .map(|f| f.path())
        .filter(|p| p.extension().is_some_and(|e| e == "jsonl"))
        .map(|p| fs::read_to_string(p).expect("results"));
    let trials: Vec<Value> = texts
        .flat_map(|t| {
            let lines: Vec<Value> = t
                .lines()
                .map(|l| serde_json::from_str(l).expect("JSON"))
                .collect();
            lines
        })
        .filter(|t| t["outcome"] == "masked")
        .collect();
    let part = |t: &Value| t["part"].as_f64().unwrap_or(0.0);
    trials.iter().filter(|t| part(t) < 0.95).count()
}

/// Those that are run in this order.
fn programs(campaign: &Campaign, order: &str) -> String {
    let (name, why) = NOT_IN_CLOCKS;
    let leaves_out = |p: &&str| order == "clocks" && *p == name;
    let (out, all): (Vec<_>, Vec<_>) = campaign.programs.split(',').partition(leaves_out);
    if !out.is_empty() {
        eprintln!("{}: {name} is not run in clocks: {why}", campaign.name);
    }
    all.join(",")
}

/// What Geryon said in trials that went wrong.
fn reports(results: &Path) -> String {
    let within = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|e| e.path()).collect()
    };
    let bad = |path: &PathBuf| path.extension().is_some_and(|e| e == "bad");
    let mut text = String::new();
    for folder in within(results).into_iter().filter(bad) {
        for file in within(&folder) {
            let content = fs::read(&file).unwrap_or_default();
            let content = String::from_utf8_lossy(&content);
            let _ = writeln!(text, "--- {}\n{content}", file.display());
        }
    }
    text
}

command::in_both_orders! {
    three_replicas_survive_faults,
    trees_of_processes_survive_a_lost_leader,
    faults_in_what_the_leader_reads_and_writes_are_survived,
    two_replicas_notice_faults,
    faults_at_instructions_and_in_the_log_are_survived,
    what_nobody_can_notice_is_seen_as_silent_corruption,
}
