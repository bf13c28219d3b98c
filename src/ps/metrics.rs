//! `geryon metrics`: what `geryon ps` sees, in the text format of Prometheus.

mod serve;

use super::seen::{Process, Run, runs};
use super::{behind, groups, order};
use anyhow::Result;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

/// `geryon metrics`
#[derive(clap::Args)]
pub struct Args {
    /// Serve them at http://ADDRESS/metrics until the end: HOST:PORT, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<serve::Address>,
}

/// Prints them, or serves them for ever.
///
/// # Errors
/// When /proc cannot be read, the output cannot be written, or nobody can listen at the address.
pub fn main(args: &Args) -> Result<()> {
    if let Some(address) = &args.listen {
        return serve::serve(address, || Ok(text(&runs()?)));
    }
    let text = text(&runs()?);
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

/// One metric, and what it says of each run and process.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: String,
}

impl Family {
    fn new(name: &'static str, kind: &'static str, help: &'static str) -> Family {
        Family {
            name,
            kind,
            help,
            samples: String::new(),
        }
    }

    fn add(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(label).collect();
        // (Writing to a string does not fail.)
        let _ = writeln!(
            self.samples,
            "{}{{{}}} {value}",
            self.name,
            labels.join(",")
        );
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn text(runs: &[Run]) -> String {
    let mut text = String::new();
    for f in of_runs(runs).into_iter().chain(of_processes(runs)) {
        let Family {
            name,
            kind,
            help,
            samples,
        } = f;
        let _ = write!(
            text,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}"
        );
    }
    text
}

fn of_runs(all: &[Run]) -> Vec<Family> {
    let mut info = Family::new(
        "geryon_run_info",
        "gauge",
        "A run: its program and its order.",
    );
    let mut age = Family::new("geryon_run_seconds", "gauge", "Since when it runs.");
    let mut wanted = Family::new(
        "geryon_replicas_wanted",
        "gauge",
        "How many replicas it is to have.",
    );
    let counter = |name, help| Family::new(name, "counter", help);
    let mut faults = counter("geryon_faults_total", "Verdicts against replicas.");
    let mut replaced = counter("geryon_replacements_total", "Replicas made anew.");
    let mut promoted = counter(
        "geryon_promotions_total",
        "Followers that became the leader.",
    );
    let mut given_up = counter(
        "geryon_given_up_total",
        "Replicas taken out and not made anew.",
    );
    let mut lost = counter(
        "geryon_lost_seconds_total",
        "How long replicas stood still to be copied, and the program so that another one could lead.",
    );
    for run in all {
        let id = run.monitor.to_string();
        let own: [(&str, &str); 1] = [("run", &id)];
        let first = run.processes.first();
        let (program, order) = (run.program.join(" "), first.map_or("", order));
        info.add(&[own[0], ("program", &program), ("order", order)], 1);
        age.add(&own, run.seconds);
        wanted.add(&own, first.map_or(0, |p| p.replicas));
        let t = run.totals;
        faults.add(&own, t.faults);
        replaced.add(&own, t.replaced);
        promoted.add(&own, t.promotions);
        given_up.add(&own, t.given_up);
        lost.add(&own, t.lost_us as f64 / 1e6);
    }
    vec![
        info, age, wanted, faults, replaced, promoted, given_up, lost,
    ]
}

fn of_processes(all: &[Run]) -> Vec<Family> {
    let gauge = |name, help| Family::new(name, "gauge", help);
    let mut living = gauge(
        "geryon_replicas",
        "How many replicas of a process there are.",
    );
    let mut leads = gauge("geryon_leader", "Which of them leads, counted from 1.");
    let mut threads = gauge("geryon_threads", "Threads of the leader.");
    let mut late = gauge(
        "geryon_behind_words",
        "Words of the log that a replica has still to read.",
    );
    let mut words = Family::new(
        "geryon_log_words_total",
        "counter",
        "Words that the leader has logged.",
    );
    for run in all {
        let id = run.monitor.to_string();
        for group in groups(run) {
            let (Some(first), Some(leader)) = (group.first(), group.iter().find(|p| p.leads))
            else {
                continue;
            };
            let log = first.group.to_string();
            let own: [(&str, &str); 3] = [("run", &id), ("process", &first.name), ("log", &log)];
            let awake: Vec<&&Process> = group.iter().filter(|p| p.replica < p.replicas).collect();
            living.add(&own, awake.len());
            leads.add(&own, leader.replica + 1);
            threads.add(&own, leader.threads.len());
            words.add(&own, leader.threads.iter().map(|t| t.words).sum::<u64>());
            for p in awake.iter().filter(|p| !p.leads) {
                let replica = (p.replica + 1).to_string();
                late.add(
                    &[own[0], own[1], own[2], ("replica", &replica)],
                    behind(leader, p),
                );
            }
        }
    }
    vec![living, leads, threads, words, late]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_in_lines() {
        let run = Run {
            monitor: 99,
            seconds: 7,
            program: vec!["sh".into(), "a \"b\"\n\\".into()],
            processes: vec![Process::made_up(1, true, 50), Process::made_up(0, false, 8)],
            totals: Default::default(),
        };
        let text = text(&[run]);
        for line in [
            "# TYPE geryon_log_words_total counter\n",
            "geryon_run_info{run=\"99\",program=\"sh a \\\"b\\\"\\n\\\\\",order=\"serial\"} 1\n",
            "geryon_leader{run=\"99\",process=\"guest\",log=\"7\"} 2\n",
            "geryon_behind_words{run=\"99\",process=\"guest\",log=\"7\",replica=\"1\"} 42\n",
            "geryon_faults_total{run=\"99\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
