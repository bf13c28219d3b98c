//! Rewriting the code of a process: which files are mapped where, and writing the plan's bytes.

use crate::image::Image;
use crate::plans::{Planned, Plans};
use crate::private_field;
use crate::setup::map_area;
use anyhow::Result;
use geryon_abi::layout::ERRNO_LOCATION;
use geryon_tracee::{RemoteMemory, Stopped};
use std::collections::HashMap;
use std::path::PathBuf;

/// Room for one `jmp [rip]` with its address.
const STUB_BYTES: u64 = 16;

/// One executable file mapping of a process.
#[derive(Clone, Debug)]
pub struct CodeMap {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// File offset of the first byte.
    pub offset: u64,
    /// File.
    pub path: PathBuf,
}

/// A mapped range: first address, and one past the last.
pub type Range = (u64, u64);

/// Executable file mappings, all mapped ranges (to find free addresses).
///
/// # Errors
/// When the process is gone.
pub fn maps(pid: i32) -> Result<(Vec<CodeMap>, Vec<Range>)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let (mut code, mut all) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let mut f = line.splitn(6, ' ');
        let (Some(range), Some(perms), Some(offset)) = (f.next(), f.next(), f.next()) else {
            continue;
        };
        let path = f.nth(2).unwrap_or("").trim_start();
        let Some((a, b)) = range.split_once('-') else {
            continue;
        };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(a, 16), u64::from_str_radix(b, 16)) else {
            continue;
        };
        all.push((start, end));
        if perms.as_bytes()[2] == b'x' && path.starts_with('/') && !path.starts_with("/memfd:") {
            let offset = u64::from_str_radix(offset, 16).unwrap_or(0);
            code.push(CodeMap {
                start,
                end,
                offset,
                path: PathBuf::from(path),
            });
        }
    }
    Ok((code, all))
}

/// Where trampoline areas lie, by the start of the code they belong to: followers get theirs at
/// the leader's addresses. Also what is needed to translate addresses for reports.
#[derive(Clone, Default)]
pub struct Areas {
    by_code: HashMap<(u64, u64), u64>,
    /// What the leader found mapped at an address and length: followers map the same. (Wrong for a
    /// follower that is late when the leader has mapped another file there since: the bytes are
    /// compared before they are overwritten.)
    pub mapped: HashMap<(u64, u64), Vec<CodeMap>>,
    /// (area address, length, original pcs).
    pub pcs: HashMap<u64, u64>,
}

/// Patch one mapping.
///
/// # Errors
/// When the process dies on the way.
#[allow(clippy::too_many_arguments)] // one caller; each is a different thing
pub fn patch(
    tracee: Stopped,
    memory: &RemoteMemory,
    image: &Image,
    plans: &mut Plans,
    areas: &mut Areas,
    map: &CodeMap,
    taken: &[(u64, u64)],
) -> Result<()> {
    let Some(planned) = plans.of(&map.path) else {
        return Ok(());
    };
    let Some((vaddr, segment_end)) = planned.vaddr_of(map.offset) else {
        return Ok(());
    };
    let bias = map.start.wrapping_sub(vaddr);
    // ld.so first maps a library's whole extent; past the segment's end lie the gaps between
    // segments, where the file may have no bytes to read.
    let range = vaddr..segment_end.min(vaddr + (map.end - map.start));
    if let Some(e) = planned.errno_location.filter(|e| range.contains(e)) {
        memory.set_word(
            private_field!(orig) + 8 * ERRNO_LOCATION as u64,
            e.wrapping_add(bias),
        )?;
    }
    if !planned
        .plan
        .windows
        .iter()
        .any(|w| range.contains(&w.start))
    {
        return Ok(());
    }
    let stubs = (planned.plan.trampoline_len() as u64).next_multiple_of(16);
    let len = (stubs + STUB_BYTES * planned.replaced.len() as u64).next_multiple_of(4096);
    let key = (map.start, map.end);
    let known = areas.by_code.get(&key).copied();
    let area = match known {
        Some(a) if map_area(tracee, image, a, len)? => a,
        _ => {
            let mut found = None;
            for a in candidates(map.start, map.end, len, taken) {
                if map_area(tracee, image, a, len)? {
                    found = Some(a);
                    break;
                }
            }
            let Some(a) = found else {
                not_rewritten(map, "no free addresses within reach for its trampolines");
                return Ok(());
            };
            areas.by_code.insert(key, a);
            a
        }
    };
    let Ok(mut emitted) = planned
        .plan
        .emit(bias, area, &image.entries, Some(range.clone()))
    else {
        return Ok(());
    };
    for (n, (id, at)) in planned
        .replaced
        .iter()
        .enumerate()
        .filter(|(_, (_, at))| range.contains(at))
    {
        let stub = area + stubs + STUB_BYTES * n as u64;
        // jmp [rip]; address
        let mut bytes = vec![0xff, 0x25, 0, 0, 0, 0];
        bytes.extend(image.entries.hooks[usize::from(*id)].to_le_bytes());
        memory.write(stub, &bytes)?;
        let from = at.wrapping_add(bias);
        let mut jump = vec![0xe9];
        jump.extend((stub.wrapping_sub(from + 5) as i32).to_le_bytes());
        // Nothing jumps into the old function any more: what else was planned for it is moot.
        emitted
            .writes
            .retain(|(a, b)| *a >= from + 5 || a + b.len() as u64 <= from);
        emitted.writes.push((from, jump));
        emitted.writes.sort();
    }
    memory.write(area, &emitted.trampolines)?;
    for (id, at) in &emitted.entry_origs {
        memory.set_word(private_field!(orig) + 8 * u64::from(*id), *at)?;
    }
    if !as_planned(memory, &planned, bias, &range)? {
        // The file has changed since it was mapped, or was mapped with changes: leave it alone;
        // its calls trap one by one.
        not_rewritten(map, "it differs in memory from the file");
        return Ok(());
    }
    write_all(memory, map, &emitted.writes)?;
    areas.pcs.extend(emitted.pc_map.iter().copied());
    Ok(())
}

