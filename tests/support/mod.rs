//! Shared by the tests that start programs natively and under `geryon run`:
//! one run with its time limit, the search for processes it left behind, and
//! the command line that repeats it.

pub mod marked;
pub mod settings;
mod sink;

use sink::Sink;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The line after which a program that waits for a signal may be sent it.
pub const READY: &[u8] = b"READY\n";
/// A program that does not sleep for so long after that does not wait.
const BUSY: Duration = Duration::from_secs(1);
/// How often a running program is looked at.
pub const POLL_MS: u64 = 2;
/// Programs get this search path, whatever the caller's is.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// By exit, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Exit(code),
            (None, Some(signal)) => Ended::Signal(signal),
            (None, None) => panic!("neither exit status nor signal: {status:?}"),
        }
    }
}

/// The signals that test programs name.
pub const SIGNALS: [(&str, i32); 11] = [
    ("SIGHUP", libc::SIGHUP),
    ("SIGINT", libc::SIGINT),
    ("SIGQUIT", libc::SIGQUIT),
    ("SIGABRT", libc::SIGABRT),
    ("SIGKILL", libc::SIGKILL),
    ("SIGSEGV", libc::SIGSEGV),
    ("SIGSYS", libc::SIGSYS),
    ("SIGPIPE", libc::SIGPIPE),
    ("SIGALRM", libc::SIGALRM),
    ("SIGTERM", libc::SIGTERM),
    ("SIGUSR1", libc::SIGUSR1),
];

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exit(code) => write!(f, "exit {code}"),
            Ended::Signal(n) => match SIGNALS.iter().find(|s| s.1 == *n) {
                Some((name, _)) => f.write_str(name),
                None => write!(f, "signal {n}"),
            },
        }
    }
}

/// One program to run, natively so far.
#[derive(Clone)]
pub struct Program {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables besides the fixed ones.
    pub env: BTreeMap<String, String>,
    /// What stdin holds; without it, stdin is /dev/null.
    pub stdin: Option<Vec<u8>>,
    /// Where it runs.
    pub dir: PathBuf,
    /// A signal to send to it once it has printed READY.
    pub send: Option<i32>,
    /// Longer than this is a hang.
    pub limit: Duration,
}

/// What one run gave.
pub struct Outcome {
    /// How it ended; of a hang, what SIGKILL made of it.
    pub ended: Ended,
    /// All of stdout.
    pub stdout: Vec<u8>,
    /// All of stderr.
    pub stderr: Vec<u8>,
    /// State of its processes when the time was up.
    pub hang: Option<String>,
    /// Processes that outlived it (killed since).
    pub strays: Vec<String>,
    /// Wall-clock time.
    pub took: Duration,
}

/// A test has threads sleep at records, which is no fault.
#[allow(dead_code)] // guests are delayed
const DELAYED: &str = "geryon: fault point record-delayed";

impl Outcome {
    /// The lines on stderr that Geryon itself wrote, but for those about delays.
    #[allow(dead_code)] // the generated programs have none of their own
    pub fn geryon_lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.stderr)
            .lines()
            .filter(|l| l.starts_with("geryon:") && !l.starts_with(DELAYED))
            .map(str::to_owned)
            .collect()
    }

    /// As if these lines had not been on stderr.
    #[allow(dead_code)] // guests go over to serial order, which is said
    pub fn forget(&mut self, begin: &[&str]) {
        let is_kept = |l: &&[u8]| !begin.iter().any(|b| l.starts_with(b.as_bytes()));
        let lines = self.stderr.split_inclusive(|b| *b == b'\n');
        self.stderr = lines.filter(is_kept).flatten().copied().collect();
    }

    /// What is wrong with any run: it hung, or left processes behind.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(state) = &self.hang {
            faults.push(format!("hung for {:.0?}\n{state}", self.took));
        }
        if !self.strays.is_empty() {
            faults.push(format!("left behind: {}", self.strays.join("; ")));
        }
        faults
    }
}

impl Program {
    /// The same program as `replicas` replicas, or natively for 0.
    #[allow(dead_code)] // not all tests want the usual order
    pub fn under(&self, replicas: u32) -> Program {
        self.in_order(replicas, "auto")
    }

