//! Several campaigns side by side: one row for each program, for people (Markdown) and for programs
//! (JSON).

use std::fmt::Write;

use serde::Serialize;

use crate::campaign::Campaign;
use crate::kind::Kind;
use crate::outcome::Outcome;
use crate::results::{Record, Side};
use crate::summary::{Tally, interval, share, shown, time};

/// The name of the row that has all programs.
const ALL: &str = "all";

/// A campaign that was run.
#[derive(Clone, Debug)]
pub struct Done {
    /// How it is called: the name of its results file.
    pub name: String,
    /// What it is.
    pub campaign: Campaign,
    /// What came of it.
    pub records: Vec<Record>,
}

/// What came of the faults of one row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Of which program; `all`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Of all random numbers; None in the row of all.
    pub seed: Option<u64>,
    /// How often each outcome came.
    pub outcomes: Tally,
    /// Faults that were made.
    pub injected: u64,
    /// Those of them that had an effect which somebody could see.
    pub manifested: u64,
    /// Manifested ones that were followed by a replacement or a new leader, or whose replica was left
    /// out because the program was over; of two replicas, those that stopped the run.
    pub survived: u64,
    /// From the fault to its being noticed.
    pub detection: Times,
    /// From there to the replacement.
    pub replacement: Times,
}

/// Times in microseconds, when there are any.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// The one in the middle.
    pub median_us: Option<u64>,
    /// 95 % are not above.
    pub p95_us: Option<u64>,
    /// The largest.
    pub largest_us: Option<u64>,
}

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A row for each program.
    Program,
    /// A row for each kind of target, over all programs.
    Target,
}

/// The same number of replicas, or none: what can be compared.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// What the rows are.
    pub by: By,
    /// Number of replicas; 0: the program alone.
    pub replicas: u32,
    /// Beside how many replicas the program was run alone; None of replicas.
    pub beside: Option<u32>,
    /// One row for each program, and at last one of all.
    pub rows: Vec<Row>,
}

/// Tables of campaigns: those with most replicas first, each followed by the program alone; each by
/// program and by target.
pub fn tables(done: &[Done]) -> Vec<Table> {
    let mut replicas: Vec<u32> = done.iter().map(|d| d.campaign.replicas).collect();
    replicas.sort_unstable();
    replicas.dedup();
    let mut tables = Vec::new();
    for n in replicas.into_iter().rev() {
        for side in [Side::Geryon, Side::Bare] {
            let same = done.iter().filter(|d| d.campaign.replicas == n);
            let of_side = |d: &Done| -> Vec<Record> {
                let of_side = d.records.iter().filter(|r| r.side == side);
                of_side.cloned().collect()
            };
            let parts: Vec<(&Done, Vec<Record>)> = same
                .map(|d| (d, of_side(d)))
                .filter(|(_, records)| !records.is_empty())
                .collect();
            if !parts.is_empty() {
                tables.extend([By::Program, By::Target].map(|by| table(by, n, side, &parts)));
            }
        }
    }
    tables
}

fn table(by: By, replicas: u32, side: Side, parts: &[(&Done, Vec<Record>)]) -> Table {
    let all: Vec<Record> = parts.iter().flat_map(|(_, r)| r).cloned().collect();
    let mut rows = match by {
        By::Program => parts.iter().map(|(d, r)| Row::of_program(d, r)).collect(),
        By::Target => by_target(&all),
    };
    rows.push(Row::of(ALL.into(), &all));
    let (replicas, beside) = match side {
        Side::Geryon => (replicas, None),
        Side::Bare => (0, Some(replicas)),
    };
    Table {
        by,
        replicas,
        beside,
        rows,
    }
}

fn by_target(records: &[Record]) -> Vec<Row> {
    Kind::all()
        .map(|kind| {
            let hit = records.iter().filter(|r| r.fault.target.kind() == kind);
            (kind, hit.cloned().collect::<Vec<_>>())
        })
        .filter(|(_, hit)| !hit.is_empty())
        .map(|(kind, hit)| Row::of(kind.name().into(), &hit))
        .collect()
}

