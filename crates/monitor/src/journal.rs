//! The journal of a run (`--journal`): one JSON object a line, written when it happens. And the
//! counts of what happened, for the last line on stderr.

mod board;

use crate::cores::CoreSet;
use crate::options::Outcome;
use anyhow::{Context, Result};
use board::Board;
pub use board::totals_of;
use geryon_abi::point::FaultPoint;
use geryon_tracee::points;
use serde::{Deserialize, Serialize};
use std::fmt;
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
    /// Something went wrong at a place that a test has chosen (`--fail-at`).
    PointFailed {
        /// Its name.
        point: &'static str,
        /// Whose it is, if it is in an agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        replica: Option<usize>,
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
        /// On which cores it ran.
        #[serde(skip_serializing_if = "CoreSet::is_empty")]
        cores: CoreSet,
        /// In one sentence.
        why: String,
    },
    /// Replicas differ, no majority says who is wrong, and the leader is believed
    /// (`--on-divergence leader`).
    LeaderBelieved {
        /// Who leads.
        replica: usize,
        /// Who is taken out.
        against: Vec<usize>,
    },
    /// `geryon ctl` has asked for something, and it is done.
    Asked {
        /// For what.
        what: String,
    },
    /// The program is about to have a second thread, and its threads run in parallel from there on.
    Clocks,
    /// All went on from the leader's state, in serial order instead of with clocks.
    Serial {
        /// Why.
        why: String,
        /// How long that took.
        took_us: u64,
    },
    /// A copy follows again behind such a change that the program was the cause of.
    Followed {
        /// Which.
        replica: usize,
        /// Of whom.
        source: usize,
        /// Without it for so long.
        total_us: u64,
    },
    /// A replica was taken out.
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
    /// A replica that was taken out will not be replaced.
    GivenUp {
        /// Which.
        replica: usize,
        /// On which cores it ran last.
        cores: CoreSet,
        /// Why not.
        why: String,
    },
    /// A replica's new copy shares no page with its source any more that the program may write
    /// (`--eager-copy`).
    Unshared {
        /// Which.
        replica: usize,
        /// That were made its own.
        bytes: u64,
        /// That could not be.
        left: u64,
        /// How long that took, while it ran.
        took_us: u64,
    },
    /// A replica's new copy keeps away from cores on which it failed again and again.
    Moved {
        /// Which.
        replica: usize,
        /// Where it does not run any more.
        from: CoreSet,
        /// Where it may run.
        to: CoreSet,
    },
    /// A replica fails again and again wherever it may run.
    NoOtherCore {
        /// Which.
        replica: usize,
        /// Where it failed.
        cores: CoreSet,
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
    /// What the program has stored in files that it maps to be shared and writable could not be compared.
    NotCompared {
        /// What, and why not.
        what: String,
    },
    /// Copies of both replicas sleep from now on; or, with more than two whose threads run in parallel, one of the leader, which
    /// others have come to.
    Checkpoint {
        /// Words that the log had had by then.
        position: u64,
        /// How long the leader stood still.
        pause_us: u64,
    },
    /// Two replicas differ, and their sleeping copies were woken.
    Rollback {
        /// How old the copies are.
        age_ms: u64,
    },
    /// The copies have said who is right.
    Arbitrated {
        /// Who is wrong.
        outvoted: usize,
        /// How long they needed for it.
        took_us: u64,
        /// How old they were when they were woken.
        age_ms: u64,
    },
    /// A follower differed from its leader; its copy, which has replayed the log in the order of time, does not.
    RaceReplayed {
        /// Which.
        replica: usize,
        /// How often the log was replayed.
        tries: u32,
        /// How long that took.
        took_us: u64,
        /// It differed in the order of operations on memory that threads share. If not, it may have been a fault.
        sure: bool,
        /// In what.
        why: String,
    },
    /// The run was stopped, with a report.
    Stopped {
        /// Why.
        why: String,
    },
    /// The run is over.
    End {
        /// What happened in it.
        #[serde(flatten)]
        totals: Totals,
        /// Words in the log of the first process.
        events: u64,
        /// Geryon's exit status; 128 and the signal's number if the program died of one.
        status: i32,
    },
}

/// What happened in a run, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Verdicts against replicas.
    pub faults: u32,
    /// Replicas made anew.
    pub replaced: u32,
    /// Followers that became the leader.
    pub promotions: u32,
    /// Replicas that were taken out and not made anew.
    pub given_up: u32,
    /// How often what was stored in a file that is mapped could not be compared.
    pub not_compared: u32,
    /// Followers that had gone another way than their leader, and then did not.
    #[serde(default, skip_serializing_if = "is_none")]
    pub races: u32,
    /// How long that took.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub races_us: u64,
    /// How long replicas stood still so that others could be copied from them, and the program so
    /// that another replica could lead.
    pub lost_us: u64,
}

fn is_none(n: &u32) -> bool {
    *n == 0
}

fn is_nothing(us: &u64) -> bool {
    *us == 0
}

impl Totals {
    /// True when it counts.
    fn count(&mut self, event: &Event) -> bool {
        match event {
            Event::FaultSeen { .. } => self.faults += 1,
            Event::Replaced { .. } => self.replaced += 1,
            Event::GivenUp { .. } => self.given_up += 1,
            Event::NotCompared { .. } => self.not_compared += 1,
            Event::RaceReplayed { took_us, .. } => {
                self.races += 1;
                self.races_us += took_us;
            }
            Event::Promoted { total_us, .. } => {
                self.promotions += 1;
                self.lost_us += total_us;
            }
            _ => return false,
        }
        true
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some =
            |n: u32, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
        write!(
            f,
            "{}, {}, {}, {} given up, {:.1} ms lost",
            some(self.faults, "fault seen", "faults seen"),
            some(self.replaced, "replica replaced", "replicas replaced"),
            some(self.promotions, "promotion", "promotions"),
            self.given_up,
            self.lost_us as f64 / 1e3
        )?;
        match self.not_compared {
            0 => {}
            n => write!(f, ", {} left out", some(n, "comparison", "comparisons"))?,
        }
        match self.races {
            0 => Ok(()),
            n => write!(
                f,
                ", {} in {:.1} ms",
                some(n, "race replayed", "races replayed"),
                self.races_us as f64 / 1e3
            ),
        }
    }
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
