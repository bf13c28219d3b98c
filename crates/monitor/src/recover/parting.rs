//! Copies of processes that share memory are forked, and share it with their sources, too: they part from those.
//! What they share among themselves is copied once, and mapped in each of them where its source has it.

use super::thread::SCRATCH;
use crate::image::{Image, memfd};
use crate::maps::{AddressSpace, ObjectId, PAGE_BYTES, SHARED_NAME, SharedMap};
use crate::setup::receive::{SCRATCH_BYTES, receive};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::touches_reserved;
use geryon_tracee::{Passage, Pid, RemoteMemory, Stopped};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// Behind what [`receive`] needs: which pages are there.
const VECTOR: u64 = SCRATCH + 0x200;
const _: () = assert!(SCRATCH_BYTES <= VECTOR - SCRATCH);
/// Pages that are asked for at once, a byte each.
const VECTOR_PAGES: u64 = 4096;

/// A copy that stands at its first stop.
pub(super) struct Part<'a> {
    /// Its process.
    pub pid: Pid,
    /// Its memory.
    pub memory: &'a RemoteMemory,
    /// Its first thread's block.
    pub block: u64,
}

impl Part<'_> {
    /// Make a call in it.
    pub(super) fn call(&self, image: &Image, nr: i64, args: [u64; 6], what: &str) -> Result<u64> {
        let at = image.symbol("geryon_injected");
        let result = Stopped(self.pid).injected_syscall(at, nr, args)?;
        if (-4095..0).contains(&result) {
            let e = std::io::Error::from_raw_os_error(-result as i32);
            bail!("cannot {what} in a copy: {e}");
        }
        Ok(result as u64)
    }
}

/// What is shared, and where: the number of the part, and its mapping.
type Shared = BTreeMap<ObjectId, Vec<(usize, SharedMap)>>;

/// A mapping, and where its object begins in the file that is mapped instead.
type Placed = (SharedMap, u64);

/// Objects begin at multiples of that in the file: a mapping that grows does not come to the next one.
const APART: u64 = 1 << 40;

/// What copies share with their sources, as it was at one moment.
pub(super) struct Saved {
    /// One file for all of it: each copy has to be told of it.
    file: File,
    /// What each of them maps.
    places: Vec<Vec<Placed>>,
}

impl Saved {
    /// Of copies whose sources stand still. `apart`: inodes of which they have their own by other means.
    ///
    /// # Errors
    /// When memory or descriptors are short, or one of them dies.
    pub(super) fn of(parts: &[Part<'_>], image: &Image, apart: &HashSet<u64>) -> Result<Saved> {
        let mut shared = Shared::new();
        for (n, part) in parts.iter().enumerate() {
            for map in AddressSpace::open(part.pid)?.shared()? {
                if !touches_reserved(map.start, map.len) && !apart.contains(&map.object.2) {
                    shared.entry(map.object).or_default().push((n, map));
                }
            }
        }
        let file = memfd(SHARED_NAME)?;
        let mut places: Vec<Vec<Placed>> = parts.iter().map(|_| Vec::new()).collect();
        let mut end = 0u64;
        for maps in shared.into_values() {
            let base = end.next_multiple_of(APART);
            let mut copied: Vec<(u64, u64)> = Vec::new();
            for (n, map) in maps {
                let (from, to) = (map.offset, map.offset + map.len);
                end = end.max(base + to);
                file.set_len(end).context("the size of what is shared")?;
                if !copied.iter().any(|(a, b)| *a <= from && to <= *b) {
                    copy(&parts[n], &map, &file, base, image)?;
                    copied.push((from, to));
                }
                places[n].push((map, base));
            }
        }
        Ok(Saved { file, places })
    }

    /// Give the same copies, in the same order, memory of their own.
    ///
    /// # Errors
    /// As for [`Saved::of`].
    pub(super) fn map(&self, parts: &[Part<'_>], image: &Image, passage: &Passage) -> Result<()> {
        for (part, own) in parts.iter().zip(&self.places) {
            map_instead(part, own, &self.file, image, passage)?;
        }
        Ok(())
    }
}

/// The bytes of a mapping, to their place in the file.
fn copy(part: &Part<'_>, map: &SharedMap, file: &File, base: u64, image: &Image) -> Result<()> {
    let mut bytes = Vec::new();
    let mut at = map.start;
    while at < map.start + map.len {
        let pages = ((map.start + map.len - at) / PAGE_BYTES).min(VECTOR_PAGES);
        let there = present(part, at, pages, image)?;
        let mut page = 0;
        while page < there.len() {
            let run = there[page..].iter().take_while(|is| **is == there[page]);
            let run = run.count();
            if there[page] {
                let from = at + page as u64 * PAGE_BYTES;
                bytes.resize(run * PAGE_BYTES as usize, 0);
                part.memory
                    .read(from, &mut bytes)
                    .context("what is shared")?;
                file.write_all_at(&bytes, base + map.offset + (from - map.start))
                    .context("a copy of what is shared")?;
            }
            page += run;
        }
        at += pages * PAGE_BYTES;
    }
    Ok(())
}

/// Which pages have been written to? (To read the others would make them.)
fn present(part: &Part<'_>, at: u64, pages: u64, image: &Image) -> Result<Vec<bool>> {
    if swaps() {
        // What was swapped out is not in memory either.
        return Ok(vec![true; pages as usize]);
    }
    let vector = part.block + VECTOR;
    let ask = [at, pages * PAGE_BYTES, vector, 0, 0, 0];
    part.call(image, libc::SYS_mincore, ask, "find the pages")?;
    let mut there = vec![0; pages as usize];
    part.memory.read(vector, &mut there)?;
    Ok(there.iter().map(|page| page & 1 != 0).collect())
}

/// Has the machine swapped anything out?
fn swaps() -> bool {
    // SAFETY: plain numbers, which the kernel then writes.
    let (result, info) = unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        (libc::sysinfo(&raw mut info), info)
    };
    result != 0 || info.freeswap != info.totalswap
}

/// Map the file where the copy has what its source shares.
fn map_instead(
    part: &Part<'_>,
    maps: &[Placed],
    file: &File,
    image: &Image,
    passage: &Passage,
) -> Result<()> {
    if maps.is_empty() {
        return Ok(());
    }
    let call = |nr, args, what: &str| part.call(image, nr, args, what);
    let scratch = part.block + SCRATCH;
    let [fd] = receive(&call, part.memory, passage, scratch, [file.as_fd()])?;
    for (map, base) in maps {
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE) as u64;
        let args = [
            map.start,
            map.len,
            map.protection as u64,
            flags,
            fd,
            base + map.offset,
        ];
        call(libc::SYS_mmap, args, "map what is shared")?;
    }
    call(libc::SYS_close, [fd, 0, 0, 0, 0, 0], "close a descriptor")?;
    Ok(())
}