/// Calls of code that is not rewritten still trap; its locks and atomics are not ordered, and the user
/// is to know.
fn not_rewritten(map: &CodeMap, why: &str) {
    eprintln!(
        "geryon: {} is not rewritten ({why}): its calls are slow, its locks are not ordered",
        map.path.display()
    );
}

/// Do the bytes in memory equal those that the plan was made from?
fn as_planned(
    memory: &RemoteMemory,
    planned: &Planned,
    bias: u64,
    range: &std::ops::Range<u64>,
) -> Result<bool> {
    let mut text = vec![0; (range.end - range.start) as usize];
    let from = range.start.wrapping_add(bias);
    if memory.read(from, &mut text).is_err() {
        return Ok(false);
    }
    let mut windows = planned
        .plan
        .windows
        .iter()
        .filter(|w| range.contains(&w.start));
    Ok(windows.all(|w| {
        let o = (w.start - range.start) as usize;
        text.get(o..o + w.bytes.len()) == Some(&w.bytes[..])
    }))
}

/// Many small writes as one: read the code, change it, write it back.
fn write_all(memory: &RemoteMemory, map: &CodeMap, writes: &[(u64, Vec<u8>)]) -> Result<()> {
    let (Some(first), Some(last)) = (writes.first(), writes.last()) else {
        return Ok(());
    };
    if writes.len() < 8 {
        for (at, bytes) in writes {
            memory.write(*at, bytes)?;
        }
        return Ok(());
    }
    let start = first.0.max(map.start);
    let end = (last.0 + last.1.len() as u64).min(map.end);
    let mut text = vec![0; (end - start) as usize];
    memory.read(start, &mut text)?;
    for (at, bytes) in writes {
        let o = (at - start) as usize;
        text[o..o + bytes.len()].copy_from_slice(bytes);
    }
    memory.write(start, &text)?;
    Ok(())
}

/// Free ranges for trampolines within reach of the code, far from where the kernel puts new
/// mappings and from the heap behind a program's data.
fn candidates(start: u64, end: u64, len: u64, taken: &[(u64, u64)]) -> Vec<u64> {
    const GIB: u64 = 1 << 30;
    const REACH: u64 = 2 * GIB - (64 << 20);
    const LOW: u64 = 0x1_0000;
    let free = |a: u64| a >= LOW && taken.iter().all(|(s, e)| a + len <= *s || a >= *e);
    let mut out = Vec::new();
    let step = 1 << 20;
    // First about 1 GiB below, going down; then from the lowest addresses; then above.
    let mut a = (start & !0xfff).saturating_sub(GIB);
    while a > LOW && a + REACH > end && out.len() < 64 {
        if free(a) {
            out.push(a);
        }
        a = a.saturating_sub((len.next_multiple_of(step)).max(step));
    }
    if start < REACH {
        out.extend([LOW].into_iter().filter(|a| free(*a)));
    }
    let mut a = (end + GIB) & !0xfff;
    while a + len < start + REACH && out.len() < 128 {
        if free(a) {
            out.push(a);
        }
        a += len.next_multiple_of(step);
    }
    out
}

impl Planned {
    /// Link-time address of a file offset, and of the end of what its segment has in the file.
    fn vaddr_of(&self, offset: u64) -> Option<(u64, u64)> {
        self.loads
            .iter()
            .find(|(o, _, n)| (o & !4095) <= offset && offset < o + n)
            .map(|(o, v, n)| (offset.wrapping_sub(*o).wrapping_add(*v), v + n))
    }
}
