//! The journal of a run (`--journal`): one JSON object a line, written when it happens. And the
//! counts of what happened, for the last line on stderr.

use crate::options::Outcome;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What happened. Replicas are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The program's exec: its replicas are let go. Time counts from here.
    Start {
        /// CLOCK_MONOTONIC at that moment.
        clock_us: u64,
        /// Their processes, the leader's first.
        pids: Vec<i32>,
    },
    /// A fault was made (`--fault`).
    FaultInjected {
        /// In which replica.
        replica: usize,
        /// What was hit.
        target: String,
    },
    /// A fault could not be made.
    FaultMissed {
        /// In which replica it should have been.
        replica: usize,
        /// Why not.
        why: String,
    },
    /// There is a verdict: a replica differs, crashed, is lost or stuck.
    FaultSeen {
        /// Which; None when no majority says who is wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        replica: Option<usize>,
        /// In one sentence.
        why: String,
    },
    /// A replica was left out.
    Dropped {
        /// Which.
        replica: usize,
    },
    /// A replica was made anew.
    Replaced {
        /// Which.
        replica: usize,
        /// Of whom it is a copy.
        source: usize,
        /// That one leads, too.
        source_leads: bool,
        /// How long its source stood still.
        pause_us: u64,
        /// Since it was found missing, or free again after a takeover.
        total_us: u64,
        /// Its process in the group that goes on for longest: that of the program that was launched.
        #[serde(skip_serializing_if = "Option::is_none")]
        pid: Option<i32>,
    },
    /// A follower has become the leader.
    Promoted {
        /// Which.
        replica: usize,
        /// Its process.
        pid: i32,
        /// Since the former leader was found missing.
        total_us: u64,
    },
    /// The run was stopped, with a report.
    Stopped {
        /// Why.
        why: String,
    },
    /// The run is over.
    End {
        /// Verdicts against replicas.
        faults: u32,
        /// Replicas made anew.
        replaced: u32,
        /// Followers that became the leader.
        promotions: u32,
        /// Geryon's exit status; 128 and the signal's number if the program died of one.
        status: i32,
    },
}

#[derive(Serialize)]
struct Line<'a> {
    t_us: u64,
    #[serde(flatten)]
    event: &'a Event,
}

/// The file, if one was asked for, and the counts.
#[derive(Debug, Default)]
pub struct Journal {
    file: Option<(File, PathBuf)>,
    start: Option<Instant>,
    faults: u32,
    replaced: u32,
    promotions: u32,
}

impl Journal {
    /// With an empty file.
    ///
    /// # Errors
    /// When it cannot be written; the text says what to try.
    pub fn create(path: Option<&Path>) -> Result<Journal> {
        let create = |path: &Path| {
            let file = File::create(path)
                .with_context(|| format!("cannot write the journal to {}", path.display()));
            file.map(|f| (f, path.to_owned())).map_err(|e| {
                anyhow::anyhow!(
                    "{e:#}\n  try: another --journal FILE, in a directory that you may write to"
                )
            })
        };
        Ok(Journal {
            file: path.map(create).transpose()?,
            ..Journal::default()
        })
    }

    /// Since the program's exec.
    pub fn elapsed(&self) -> Option<Duration> {
        self.start.map(|s| s.elapsed())
    }

    /// The program's first instruction comes next.
    pub fn start(&mut self, pids: Vec<i32>) {
        if self.start.is_none() {
            self.start = Some(Instant::now());
            let clock_us = monotonic_us();
            self.tell(&Event::Start { clock_us, pids });
        }
    }

    /// Write a line, at once.
    pub fn tell(&mut self, event: &Event) {
        match event {
            Event::FaultSeen { .. } => self.faults += 1,
            Event::Replaced { .. } => self.replaced += 1,
            Event::Promoted { .. } => self.promotions += 1,
            _ => {}
        }
        let t_us = self.elapsed().map_or(0, |t| t.as_micros() as u64);
        let Some((file, path)) = &mut self.file else {
            return;
        };
        let written = serde_json::to_vec(&Line { t_us, event })
            .map_err(std::io::Error::other)
            .and_then(|mut line| {
                line.push(b'\n');
                // In one piece.
                file.write_all(&line)
            });
        if let Err(e) = written {
            eprintln!(
                "geryon: cannot write the journal to {}: {e}; it ends here",
                path.display()
            );
            self.file = None;
        }
    }

