//! A guest: a source file in `tests/guests`, its header, its binary.
//!
//! The header is the leading `//` lines. `// build:` comes first (flags, may be
//! empty); the others are optional:
//!
//! | line | meaning |
//! | --- | --- |
//! | `// cc: musl-gcc` | another compiler than gcc or g++ |
//! | `// args: 4 1000` | arguments; one run for each such line |
//! | `// env: NAME=value` | a variable |
//! | `// stdin: text` | what stdin holds |
//! | `// send: SIGINT` | sent once the guest has printed READY |
//! | `// exit: 7`, `// exit: SIGSEGV` | expected end, else exit 0 |
//! | `// deterministic` | stdout and stderr equal native ones |
//! | `// varies` | natively the output differs from run to run (checked) |
//! | `// beyond` | plain loads decide: right, or reported |
//! | `// refused: mmap` | uses a call that is refused: named on stderr, never silently wrong |
//! | `// ascends` | also as on a machine with cores for threads in parallel (`--order auto`) |
//! | `// turns` | with clocks Geryon goes over to serial order in it, and says so |
//! | `// descends` | also going over from clocks to serial order in its midst (`order-changes`) |
//! | `// loses` | also with its leader lost once, at a place that its name says, with two or three replicas, in one of the orders |
//! | `// delayed` | also with threads that are delayed at records (`record-delayed`) |
//! | `// delayed: 400` | the same, with these arguments in place of its own |
//! | `// async` | also with `--verify async` |
//! | `// not in serial: why` | an order that it is not run in (`clocks` likewise), or variants (`code`, `data` and with it `full`, `full`); the reason is printed |
//! | `// replicas: 1` | a documented limit: not run with more replicas |
//! | `// native: skip` | passes under Geryon only |
//! | `// Proves: ...` | what it is good for; required |
//!
//! In values, `\n` is a new line and `\x20` a space.

use crate::support::{Ended, SIGNALS};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// One guest, not built yet.
pub struct Guest {
    /// The file's name without extension; also its token's name.
    pub name: String,
    /// Argument lists, one for each run.
    pub args: Vec<Vec<String>>,
    /// Variables it wants.
    pub env: BTreeMap<String, String>,
    /// What stdin holds.
    pub stdin: Option<Vec<u8>>,
    /// The signal it waits for.
    pub send: Option<i32>,
    /// How it must end.
    pub exit: Ended,
    /// Output equals native output.
    pub deterministic: bool,
    /// Output differs from run to run natively.
    pub varies: bool,
    /// Right or reported.
    pub beyond: bool,
    /// The call that is refused.
    pub refused: Option<String>,
    /// Also run going over from clocks to serial order.
    pub descends: bool,
    /// With clocks it is in serial order before its end.
    pub turns: bool,
    /// Also with an order that changes, as on a machine with many cores.
    pub ascends: bool,
    /// Also run with its leader lost once.
    pub loses: bool,
    /// Also run with threads that are delayed at records.
    pub delayed: bool,
    /// The arguments of these runs, if they are others.
    pub delayed_args: Vec<String>,
    /// Also run while nothing waits for confirmations.
    pub unconfirmed: bool,
    /// Orders that it is not run in, and why.
    pub not_in: Vec<(String, String)>,
    /// The most replicas it is run with.
    pub most: u32,
    /// Has no native run.
    pub geryon_only: bool,
    source: PathBuf,
    compiler: String,
    flags: Vec<String>,
}

fn signal_number(name: &str) -> Option<i32> {
    SIGNALS.iter().find(|s| s.0 == name).map(|s| s.1)
}

fn unescaped(word: &str) -> String {
    word.replace("\\n", "\n").replace("\\x20", " ")
}

/// Splits at spaces; `""` is an empty word.
fn words(text: &str) -> Vec<String> {
    let word = |w| {
        if w == "\"\"" {
            String::new()
        } else {
            unescaped(w)
        }
    };
    text.split_whitespace().map(word).collect()
}

