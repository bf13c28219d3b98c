//! `geryon top`: the same as `geryon ps`, again and again, with what happens in a second.

use super::seen::{Process, Run};
use super::{behind, groups, happened, order, shown, those, time};
use anyhow::Result;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Of which runs to tell, and how often.
#[derive(clap::Args)]
pub struct Args {
    /// The process id of a `geryon run`; all runs that can be seen, if it is not given.
    pid: Option<i32>,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", value_parser = seconds)]
    every: f64,
    /// So many times; until the run ends, or this is interrupted, if it is not given.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(s) if (0.05..=3600.0).contains(&s) => Ok(s),
        _ => Err("0.05 to 3600 seconds".into()),
    }
}

/// Shows them until there is nothing more to show.
///
/// # Errors
/// When there is no such run, or the output cannot be written.
pub fn main(args: &Args) -> Result<()> {
    const CLEAR: &str = "\x1b[H\x1b[J";
    let clear = if io::stdout().is_terminal() {
        CLEAR
    } else {
        ""
    };
    let (mut before, mut at) = (Work::of(&those(args.pid)?), Instant::now());
    let mut left = args.count;
    while left != Some(0) {
        std::thread::sleep(Duration::from_secs_f64(args.every));
        let Ok(runs) = those(args.pid) else {
            // It has ended.
            return Ok(());
        };
        let now = Work::of(&runs);
        let text = screen(&runs, &before, at.elapsed().as_secs_f64());
        (before, at) = (now, Instant::now());
        let mut out = io::stdout().lock();
        match write!(out, "{clear}{text}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            result => result?,
        }
        left = left.map(|n| n - 1);
    }
    Ok(())
}

/// What threads have logged, by log and place in it.
struct Work(HashMap<(u64, usize), u64>);

impl Work {
    fn of(runs: &[Run]) -> Work {
        let leaders = runs.iter().flat_map(|r| &r.processes).filter(|p| p.leads);
        let words = |p: &Process| {
            let group = p.group;
            let each = p.threads.iter().map(move |t| ((group, t.slot), t.words));
            each.collect::<Vec<_>>()
        };
        Work(leaders.flat_map(words).collect())
    }

    /// How much the leader's threads have logged since.
    fn since(&self, leader: &Process) -> u64 {
        let words = |t: &super::Thread| {
            let before = self.0.get(&(leader.group, t.slot)).copied();
            t.words.saturating_sub(before.unwrap_or(0))
        };
        leader.threads.iter().map(words).sum()
    }
}

fn screen(runs: &[Run], before: &Work, seconds: f64) -> String {
    if runs.is_empty() {
        return "no run of Geryon's can be seen\n".into();
    }
    // (Writing to a string does not fail.)
    let mut text = String::new();
    for run in runs {
        let first = run.processes.first();
        let _ = writeln!(
            text,
            "{}  {}  -n {}  {}  {}",
            run.monitor,
            time(run.seconds),
            first.map_or("-".into(), |p| p.replicas.to_string()),
            first.map_or("-", order),
            shown(&run.program.join(" "))
        );
        if let Some(happened) = happened(run) {
            let _ = writeln!(text, "  {happened}");
        }
        let _ = writeln!(
            text,
            "  {:15} {:>8} {:>8} {:>10} {:>8} {:>7}  THREADS OF THE LEADER",
            "PROCESS", "LEADER", "REPLICAS", "WORDS/S", "BEHIND", "THREADS"
        );
        for group in groups(run) {
            text.push_str(&line(&group, before, seconds));
        }
        text.push('\n');
    }
    text
}

fn line(group: &[&Process], before: &Work, seconds: f64) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let there = group.iter().filter(|p| p.replica < p.replicas).count();
    let Some(leader) = group.iter().find(|p| p.leads) else {
        return format!("  {:15} nobody leads at the moment\n", shown(&first.name));
    };
    let most = group.iter().map(|p| behind(leader, p)).max().unwrap_or(0);
    let mut doing: BTreeMap<&str, usize> = BTreeMap::new();
    for t in &leader.threads {
        *doing.entry(&t.does).or_default() += 1;
    }
    let doing: Vec<String> = doing.iter().map(|(d, n)| format!("{n} {d}")).collect();
    format!(
        "  {:15} {:>8} {:>8} {:>10.0} {:>8} {:>7}  {}\n",
        shown(&first.name),
        leader.pid,
        format!("{there}/{}", first.replicas),
        before.since(leader) as f64 / seconds,
        most,
        leader.threads.len(),
        doing.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_monitor::Totals;

    #[test]
    fn what_was_logged_in_a_second() {
        let run = |words| Run {
            monitor: 1,
            seconds: 5,
            program: vec!["guest".into()],
            processes: vec![
                Process::made_up(0, true, words),
                Process::made_up(1, false, words - 10),
            ],
            totals: Totals::default(),
        };
        let before = Work::of(&[run(1000)]);
        let text = screen(&[run(1500)], &before, 0.5);
        let line = text.lines().nth(2).expect("three lines");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "guest", "100", "2/3", "1000", "10", "1", "1", "is", "in", "read"
            ]
        );
    }
}
