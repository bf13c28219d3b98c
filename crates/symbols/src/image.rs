//! Reading a process: its memory through `/proc`, and a module that only memory still holds.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::Memory;
use crate::maps::Mapping;

/// The most that is copied out of a process to stand in for a missing file.
const IMAGE_MAX_BYTES: u64 = 256 << 20;
const PAGE_BYTES: usize = 4096;

/// A process's memory through `/proc/PID/mem`, for callers that have no faster way.
#[derive(Debug)]
pub struct ProcessMemory(File);

impl ProcessMemory {
    /// Opens the memory of a process that the caller may trace. It must be opened anew after the
    /// process has executed another program.
    pub fn open(pid: i32) -> std::io::Result<ProcessMemory> {
        Ok(ProcessMemory(File::open(format!("/proc/{pid}/mem"))?))
    }
}

impl Memory for ProcessMemory {
    fn read(&self, addr: u64, buf: &mut [u8]) -> bool {
        self.0.read_exact_at(buf, addr).is_ok()
    }
}

/// Memory of which nothing can be read.
pub(crate) struct NoMemory;

impl Memory for NoMemory {
    fn read(&self, _addr: u64, _buf: &mut [u8]) -> bool {
        false
    }
}

/// The little-endian word at `addr`.
pub(crate) fn read_u64(memory: &dyn Memory, addr: u64) -> Option<u64> {
    let mut word = [0; 8];
    memory
        .read(addr, &mut word)
        .then(|| u64::from_le_bytes(word))
}

/// Puts the mappings of one loaded image where they lie in its file; what is not mapped or cannot
/// be read is zero. Bytes that the process has written since are as it left them.
pub(crate) fn rebuild_file(mappings: &[&Mapping], memory: &dyn Memory) -> Option<Vec<u8>> {
    let behind = |mapping: &Mapping| mapping.offset.checked_add(mapping.end - mapping.start);
    let mut length = 0;
    for mapping in mappings {
        length = length.max(behind(mapping)?);
    }
    if length == 0 || length > IMAGE_MAX_BYTES {
        return None;
    }
    let mut file = vec![0; usize::try_from(length).ok()?];
    for mapping in mappings.iter().filter(|mapping| mapping.readable) {
        let at = usize::try_from(mapping.offset).ok()?;
        let size = usize::try_from(mapping.end - mapping.start).ok()?;
        let part = file.get_mut(at..at + size)?;
        if memory.read(mapping.start, part) {
            continue;
        }
        // A mapping may reach beyond the end of its file; those pages cannot be read.
        for (page, address) in part
            .chunks_mut(PAGE_BYTES)
            .zip((mapping.start..).step_by(PAGE_BYTES))
        {
            if !memory.read(address, page) {
                page.fill(0);
            }
        }
    }
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Maps;

    /// One readable page at 0x1000, filled with its page number.
    struct OnePage;

    impl Memory for OnePage {
        fn read(&self, addr: u64, buf: &mut [u8]) -> bool {
            buf.fill(0xee);
            let inside = addr >= 0x1000 && addr + buf.len() as u64 <= 0x2000;
            if inside {
                buf.fill(1);
            }
            inside
        }
    }

    #[test]
    fn unreadable_pages_are_zero() {
        let maps = Maps::parse("1000-3000 r-xp 00001000 00:05 9 /gone (deleted)\n");
        let file = rebuild_file(&maps.iter().collect::<Vec<_>>(), &OnePage).unwrap();
        assert_eq!(file.len(), 0x3000);
        assert!(file[..0x1000].iter().all(|&byte| byte == 0));
        assert!(file[0x1000..0x2000].iter().all(|&byte| byte == 1));
        assert!(file[0x2000..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_hostile_size_is_refused() {
        for line in [
            "0-7fffffff0000 r-xp 0 00:05 9 /x",
            "0-1000 r-xp ffffffffffffff00 00:05 9 /x",
        ] {
            let maps = Maps::parse(line);
            assert!(rebuild_file(&maps.iter().collect::<Vec<_>>(), &NoMemory).is_none());
        }
    }
}