impl Row {
    fn of_program(done: &Done, records: &[Record]) -> Row {
        let words = std::iter::once(&done.campaign.program).chain(&done.campaign.args);
        Row {
            command: words.cloned().collect(),
            seed: Some(done.campaign.seed),
            ..Row::of(done.name.clone(), records)
        }
    }

    fn of(name: String, records: &[Record]) -> Row {
        let outcomes = Tally::of(records);
        let count = |which: fn(Outcome) -> bool| {
            let of_those = Outcome::ALL.into_iter().filter(|o| which(*o));
            of_those.map(|o| outcomes.count(o)).sum()
        };
        Row {
            name,
            command: Vec::new(),
            seed: None,
            outcomes,
            injected: outcomes.hit(),
            manifested: count(Outcome::is_manifest),
            survived: count(Outcome::is_survived),
            detection: Times::of(records.iter().filter_map(|r| r.detection_us)),
            replacement: Times::of(records.iter().filter_map(|r| r.replacement_us)),
        }
    }
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Program => "program",
            By::Target => "target",
        }
    }
}

impl Times {
    fn of(times: impl Iterator<Item = u64>) -> Times {
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        Times {
            count: times.len() as u64,
            median_us: share(&times, 0.5),
            p95_us: share(&times, 0.95),
            largest_us: times.last().copied(),
        }
    }
}

impl Table {
    /// What it is a table of.
    pub fn title(&self) -> String {
        let whose = match (self.replicas, self.beside) {
            (_, Some(n)) => format!("the program alone, hit by the faults of {n} replicas"),
            (1, _) => "one replica".into(),
            (n, _) => format!("{n} replicas"),
        };
        match self.by {
            By::Program => format!("By program: {whose}"),
            By::Target => format!("By target: {whose}"),
        }
    }

    /// As Markdown, with a sentence on what matters.
    pub fn markdown(&self) -> String {
        let Some(all) = self.rows.last() else {
            return String::new();
        };
        let mut columns = shown(&all.outcomes);
        // That it did not come is what one wants to know.
        for worst in self.worst() {
            if !columns.contains(&worst) {
                columns.push(worst);
            }
        }
        columns.sort_unstable();
        let mut out = format!("### {}\n\n| {} | faults |", self.title(), self.by.name());
        for outcome in &columns {
            put(&mut out, format_args!(" {} |", outcome.name()));
        }
        let timed = self.beside.is_none();
        if timed {
            out.push_str(" noticed after, median / 95 % | replaced after |");
        }
        out.push_str("\n| --- | ---: |");
        out.push_str(&" ---: |".repeat(columns.len() + 2 * usize::from(timed)));
        out.push('\n');
        for row in &self.rows {
            let total = row.outcomes.total();
            put(&mut out, format_args!("| {} | {total} |", row.name));
            for outcome in &columns {
                put(
                    &mut out,
                    format_args!(" {} |", row.outcomes.count(*outcome)),
                );
            }
            if timed {
                for times in [row.detection, row.replacement] {
                    put(&mut out, format_args!(" {} |", times.text()));
                }
            }
            out.push('\n');
        }
        out.push('\n');
        if self.by == By::Program {
            self.sentences(all, &mut out);
        }
        out
    }

    /// Outcomes that are named even where they did not come.
    fn worst(&self) -> Vec<Outcome> {
        match self.beside {
            None => vec![Outcome::Due, Outcome::Hang, Outcome::Sdc],
            Some(_) => vec![Outcome::Crash, Outcome::Hang, Outcome::Sdc],
        }
    }

    fn sentences(&self, all: &Row, out: &mut String) {
        if self.beside.is_none() {
            put(
                out,
                format_args!(
                    "Of {} faults that were made {} had an effect, and {} of these {}.\n",
                    all.injected,
                    all.manifested,
                    all.survived,
                    match self.replicas {
                        2 => "stopped the run with a report or were repaired",
                        _ =>
                            "were repaired (the replica was replaced, left out at the end of the \
                              program, or its place was taken over) with the right output",
                    }
                ),
            );
        }
        for outcome in self.worst() {
            let (low, high) = interval(all.outcomes.count(outcome), all.injected);
            put(
                out,
                format_args!(
                    "{}: {} of {} ({:.2} to {:.2} %). ",
                    outcome.name(),
                    all.outcomes.count(outcome),
                    all.injected,
                    100.0 * low,
                    100.0 * high
                ),
            );
        }
        out.push('\n');
    }
}