impl Guest {
    /// Reads a source's header.
    pub fn read(source: &Path) -> Result<Guest, String> {
        let text = fs::read_to_string(source).map_err(|e| e.to_string())?;
        let compiler = match source.extension().and_then(|e| e.to_str()) {
            Some("cpp") => "g++",
            Some("rs") => "rustc",
            _ => "gcc",
        };
        let mut guest = Guest {
            name: source
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            stdin: None,
            send: None,
            exit: Ended::Exit(0),
            deterministic: false,
            varies: false,
            beyond: false,
            refused: None,
            descends: false,
            turns: false,
            ascends: false,
            loses: false,
            delayed: false,
            delayed_args: Vec::new(),
            unconfirmed: false,
            not_in: Vec::new(),
            most: u32::MAX,
            geryon_only: false,
            source: source.to_owned(),
            compiler: compiler.to_owned(),
            flags: Vec::new(),
        };
        if !text.starts_with("// build:") {
            return Err("the first line is not `// build:`".to_owned());
        }
        let mut proves = false;
        for line in text.lines().map_while(|l| l.strip_prefix("//")) {
            if proves {
                continue; // prose may hold colons
            }
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.trim();
            match key.trim() {
                "build" => guest.flags = words(value),
                "cc" => guest.compiler = value.to_owned(),
                "args" => guest.args.push(words(value)),
                "env" => {
                    let (name, value) = value.split_once('=').ok_or("env without =")?;
                    guest.env.insert(name.to_owned(), unescaped(value));
                }
                "stdin" => guest.stdin = Some(unescaped(value).into_bytes()),
                "send" => guest.send = Some(signal_number(value).ok_or("unknown signal")?),
                "exit" => {
                    let signal = signal_number(value).map(Ended::Signal);
                    let code = || value.parse().ok().map(Ended::Exit);
                    guest.exit = signal.or_else(code).ok_or("unknown exit")?;
                }
                "deterministic" => guest.deterministic = true,
                "varies" => guest.varies = true,
                "beyond" => guest.beyond = true,
                "turns" => guest.turns = true,
                "descends" => guest.descends = true,
                "ascends" => guest.ascends = true,
                "loses" => guest.loses = true,
                "delayed" => (guest.delayed, guest.delayed_args) = (true, words(value)),
                "async" => guest.unconfirmed = true,
                "not in serial" | "not in clocks" | "not in code" | "not in data"
                | "not in full" => {
                    let order = key.trim().trim_start_matches("not in ");
                    guest.not_in.push((order.to_owned(), value.to_owned()));
                }
                "replicas" => guest.most = value.parse().map_err(|_| "replicas: a number")?,
                "refused" => guest.refused = Some(value.trim().to_owned()),
                "native" if value == "skip" => guest.geryon_only = true,
                "Proves" => proves = true,
                other => return Err(format!("unknown header line `{other}`")),
            }
        }
        if !proves {
            return Err("the header does not say what it proves".to_owned());
        }
        if guest.args.is_empty() {
            guest.args.push(Vec::new());
        }
        Ok(guest)
    }

    /// Builds it into `out` unless its binary is newer; gives the binary.
    pub fn build(&self, out: &Path, headers: SystemTime) -> Result<PathBuf, String> {
        let binary = out.join(&self.name);
        // One builder at a time, threads of one test included: what another has just renamed must not
        // still be written to, for then it cannot be started ("Text file busy").
        let lock = File::create(out.join(format!("{}.lock", self.name)));
        let lock = lock.and_then(|l| l.lock().map(|()| l));
        let _until_built = lock.map_err(|e| format!("cannot lock {binary:?}: {e}"))?;
        let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
        let source = time(&self.source).ok_or("the source is gone")?;
        if time(&binary).is_some_and(|b| b > source && b > headers) {
            return Ok(binary);
        }
        let partial = out.join(format!("{}.partial", self.name));
        let mut command = Command::new(&self.compiler);
        match self.compiler.as_str() {
            "rustc" => command.args(["--edition", "2021", "-O", "-g"]),
            _ => command.args(["-O2", "-g", "-Wall", "-Wextra", "-pthread"]),
        };
        command.arg(&self.source);
        command.arg("-o").arg(&partial).args(&self.flags);
        let result = command
            .output()
            .map_err(|e| format!("cannot run {}: {e} (see tests/packages.txt)", self.compiler))?;
        let said = String::from_utf8_lossy(&result.stderr);
        if !result.status.success() || said.contains("warning:") {
            return Err(format!("{command:?}\n{said}"));
        }
        fs::rename(&partial, &binary).map_err(|e| e.to_string())?;
        Ok(binary)
    }
}

/// The binary of a guest of `tests/guests`, built if need be.
pub fn built(name: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests");
    fs::create_dir_all(&out).expect("target/guests can be made");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests");
    let (found, headers) = find(&folder);
    let guest = found.into_iter().flatten().find(|g| g.name == name);
    let guest = guest.expect("the guest is there");
    guest.build(&out, headers).expect("it builds")
}

/// All guests of a folder by name, and when its headers last changed.
pub fn find(folder: &Path) -> (Vec<Result<Guest, String>>, SystemTime) {
    let mut sources = Vec::new();
    let mut headers = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(folder)
        .expect("tests/guests is there")
        .flatten()
    {
        let path = entry.path();
        match path.extension().and_then(|e| e.to_str()) {
            Some("c" | "cpp" | "rs") => sources.push(path),
            Some("h") => {
                let time = entry.metadata().and_then(|m| m.modified());
                headers = headers.max(time.expect("a header has a time"));
            }
            _ => {}
        }
    }
    // (What some of them include besides.)
    let ours = folder.join("../../include/geryon.h");
    let time = fs::metadata(ours).and_then(|m| m.modified());
    headers = headers.max(time.unwrap_or(SystemTime::UNIX_EPOCH));
    sources.sort();
    let read = |p: &PathBuf| Guest::read(p).map_err(|e| format!("{}: {e}", p.display()));
    (sources.iter().map(read).collect(), headers)
}
