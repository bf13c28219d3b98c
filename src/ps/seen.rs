//! What can be seen of runs from outside.

use anyhow::{Context, Result};
use geryon_abi::layout::{
    ABI_VERSION, Block, MAX_THREADS, PRIVATE_BASE, Private, SEGMENT_BASE, block_address, role, wait,
};
use geryon_abi::table::row;
use geryon_monitor::{Totals, totals_of};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A `geryon run`.
pub struct Run {
    /// Its process.
    pub monitor: i32,
    /// Since when it runs, in seconds.
    pub seconds: u64,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Those of all replicas.
    pub processes: Vec<Process>,
    /// What has happened to them.
    pub totals: Totals,
}

/// A process of a replica.
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// The file in which its program begins (each replica's own one, with `--variant`); empty: it cannot be told.
    pub file: String,
    /// Which replica it belongs to, from 0.
    pub replica: u32,
    /// How many there are to be.
    pub replicas: u32,
    /// It leads its group.
    pub leads: bool,
    /// One thread runs at a time.
    pub is_serial: bool,
    /// What its replicas have in common: the file of their log.
    pub group: u64,
    /// Its threads.
    pub threads: Vec<Thread>,
}

/// A thread of a process.
pub struct Thread {
    /// Its place in the log.
    pub slot: usize,
    /// Its id as the program knows it.
    pub tid: u32,
    /// How far it has come in its log, in words.
    pub words: u64,
    /// What it does.
    pub does: String,
}

/// All runs that can be seen, the oldest first.
pub fn runs() -> Result<Vec<Run>> {
    let mut traced: HashMap<i32, Vec<i32>> = HashMap::new();
    let mut monitors = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot read /proc")? {
        let Some(pid) = entry
            .ok()
            .and_then(|e| e.file_name().to_str()?.parse().ok())
        else {
            continue;
        };
        if let Some(tracer) = field(pid, "TracerPid:").filter(|t| *t != 0) {
            traced.entry(tracer).or_default().push(pid);
        }
        monitors.extend(command_of(pid).map(|program| (pid, program)));
    }
    let all: HashSet<i32> = monitors.iter().map(|(pid, _)| *pid).collect();
    // A monitor has children that are called as it is: those that stand in for lost leaders.
    let stands_in = |pid: i32| {
        !traced.contains_key(&pid)
            && field(pid, "PPid:").is_some_and(|parent| all.contains(&parent))
    };
    let mut out = Vec::new();
    for (monitor, program) in monitors {
        if stands_in(monitor) {
            continue;
        }
        let mut processes: Vec<Process> = traced
            .get(&monitor)
            .into_iter()
            .flatten()
            .filter_map(|p| process(*p))
            .collect();
        processes.sort_by_key(|p| p.pid);
        out.push(Run {
            monitor,
            seconds: age(monitor).unwrap_or(0),
            program,
            processes,
            totals: totals_of(monitor).unwrap_or_default(),
        });
    }
    out.sort_by_key(|r| (std::cmp::Reverse(r.seconds), r.monitor));
    Ok(out)
}

/// A number in /proc/PID/status.
fn field(pid: i32, name: &str) -> Option<i32> {
    let text = geryon_tracee::text(format!("/proc/{pid}/status")).ok()?;
    text.lines()
        .find_map(|l| l.strip_prefix(name)?.trim().parse().ok())
}

/// What the process runs, if it is a `geryon run`.
fn command_of(pid: i32) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<String> = bytes
        .split(|b| *b == 0)
        .map(|w| String::from_utf8_lossy(w).into_owned())
        .collect();
    let words = words.strip_suffix(&[String::new()]).unwrap_or(&words);
    let is_geryon = Path::new(words.first()?).file_name()? == "geryon";
    if !is_geryon || words.get(1)? != "run" {
        return None;
    }
    Some(crate::program_of(words).unwrap_or_else(|| words[2..].to_vec()))
}

/// Seconds since the process was made.
fn age(pid: i32) -> Option<u64> {
    let text = geryon_tracee::text(format!("/proc/{pid}/stat")).ok()?;
    // (The name may hold anything; behind it comes the third field.)
    let ticks: u64 = text
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)?
        .parse()
        .ok()?;
    let up: f64 = fs::read_to_string("/proc/uptime")
        .ok()?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    // SAFETY: plain call.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    Some((up as u64).saturating_sub(ticks / per_second))
}

