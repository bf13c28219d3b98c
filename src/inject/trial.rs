//! One trial: a run with a fault, and what came of it.

use crate::inject::golden::Golden;
use crate::inject::setting::{Setting, Way};
use anyhow::Result;
use geryon_fault::outcome::classify;
use geryon_fault::{Campaign, Outcome, Record, Side};
use std::time::Duration;

/// What a run as replicas may take longer than a multiple of the golden run: the watchdog's and the
/// verdict's patience.
const PATIENCE: Duration = Duration::from_secs(40);
/// The same for a bare run, where nobody has to notice anything.
const BARE_PATIENCE: Duration = Duration::from_secs(2);

/// Run a trial.
///
/// # Errors
/// Our own failures.
pub fn run(
    setting: &Setting,
    golden: &Golden,
    campaign: &Campaign,
    number: u64,
    side: Side,
) -> Result<Record> {
    let trial = campaign.trial(number);
    let limit = |golden: Duration, more: Duration| {
        golden.mul_f64(campaign.timeout_factor).saturating_add(more)
    };
    let (fault, way, limit, replicas) = match side {
        Side::Geryon => (
            trial.fault,
            Way::Geryon(Some(&trial.fault)),
            limit(golden.slowest, PATIENCE),
            setting.replicas,
        ),
        Side::Bare => (
            trial.bare,
            Way::Bare(&trial.bare),
            limit(golden.bare_slowest, BARE_PATIENCE),
            0,
        ),
    };
    let run = setting.run(&format!("trial-{number}-{}", side.name()), way, limit)?;
    let outcome = classify(&golden.written, &run.written, &run.told, replicas);
    if outcome.is_bad() && side == Side::Geryon {
        setting.keep(number, &fault, &run)?;
    }
    let note = match outcome {
        Outcome::Missed => run.told.why.clone(),
        _ => golden.written.difference(&run.written),
    };
    Ok(Record {
        trial: number,
        side,
        fault,
        part: trial.part,
        outcome,
        end: run.written.end,
        wall_us: run.wall.as_micros() as u64,
        detection_us: run.told.detection_us,
        replacement_us: run.told.replacement_us,
        note,
    })
}