    /// The same, in an order.
    pub fn in_order(&self, replicas: u32, order: &str) -> Program {
        let mut program = self.clone();
        if replicas > 0 {
            let (geryon, n) = (settings::geryon(), replicas.to_string());
            let mut words = vec![geryon.as_str(), "run", "-n", &n];
            if order != "auto" {
                words.extend(["--order", order]);
            }
            words.push("--");
            program.prefix(&words);
        }
        if let Some(cpus) = settings::taskset() {
            program.prefix(&["taskset", "-c", &cpus]);
        }
        program
    }

    /// Under Geryon, its threads sleep at one record out of so many.
    #[allow(dead_code)] // guests are delayed
    pub fn delay(&mut self, every: u64) {
        self.option("--fail-at", &format!("record-delayed:{every}"));
    }

    /// Under Geryon, with one option more.
    #[allow(dead_code)] // guests have some
    pub fn option(&mut self, name: &str, value: &str) {
        let at = self.argv.iter().position(|w| w == "run");
        let at = at.expect("it runs under Geryon") + 1;
        self.argv
            .splice(at..at, [name.to_owned(), value.to_owned()]);
    }

    /// The same program with the words of another that runs it in front.
    pub fn prefix(&mut self, words: &[&str]) {
        self.argv
            .splice(0..0, words.iter().map(|s| (*s).to_owned()));
    }

    /// A shell command that does what `run` does.
    pub fn command_line(&self) -> String {
        let mut line = format!("cd {} && ", quoted(&self.dir.to_string_lossy()));
        if let Some(bytes) = &self.stdin {
            let _ = write!(
                line,
                "printf %s {} | ",
                quoted(&String::from_utf8_lossy(bytes))
            );
        }
        line.push_str("env");
        for (name, value) in &self.env {
            let _ = write!(line, " {name}={}", quoted(value));
        }
        for word in &self.argv {
            let _ = write!(line, " {}", quoted(word));
        }
        if self.stdin.is_none() {
            line.push_str(" </dev/null");
        }
        if let Some(signal) = self.send {
            let _ = write!(line, "  # then: kill -{signal} it");
        }
        line
    }

    /// Runs it to its end, or to its limit, and looks for what it left behind.
    pub fn run(&self) -> Result<Outcome, String> {
        let mark = next_mark();
        let mut command = Command::new(&self.argv[0]);
        command
            .args(&self.argv[1..])
            .current_dir(&self.dir)
            .env_clear();
        command
            .env("PATH", PATH)
            .env("LC_ALL", "C")
            .env("TZ", "UTC0");
        command.env("HOME", &self.dir).env("TMPDIR", &self.dir);
        command.env("XDG_CACHE_HOME", plans());
        command.envs(std::env::vars().filter(|(n, _)| n.starts_with("GERYON_")));
        command.envs(&self.env).env(marked::VARIABLE, &mark);
        command.stdin(if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let begin = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", self.argv[0]))?;
        let feeder = self.feed(&mut child);
        let stdout = Sink::of(child.stdout.take());
        let stderr = Sink::of(child.stderr.take());

        let mut to_send = self.send;
        let mut ready = None;
        let mut hang = None;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                break status;
            }
            if let Some(signal) = to_send
                && stdout.ends_with(READY)
                // A busy program need not sleep.
                && (ready.get_or_insert_with(Instant::now).elapsed() > BUSY
                    || marked::all_sleep(&mark))
            {
                marked::kill(child.id(), signal);
                to_send = None;
            }
            if begin.elapsed() > self.limit {
                hang = Some(marked::describe(&mark));
                marked::kill_all(&mark);
                break child.wait().map_err(|e| e.to_string())?;
            }
            thread::sleep(Duration::from_millis(POLL_MS));
        };
        let took = begin.elapsed();
        let strays = if hang.is_some() {
            Vec::new()
        } else {
            marked::strays(&mark)
        };
        if let Some(feeder) = feeder {
            feeder.join().expect("the feeder does not panic");
        }
        let (stdout, stderr) = (stdout.finish(), stderr.finish());
        Ok(Outcome {
            ended: status.into(),
            stdout,
            stderr,
            hang,
            strays,
            took,
        })
    }

    /// Writes stdin from a thread of its own, so that no side can block.
    fn feed(&self, child: &mut Child) -> Option<JoinHandle<()>> {
        let bytes = self.stdin.clone()?;
        let mut pipe = child.stdin.take().expect("stdin is a pipe");
        // A program that leaves its input unread is not our concern.
        Some(thread::spawn(move || drop(pipe.write_all(&bytes))))
    }
}

