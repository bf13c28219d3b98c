//! Runs one workload in all its configurations, interleaved.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::guest;
use crate::input;
use crate::options::Plan;
use crate::process::{self, Cores, Failure, Job};
use crate::results::{Config, Measured, Ratios, figure};
use crate::scratch::Scratch;
use crate::stats::Series;
use crate::workload::{Figure, Program, Work, Workload};

/// Measures workloads by a plan, with files in a scratch directory.
pub struct Bench<'a> {
    plan: &'a Plan,
    scratch: &'a Scratch,
}

impl<'a> Bench<'a> {
    /// Nothing is made or run yet.
    pub fn new(plan: &'a Plan, scratch: &'a Scratch) -> Self {
        Bench { plan, scratch }
    }

    /// Measures one workload. Whatever goes wrong is part of the result.
    pub fn measure(&self, workload: &Workload) -> Measured {
        let mut measured = Measured {
            name: workload.name,
            what: workload.what,
            unit: workload.figure.unit(),
            command: Vec::new(),
            skipped: missing(workload.program),
            series: BTreeMap::new(),
            failures: BTreeMap::new(),
            ratios: Ratios::default(),
            remarks: Vec::new(),
        };
        if measured.skipped.is_some() {
            return measured;
        }
        match self.command(workload) {
            Ok(line) => {
                measured.command = line.iter().map(|part| self.shown(part)).collect();
                self.rounds(workload, &line, &mut measured);
            }
            Err(error) => {
                measured.failures.insert(Config::Native, error.into());
            }
        }
        measured.conclude();
        measured
    }

    fn rounds(&self, workload: &Workload, line: &[OsString], measured: &mut Measured) {
        let mut configs = vec![Config::Native];
        configs.extend(workload.pinned.then_some(Config::NativeOneCore));
        configs.push(Config::Copies);
        configs.extend(self.plan.geryon.is_some().then_some(Config::Geryon));

        let mut samples: BTreeMap<Config, Vec<f64>> = BTreeMap::new();
        let mut said = Said::default();
        for round in 0..self.plan.rounds {
            let mut progress = format!("{}, round {}:", workload.name, round + 1);
            // A drift of the machine must not always hit the same configuration;
            // the first round begins with native, whose output is the reference.
            let first = round as usize % configs.len();
            for i in 0..configs.len() {
                let config = configs[(first + i) % configs.len()];
                if measured.failures.contains_key(&config) {
                    continue;
                }
                match self.run(workload, line, config, &mut said) {
                    Ok(sample) => {
                        progress += &format!(" {} {}", config.name(), figure(sample));
                        samples.entry(config).or_default().push(sample);
                    }
                    Err(failure) => {
                        progress += &format!(" {} failed", config.name());
                        samples.remove(&config);
                        measured.failures.insert(config, failure);
                    }
                }
                if measured.failures.contains_key(&Config::Native) {
                    break;
                }
            }
            eprintln!("{progress} {}", workload.figure.unit());
            if measured.failures.contains_key(&Config::Native) {
                break;
            }
        }
        let series = samples
            .into_iter()
            .filter_map(|(config, samples)| Series::new(samples).map(|series| (config, series)));
        measured.series = series.collect();
        measured.remarks.extend(said.remarks);
        // The next workload has another reference.
        let _ = fs::remove_file(self.reference());
    }

    /// Runs a configuration once.
    fn run(
        &self,
        workload: &Workload,
        line: &[OsString],
        config: Config,
        said: &mut Said,
    ) -> Result<f64, Failure> {
        let (line, processes, cores) = match config {
            Config::Native => (line.to_vec(), 1, Cores::All),
            Config::NativeOneCore => (line.to_vec(), 1, Cores::One),
            Config::Copies => (line.to_vec(), self.plan.replicas, Cores::All),
            Config::Geryon => (self.replicated(line)?, 1, Cores::All),
        };
        let file = |name: &str, number: u32| self.scratch.path().join(format!("{name}-{number}"));
        let jobs: Vec<Job> = (0..processes)
            .map(|number| Job {
                line: line.clone(),
                stdout: file("stdout", number),
                stderr: file("stderr", number),
            })
            .collect();
        let time = process::run_together(&jobs, cores, self.plan.time_limit)?;
        match config {
            Config::Geryon => said.geryon(&process::tail(&jobs[0].stderr)),
            _ => said.program(&process::tail(&jobs[0].stderr)),
        }
        match workload.figure {
            Figure::SelfTimed => {
                let figures = jobs.iter().map(|job| self_timed(&job.stdout));
                let figures = figures.collect::<anyhow::Result<Vec<f64>>>()?;
                figures
                    .into_iter()
                    .reduce(f64::max)
                    .context("no process")
                    .map_err(Failure::from)
            }
            Figure::Wall => {
                for job in &jobs {
                    self.compare(&job.stdout)?;
                }
                Ok(time.as_secs_f64())
            }
        }
    }

