//! What processes have mapped at their ends, and which place in which file an address of its code is.

use anyhow::{Context, Result, bail};
use geryon_tracee::{Event, Pid, Stop, Stopped, seize_descendants, text, wait_next};
use object::elf::PF_X;
use object::{Object, ObjectSegment, ReadCache, SegmentFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Child;

/// A mapping of a file's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    /// The file.
    pub path: PathBuf,
}

/// How a program has ended, with all that it has started.
pub struct Ended {
    /// What each process had mapped then.
    pub mapped: BTreeMap<Pid, Vec<Mapped>>,
    /// The program's exit status (128 and the signal that ended it).
    pub status: i32,
}

/// Waits for the end of a child and all that come from it. `is_asked`: whose mappings are wanted.
///
/// # Errors
/// It cannot be traced.
pub fn until_end(child: &Child, is_asked: impl Fn(Pid) -> bool) -> Result<Ended> {
    let first = child.id() as Pid;
    seize_descendants(first).context("cannot trace valgrind")?;
    let mut ended = Ended {
        mapped: BTreeMap::new(),
        status: 0,
    };
    loop {
        let stop = match wait_next() {
            Err(e) if e.raw_os_error() == Some(libc::ECHILD) => return Ok(ended),
            stop => stop?,
        };
        match stop {
            Stop::Exited(pid, status) if pid == first => ended.status = status,
            Stop::Killed(pid, signal, _) if pid == first => ended.status = 128 + signal,
            Stop::Exited(..) | Stop::Killed(..) => {}
            Stop::Event(pid, Event::Exit) => {
                if is_asked(pid) {
                    let lines = text(format!("/proc/{pid}/maps")).unwrap_or_default();
                    ended.mapped.insert(pid, parse(&lines));
                }
                go_on(Stopped(pid).let_end())?;
            }
            Stop::Event(pid, Event::Stop(signal)) if signal != libc::SIGTRAP => {
                go_on(Stopped(pid).listen())?
            }
            Stop::Signal(pid, signal) => go_on(Stopped(pid).resume(signal))?,
            Stop::Event(pid, _) | Stop::Syscall(pid) => go_on(Stopped(pid).resume(0))?,
        }
    }
}

/// (Who was killed meanwhile is told of by the next wait.)
fn go_on(done: std::io::Result<()>) -> Result<()> {
    match done {
        Err(e) if e.raw_os_error() != Some(libc::ESRCH) => bail!("cannot trace valgrind: {e}"),
        _ => Ok(()),
    }
}

fn parse(maps: &str) -> Vec<Mapped> {
    maps.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mapped> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let is_code = words.next()?.contains('x');
    let offset = words.next()?;
    let path = words.nth(2)?.trim_start();
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    (is_code && path.starts_with('/')).then_some(Mapped {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.into(),
    })
}

/// The file that an address of code is in, and its offset there.
pub fn place(mapped: &[Mapped], at: u64) -> Option<(&Path, u64)> {
    let m = mapped.iter().find(|m| (m.start..m.end).contains(&at))?;
    Some((&m.path, at - m.start + m.offset))
}

/// The link-time address of what lies at an offset of an ELF file, in its code.
pub fn vaddr(file: &Path, offset: u64) -> Option<u64> {
    let cache = ReadCache::new(std::fs::File::open(file).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    let is_code =
        |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X));
    elf.segments().filter(|s| is_code(s.flags())).find_map(|s| {
        let (from, len) = s.file_range();
        (from..from + len)
            .contains(&offset)
            .then(|| offset - from + s.address())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_its_file() {
        let maps = "00108000-00109000 r--p 00000000 fe:00 12                         /tmp/a b\n\
                    00109000-0010a000 r-xp 00001000 fe:00 12                         /tmp/a b\n\
                    58000000-58001000 r-xp 00000000 00:00 0 \n";
        let mapped = parse(maps);
        assert_eq!(mapped.len(), 1);
        assert_eq!(
            place(&mapped, 0x1092b1),
            Some((Path::new("/tmp/a b"), 0x12b1))
        );
        assert_eq!(place(&mapped, 0x108010), None);
        assert_eq!(place(&mapped, 0x58000010), None);
    }
}
