//! The golden run: what the program writes, and how long it takes, without a fault.

use crate::inject::setting::{Ran, Setting, Way};
use anyhow::{Result, bail};
use geryon_fault::outcome::{End, Written};
use std::time::Duration;

/// So often it is run: programs whose output differs from run to run are found out, and times have
/// a smallest and a largest.
const RUNS: usize = 3;
/// A program that takes longer is nothing for a campaign.
const LIMIT: Duration = Duration::from_secs(3600);
/// As much of stderr is shown when the golden run fails.
const STDERR_BYTES: usize = 2000;

/// What the trials are compared with.
pub struct Golden {
    /// What the program writes.
    pub written: Written,
    /// The shortest run as replicas, in microseconds: faults strike within.
    pub span_us: u64,
    /// The longest.
    pub slowest: Duration,
    /// Words in the log of the first process, in the run that has fewest.
    pub span_events: u64,
    /// The shortest bare run, in microseconds.
    pub bare_span_us: u64,
    /// The longest.
    pub bare_slowest: Duration,
}

impl Golden {
    /// Run the program alone, and as replicas if asked.
    ///
    /// # Errors
    /// When runs differ.
    pub fn find(setting: &Setting, replicas: bool) -> Result<Golden> {
        let native = runs(setting, "native", Way::Native)?;
        let written = native[0].written.clone();
        if written.end == End::TimedOut {
            bail!("the program does not end within {} s", LIMIT.as_secs());
        }
        for run in &native[1..] {
            if let Some(what) = written.difference(&run.written) {
                bail!(
                    "the program does not do the same twice: {what}\n  try: options that make it repeatable; only then can faults be told from chance"
                );
            }
        }
        let mut golden = Golden {
            written,
            span_us: 0,
            slowest: Duration::ZERO,
            span_events: 0,
            bare_span_us: shortest(&native),
            bare_slowest: slowest(&native),
        };
        if replicas {
            let runs = runs(setting, "replicas", Way::Geryon(None))?;
            for run in &runs {
                golden.compare(run)?;
            }
            golden.span_us = shortest(&runs);
            golden.slowest = slowest(&runs);
            let events = runs.iter().filter_map(|run| run.told.events);
            golden.span_events = events.min().unwrap_or(0);
        }
        Ok(golden)
    }

    /// Replicas must do natively what the program does.
    fn compare(&self, run: &Ran) -> Result<()> {
        let Some(what) = self.written.difference(&run.written) else {
            return Ok(());
        };
        let stderr = &run.written.stderr;
        let tail = &stderr[stderr.len().saturating_sub(STDERR_BYTES)..];
        bail!(
            "without a fault, `geryon run` differs from a native run: {what}\n{}",
            String::from_utf8_lossy(tail)
        );
    }
}

fn runs(setting: &Setting, name: &str, way: Way<'_>) -> Result<Vec<Ran>> {
    let run = |i| setting.run(&format!("golden-{name}-{i}"), way, LIMIT);
    (0..RUNS).map(run).collect()
}

fn shortest(runs: &[Ran]) -> u64 {
    let span = |run: &Ran| run.told.span_us.unwrap_or(run.wall.as_micros() as u64);
    // At least one, so that there is a span.
    runs.iter().map(span).min().unwrap_or(0).max(1)
}

fn slowest(runs: &[Ran]) -> Duration {
    runs.iter().map(|run| run.wall).max().unwrap_or_default()
}