fn next_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Where runs of the same binary find the patch plans of those before: to make libc's anew takes a tenth of a
/// second, each time. (A test of how they are made, or of what happens meanwhile, has a folder of its own.)
pub fn plans() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // What another build has made tells nothing about this one.
        let of =
            fs::metadata(settings::geryon()).map(|m| (m.ino(), m.len(), m.mtime(), m.mtime_nsec()));
        let (inode, length, s, ns) = of.unwrap_or_default();
        let name = format!("plans-{inode:x}-{length:x}-{s:x}-{ns:x}");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot make {folder:?}: {e}"));
        folder
    })
}

/// A word as a shell would need it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A folder that is empty at first and gone at the end.
pub struct TempDir(PathBuf);

impl TempDir {
    /// Makes one under the target directory's `tmp`.
    pub fn new() -> TempDir {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{}", next_mark()));
        fs::create_dir_all(&path).unwrap_or_else(|e| panic!("cannot make {path:?}: {e}"));
        TempDir(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What stays is in target/tmp; the test's own verdict matters more.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// As many busy threads as there are cores, while it lives; with LOAD=1 only.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts them if the settings say so.
    pub fn from_settings() -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = if settings::load() { cores } else { 0 };
        let busy = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..count).map(busy).collect();
        Load { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a busy loop does not panic");
        }
    }
}

/// No core files from programs that are meant to crash.
pub fn no_core_files() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: setrlimit reads one rlimit, which outlives the call.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    assert_eq!(result, 0, "setrlimit: {}", std::io::Error::last_os_error());
}

/// Each of them, several at once: see [`settings::jobs`]. The results are in the order of the items.
#[allow(dead_code)] // others have their tests run beside each other by the harness
pub fn beside<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..settings::jobs().min(items.len()) {
            scope.spawn(|| {
                while let Some((i, item)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|i| Some((i, items.get(i)?)))
                {
                    let result = each(item);
                    results.lock().expect("no worker panics").push((i, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no worker panics");
    results.sort_by_key(|r| r.0);
    results.into_iter().map(|r| r.1).collect()
}

/// The verdicts of one test: a line for each case at once, all failures at the
/// end. Written past the test harness's capture, so that progress shows.
#[derive(Default)]
pub struct Verdicts {
    passed: u32,
    failed: Vec<String>,
}

impl Verdicts {
    /// Writes one case's line; `failures` is empty when it passed.
    pub fn add(&mut self, name: &str, note: &str, failures: &[String]) {
        let word = if failures.is_empty() { "ok  " } else { "FAIL" };
        let mut text = format!("{word} {name:<28} {note}\n");
        for failure in failures {
            for line in failure.lines() {
                let _ = writeln!(text, "       {line}");
            }
        }
        // Nothing can be done when the terminal is gone.
        let _ = std::io::stderr().write_all(text.as_bytes());
        if failures.is_empty() {
            self.passed += 1;
        } else {
            self.failed.push(name.to_owned());
        }
    }

    /// The summary; panics when any case failed or none was there.
    pub fn finish(self) {
        let Verdicts { passed, failed } = self;
        let text = format!("{passed} passed, {} failed\n", failed.len());
        let _ = std::io::stderr().write_all(text.as_bytes());
        assert!(failed.is_empty(), "failed: {}", failed.join(" "));
        assert!(passed > 0, "no case matches the filter");
    }
}

/// The first difference of two outputs, in words.
#[allow(dead_code)] // generated programs are compared by lines
pub fn difference(name: &str, expected: &[u8], got: &[u8]) -> Option<String> {
    if expected == got {
        return None;
    }
    let at = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let part = &bytes[at.min(bytes.len())..(at + 60).min(bytes.len())];
        String::from_utf8_lossy(part).escape_debug().to_string()
    };
    Some(format!(
        "{name} differs from native at byte {at} ({} bytes, native {}): \"{}\", native \"{}\"",
        got.len(),
        expected.len(),
        around(got),
        around(expected)
    ))
}

/// The last lines of a stream, for a failure's text.
pub fn tail(bytes: &[u8]) -> String {
    const LINES: usize = 12;
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
