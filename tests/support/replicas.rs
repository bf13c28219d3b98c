//! The replicas of a run while it runs: which processes they are, by its journal, and their end by
//! SIGKILL.

use crate::journal::Journal;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The replicas, as far as the journal tells.
#[derive(Default)]
pub struct Replicas {
    /// Their processes, by index; None while one is missing.
    pub pids: Vec<Option<i32>>,
    /// Who leads.
    pub leader: usize,
    /// How many were replaced so far.
    pub replaced: usize,
    /// The run is over, or was stopped.
    pub over: bool,
}

impl Replicas {
    /// By the journal at this moment.
    pub fn read(journal: &Path) -> Replicas {
        let mut r = Replicas::default();
        for line in Journal::read(journal).lines() {
            r.event(line);
        }
        r
    }

    fn event(&mut self, line: &Value) {
        let number = |key: &str| line[key].as_i64();
        let pid = |v: Option<i64>| v.and_then(|p| i32::try_from(p).ok());
        let index = number("replica").and_then(|r| usize::try_from(r).ok());
        match (line["event"].as_str(), index) {
            (Some("start"), _) => {
                let pids = line["pids"].as_array().into_iter().flatten();
                self.pids = pids.map(|p| pid(p.as_i64())).collect();
            }
            (Some("dropped"), Some(i)) if i < self.pids.len() => self.pids[i] = None,
            (Some("replaced"), Some(i)) if i < self.pids.len() => {
                self.pids[i] = pid(number("pid"));
                self.replaced += 1;
            }
            (Some("promoted"), Some(i)) => self.leader = i,
            (Some("end" | "stopped"), _) => self.over = true,
            _ => {}
        }
    }

    /// Is nobody missing?
    pub fn are_all_there(&self) -> bool {
        !self.pids.is_empty() && self.pids.iter().all(Option::is_some)
    }

    /// The process of this one, if it is there.
    pub fn pid(&self, replica: usize) -> Option<i32> {
        self.pids.get(replica).copied().flatten()
    }

    /// Who traces them: Geryon's process.
    pub fn monitor(&self) -> Option<i32> {
        self.pids.iter().flatten().find_map(|pid| tracer(*pid))
    }

    /// The processes that the monitor keeps stopped besides them: the sleepers of a checkpoint.
    pub fn sleepers(&self) -> Vec<i32> {
        let Some(monitor) = self.monitor() else {
            return Vec::new();
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
        pids.filter(|pid| !self.pids.contains(&Some(*pid)))
            .filter(|pid| state(*pid) == Some('t') && tracer(*pid) == Some(monitor))
            .collect()
    }
}

/// The first letter of a process's state.
fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn tracer(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("TracerPid:"))?;
    line.trim().parse().ok().filter(|p| *p != 0)
}

/// Is it dead, and nobody has asked for its status?
pub fn is_zombie(pid: i32) -> bool {
    state(pid) == Some('Z')
}

/// Who is to ask for it; 0 where it is gone.
pub fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let parent = fields.split(' ').nth(1).and_then(|p| p.parse().ok());
    parent.unwrap_or(0)
}

/// Kill a replica, or a copy of one, of a run that has not ended.
pub fn kill(pid: i32) {
    // SAFETY: kill takes no pointer; the process belongs to a run of this test's own.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}
