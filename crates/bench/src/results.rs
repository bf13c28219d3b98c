//! What a bench found: what is written as JSON, and what tables and charts show.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::Circumstances;
use crate::process::Failure;
use crate::stats::{Ratio, Series};

/// Raised when a reader of older results would misunderstand newer ones.
pub const SCHEMA: u32 = 1;
/// Samples that lie further apart than this part of the median earn a remark.
const SPREAD_REMARKABLE: f64 = 0.3;

/// A way in which a workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Config {
    /// The program alone.
    Native,
    /// The program alone, on one core.
    NativeOneCore,
    /// As many copies as Geryon has replicas, at once, of which none knows of the
    /// others: what replication costs at least.
    Copies,
    /// `geryon run`.
    Geryon,
}

impl Config {
    /// For a reader.
    pub fn name(self) -> &'static str {
        match self {
            Config::Native => "native",
            Config::NativeOneCore => "one core",
            Config::Copies => "copies",
            Config::Geryon => "geryon",
        }
    }
}

/// All that one bench found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// Where and when.
    pub circumstances: Circumstances,
    /// Replicas, and copies.
    pub replicas: u32,
    /// Rounds of each workload.
    pub rounds: u32,
    /// Factor on the work of every workload.
    pub scale: f64,
    /// In the order of the table of workloads.
    pub workloads: Vec<Measured>,
}

/// What came of one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Of the samples.
    pub unit: &'static str,
    /// The command that was measured; empty if it was skipped.
    pub command: Vec<String>,
    /// Why it was skipped, with the remedy.
    pub skipped: Option<String>,
    /// For each configuration in which no run failed.
    pub series: BTreeMap<Config, Series>,
    /// For each configuration that failed.
    pub failures: BTreeMap<Config, Failure>,
    /// Ratios, as far as both sides were measured.
    pub ratios: Ratios,
    /// What a reader should know before he believes the figures.
    pub remarks: Vec<String>,
}

/// The ratios that are reported.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ratios {
    /// What replication costs all in all.
    pub geryon_to_native: Option<Ratio>,
    /// What coordination costs.
    pub geryon_to_copies: Option<Ratio>,
    /// What running several copies costs on so many cores.
    pub copies_to_native: Option<Ratio>,
    /// What the program gains or loses when serialised.
    pub one_core_to_native: Option<Ratio>,
}

impl Measured {
    /// Sets what follows from the series: ratios, and remarks on the spread.
    pub fn conclude(&mut self) {
        let ratio = |of, to| Ratio::new(self.series.get(&of)?, self.series.get(&to)?);
        self.ratios = Ratios {
            geryon_to_native: ratio(Config::Geryon, Config::Native),
            geryon_to_copies: ratio(Config::Geryon, Config::Copies),
            copies_to_native: ratio(Config::Copies, Config::Native),
            one_core_to_native: ratio(Config::NativeOneCore, Config::Native),
        };
        for (config, series) in &self.series {
            let spread = series.relative_spread();
            if spread > SPREAD_REMARKABLE {
                self.remarks.push(format!(
                    "{} samples of {} lie {:.0} % of their median apart: is the machine busy? \
                     Try more rounds, or --scale for longer runs",
                    config.name(),
                    self.name,
                    spread * 100.0
                ));
            }
        }
    }
}

/// A header for [`row`].
pub fn header(replicas: u32) -> String {
    let copies = format!("{replicas} copies");
    format!(
        "{:<11} {:<5} {:>15} {:>15} {:>15} {:>15}  {:>7} {:>7}",
        "workload", "unit", "native", "one core", copies, "geryon", "/native", "/copies"
    )
}