    /// The last line.
    pub fn end(&mut self, outcome: Option<Outcome>) {
        let end = Event::End {
            faults: self.faults,
            replaced: self.replaced,
            promotions: self.promotions,
            status: status(outcome),
        };
        self.tell(&end);
    }

    /// What is said at the end of a run in which a fault was seen.
    pub fn summary(&self) -> Option<String> {
        let count =
            |n: u32, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
        (self.faults > 0).then(|| {
            format!(
                "{}, {}, {}",
                count(self.faults, "fault seen", "faults seen"),
                count(self.replaced, "replica replaced", "replicas replaced"),
                count(self.promotions, "promotion", "promotions")
            )
        })
    }
}

/// Since the machine's start, so that others can compare their times with the journal's.
fn monotonic_us() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes `t`, which outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    t.tv_sec as u64 * 1_000_000 + t.tv_nsec as u64 / 1000
}

/// As a shell has it.
fn status(outcome: Option<Outcome>) -> i32 {
    const OWN_FAILURE: i32 = 125;
    const SIGNALS: i32 = 128;
    match outcome {
        Some(Outcome::Exited(code)) => code & 0xff,
        Some(Outcome::Killed(signal)) => SIGNALS + signal,
        Some(Outcome::Diverged) | None => OWN_FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_flat_objects() {
        let line = |event| {
            serde_json::to_string(&Line {
                t_us: 7,
                event: &event,
            })
            .expect("a line")
        };
        let start = Event::Start {
            clock_us: 5,
            pids: vec![8, 9],
        };
        assert_eq!(
            line(start),
            r#"{"t_us":7,"event":"start","clock_us":5,"pids":[8,9]}"#
        );
        let seen = Event::FaultSeen {
            replica: None,
            why: "a \"b\"".into(),
        };
        assert_eq!(
            line(seen),
            r#"{"t_us":7,"event":"fault-seen","why":"a \"b\""}"#
        );
        let replaced = Event::Replaced {
            replica: 1,
            source: 2,
            source_leads: false,
            pause_us: 3,
            total_us: 4,
            pid: Some(5),
        };
        assert_eq!(
            line(replaced),
            r#"{"t_us":7,"event":"replaced","replica":1,"source":2,"source_leads":false,"pause_us":3,"total_us":4,"pid":5}"#
        );
    }

    #[test]
    fn the_summary_counts() {
        let mut journal = Journal::default();
        assert_eq!(journal.summary(), None);
        let seen = Event::FaultSeen {
            replica: Some(1),
            why: String::new(),
        };
        journal.tell(&seen);
        assert_eq!(
            journal.summary().as_deref(),
            Some("1 fault seen, 0 replicas replaced, 0 promotions")
        );
        journal.tell(&seen);
        journal.tell(&Event::Promoted {
            replica: 1,
            pid: 5,
            total_us: 4,
        });
        assert_eq!(
            journal.summary().as_deref(),
            Some("2 faults seen, 0 replicas replaced, 1 promotion")
        );
    }

    #[test]
    fn statuses_are_those_of_a_shell() {
        assert_eq!(status(Some(Outcome::Exited(3))), 3);
        assert_eq!(status(Some(Outcome::Killed(9))), 137);
        assert_eq!(status(Some(Outcome::Diverged)), 125);
        assert_eq!(status(None), 125);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told() {
        let error = Journal::create(Some(Path::new("/no/such/folder/j"))).expect_err("no folder");
        let text = format!("{error:#}");
        assert!(
            text.contains("cannot write the journal to /no/such/folder/j"),
            "{text}"
        );
        assert!(text.contains("try:"), "{text}");
    }
}
