//! `geryon ps`: the runs on this machine, their replicas and threads. All of it is read from outside, from /proc and
//! from the replicas' memory: a run knows nothing of it, and it costs the run nothing.

pub mod metrics;
mod seen;
pub mod top;
pub mod trace;

use anyhow::{Result, bail};
use geryon_monitor::Totals;
use seen::{Process, Run, Thread, runs};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Of which runs to tell, and how.
#[derive(clap::Args)]
pub struct Args {
    /// The process id of a `geryon run`; all runs that can be seen, if it is not given.
    pid: Option<i32>,
    /// Tell what each thread of a leader does.
    #[arg(long, short)]
    threads: bool,
    /// As JSON: an array with an object for each run.
    #[arg(long)]
    json: bool,
}

/// Prints them.
///
/// # Errors
/// When there is no such run, or the output cannot be written.
pub fn main(args: &Args) -> Result<()> {
    let all = those(args.pid)?;
    let text = match args.json {
        true => {
            let all: Vec<Value> = all.iter().map(object).collect();
            serde_json::to_string_pretty(&all)? + "\n"
        }
        false => table(&all, args.threads),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()), // `| head`
        result => Ok(result?),
    }
}

/// All runs that can be seen, or the one of this process.
fn those(pid: Option<i32>) -> Result<Vec<Run>> {
    let mut all = runs()?;
    if let Some(pid) = pid {
        all.retain(|r| r.monitor == pid);
        if all.is_empty() {
            bail!(
                "process {pid} is no run of Geryon's that can be seen\n  try: geryon ps, which lists them"
            );
        }
    }
    Ok(all)
}

/// The processes that are replicas of one another.
fn groups(run: &Run) -> Vec<Vec<&Process>> {
    let mut by_group: BTreeMap<u64, Vec<&Process>> = BTreeMap::new();
    for p in &run.processes {
        by_group.entry(p.group).or_default().push(p);
    }
    let mut all: Vec<Vec<&Process>> = by_group.into_values().collect();
    for g in &mut all {
        g.sort_by_key(|p| p.replica);
    }
    all.sort_by_key(|g| g.iter().map(|p| p.pid).min());
    all
}

fn table(runs: &[Run], threads: bool) -> String {
    if runs.is_empty() {
        return "no run of Geryon's can be seen\n".into();
    }
    // (Writing to a string does not fail.)
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:>8} {:>9} {:>3} {:6} {:>9}  PROGRAM",
        "PID", "TIME", "-n", "ORDER", "PROCESSES"
    );
    for run in runs {
        let first = run.processes.first();
        let _ = writeln!(
            text,
            "{:>8} {:>9} {:>3} {:6} {:>9}  {}",
            run.monitor,
            time(run.seconds),
            first.map_or("-".into(), |p| p.replicas.to_string()),
            first.map_or("-", order),
            groups(run).len(),
            shown(&run.program.join(" "))
        );
        if let Some(happened) = happened(run) {
            let _ = writeln!(text, "{:>8} {happened}", "");
        }
        for group in groups(run) {
            let _ = writeln!(text, "{:>8} {}", "", line(&group));
            for t in group
                .iter()
                .filter(|p| threads && p.leads)
                .flat_map(|p| &p.threads)
            {
                let _ = writeln!(
                    text,
                    "{:>10} thread {}: {}, {} words logged",
                    "", t.tid, t.does, t.words
                );
            }
        }
    }
    text
}

/// What has gone wrong so far, and what came of it.
fn happened(run: &Run) -> Option<String> {
    (run.totals != Totals::default()).then(|| run.totals.to_string())
}

fn order(p: &Process) -> &'static str {
    match p.is_serial {
        true => "serial",
        false => "clocks",
    }
}

/// Who leads a group of processes, and how far the others are behind.
fn line(group: &[&Process]) -> String {
    let leader = group.iter().find(|p| p.leads);
    let name = group.first().map_or(String::new(), |p| shown(&p.name));
    let mut said: Vec<String> = Vec::new();
    let differ = group.iter().any(|p| p.file != group[0].file);
    for p in group {
        let runs = match differ {
            true => format!(", {}", shown(&p.file)),
            false => String::new(),
        };
        let who = format!("{} (pid {}{runs})", p.replica + 1, p.pid);
        said.push(match leader {
            _ if p.leads => format!("{who} leads"),
            _ if p.replica >= p.replicas => format!("{who} sleeps"),
            Some(leader) => match behind(leader, p) {
                0 => format!("{who} follows"),
                n => format!("{who} follows, {n} words behind"),
            },
            None => who,
        });
    }
    let wanted = group.first().map_or(0, |p| p.replicas);
    let missing = (0..wanted).filter(|n| group.iter().all(|p| p.replica != *n));
    said.extend(missing.map(|n| format!("{} is missing", n + 1)));
    let threads = leader.map_or(0, |p| p.threads.len());
    let rest = match threads {
        1 => String::new(),
        n => format!(", {n} threads"),
    };
    format!("{name}{rest}: {}", said.join("; "))
}

/// Words of the log that the leader has written, and this follower has not read.
fn behind(leader: &Process, follower: &Process) -> u64 {
    let of = |t: &Thread| follower.threads.iter().find(|f| f.slot == t.slot);
    let words = |t: &Thread| t.words.saturating_sub(of(t).map_or(0, |f| f.words));
    leader.threads.iter().map(words).sum()
}

/// What a program has chosen, on one line, and without anything that a terminal obeys.
fn shown(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

fn time(seconds: u64) -> String {
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match h {
        0 => format!("{m:02}:{s:02}"),
        _ => format!("{h}:{m:02}:{s:02}"),
    }
}

fn object(run: &Run) -> Value {
    let thread = |t: &Thread| json!({"tid": t.tid, "words": t.words, "does": t.does});
    let process = |p: &Process| {
        json!({
            "pid": p.pid,
            "name": p.name,
            "file": p.file,
            "replica": p.replica + 1,
            "leads": p.leads,
            "threads": p.threads.iter().map(thread).collect::<Vec<_>>(),
        })
    };
    let group = |g: &Vec<&Process>| g.iter().map(|p| process(p)).collect::<Vec<_>>();
    json!({
        "pid": run.monitor,
        "seconds": run.seconds,
        "program": run.program,
        "replicas": run.processes.first().map(|p| p.replicas),
        "order": run.processes.first().map(order),
        "totals": run.totals,
        "groups": groups(run).iter().map(group).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_one_line() {
        let (leader, follower) = (Process::made_up(1, true, 50), Process::made_up(0, false, 8));
        assert_eq!(
            line(&[&follower, &leader]),
            "guest: 1 (pid 100) follows, 42 words behind; 2 (pid 101) leads; 3 is missing"
        );
        assert_eq!(behind(&follower, &leader), 0, "read while they went on");
        let newer = Process {
            file: "/opt/guest".into(),
            ..follower
        };
        assert!(line(&[&newer, &leader]).starts_with(
            "guest: 1 (pid 100, /opt/guest) follows, 42 words behind; 2 (pid 101, /bin/guest) leads"
        ));
    }

    #[test]
    fn a_programs_words_do_not_move_the_cursor() {
        assert_eq!(shown("a\nb\u{1b}[2J é"), "a\\nb\\u{1b}[2J é");
    }

    #[test]
    fn times_are_short() {
        assert_eq!(time(62), "01:02");
        assert_eq!(time(3 * 3600 + 61), "3:01:01");
    }
}
