//! Rewriting the code of a process: where its trampolines go, and writing the plan's bytes.
//!
//! The first replica that has a file mapped at an address works out what to write there
//! ([`Rewrite`]); the others get the same bytes where their layout is the same, and else bytes of their own, which
//! lie at the same places.

mod areas;

pub use areas::{Areas, SENTRY_BYTES};

use crate::image::Image;
use crate::maps::{AddressSpace, CodeMap};
use crate::plans::{Planned, Plans};
use crate::private_field;
use crate::setup::map_area;
use anyhow::Result;
use geryon_abi::layout::{CANCEL_WORD, ERRNO_LOCATION, Layout};
use geryon_tracee::{RemoteMemory, Stopped};
use std::ops::Range;
use std::path::PathBuf;

/// Room for one `jmp [rip]` with its address.
const STUB_BYTES: u64 = 16;
/// Changes that lie closer than this are read and written as one piece: a call costs as much as
/// copying about two pages, and a page that is not changed had better stay shared with the file.
const GAP: u64 = 2048;

/// What is written for one executable mapping.
pub struct Rewrite {
    path: PathBuf,
    /// Where the mapping starts.
    start: u64,
    /// In which layout.
    layout: Layout,
    /// Trampolines: address (a multiple of the page size) and bytes.
    area: (u64, Vec<u8>),
    /// The program's code.
    pieces: Vec<Piece>,
    /// Words of the agent's private page.
    words: Vec<(u64, u64)>,
}

/// Code at an address: the bytes that must be there, and those that replace them.
struct Piece {
    at: u64,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// A replica of which code is rewritten.
pub struct Target<'a> {
    /// A thread of it at which calls can be injected.
    pub tracee: Stopped,
    /// Its memory.
    pub memory: &'a RemoteMemory,
    /// Its mappings.
    pub space: &'a AddressSpace,
    /// Its number.
    pub replica: usize,
    /// Where its memory lies.
    pub layout: Layout,
}

/// Rewrite what was mapped at an address.
///
/// # Errors
/// When the process dies on the way.
pub fn rewrite(
    target: &Target,
    image: &Image,
    plans: &mut Plans,
    areas: &mut Areas,
    (address, len): (u64, u64),
) -> Result<()> {
    if target.layout.is_unrelated() {
        for map in target.space.code(address, address + len)? {
            rewrite_first(target, image, plans, areas, &map, None)?;
        }
        return Ok(());
    }
    let at = (target.layout.name(address), len);
    if let Some(mapping) = areas.next(target.replica, at) {
        return rewrite_as_well(target, image, plans, areas, &mapping);
    }
    let mut made = Vec::new();
    for map in target.space.code(address, address + len)? {
        made.extend(rewrite_first(target, image, plans, areas, &map, None)?);
    }
    areas.mapped(at, made);
    Ok(())
}

/// Rewrite in one replica what was rewritten in another one.
///
/// # Errors
/// When the process dies on the way.
pub fn rewrite_as_well(
    target: &Target,
    image: &Image,
    plans: &mut Plans,
    areas: &mut Areas,
    rewrites: &[Rewrite],
) -> Result<()> {
    for r in rewrites {
        if r.layout != target.layout {
            let here = |address| target.layout.place(r.layout.name(address));
            let (start, area) = (here(r.start), here(r.area.0));
            for map in target.space.code(start, start + 1)? {
                rewrite_first(target, image, plans, areas, &map, Some(area))?;
            }
        } else if !map_area(target.tracee, image, r.area.0, r.area_len())? {
            not_rewritten(&r.path, TAKEN);
        } else if !r.apply(target.memory)? {
            not_rewritten(&r.path, DIFFERS);
        }
    }
    Ok(())
}

/// Rewrite everything that is mapped, in the first replica before its first instruction.
///
/// # Errors
/// When the process dies on the way.
pub fn rewrite_all(
    target: &Target,
    image: &Image,
    plans: &mut Plans,
    areas: &mut Areas,
) -> Result<Vec<Rewrite>> {
    let mut made = Vec::new();
    for map in target.space.code(0, u64::MAX)? {
        made.extend(rewrite_first(target, image, plans, areas, &map, None)?);
    }
    Ok(made)
}

const TAKEN: &str = "its trampolines' addresses are taken";
const DIFFERS: &str = "it differs in memory from the file";

