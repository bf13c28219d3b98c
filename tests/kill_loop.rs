//! Replicas killed by chance every 0.5 to 2 seconds, for `KILL_LOOP_S` seconds: while pbzip2 runs again
//! and again, and during one long computation. Every output is right, always all three come back, and
//! nothing is left behind; not even when Geryon itself is killed.

#[allow(dead_code)] // guests are run by another test
#[path = "support/guest.rs"]
mod guest;
#[allow(dead_code)] // the smaller inputs are for repetitions of the real programs
#[path = "support/inputs.rs"]
mod inputs;
#[allow(dead_code)] // each test asks it something else
#[path = "support/journal.rs"]
mod journal;
#[allow(dead_code)] // the two tests of recovery use other parts of it
#[path = "support/kills.rs"]
mod kills;
#[allow(dead_code)] // checkpoints matter to another test
#[path = "support/replicas.rs"]
mod replicas;
#[allow(dead_code)] // numbers of replicas and differences matter to the other tests only
mod support;

use guest::built;
use kills::{Case, Choice, Scene};
use replicas::Replicas;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use support::{TempDir, Verdicts, settings};

/// Descriptors that Geryon may have more than before the first kill: those of the copies that it has
/// just made and of the dead that it has not forgotten yet.
const FILES_MORE: usize = 8;
/// In so many runs somebody will have been replaced.
const MOST_RUNS: u32 = 200;
/// Processes that are still there after so long stay.
const GONE_S: u64 = 30;

const SCENE: Scene = Scene {
    replicas: 3,
    order: "serial",
    every_ms: (500, 2000),
    strikes: usize::MAX - 1,
    seconds: 0,
    runs: 1,
    choice: Choice::One,
    may_stop: false,
};

/// What a loop has seen.
#[derive(Default)]
struct Tally {
    runs: u32,
    killed: usize,
    replaced: usize,
    failures: Vec<String>,
}

impl Tally {
    fn one(&mut self, case: &Case, scene: Scene, inputs: &Path, seed: u64) {
        self.runs += 1;
        match kills::run(case, scene, inputs, seed) {
            Ok(k) => {
                self.killed += k.killed;
                self.replaced += k.replaced;
                let (before, later) = k.files;
                if later > before + FILES_MORE {
                    let text = format!("Geryon had {before} descriptors, and later {later}");
                    self.failures.push(text);
                }
            }
            Err(e) => self.failures.push(format!("run {}: {e}", self.runs)),
        }
    }

    fn tell(mut self, name: &str, verdicts: &mut Verdicts) {
        if self.failures.is_empty() && self.replaced == 0 {
            self.failures.push("nobody was ever replaced".into());
        }
        let (runs, killed, replaced) = (self.runs, self.killed, self.replaced);
        let note = format!("{runs} runs, {killed} killed, {replaced} replaced");
        verdicts.add(name, &note, &self.failures);
    }
}

#[test]
fn kills_by_chance() {
    support::no_core_files();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("real");
    inputs::make(&folder, &inputs::USUAL);
    let seconds = settings::kill_loop_s();
    let shared = shared_memory();
    let mut verdicts = Verdicts::default();
    for order in settings::orders() {
        let scene = Scene { order, ..SCENE };
        if settings::selected("pbzip2") {
            let tally = pbzip2_again_and_again(scene, seconds, &folder);
            tally.tell(&format!("pbzip2, {order}"), &mut verdicts);
        }
        if settings::selected("long") {
            let mut tally = Tally::default();
            let seed = u64::from(std::process::id());
            let scene = Scene { seconds, ..scene };
            tally.one(&long(seconds), scene, &folder, seed);
            tally.tell(&format!("long, {order}"), &mut verdicts);
        }
    }
    let left: Vec<PathBuf> = shared_memory()
        .into_iter()
        .filter(|p| !shared.contains(p))
        .collect();
    assert!(left.is_empty(), "left in /dev/shm: {left:?}");
    verdicts.finish();
}

fn pbzip2_again_and_again(scene: Scene, seconds: u64, folder: &Path) -> Tally {
    let begin = Instant::now();
    let mut tally = Tally::default();
    // Runs of a second or two each: the first kill comes at any moment of it.
    let scene = Scene {
        every_ms: (0, 2000),
        ..scene
    };
    // A quick machine may have done several before anybody is killed and made anew.
    let due = |t: &Tally| match t.replaced {
        0 => t.failures.is_empty() && t.runs < MOST_RUNS,
        _ => begin.elapsed() < Duration::from_secs(seconds),
    };
    while due(&tally) {
        let seed = u64::from(tally.runs) * 104_729 + u64::from(std::process::id());
        tally.one(&pbzip2(folder), scene, folder, seed);
    }
    tally
}

#[test]
fn nothing_outlives_the_monitor() {
    let guest = built("recover_blocked");
    for round in 0..settings::repeat() * 3 {
        let dir = TempDir::new();
        let journal = dir.path().join("journal");
        let mut monitor = Command::new(settings::geryon())
            .args(["run", "-n", "3", "--journal"])
            .arg(&journal)
            .arg("--")
            .arg(&guest)
            .args(["64", "1000"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Geryon starts");
        let begin = Instant::now();
        let replicas = loop {
            let replicas = Replicas::read(&journal);
            if replicas.are_all_there() {
                break replicas;
            }
            assert!(begin.elapsed() < settings::limit(GONE_S), "it starts");
            thread::sleep(Duration::from_millis(1));
        };
        thread::sleep(Duration::from_millis(u64::from(round) * 100));
        if round % 3 == 2 {
            // In the middle of a replacement.
            replicas::kill(replicas.pids[1].expect("it is there"));
        }
        monitor.kill().expect("it can be killed");
        monitor.wait().expect("it is our child");
        for pid in replicas.pids.into_iter().flatten() {
            while Path::new(&format!("/proc/{pid}")).exists() {
                let state = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                assert!(
                    begin.elapsed() < settings::limit(GONE_S),
                    "it is left: {state}"
                );
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// Objects of this user in /dev/shm that could be Geryon's.
fn shared_memory() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|e| e.path());
    names
        .filter(|p| p.to_string_lossy().contains("geryon"))
        .collect()
}

fn pbzip2(inputs: &Path) -> Case {
    let text = inputs.join("text").to_string_lossy().into_owned();
    Case {
        name: "pbzip2",
        argv: ["pbzip2", "-p4", "-c", &text].map(str::to_owned).into(),
        check: "bzip2 -dc stdout | cmp - $IN/text",
    }
}

/// Computes for so long, then says how far it came and what the result is; natively it is asked for
/// the result that belongs there.
fn long(seconds: u64) -> Case {
    let guest = built("recover_long").to_string_lossy().into_owned();
    let check = format!("{guest} steps $(head -1 stdout) | cmp - stdout");
    Case {
        name: "long",
        argv: vec![guest, "seconds".into(), seconds.to_string()],
        check: Box::leak(check.into_boxed_str()),
    }
}