/// A line of the table: medians with the median distance from them, and ratios.
/// Below it what was skipped or failed, and the remarks.
pub fn row(measured: &Measured) -> String {
    if let Some(why) = &measured.skipped {
        return format!("{:<11} skipped: {why}", measured.name);
    }
    let mut row = format!("{:<11} {:<5}", measured.name, measured.unit);
    for config in [
        Config::Native,
        Config::NativeOneCore,
        Config::Copies,
        Config::Geryon,
    ] {
        let cell = match (measured.series.get(&config), measured.failures.get(&config)) {
            (_, Some(_)) => "failed".into(),
            (Some(series), None) => format!("{} ±{}", figure(series.median), figure(series.mad)),
            (None, None) => "-".into(),
        };
        row += &format!(" {cell:>15}");
    }
    row.push(' ');
    for ratio in [
        &measured.ratios.geryon_to_native,
        &measured.ratios.geryon_to_copies,
    ] {
        let cell = ratio
            .as_ref()
            .map_or("-".into(), |ratio| format!("{:.2}", ratio.value));
        row += &format!(" {cell:>7}");
    }
    for (config, failure) in &measured.failures {
        let text = failure.to_string().replace('\n', "\n    | ");
        row += &format!("\n  {} failed: {text}", config.name());
    }
    for remark in &measured.remarks {
        row += &format!("\n  note: {}", remark.replace('\n', "\n    | "));
    }
    row
}

/// A number with about three digits that count.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        magnitude if magnitude < 1.0 => 3,
        magnitude if magnitude < 10.0 => 2,
        magnitude if magnitude < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A workload with these samples, concluded.
    pub fn measured(series: &[(Config, &[f64])]) -> Measured {
        let series = series
            .iter()
            .map(|(config, samples)| (*config, Series::new(samples.to_vec()).expect("samples")));
        let mut measured = Measured {
            name: "null-call",
            what: "a call",
            unit: "ns/op",
            command: vec!["guest".into()],
            skipped: None,
            series: series.collect(),
            failures: BTreeMap::new(),
            ratios: Ratios::default(),
            remarks: Vec::new(),
        };
        measured.conclude();
        measured
    }

    #[test]
    fn the_columns_of_header_and_row_end_alike() {
        let measured = measured(&[
            (Config::Native, &[100.0, 101.0]),
            (Config::Copies, &[150.0, 150.0]),
            (Config::Geryon, &[300.0, 301.0]),
        ]);
        let (header, row) = (header(3), row(&measured));
        assert_eq!(
            header.chars().count(),
            row.chars().count(),
            "{header}\n{row}"
        );
        assert!(row.ends_with("   2.99    2.00"), "{row}");
        assert!(row.contains("100 ±0.500"), "{row}");
    }

    #[test]
    fn without_geryon_there_is_no_ratio_to_it() {
        let measured = measured(&[(Config::Native, &[2.0]), (Config::Copies, &[3.0])]);
        assert_eq!(measured.ratios.geryon_to_native, None);
        assert_eq!(
            measured.ratios.copies_to_native.as_ref().map(|r| r.value),
            Some(1.5)
        );
        assert!(row(&measured).ends_with("      -       -"));
    }

    #[test]
    fn a_failure_is_told_with_its_stderr() {
        let mut measured = measured(&[(Config::Native, &[2.0])]);
        let failure = Failure {
            what: "exit status: 3".into(),
            stderr: "one\ntwo\n".into(),
        };
        measured.failures.insert(Config::Geryon, failure);
        let row = row(&measured);
        assert!(
            row.contains("geryon failed: exit status: 3\n    | one\n    | two"),
            "{row}"
        );
    }

    #[test]
    fn a_wide_spread_is_remarked_with_the_next_thing_to_try() {
        let measured = measured(&[(Config::Native, &[1.0, 1.0, 2.0])]);
        let [remark] = measured.remarks.as_slice() else {
            panic!("{:?}", measured.remarks);
        };
        assert!(
            remark.contains("100 %") && remark.contains("rounds"),
            "{remark}"
        );
    }

    #[test]
    fn json_names_the_configurations() {
        let measured = measured(&[(Config::Native, &[2.0]), (Config::NativeOneCore, &[1.0])]);
        let json = serde_json::to_value(&measured).expect("json");
        assert_eq!(json["series"]["native_one_core"]["median"], 1.0);
        assert_eq!(json["ratios"]["one_core_to_native"]["value"], 0.5);
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        let figures = [0.123, 9.994, 12.34, 123.4, 34_173.4].map(figure);
        assert_eq!(figures, ["0.123", "9.99", "12.3", "123", "34173"]);
    }
}
