//! What happened in a run, in numbers: for its journal's last line, and for the last one on stderr.

use super::Event;
use serde::{Deserialize, Serialize};
use std::fmt;

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
    pub(super) fn count(&mut self, event: &Event) -> bool {
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
