//! What the runs of a campaign have in common, and the fresh directory that each of them gets.

use crate::inject::process;
use anyhow::{Context, Result};
use geryon_fault::Fault;
use geryon_fault::journal::Told;
use geryon_fault::outcome::Written;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The directory of copied inputs.
const INPUTS: &str = "inputs";

/// What the runs of a campaign have in common.
pub struct Setting {
    /// Program and arguments.
    pub line: Vec<OsString>,
    /// The Geryon that runs replicas.
    pub geryon: PathBuf,
    /// This one, which runs bare trials.
    pub own: PathBuf,
    /// Number of replicas.
    pub replicas: u32,
    /// Files that the program writes.
    pub files: Vec<String>,
    /// Files that it reads, below [`INPUTS`].
    pub inputs: Vec<PathBuf>,
    /// Where all that is.
    pub scratch: PathBuf,
    /// Where it is kept what runs that went wrong have said.
    pub keep: Option<PathBuf>,
}

/// How the program is run.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// Alone.
    Native,
    /// As replicas.
    Geryon(Option<&'a Fault>),
    /// Alone under ptrace.
    Bare(&'a Fault),
}

/// What came of a run.
pub struct Ran {
    /// What is compared.
    pub written: Written,
    /// What the journal says.
    pub told: Told,
    /// The journal itself.
    pub journal: String,
    /// How long it took.
    pub wall: Duration,
}

/// Copy the files that arguments name by relative paths below here: each run gets them in its own
/// directory, where it may change them. Their names.
pub fn copy_inputs(scratch: &Path, args: &[OsString]) -> Result<Vec<PathBuf>> {
    let below = |path: &Path| {
        let mut parts = path.components().peekable();
        parts.peek().is_some()
            && parts.all(|p| matches!(p, Component::Normal(_) | Component::CurDir))
    };
    let inputs: Vec<PathBuf> = args
        .iter()
        .map(PathBuf::from)
        .filter(|path| below(path) && path.is_file())
        .collect();
    for input in &inputs {
        copy(input, &scratch.join(INPUTS).join(input))?;
    }
    Ok(inputs)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    let copied = || -> std::io::Result<()> {
        fs::copy(from, to)?;
        // Programs such as gzip write it into their output. A file that is not writable is opened
        // for reading: its owner may set its times all the same.
        fs::File::open(to)?.set_modified(fs::metadata(from)?.modified()?)
    };
    copied().with_context(|| format!("cannot copy {}", from.display()))
}

impl Setting {
    /// Run the program; `name` is the run's own.
    pub fn run(&self, name: &str, way: Way<'_>, limit: Duration) -> Result<Ran> {
        let dir = Fresh::new(self.scratch.join(name))?;
        let work = dir.0.join("work");
        fs::create_dir(&work)?;
        for input in &self.inputs {
            copy(&self.scratch.join(INPUTS).join(input), &work.join(input))?;
        }
        let journal = dir.0.join("journal");
        let (stdout, stderr) = (dir.0.join("stdout"), dir.0.join("stderr"));
        let line = self.command(way, &journal);
        let (end, wall) = process::run(&line, &work, &stdout, &stderr, limit)?;
        let mut files = BTreeMap::new();
        for file in &self.files {
            files.insert(file.clone(), fs::read(work.join(file)).ok());
        }
        // There is none of a native run, nor perhaps of a monitor that was killed.
        let journal = fs::read(journal).unwrap_or_default();
        let journal = String::from_utf8_lossy(&journal).into_owned();
        Ok(Ran {
            written: Written {
                end,
                stdout: fs::read(stdout)?,
                stderr: fs::read(stderr)?,
                files,
            },
            told: Told::read(&journal),
            journal,
            wall,
        })
    }

    /// Keep what a run that went wrong has said: the fault, stderr with Geryon's report, the journal.
    pub fn keep(&self, trial: u64, fault: &Fault, run: &Ran) -> Result<()> {
        let Some(folder) = &self.keep else {
            return Ok(());
        };
        let path = folder.join(format!("trial-{trial}.txt"));
        let mut text = format!("--fault {fault}\nended: {:?}\n\n", run.written.end).into_bytes();
        text.extend_from_slice(&run.written.stderr);
        text.extend_from_slice(b"\n");
        text.extend_from_slice(run.journal.as_bytes());
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn command(&self, way: Way<'_>, journal: &Path) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let fault = match way {
            Way::Native => return self.line.clone(),
            Way::Geryon(fault) => {
                line.extend([self.geryon.clone().into(), "run".into(), "-n".into()]);
                line.push(self.replicas.to_string().into());
                fault
            }
            Way::Bare(fault) => {
                line.extend([self.own.clone().into(), "inject-bare".into()]);
                Some(fault)
            }
        };
        if let Some(fault) = fault {
            line.extend(["--fault".into(), fault.to_string().into()]);
        }
        line.extend(["--journal".into(), journal.into(), "--".into()]);
        line.extend(self.line.iter().cloned());
        line
    }
}

/// A new directory, removed when dropped.
struct Fresh(PathBuf);

impl Fresh {
    fn new(path: PathBuf) -> Result<Fresh> {
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Fresh(path))
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // The whole scratch directory goes at the end.
        let _ = fs::remove_dir_all(&self.0);
    }
}