    fn replicated(&self, line: &[OsString]) -> anyhow::Result<Vec<OsString>> {
        let geryon = self.plan.geryon.as_ref().context("no Geryon to measure")?;
        let replicas = self.plan.replicas.to_string();
        let mut all = vec![
            geryon.into(),
            "run".into(),
            "-n".into(),
            replicas.into(),
            "--".into(),
        ];
        all.extend_from_slice(line);
        Ok(all)
    }

    /// A part of a command as a reader may see it: of files of the bench the name.
    fn shown(&self, part: &OsString) -> String {
        let path = Path::new(part);
        let part = path.strip_prefix(self.scratch.path()).unwrap_or(path);
        part.to_string_lossy().into_owned()
    }

    /// What every run of a workload must write.
    fn reference(&self) -> PathBuf {
        self.scratch.path().join("reference")
    }

    /// Fails when this is not what the first run wrote; the first one's becomes
    /// the reference.
    fn compare(&self, output: &Path) -> anyhow::Result<()> {
        let reference = self.reference();
        if !reference.exists() {
            return fs::rename(output, reference).context("cannot keep the output");
        }
        match first_difference(output, &reference)? {
            Some(at) => {
                anyhow::bail!("what it wrote differs from the first native run's at byte {at}")
            }
            None => Ok(()),
        }
    }

    /// The command of a workload, after making what it needs.
    fn command(&self, workload: &Workload) -> anyhow::Result<Vec<OsString>> {
        let program = match workload.program {
            Program::Guest(name) => guest::compile(name, self.scratch.path())?,
            Program::Installed { name, .. } => {
                process::find(name).with_context(|| format!("{name} is gone"))?
            }
        };
        let mut line = vec![program.into_os_string()];
        line.extend(workload.arguments.iter().map(OsString::from));
        line.push(self.work(workload.work)?);
        Ok(line)
    }

    fn work(&self, work: Work) -> anyhow::Result<OsString> {
        // At least one, whatever the scale; a product beyond u64 saturates.
        let scaled = |amount: u64| ((amount as f64 * self.plan.scale) as u64).max(1);
        let made = |name: String, make: &dyn Fn(&Path) -> io::Result<()>| {
            let path = self.scratch.path().join(name);
            if !path.exists() {
                make(&path).with_context(|| format!("cannot make {}", path.display()))?;
            }
            anyhow::Ok(path.into_os_string())
        };
        match work {
            Work::Operations(operations) => Ok(scaled(operations).to_string().into()),
            Work::TextKib(kib) => {
                let bytes = scaled(kib * 1024);
                made(format!("text-{bytes}"), &|path| input::text(path, bytes))
            }
            Work::Frames(frames) => {
                let frames = scaled(frames);
                made(format!("film-{frames}.y4m"), &|path| {
                    input::film(path, frames)
                })
            }
        }
    }
}

/// What Geryon, and not the program, had to say about runs that went well: a
/// replica that was dropped falsifies the time.
#[derive(Default)]
struct Said {
    /// Lines that are no news, without their digits.
    known: BTreeSet<String>,
    remarks: Vec<String>,
}

impl Said {
    /// Takes note of what the program says when it runs alone.
    fn program(&mut self, stderr: &str) {
        self.known.extend(lines(stderr).map(without_digits));
    }

    /// Remarks what it did not say then, once.
    fn geryon(&mut self, stderr: &str) {
        for line in lines(stderr) {
            if self.known.insert(without_digits(line)) {
                self.remarks.push(format!("geryon said: {line}"));
            }
        }
    }
}

/// The lines of a terminal, where a carriage return begins one, too.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r'])
        .map(str::trim)
        .filter(|line| !line.is_empty())
}

fn without_digits(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Why a program cannot be run, with the remedy.
fn missing(program: Program) -> Option<String> {
    let (name, packages) = match program {
        Program::Guest(_) => (guest::COMPILER, guest::COMPILER_PACKAGES),
        Program::Installed { name, package } => (name, package),
    };
    match process::find(name) {
        Some(_) => None,
        None => Some(format!("{name} is not installed; apt install {packages}")),
    }
}

/// The figure that a guest printed.
fn self_timed(stdout: &Path) -> anyhow::Result<f64> {
    let text = fs::read_to_string(stdout).context("cannot read what it printed")?;
    text.strip_suffix(" ns/op\n")
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("it printed {text:?} and not a time"))
}

/// The first byte at which two files differ, or where the shorter ends.
fn first_difference(one: &Path, other: &Path) -> anyhow::Result<Option<usize>> {
    let open = |path: &Path| {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        anyhow::Ok(io::BufReader::with_capacity(1 << 16, file).bytes())
    };
    let (mut one, mut other) = (open(one)?, open(other)?);
    for at in 0.. {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(None),
            (a, b) if a != b => return Ok(Some(at)),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
