//! Killing replicas of a run from outside: whom, by chance, and what is wrong with the run afterwards.

use crate::journal::Journal;
use crate::replicas::{self, Replicas};
use crate::support::{Ended, Outcome, Program, TempDir, marked, settings, tail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A run of a [`Scene`] without a time of its own hangs when it takes longer, any other one so much
/// longer than that.
const LIMIT_S: u64 = 120;
/// A replica that is not replaced by then is not replaced at all.
const REPLACED_S: u64 = 30;
/// The status of a run that was stopped.
const STOPPED: i32 = 125;
/// The journal is looked at so often.
const LOOK: Duration = Duration::from_millis(2);

/// A program, and what says that its output is right.
#[derive(Clone)]
pub struct Case {
    /// For messages.
    pub name: &'static str,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// A shell command; `stdout` is a file, `$IN` the folder of inputs.
    pub check: &'static str,
}

/// How it is run, and what is done to it.
#[derive(Clone, Copy)]
pub struct Scene {
    /// Replicas.
    pub replicas: usize,
    /// `--order`.
    pub order: &'static str,
    /// Milliseconds from one strike (once all are there again) to the next, at least and at most.
    pub every_ms: (u64, u64),
    /// Strikes at most.
    pub strikes: usize,
    /// How long the program runs at least; 0: shortly.
    pub seconds: u64,
    /// Runs, each with other moments.
    pub runs: u32,
    /// How each chooses.
    pub choice: Choice,
    /// Plain loads decide about order in the program: it may be stopped with a report instead.
    pub may_stop: bool,
}

/// Who is killed in one strike.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// Anybody.
    One,
    /// Anybody but the last one that was killed.
    Another,
    /// The leader.
    Leader,
    /// Two followers at once.
    TwoFollowers,
    /// The leader and a follower at once.
    LeaderAndFollower,
}

/// What came of a run.
pub struct Killed {
    /// Replicas that were killed.
    pub killed: usize,
    /// Replicas that were replaced, by the journal.
    pub replaced: usize,
    /// Most descriptors that Geryon had open while all replicas were there, before the first strike
    /// and later.
    pub files: (usize, usize),
}

impl Choice {
    /// Who it is of these, by chance; `last` was it the last time.
    fn of(self, replicas: &Replicas, chance: u64, last: Option<usize>) -> Vec<usize> {
        let n = replicas.pids.len();
        let any = chance as usize % n;
        let followers = |from: usize| (0..n).map(move |k| (from + k) % n);
        let followers = followers(any).filter(|i| *i != replicas.leader);
        match self {
            Choice::One => vec![any],
            Choice::Another if last == Some(any) => vec![(any + 1) % n],
            Choice::Another => vec![any],
            Choice::Leader => vec![replicas.leader],
            Choice::TwoFollowers => followers.take(2).collect(),
            Choice::LeaderAndFollower => {
                let leader = [replicas.leader].into_iter();
                leader.chain(followers.take(1)).collect()
            }
        }
    }
}

/// Numbers by chance, the same for the same seed.
pub struct Random(pub u64);

impl Random {
    /// The next.
    pub fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// One run with kills. `Err` says what is wrong with it.
pub fn run(case: &Case, scene: Scene, inputs: &Path, seed: u64) -> Result<Killed, String> {
    let dir = TempDir::new();
    let journal = dir.path().join("journal");
    let program = program(case, scene, dir.path(), &journal);
    let line = program.command_line();
    let run = thread::spawn(move || program.run());
    let mut strikes = Strikes::default();
    let missing = strikes.all(scene, &journal, seed, || run.is_finished());
    let outcome = run.join().expect("the runner does not panic")?;
    let replaced = Replicas::read(&journal).replaced;
    let told = Journal::read(&journal);
    let wrong = match scene.may_stop {
        // (Who has raced is outvoted, and made anew as well.)
        true if is_stopped(&outcome) => None,
        true => missing.or_else(|| wrong(case, inputs, &outcome, dir.path())),
        false => missing
            .or_else(|| wrong(case, inputs, &outcome, dir.path()))
            .or_else(|| blamed(&told))
            .or_else(|| {
                let many = replaced > strikes.killed;
                many.then(|| format!("too many replacements:\n{told}"))
            }),
    };
    match wrong.or_else(|| left_in_memory(&told)) {
        None => Ok(Killed {
            killed: strikes.killed,
            replaced,
            files: strikes.files,
        }),
        Some(what) => {
            let kept = keep(&journal, &outcome);
            Err(format!(
                "{what}\nafter {} kills, {replaced} replaced; journal and stderr are in {}; end of stderr:\n{}\nwithout kills: {line}",
                strikes.killed,
                kept.display(),
                tail(&outcome.stderr)
            ))
        }
    }
}

/// What a failed run has said, in a folder that stays.
fn keep(journal: &Path, outcome: &Outcome) -> PathBuf {
    let name = journal.parent().and_then(Path::file_name);
    let name = format!("failed-{}", name.unwrap_or_default().to_string_lossy());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // The failure itself is told in any case.
    let _ = fs::create_dir_all(&folder);
    let _ = fs::copy(journal, folder.join("journal"));
    let _ = fs::write(folder.join("stderr"), &outcome.stderr);
    folder
}

/// The command that runs the case.
pub fn program(case: &Case, scene: Scene, dir: &Path, journal: &Path) -> Program {
    let mut argv = vec![settings::geryon(), "run".into(), "-n".into()];
    argv.extend([
        scene.replicas.to_string(),
        "--order".into(),
        scene.order.into(),
    ]);
    argv.extend(["--journal".into(), journal.to_string_lossy().into_owned()]);
    argv.push("--".into());
    argv.extend(case.argv.iter().cloned());
    // While a program is being loaded its code is rewritten: it is planned anew then, as the first time.
    let is_early = scene.every_ms.0 == 0;
    let plans = ("XDG_CACHE_HOME".to_owned(), dir.to_string_lossy().into());
    Program {
        argv,
        env: is_early.then_some(plans).into_iter().collect(),
        stdin: None,
        dir: dir.to_owned(),
        send: None,
        limit: settings::limit(LIMIT_S + scene.seconds),
    }
}

/// Kill replicas of a run as the scene says, until it has ended. What is wrong: who never came back.
pub fn strike(scene: Scene, journal: &Path, seed: u64, ended: impl Fn() -> bool) -> Option<String> {
    Strikes::default().all(scene, journal, seed, ended)
}

#[derive(Default)]
struct Strikes {
    killed: usize,
    files: (usize, usize),
}

impl Strikes {
    /// Strike again and again, each time when all are there again. Says who never came back.
    fn all(
        &mut self,
        scene: Scene,
        journal: &Path,
        seed: u64,
        ended: impl Fn() -> bool,
    ) -> Option<String> {
        let mut random = Random(seed);
        let mut last = None;
        for strike in 0..=scene.strikes {
            let (least, most) = scene.every_ms;
            let replicas = match await_all(journal, scene.replicas, &ended) {
                Ok(Some(replicas)) => replicas,
                Ok(None) => return None,
                Err(missing) => return Some(missing),
            };
            self.note_files(&replicas, strike);
            if strike == scene.strikes {
                break;
            }
            let pause = least + random.next() % (most - least + 1);
            thread::sleep(Duration::from_millis(pause));
            let chosen = scene.choice.of(&replicas, random.next(), last);
            if ended() {
                break;
            }
            last = chosen.first().copied();
            for pid in chosen.iter().filter_map(|i| replicas.pids[*i]) {
                replicas::kill(pid);
                self.killed += 1;
            }
            // The journal shows it before it is asked again who is there.
            let gone = |r: &Replicas| chosen.iter().any(|i| r.pids[*i] != replicas.pids[*i]);
            while !ended() && !gone(&Replicas::read(journal)) {
                thread::sleep(LOOK);
            }
        }
        None
    }

