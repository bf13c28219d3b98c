//! Where and when a bench was made: without it its figures mean nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The circumstances of a bench.
#[derive(Clone, Debug, Serialize)]
pub struct Circumstances {
    /// When it began, in UTC, by ISO 8601.
    pub date: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the CPU, as the kernel names it.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: usize,
    /// Memory of the machine.
    pub memory_mib: Option<u64>,
    /// Load in the last minute before it began.
    pub load: Option<f64>,
    /// Version of Geryon.
    pub geryon_version: &'static str,
    /// Commit of the repository in which the measured Geryon lies, if it does;
    /// `-dirty` marks changes on top.
    pub geryon_commit: Option<String>,
}

impl Circumstances {
    /// Those of now, for the Geryon at this path.
    pub fn now(geryon: Option<&Path>) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs());
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        Circumstances {
            date: iso_date(seconds),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".into()),
            cores: available_parallelism().map_or(1, usize::from),
            memory_mib: memory
                .and_then(|text| text.strip_suffix(" kB")?.parse::<u64>().ok())
                .map(|kib| kib / 1024),
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok()),
            geryon_version: env!("CARGO_PKG_VERSION"),
            geryon_commit: geryon.and_then(Path::parent).and_then(commit),
        }
    }

    /// In a line.
    pub fn line(&self) -> String {
        let commit = self
            .geryon_commit
            .as_deref()
            .map(|c| format!(" ({c})"))
            .unwrap_or_default();
        format!(
            "{}, Linux {}, {}, {} cores, Geryon {}{commit}",
            self.date, self.kernel, self.cpu, self.cores, self.geryon_version
        )
    }
}

fn commit(directory: &Path) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args([
            "describe",
            "--always",
            "--dirty",
            "--abbrev=12",
            "--exclude=*",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let commit = text.trim();
    (output.status.success() && !commit.is_empty()).then(|| commit.to_owned())
}

/// Seconds since 1970 as a date and time of UTC.
fn iso_date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Counts from 1 March of year 0, so that a leap day is a year's last; an era
    // is the 400 years after which the calendar repeats.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z",
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_772_323_200, "2026-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_date(seconds), date);
        }
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let now = Circumstances::now(None);
        assert!(!now.kernel.is_empty() && now.cores >= 1);
        assert!(now.line().contains(&now.kernel));
    }
}
