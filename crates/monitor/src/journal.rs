//! The journal of a run (`--journal`): one JSON object a line, written when it happens.

mod board;
mod event;
mod totals;

use crate::options::Outcome;
use anyhow::{Context, Result};
use board::Board;
pub use board::totals_of;
pub use event::Event;
use geryon_abi::point::FaultPoint;
use geryon_tracee::points;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
pub use totals::Totals;

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
    totals: Totals,
    board: Board,
    events: u64,
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
            points::start();
            let clock_us = monotonic_us();
            self.tell(&Event::Start { clock_us, pids });
        }
    }

    /// Write a line, at once.
    pub fn tell(&mut self, event: &Event) {
        if self.totals.count(event) {
            self.board.show(&self.totals);
        }
        let t_us = self.elapsed().map_or(0, |t| t.as_micros() as u64);
        let Some((file, path)) = &mut self.file else {
            return;
        };
        let written = serde_json::to_vec(&Line { t_us, event })
            .map_err(std::io::Error::other)
            .and_then(|mut line| {
                line.push(b'\n');
                if points::fails(FaultPoint::JournalFails) {
                    return Err(std::io::Error::from_raw_os_error(libc::ENOSPC));
                }
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

    /// A replica stood still for so long.
    pub fn stood(&mut self, time: Duration) {
        self.totals.lost_us += time.as_micros() as u64;
    }

    /// The log of the first process has so many words.
    pub fn count_events(&mut self, events: u64) {
        self.events = events;
    }

    /// The last line.
    pub fn end(&mut self, outcome: Option<Outcome>) {
        let end = Event::End {
            totals: self.totals,
            events: self.events,
            status: status(outcome),
        };
        self.tell(&end);
    }

    /// What is said at the end of a run in which something happened.
    pub fn summary(&self) -> Option<String> {
        (self.totals != Totals::default()).then(|| self.totals.to_string())
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
    use crate::cores::CoreSet;

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
            cores: CoreSet::new(),
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
            cores: CoreSet::new(),
            why: String::new(),
        };
        journal.tell(&seen);
        assert_eq!(
            journal.summary().as_deref(),
            Some("1 fault seen, 0 replicas replaced, 0 promotions, 0 given up, 0.0 ms lost")
        );
        journal.tell(&seen);
        journal.tell(&Event::Promoted {
            replica: 1,
            pid: 5,
            total_us: 1500,
        });
        journal.stood(Duration::from_micros(2250));
        journal.tell(&Event::GivenUp {
            replica: 2,
            cores: CoreSet::from([1]),
            why: String::new(),
        });
        assert_eq!(
            journal.summary().as_deref(),
            Some("2 faults seen, 0 replicas replaced, 1 promotion, 1 given up, 3.8 ms lost")
        );
        let mut journal = Journal::default();
        journal.tell(&Event::NotCompared {
            what: String::new(),
        });
        assert_eq!(
            journal.summary().as_deref(),
            Some(
                "0 faults seen, 0 replicas replaced, 0 promotions, 0 given up, 0.0 ms lost, 1 comparison left out"
            )
        );
    }

    #[test]
    fn the_last_line_has_the_counts() {
        let totals = Totals {
            faults: 1,
            lost_us: 9,
            ..Totals::default()
        };
        let end = Event::End {
            totals,
            events: 7,
            status: 3,
        };
        assert_eq!(
            serde_json::to_string(&end).expect("a line"),
            r#"{"event":"end","faults":1,"replaced":0,"promotions":0,"given_up":0,"not_compared":0,"lost_us":9,"events":7,"status":3}"#
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
