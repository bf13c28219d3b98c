//! What can be said on the command line, and what it means.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;

use crate::workload::{self, Workload};

/// More replicas than this no bench of ours has a use for.
const REPLICAS_MAX: i64 = 16;

/// The arguments of `geryon bench`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    /// Something else than what replication costs when nothing happens.
    #[command(subcommand)]
    pub what: Option<What>,

    /// Replicas, and uncoordinated copies beside them
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=REPLICAS_MAX))]
    pub replicas: u32,

    /// Rounds; each runs every configuration once
    #[arg(long, value_name = "K", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Only these workloads (see --list); `micro` and `programs` name groups
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub only: Vec<String>,

    /// Multiplies the work of every workload
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    pub scale: f64,

    /// Leave Geryon out: only native runs and uncoordinated copies
    #[arg(long)]
    pub native_only: bool,

    /// Write raw results to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw the ratios into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// End a run that takes longer than this many seconds, as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 120,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,

    /// Measure this Geryon instead of the one that runs the bench
    #[arg(long, value_name = "PROGRAM", conflicts_with = "native_only")]
    pub geryon: Option<PathBuf>,

    /// List the workloads and leave
    #[arg(long)]
    pub list: bool,
}

/// Benches of their own.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum What {
    /// Kill replicas: how long does the program stand still, when are all there again?
    Recovery(crate::recovery::Options),
}

/// What is asked for, checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Replicas, and uncoordinated copies.
    pub replicas: u32,
    /// Rounds of each workload.
    pub rounds: u32,
    /// Factor on the work of every workload.
    pub scale: f64,
    /// The program to measure; `None` leaves it out.
    pub geryon: Option<PathBuf>,
    /// What to run, in the order of the table.
    pub workloads: Vec<&'static Workload>,
    /// The limit of one run.
    pub time_limit: Duration,
}

impl Options {
    /// What the options mean. Fails for a workload that does not exist.
    pub fn plan(&self) -> anyhow::Result<Plan> {
        let geryon = match (&self.geryon, self.native_only) {
            (_, true) => None,
            (Some(path), _) => Some(path.clone()),
            (None, _) => Some(std::env::current_exe()?),
        };
        Ok(Plan {
            replicas: self.replicas,
            rounds: self.rounds,
            scale: self.scale,
            geryon,
            workloads: select(&self.only)?,
            time_limit: Duration::from_secs(self.timeout),
        })
    }
}

fn select(only: &[String]) -> anyhow::Result<Vec<&'static Workload>> {
    for name in only {
        if !workload::ALL
            .iter()
            .any(|workload| workload.answers_to(name))
        {
            bail!("there is no workload {name}; `geryon bench --list` shows what there is");
        }
    }
    let wanted =
        |workload: &&Workload| only.is_empty() || only.iter().any(|name| workload.answers_to(name));
    Ok(workload::ALL.iter().filter(wanted).collect())
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("not a number above 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        let line = ["bench"].iter().chain(arguments);
        Command::try_parse_from(line).map(|command| command.options)
    }

    fn plan(arguments: &[&str]) -> Plan {
        parse(arguments).expect("arguments").plan().expect("plan")
    }

    #[test]
    fn without_arguments_everything_is_measured() {
        let plan = plan(&[]);
        assert_eq!((plan.replicas, plan.rounds), (3, 7));
        assert_eq!(plan.workloads.len(), workload::ALL.len());
        assert_eq!(plan.geryon, std::env::current_exe().ok());
    }

    #[test]
    fn native_only_leaves_geryon_out() {
        assert_eq!(plan(&["--native-only"]).geryon, None);
        assert!(parse(&["--native-only", "--geryon", "g"]).is_err());
    }

    #[test]
    fn only_selects_names_and_groups_in_the_order_of_the_table() {
        let names = |arguments: &[&str]| -> Vec<&str> {
            plan(arguments).workloads.iter().map(|w| w.name).collect()
        };
        assert_eq!(names(&["--only", "xz", "null-call"]), ["null-call", "xz"]);
        assert_eq!(names(&["--only", "xz,null-call"]), ["null-call", "xz"]);
        let groups = names(&["--only", "micro"]).len() + names(&["--only", "programs"]).len();
        assert_eq!(groups, workload::ALL.len());
    }

    #[test]
    fn a_workload_that_does_not_exist_is_named() {
        let options = parse(&["--only", "xz", "nonesuch"]).expect("arguments");
        let error = options.plan().expect_err("no such workload").to_string();
        assert!(
            error.contains("nonesuch") && error.contains("--list"),
            "{error}"
        );
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for bad in [
            ["-n", "0"],
            ["-n", "17"],
            ["--rounds", "0"],
            ["--scale", "0"],
            ["--scale", "NaN"],
            ["--scale", "-1"],
            ["--timeout", "0"],
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
        assert_eq!(plan(&["--scale", "0.25", "-n", "2"]).scale, 0.25);
    }
}