    /// How many descriptors the monitor has.
    fn note_files(&mut self, replicas: &Replicas, strike: usize) {
        let Some(monitor) = replicas.monitor() else {
            return;
        };
        let files = fs::read_dir(format!("/proc/{monitor}/fd")).map_or(0, Iterator::count);
        let most = if strike == 0 {
            &mut self.files.0
        } else {
            &mut self.files.1
        };
        *most = files.max(*most);
    }
}

/// Wait until all replicas are there. None: the run has ended.
fn await_all(
    journal: &Path,
    n: usize,
    ended: &impl Fn() -> bool,
) -> Result<Option<Replicas>, String> {
    let begin = Instant::now();
    loop {
        let replicas = Replicas::read(journal);
        if ended() || replicas.over {
            return Ok(None);
        }
        if replicas.are_all_there() && replicas.pids.len() == n {
            return Ok(Some(replicas));
        }
        if begin.elapsed() > Duration::from_secs(REPLACED_S) && !replicas.pids.is_empty() {
            let there = replicas.pids.iter().flatten().count();
            return Err(format!(
                "{there} of {n} replicas are left, and no more come"
            ));
        }
        thread::sleep(LOOK);
    }
}

/// What is wrong with an outcome.
fn wrong(case: &Case, inputs: &Path, outcome: &Outcome, dir: &Path) -> Option<String> {
    let faults = outcome.faults();
    if !faults.is_empty() {
        return Some(faults.join("\n"));
    }
    if outcome.ended != Ended::Exit(0) {
        return Some(format!("ended by {}", outcome.ended));
    }
    fs::write(dir.join("stdout"), &outcome.stdout).expect("the test's own folder is writable");
    let checked = Command::new("bash")
        .args(["-c", &format!("set -e -o pipefail; {}", case.check)])
        .current_dir(dir)
        .env("IN", inputs)
        .output()
        .expect("bash is there");
    (!checked.status.success()).then(|| format!("check `{}` fails", case.check))
}

/// Was the run stopped, with a report that says where it differed?
fn is_stopped(outcome: &Outcome) -> bool {
    let told = String::from_utf8_lossy(&outcome.stderr);
    let reported = ["divergence: ", "stopped"].iter().all(|w| told.contains(w));
    outcome.ended == Ended::Exit(STOPPED) && reported && !told.contains("please report this")
}

/// Only those that were killed may be found wanting.
fn blamed(journal: &Journal) -> Option<String> {
    let mut seen = journal.told("fault-seen");
    let other = |l: &&Value| !l.to_string().contains("SIGKILL");
    seen.find(other).map(|l| format!("nobody did this: {l}"))
}

/// Every process that the journal names must be gone, zombies included.
fn left_in_memory(journal: &Journal) -> Option<String> {
    let pids = journal.lines().iter().flat_map(|l| {
        let all = l["pids"].as_array().into_iter().flatten();
        all.chain([&l["pid"]]).filter_map(Value::as_i64)
    });
    let begin = Instant::now();
    for pid in pids {
        // (One that another run is about to wait for has got the pid since.)
        let pid = pid as i32;
        while replicas::is_zombie(pid) && !marked::is_of_a_run(replicas::parent(pid)) {
            if begin.elapsed() > Duration::from_secs(REPLACED_S) {
                return Some(format!("process {pid} is left, a zombie"));
            }
            thread::sleep(LOOK);
        }
    }
    None
}
