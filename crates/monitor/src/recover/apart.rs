//! Memory that the program has asked to be left out of its forks, or to be empty there (madvise: MADV_DONTFORK,
//! MADV_WIPEONFORK). A copy of a process is no fork of the program's: the copy has that memory, and it is marked there.

use anyhow::{Context, Result};
use geryon_tracee::{Pid, Stopped};

/// What /proc/PID/smaps calls a mark, the advice that takes it away, and the one that sets it.
const MARKS: [(&str, i32, i32); 2] = [
    ("dc", libc::MADV_DOFORK, libc::MADV_DONTFORK),
    ("wf", MADV_KEEPONFORK, MADV_WIPEONFORK),
];
const MADV_WIPEONFORK: i32 = 18;
const MADV_KEEPONFORK: i32 = 19;

/// Addresses (start, end) that have a mark of [`MARKS`].
#[derive(Debug, Default)]
pub(super) struct Apart {
    ranges: Vec<(u64, u64, usize)>,
    /// Where a call can be injected.
    at: u64,
}

impl Apart {
    /// Of a process, which stands still.
    pub fn of(pid: Pid, at: u64) -> Result<Apart> {
        let smaps = geryon_tracee::text(format!("/proc/{pid}/smaps"));
        let ranges = marked(&smaps.context("its mappings")?);
        Ok(Apart { ranges, at })
    }

    /// The next fork has this memory. (Of a device's the kernel refuses that, and the program cannot have asked for it.)
    pub fn join(&self, thread: Stopped) -> Result<()> {
        self.advise(thread, |(_, joins, _)| joins)
    }

    /// It is marked again.
    pub fn mark(&self, thread: Stopped) -> Result<()> {
        self.advise(thread, |(_, _, marks)| marks)
    }

    fn advise(&self, thread: Stopped, advice: fn((&str, i32, i32)) -> i32) -> Result<()> {
        for (start, end, mark) in &self.ranges {
            let advice = advice(MARKS[*mark]) as u64;
            let args = [*start, end - start, advice, 0, 0, 0];
            thread.injected_syscall(self.at, libc::SYS_madvise, args)?;
        }
        Ok(())
    }
}

/// The ranges that have marks, those that lie side by side as one.
fn marked(smaps: &str) -> Vec<(u64, u64, usize)> {
    let mut out: Vec<(u64, u64, usize)> = Vec::new();
    let mut range = (0, 0);
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            for (n, (name, ..)) in MARKS.iter().enumerate() {
                if !flags.split_whitespace().any(|f| f == *name) {
                    continue;
                }
                match out
                    .iter_mut()
                    .find(|(_, end, m)| (*end, *m) == (range.0, n))
                {
                    Some(before) => before.1 = range.1,
                    None => out.push((range.0, range.1, n)),
                }
            }
        } else if let Some(found) = header(line) {
            range = found;
        }
    }
    out
}

/// The addresses in a mapping's first line.
fn header(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_and_neighbours_are_one() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0 \nRss:  4 kB\nVmFlags: rd wr mr mw me dc ac \n\
                     3000-4000 ---p 00000000 00:00 0 \nVmFlags: mr mw me dc \n\
                     4000-5000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me ac \n\
                     7ff000-800000 rw-p 00000000 00:00 0    [anon: a-b]\nVmFlags: rd wr wf dc \n";
        let found = marked(smaps);
        assert_eq!(
            found,
            [
                (0x1000, 0x4000, 0),
                (0x7f_f000, 0x80_0000, 0),
                (0x7f_f000, 0x80_0000, 1)
            ]
        );
    }
}
