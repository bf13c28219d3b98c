//! Results in numbers: tallies, rates with their confidence, times; and the table of a campaign.

use std::fmt::Write;

use serde::{Serialize, Serializer};

use crate::campaign::Campaign;
use crate::kind::Kind;
use crate::outcome::Outcome;
use crate::results::{Record, Side};

/// Parts of the golden run by which outcomes are told apart.
pub const QUARTERS: usize = 4;
/// As many trials that went wrong are listed.
const LISTED_MAX: usize = 10;
/// Standard deviations of a 95 % interval.
const Z: f64 = 1.96;

/// How often each outcome came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally([u64; Outcome::ALL.len()]);

impl Tally {
    /// Count.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Tally {
        let mut tally = Tally::default();
        for record in records {
            tally.0[record.outcome as usize] += 1;
        }
        tally
    }

    /// How often this one came.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// All trials.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Trials whose fault was made: those of which rates are taken.
    pub fn hit(&self) -> u64 {
        self.total() - self.count(Outcome::Missed)
    }
}

impl Serialize for Tally {
    /// The outcomes that came, by their names.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(shown(self).into_iter().map(|o| (o.name(), self.count(o))))
    }
}

/// The records of a campaign, by what one wants to know.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// The campaign.
    pub campaign: &'a Campaign,
    /// Its records, in any order.
    pub records: &'a [Record],
}

impl<'a> Summary<'a> {
    /// The records of one side.
    pub fn of(self, side: Side) -> impl Iterator<Item = &'a Record> {
        self.records.iter().filter(move |r| r.side == side)
    }

    /// The sides that there are.
    pub fn sides(self) -> impl Iterator<Item = Side> {
        let there = move |side: &Side| self.of(*side).next().is_some();
        [Side::Geryon, Side::Bare].into_iter().filter(there)
    }

    /// All of one side.
    pub fn tally(self, side: Side) -> Tally {
        Tally::of(self.of(side))
    }

    /// By what was hit.
    pub fn by_kind(self, side: Side) -> Vec<(Kind, Tally)> {
        let kinds = self.campaign.targets.iter();
        kinds
            .map(|kind| {
                let hit = self.of(side).filter(|r| r.fault.target.kind() == *kind);
                (*kind, Tally::of(hit))
            })
            .collect()
    }

    /// By when it was hit.
    pub fn by_quarter(self, side: Side) -> [Tally; QUARTERS] {
        std::array::from_fn(|i| {
            let then = |r: &&Record| ((r.part * QUARTERS as f64) as usize).min(QUARTERS - 1) == i;
            Tally::of(self.of(side).filter(then))
        })
    }

    /// Times from faults to their being noticed, in microseconds, sorted.
    pub fn detections(self) -> Vec<u64> {
        sorted(self.of(Side::Geryon).filter_map(|r| r.detection_us))
    }

    /// Times from there to replacements, in microseconds, sorted.
    pub fn replacements(self) -> Vec<u64> {
        sorted(self.of(Side::Geryon).filter_map(|r| r.replacement_us))
    }

    /// Trials as replicas that went wrong, in the order of their numbers.
    pub fn bad(self) -> Vec<&'a Record> {
        let mut bad: Vec<_> = self
            .of(Side::Geryon)
            .filter(|r| r.outcome.is_bad())
            .collect();
        bad.sort_by_key(|r| r.trial);
        bad
    }

    /// The command that repeats a trial.
    pub fn command(self, record: &Record) -> String {
        let Campaign {
            program,
            args,
            replicas,
            ..
        } = self.campaign;
        let mut line = match record.side {
            Side::Geryon => format!("geryon run -n {replicas} --fault {} --", record.fault),
            Side::Bare => format!("geryon inject-bare --fault {} --", record.fault),
        };
        for word in std::iter::once(program).chain(args) {
            line.push(' ');
            line.push_str(&quoted(word));
        }
        line
    }

    /// What is shown at the end of a campaign.
    pub fn text(self) -> String {
        let mut out = String::new();
        for side in self.sides() {
            out += &self.table(side);
            out.push('\n');
        }
        for side in self.sides() {
            for outcome in rated(side) {
                put(&mut out, format_args!("{}\n", self.rate(side, outcome)));
            }
        }
        for (what, times) in [
            ("detection latency", self.detections()),
            ("replacement time", self.replacements()),
        ] {
            if let Some(line) = quantiles(&times) {
                put(&mut out, format_args!("{what}: {line}\n"));
            }
        }
        let bad = self.bad();
        for record in bad.iter().take(LISTED_MAX) {
            let (number, name) = (record.trial, record.outcome.name());
            let note = record
                .note
                .as_deref()
                .map_or(String::new(), |n| format!(" ({n})"));
            let command = self.command(record);
            put(
                &mut out,
                format_args!("trial {number}: {name}{note}\n  {command}\n"),
            );
        }
        if bad.len() > LISTED_MAX {
            put(
                &mut out,
                format_args!("and {} more\n", bad.len() - LISTED_MAX),
            );
        }
        out
    }

    /// The rate of an outcome among the faults that were made, with its 95 % interval.
    pub fn rate(self, side: Side, outcome: Outcome) -> String {
        let tally = self.tally(side);
        let (count, of) = (tally.count(outcome), tally.hit());
        let (low, high) = interval(count, of);
        format!(
            "{} {}: {count} of {of}, {:.1} to {:.1} %",
            side.name(),
            outcome.name(),
            100.0 * low,
            100.0 * high
        )
    }

    /// Targets against outcomes. Outcomes that did not come have no column.
    fn table(self, side: Side) -> String {
        let total = self.tally(side);
        let shown: Vec<Outcome> = shown(&total);
        let mut out = format!("{:<9}{:>7}", side.name(), "trials");
        for outcome in &shown {
            put(&mut out, format_args!("  {}", outcome.name()));
        }
        out.push('\n');
        let rows = self.by_kind(side).into_iter();
        let rows = rows
            .filter(|(_, tally)| tally.total() > 0)
            .map(|(kind, tally)| (kind.name(), tally));
        for (name, tally) in rows.chain([("all", total)]) {
            put(&mut out, format_args!("{name:<9}{:>7}", tally.total()));
            for outcome in &shown {
                let width = outcome.name().len() + 2;
                put(&mut out, format_args!("{:>width$}", tally.count(*outcome)));
            }
            out.push('\n');
        }
        out
    }
}