/// A replica's process. None when its memory cannot be read, or Geryon has not set it up yet.
fn process(pid: i32) -> Option<Process> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let half = |at: u64| {
        let mut bytes = [0; 4];
        memory.read_exact_at(&mut bytes, at).ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    let private = |offset: usize| half(PRIVATE_BASE + offset as u64);
    if private(offset_of!(Private, version))? != ABI_VERSION {
        return None;
    }
    let maps = geryon_tracee::text(format!("/proc/{pid}/maps")).ok()?;
    let segment = format!("{SEGMENT_BASE:x}-");
    let log = maps.lines().find(|l| l.starts_with(&segment))?;
    let file = entry(pid).and_then(|at| file_at(&maps, at));
    Some(Process {
        pid,
        name: geryon_tracee::text(format!("/proc/{pid}/comm"))
            .ok()?
            .trim_end()
            .to_owned(),
        file: file.unwrap_or_default().to_owned(),
        replica: private(offset_of!(Private, replica))?,
        replicas: private(offset_of!(Private, replicas))?,
        leads: private(offset_of!(Private, role))? == role::LEADER,
        is_serial: private(offset_of!(Private, serial))? != 0,
        group: log.split_whitespace().nth(4)?.parse().ok()?,
        threads: threads(&memory),
    })
}

/// Where a process's program begins.
fn entry(pid: i32) -> Option<u64> {
    const AT_ENTRY: u64 = 9;
    let vector = fs::read(format!("/proc/{pid}/auxv")).ok()?;
    let words = vector.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w));
    let words: Vec<u64> = words.collect();
    let mut entries = words.as_chunks().0.iter();
    entries.find_map(|[kind, value]| (*kind == AT_ENTRY).then_some(*value))
}

/// The file that is mapped at this address.
fn file_at(maps: &str, address: u64) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let holds = (number(start)?..number(end)?).contains(&address);
        line.get(line.find('/').filter(|_| holds)?..)
    })
}

/// The threads of a replica's process, of which this is the memory.
pub fn threads(memory: &File) -> Vec<Thread> {
    const BYTES: usize = offset_of!(Block, verified);
    let mut out = Vec::new();
    for slot in 0..MAX_THREADS {
        let mut block = [0; BYTES];
        if memory
            .read_exact_at(&mut block, block_address(slot))
            .is_err()
        {
            break;
        }
        let half = |at: usize| {
            u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        };
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        // (A forked child's first thread keeps its parent's place.)
        if word(offset_of!(Block, this)) == 0 || half(offset_of!(Block, free)) != 0 {
            continue;
        }
        let inside = word(offset_of!(Block, frame)) != 0;
        out.push(Thread {
            slot,
            tid: half(offset_of!(Block, shown_tid)),
            words: word(offset_of!(Block, pos)),
            does: does(
                half(offset_of!(Block, waiting)),
                word(offset_of!(Block, waiting_for)),
                inside,
            ),
        });
    }
    out
}

/// What a thread does, in words.
fn does(waiting: u32, what: u64, inside: bool) -> String {
    match waiting {
        wait::NONE if inside => "is in Geryon's code".into(),
        wait::NONE => "computes".into(),
        wait::KERNEL => match row(what) {
            Some(row) => format!("is in {}", row.name),
            None => format!("is in system call {what}"),
        },
        wait::CONFIRM => "waits for confirmation".into(),
        wait::TURN => "waits for its turn".into(),
        wait::RECORD => "waits for the leader".into(),
        wait::ROOM => "waits for room in the log".into(),
        wait::MAPS => "waits for followers to map a file".into(),
        wait::DIVERGED => "stands at a divergence".into(),
        _ => "waits for another thread".into(),
    }
}

#[cfg(test)]
impl Process {
    /// One with a thread that reads.
    pub fn made_up(replica: u32, leads: bool, words: u64) -> Process {
        Process {
            pid: 100 + replica as i32,
            name: "guest".into(),
            file: "/bin/guest".into(),
            replica,
            replicas: 3,
            leads,
            is_serial: true,
            group: 7,
            threads: vec![Thread {
                slot: 2,
                tid: 100,
                words,
                does: "is in read".into(),
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::file_at;

    #[test]
    fn a_mapping_names_its_file() {
        let maps = "1000-2000 r--p 00000000 08:01 7    /opt/a b\n2000-3000 r-xp 00001000 08:01 7 /opt/a b\n3000-4000 rw-p 00000000 00:00 0";
        assert_eq!(file_at(maps, 0x2fff), Some("/opt/a b"));
        assert_eq!(file_at(maps, 0x3000), None);
        assert_eq!(file_at(maps, 0x4000), None);
    }
}