impl Times {
    fn text(self) -> String {
        match (self.median_us, self.p95_us) {
            (Some(median), Some(p95)) => format!("{} / {}", time(median), time(p95)),
            _ => "-".into(),
        }
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::tests::campaign;
    use crate::results::tests::record;

    fn done(name: &str, replicas: u32, outcomes: &[(Side, Outcome)]) -> Done {
        let mut campaign = campaign();
        campaign.replicas = replicas;
        let records = outcomes.iter().enumerate();
        Done {
            name: name.into(),
            campaign,
            records: records
                .map(|(i, (side, outcome))| record(i as u64, *side, *outcome))
                .collect(),
        }
    }

    fn both() -> Vec<Done> {
        use Outcome::{Crash, Detected, Hang, Masked, Missed, Replaced, Sdc, TakenOver};
        use Side::{Bare, Geryon};
        vec![
            done("two", 2, &[(Geryon, Detected), (Geryon, Masked)]),
            done(
                "a",
                3,
                &[
                    (Geryon, Replaced),
                    (Geryon, TakenOver),
                    (Geryon, Masked),
                    (Geryon, Missed),
                    (Bare, Crash),
                    (Bare, Sdc),
                ],
            ),
            done("b", 3, &[(Geryon, Hang)]),
        ]
    }

    #[test]
    fn rows_add_up() {
        let tables = tables(&both());
        let titles: Vec<String> = tables.iter().map(Table::title).collect();
        let expected = [
            "By program: 3 replicas",
            "By target: 3 replicas",
            "By program: the program alone, hit by the faults of 3 replicas",
            "By target: the program alone, hit by the faults of 3 replicas",
            "By program: 2 replicas",
            "By target: 2 replicas",
        ];
        assert_eq!(titles, expected);
        for pair in tables.chunks(2) {
            let all = |t: &Table| t.rows.last().map(|r| r.outcomes);
            assert_eq!(all(&pair[0]), all(&pair[1]));
            let parts = pair[1].rows.iter().rev().skip(1);
            let sum: u64 = parts.map(|r| r.outcomes.total()).sum();
            assert_eq!(all(&pair[1]).map(|t| t.total()), Some(sum));
        }
        let all = tables[0].rows.last().expect("a row of all");
        assert_eq!(all.outcomes.total(), 5);
        assert_eq!((all.injected, all.manifested, all.survived), (4, 3, 2));
        assert_eq!(all.detection.count, 5);
        let two = tables[4].rows.last().expect("a row of all");
        assert_eq!((two.manifested, two.survived), (1, 1));
    }

    #[test]
    fn what_did_not_come_is_said() {
        let text: String = tables(&both()).iter().map(Table::markdown).collect();
        for expected in [
            "### By program: 3 replicas",
            "| a | 4 | 1 | 1 | 1 | 1 | 0 | 0 | 0 |",
            "| b | 1 | 0 | 0 | 0 | 0 | 0 | 1 | 0 |",
            "Of 4 faults that were made 3 had an effect, and 2 of these were repaired",
            "SDC: 0 of 4 (0.00 to 48.99 %)",
            "| target | faults |",
            "| a | 2 | 1 | 0 | 1 |",
            "stopped the run with a report",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
    }

    #[test]
    fn json_has_names() {
        let json = serde_json::to_value(tables(&both())).expect("json");
        assert_eq!(json[0]["rows"][0]["outcomes"]["taken over"], 1);
        assert_eq!(json[0]["rows"][0]["seed"], 42);
        assert_eq!(json[2]["beside"], 3);
        assert_eq!(json[1]["by"], "target");
    }

    #[test]
    fn nothing_is_no_table() {
        assert!(tables(&[]).is_empty());
        assert!(tables(&[done("empty", 3, &[])]).is_empty());
    }
}