/// The outcomes that came.
pub fn shown(tally: &Tally) -> Vec<Outcome> {
    let came = |outcome: &Outcome| tally.count(*outcome) > 0;
    Outcome::ALL.into_iter().filter(came).collect()
}

/// Outcomes whose rates are told.
pub fn rated(side: Side) -> [Outcome; 3] {
    match side {
        Side::Geryon => [Outcome::Sdc, Outcome::Hang, Outcome::Due],
        Side::Bare => [Outcome::Sdc, Outcome::Hang, Outcome::Crash],
    }
}

/// Wilson's 95 % interval of a rate. Of no trials nothing is known.
pub fn interval(count: u64, of: u64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, z2) = (of as f64, Z * Z);
    let rate = count as f64 / n;
    let middle = rate + z2 / (2.0 * n);
    let reach = Z * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    let bound = |b: f64| (b / scale).clamp(0.0, 1.0);
    (bound(middle - reach), bound(middle + reach))
}

/// What a reader wants of sorted times; None of none.
pub fn quantiles(sorted: &[u64]) -> Option<String> {
    Some(format!(
        "median {}, 95 % within {}, largest {} ({} trials)",
        time(share(sorted, 0.5)?),
        time(share(sorted, 0.95)?),
        time(*sorted.last()?),
        sorted.len()
    ))
}

/// The time that this part of the sorted ones, from 0 to 1, does not exceed; None of none.
pub fn share(sorted: &[u64], part: f64) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * part).round() as usize).copied()
}

/// Microseconds in a unit that suits them.
pub fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..10_000 => format!("{:.1} ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

fn sorted(times: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    times
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::tests::campaign;
    use crate::results::tests::record;

    fn records() -> Vec<Record> {
        let mut records: Vec<Record> = (0..40)
            .map(|i| record(i, Side::Geryon, Outcome::Replaced))
            .collect();
        records.push(record(40, Side::Geryon, Outcome::Sdc));
        records.push(record(41, Side::Geryon, Outcome::Missed));
        records.push(record(0, Side::Bare, Outcome::Crash));
        records
    }

    #[test]
    fn everything_is_counted_once() {
        let (campaign, records) = (campaign(), records());
        let summary = Summary {
            campaign: &campaign,
            records: &records,
        };
        let total = summary.tally(Side::Geryon);
        assert_eq!((total.total(), total.hit()), (42, 41));
        let sum = |tallies: Vec<Tally>| tallies.iter().map(Tally::total).sum::<u64>();
        let kinds = summary.by_kind(Side::Geryon).into_iter().map(|(_, t)| t);
        assert_eq!(sum(kinds.collect()), 42);
        assert_eq!(sum(summary.by_quarter(Side::Geryon).to_vec()), 42);
        assert_eq!(summary.sides().count(), 2);
        assert_eq!(summary.detections().first(), Some(&500));
        assert!(summary.replacements().is_empty());
    }

    #[test]
    fn the_text_has_what_came_and_how_to_repeat_what_is_bad() {
        let (mut campaign, records) = (campaign(), records());
        campaign.args.push("it's".into());
        let summary = Summary {
            campaign: &campaign,
            records: &records,
        };
        let text = summary.text();
        for expected in [
            "Geryon    trials  missed  replaced  SDC\n",
            "all           42       1        40    1\n",
            "bare      trials  crash\n",
            "Geryon SDC: 1 of 41, 0.4 to 12.6 %",
            "detection latency: median 521 µs, 95 % within 539 µs, largest 541 µs (42 trials)",
            "trial 40: SDC (stdout)\n  geryon run -n 3 --fault replica=",
            r"-- gzip -c file 'it'\''s'",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
        assert!(!text.contains("taken over"), "{text}");
    }

    #[test]
    fn intervals_are_wilsons() {
        let (low, high) = interval(0, 100);
        assert!(low == 0.0 && (0.036..0.038).contains(&high), "{high}");
        let (low, high) = interval(50, 100);
        assert!((0.403..0.405).contains(&low) && (0.595..0.597).contains(&high));
        assert_eq!(interval(0, 0), (0.0, 1.0));
        assert!(interval(100, 100).1 > 0.999);
    }

    #[test]
    fn times_have_their_units() {
        let times = [0, 999, 1_500, 12_345, 999_400, 2_500_000].map(time);
        let expected = ["0 µs", "999 µs", "1.5 ms", "12 ms", "999 ms", "2.5 s"];
        assert_eq!(times, expected);
        assert_eq!(quantiles(&[]), None);
    }
}