/// Work out what to write for one mapping, and write it; its trampolines at this address, if there is one.
fn rewrite_first(
    target: &Target,
    image: &Image,
    plans: &mut Plans,
    areas: &mut Areas,
    map: &CodeMap,
    place: Option<u64>,
) -> Result<Option<Rewrite>> {
    let Some(planned) = plans.of(&map.path) else {
        // Not ELF of this machine: code that the program made itself. Its calls trap one by one,
        // as those in anonymous memory do.
        return Ok(None);
    };
    let Some((vaddr, segment_end)) = planned.vaddr_of(map.offset) else {
        return Ok(None);
    };
    let bias = map.start.wrapping_sub(vaddr);
    // ld.so first maps a library's whole extent; past the segment's end lie the gaps between
    // segments, where the file may have no bytes to read.
    let range = vaddr..segment_end.min(vaddr + (map.end - map.start));
    let mut words = Vec::new();
    if let Some(e) = planned.errno_location.filter(|e| range.contains(e)) {
        let word = private_field!(orig) + 8 * ERRNO_LOCATION as u64;
        words.push((word, e.wrapping_add(bias)));
        target.memory.set_word(word, e.wrapping_add(bias))?;
    }
    if let Some((_, at)) = planned.cancel_word.filter(|(f, _)| range.contains(f)) {
        let word = private_field!(orig) + 8 * CANCEL_WORD as u64;
        words.push((word, at));
        target.memory.set_word(word, at)?;
    }
    if plans.tells_of(&planned) {
        unseen(&map.path, planned.plan.stats.unseen_bytes);
    }
    let windows = &planned.plan.windows;
    if !windows.iter().any(|w| range.contains(&w.start)) {
        return Ok(None);
    }
    let stubs = (planned.plan.trampoline_len() as u64).next_multiple_of(16);
    let len = (stubs + STUB_BYTES * planned.replaced.len() as u64).next_multiple_of(4096);
    let mut area = None;
    if let Some(place) = place {
        area = map_area(target.tracee, image, place, len)?.then_some(place);
    } else {
        for a in candidates(map.start, map.end, len) {
            // (Where another replica has its own, of another program, nobody would know whose code it is.)
            let is_anothers = target.layout.is_unrelated() && areas.has_area(a);
            if !is_anothers
                && target.space.is_free(a, len)
                && map_area(target.tracee, image, a, len)?
            {
                area = Some(a);
                break;
            }
        }
    }
    let Some(area) = area else {
        let why = match place {
            Some(_) => TAKEN,
            None => "no free addresses within reach for its trampolines",
        };
        not_rewritten(&map.path, why);
        return Ok(None);
    };
    let emitted = planned
        .plan
        .emit(bias, area, &image.entries, Some(range.clone()));
    let mut emitted = match emitted {
        Ok(emitted) => emitted,
        Err(e) => {
            not_rewritten(&map.path, &format!("{e}"));
            return Ok(None);
        }
    };
    let mut trampolines = std::mem::take(&mut emitted.trampolines);
    for (n, (id, at)) in planned
        .replaced
        .iter()
        .enumerate()
        .filter(|(_, (_, at))| range.contains(at))
    {
        let stub = stubs as usize + STUB_BYTES as usize * n;
        // jmp [rip]; address
        trampolines.resize(trampolines.len().max(stub + 14), 0xcc);
        trampolines[stub..stub + 6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        trampolines[stub + 6..stub + 14]
            .copy_from_slice(&image.entries.hooks[usize::from(*id)].to_le_bytes());
        let from = at.wrapping_add(bias);
        let mut jump = vec![0xe9];
        jump.extend(((area + stub as u64).wrapping_sub(from + 5) as i32).to_le_bytes());
        // Nothing jumps into the old function any more: what else was planned for it is moot.
        emitted
            .writes
            .retain(|(a, b)| *a >= from + 5 || a + b.len() as u64 <= from);
        emitted.writes.push((from, jump));
        emitted.writes.sort();
    }
    words.extend(
        emitted
            .entry_origs
            .iter()
            .map(|(id, at)| (private_field!(orig) + 8 * u64::from(*id), *at)),
    );
    let Some(pieces) = pieces(target.memory, &planned, bias, &range, &emitted.writes)? else {
        // The file has changed since it was mapped, or was mapped with changes: leave it alone;
        // its calls trap one by one.
        not_rewritten(&map.path, DIFFERS);
        return Ok(None);
    };
    let rewrite = Rewrite {
        path: map.path.clone(),
        start: map.start,
        layout: target.layout,
        area: (area, trampolines),
        pieces,
        words,
    };
    rewrite.write(target.memory)?;
    areas.add_pcs(area, emitted.pc_map);
    Ok(Some(rewrite))
}

impl Rewrite {
    fn area_len(&self) -> u64 {
        (self.area.1.len() as u64).next_multiple_of(4096)
    }

    /// Write into a replica that has the trampolines' area mapped, if the bytes there are as expected.
    fn apply(&self, memory: &RemoteMemory) -> Result<bool> {
        let mut found = Vec::new();
        for p in &self.pieces {
            found.resize(p.old.len(), 0);
            if !read(memory, p.at, &mut found)? || found != p.old {
                return Ok(false);
            }
        }
        self.write(memory)?;
        Ok(true)
    }

    fn write(&self, memory: &RemoteMemory) -> Result<()> {
        memory.write(self.area.0, &self.area.1)?;
        for (at, value) in &self.words {
            memory.set_word(*at, *value)?;
        }
        for p in &self.pieces {
            memory.write(p.at, &p.new)?;
        }
        Ok(())
    }
}

/// Calls of code that is not rewritten still trap; its locks and atomics are not ordered, and the user
/// is to know.
fn not_rewritten(path: &std::path::Path, why: &str) {
    eprintln!(
        "geryon: {} is not rewritten ({why}): its calls are slow, its locks are not ordered",
        path.display()
    );
}

/// With clocks, threads that meet in code of which it is not known where its functions are meet in no order.
fn unseen(path: &std::path::Path, bytes: u64) {
    eprintln!(
        "geryon: {}: no unwind table and no symbol describes {} KB of its code: what its threads do there is not ordered; try --order serial",
        path.display(),
        bytes / 1000
    );
}

/// Read code; false where the file has none any more. What else goes wrong goes wrong with the process.
fn read(memory: &RemoteMemory, at: u64, code: &mut [u8]) -> Result<bool> {
    match memory.read(at, code) {
        Ok(()) => Ok(true),
        Err(e) if e.raw_os_error() == Some(libc::EIO) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// The code around the writes before and after; None if the bytes in memory are not those that
/// the plan was made from.
fn pieces(
    memory: &RemoteMemory,
    planned: &Planned,
    bias: u64,
    range: &Range<u64>,
    writes: &[(u64, Vec<u8>)],
) -> Result<Option<Vec<Piece>>> {
    let windows = planned
        .plan
        .windows
        .iter()
        .filter(|w| range.contains(&w.start));
    let mut extents: Vec<(u64, u64)> = windows
        .clone()
        .map(|w| (w.start.wrapping_add(bias), w.end().wrapping_add(bias)))
        .chain(writes.iter().map(|(a, b)| (*a, a + b.len() as u64)))
        .collect();
    extents.sort_unstable();
    let mut out: Vec<Piece> = Vec::new();
    for (at, end) in joined(&extents) {
        let mut old = vec![0; (end - at) as usize];
        if !read(memory, at, &mut old)? {
            return Ok(None);
        }
        let new = old.clone();
        out.push(Piece { at, old, new });
    }
    let piece_of = |out: &[Piece], at: u64| {
        let i = out.partition_point(|p| p.at <= at) - 1;
        (i, (at - out[i].at) as usize)
    };
    for w in windows {
        let (i, o) = piece_of(&out, w.start.wrapping_add(bias));
        if out[i].old[o..o + w.bytes.len()] != w.bytes[..] {
            return Ok(None);
        }
    }
    for (at, bytes) in writes {
        let (i, o) = piece_of(&out, *at);
        out[i].new[o..o + bytes.len()].copy_from_slice(bytes);
    }
    Ok(Some(out))
}

/// Sorted extents, those with a small gap between them as one.
fn joined(extents: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for &(start, end) in extents {
        match out.last_mut() {
            Some(last) if start <= last.1 + GAP => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

/// What an instruction may refer to lies on its other side, as far away again.
const SENTRY_REACH: u64 = 3 << 29;

/// Where the page of a sentry might go.
pub fn sentry_pages(site: u64) -> impl Iterator<Item = u64> {
    const MOST: usize = 64;
    candidates(site & !0xfff, site, SENTRY_BYTES).take(MOST)
}

/// Where trampolines might go: within reach of the code, far from where the kernel puts new
/// mappings and from the heap behind a program's data.
fn candidates(start: u64, end: u64, len: u64) -> impl Iterator<Item = u64> {
    const GIB: u64 = 1 << 30;
    const REACH: u64 = 2 * GIB - (64 << 20);
    const LOW: u64 = 0x1_0000;
    let step = len.next_multiple_of(1 << 20);
    // First about 1 GiB below, going down; then from the lowest addresses; then above.
    let below = (1..)
        .map_while(move |n| (start & !0xfff).checked_sub(GIB + n * step))
        .take_while(move |a| *a > LOW && a + REACH > end);
    let lowest = (start < REACH).then_some(LOW);
    let above = (0..)
        .map(move |n| ((end + GIB) & !0xfff) + n * step)
        .take_while(move |a| a + len < start + REACH);
    below.chain(lowest).chain(above)
}

impl Planned {
    /// Link-time address of a file offset, and of the end of what its segment has in the file.
    pub(crate) fn vaddr_of(&self, offset: u64) -> Option<(u64, u64)> {
        self.loads
            .iter()
            .find(|(o, _, n)| (o & !4095) <= offset && offset < o + n)
            .map(|(o, v, n)| (offset.wrapping_sub(*o).wrapping_add(*v), v + n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_extents_are_one_piece() {
        assert_eq!(joined(&[]), []);
        let near = [(10, 15), (12, 13), (15 + GAP, 16 + GAP)];
        assert_eq!(joined(&near), [(10, 16 + GAP)]);
        assert_eq!(joined(&[(10, 15), (16 + GAP, 17 + GAP)]).len(), 2);
    }

    #[test]
    fn trampolines_are_within_reach_of_all_the_code() {
        for (start, len) in [(0x40_0000u64, 0x1_0000), (0x7f00_0000_0000, 300 << 20)] {
            let end = start + len;
            let all: Vec<u64> = candidates(start, end, 0x5000).collect();
            assert!(!all.is_empty());
            for a in all {
                let furthest = end.abs_diff(a).max(start.abs_diff(a + 0x5000));
                assert!(furthest < 1 << 31, "{a:#x} is out of reach of {start:#x}");
            }
        }
    }
}
