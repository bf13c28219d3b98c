//! From a plan and addresses to the bytes that are written into a process.

use crate::asm::Asm;
use crate::shapes::{self, Ground};
use crate::stone::SHORT_LEN;
use crate::{AREA_ALIGN, Error, JUMP_LEN, Plan, Window};
use std::collections::HashMap;
use std::ops::Range;

/// Run-time addresses of the agent's entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentEntries {
    /// Jumped to in place of `syscall`, with the address to return to in rcx
    /// and everything else as the application left it.
    pub syscall: u64,
    /// Called in place of `rdtsc`: result in eax and edx (zero-extended), everything else kept.
    pub rdtsc: u64,
    /// Called in place of `rdtscp`: result in eax, edx and ecx, everything else kept.
    pub rdtscp: u64,
    /// Called in place of `rdrand` and `rdseed`: 64 random bits in rax; may change the
    /// arithmetic flags, keeps everything else.
    pub rdrand: u64,
    /// Called behind `xsavec`, with the displacement of its operand from rsp as it was (below the red zone) on the stack;
    /// keeps everything.
    pub xsavec: u64,
    /// Called in place of an atomic; see [`crate::descriptor`].
    pub rmw: u64,
    /// Called in place of a load; see there, too.
    pub load: u64,
    /// Jumped to at a function's entry, by entry id. Zero or missing: that function is not
    /// redirected.
    pub hooks: Vec<u64>,
}

/// Bytes for a process. All addresses are run-time addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emitted {
    /// Content of the trampoline area, executable and read-only in the process.
    pub trampolines: Vec<u8>,
    /// What to write over the program's code, and where: a jump, then 0xCC.
    pub writes: Vec<(u64, Vec<u8>)>,
    /// For each redirected function (id) the address at which the original can be called.
    pub entry_origs: Vec<(u16, u64)>,
    /// For each `syscall` site: the address in the trampoline that the agent returns to, and the
    /// address behind the original instruction. Sorted by the first.
    pub syscall_returns: Vec<(u64, u64)>,
    /// Addresses in the trampolines at which all registers (but the instruction pointer) are the
    /// application's, each with the original address of that point. Sorted by the first.
    pub pc_map: Vec<(u64, u64)>,
}

impl Emitted {
    /// The original address of a point in the trampolines at which the registers
    /// are the application's.
    #[must_use]
    pub fn original_pc(&self, tramp: u64) -> Option<u64> {
        let at = self.pc_map.binary_search_by_key(&tramp, |e| e.0).ok()?;
        Some(self.pc_map[at].1)
    }
}

impl Plan {
    /// Makes the bytes for a process where the file is mapped at `bias` (run-time minus link-time
    /// address) and the trampoline area at `tramp`, for the windows inside `range` (link-time) or
    /// for all of them.
    pub fn emit(
        &self,
        bias: u64,
        tramp: u64,
        agent: &AgentEntries,
        range: Option<Range<u64>>,
    ) -> Result<Emitted, Error> {
        if !tramp.is_multiple_of(AREA_ALIGN) {
            return Err(Error::Misaligned(tramp));
        }
        let inside = |start: u64| range.as_ref().is_none_or(|r| r.contains(&start));
        let hooked = |id: u16| agent.hooks.get(usize::from(id)).is_some_and(|&h| h != 0);
        let mut ground = Ground {
            bias,
            area: tramp,
            rmw: self.rmw,
            hooked: &hooked,
            originals: HashMap::new(),
            syscall_returns: Vec::new(),
            pc_map: Vec::new(),
        };
        let mut asm = Asm::new(tramp);
        let AgentEntries {
            syscall,
            rdtsc,
            rdtscp,
            rdrand,
            rmw,
            load,
            xsavec,
            hooks,
        } = agent;
        for entry in [syscall, rdtsc, rdtscp, rdrand, rmw, load, xsavec] {
            asm.put(&entry.to_le_bytes());
        }
        for id in 0..self.hook_slots() as usize {
            asm.put(&hooks.get(id).copied().unwrap_or(0).to_le_bytes());
        }
        let mut writes: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut entry_origs = Vec::new();
        let mut stones = Vec::new();
        // (They are in ascending order. Of some 700,000 each was looked at for each stone: `import duckdb` took 12 s.)
        let host = |stone: u64| {
            let behind = self.windows.partition_point(|w| w.start <= stone);
            let before = self.windows[..behind].last();
            before.filter(|w| stone < w.end()).map(|w| w.start)
        };
        for window in self.windows.iter().filter(|w| inside(w.start)) {
            if let Some(stone) = window.stone {
                let host = host(stone).ok_or(Error::BadPlan(window.start))?;
                if !inside(host) {
                    continue;
                }
                let target = shapes::emit(&mut asm, &mut ground, window)?;
                let stone = stone.wrapping_add(bias);
                ground.pc_map.push((stone, window.start.wrapping_add(bias)));
                stones.push((host.wrapping_add(bias), stone, target));
                writes.push((window.start.wrapping_add(bias), short(window, bias)?));
                continue;
            }
            let target = shapes::emit(&mut asm, &mut ground, window)?;
            writes.push((window.start.wrapping_add(bias), jump(window, bias, target)?));
            if let Some(id) = window.entry.filter(|&id| hooked(id)) {
                entry_origs.push((id, ground.originals[&window.start]));
            }
        }
        for (host, stone, target) in stones {
            let at = writes.binary_search_by_key(&host, |w| w.0);
            let place = at
                .ok()
                .and_then(|at| writes[at].1.get_mut((stone - host) as usize..))
                .and_then(|bytes| bytes.first_chunk_mut::<JUMP_LEN>())
                .ok_or(Error::BadPlan(host))?;
            *place = long(stone, target)?;
        }
        let Ground {
            mut syscall_returns,
            mut pc_map,
            ..
        } = ground;
        syscall_returns.sort_unstable();
        pc_map.sort_unstable();
        pc_map.dedup_by_key(|e| e.0);
        let trampolines = asm.finish()?;
        assert!(
            trampolines.len() <= self.trampoline_bytes as usize,
            "trampoline_len is enough"
        );
        Ok(Emitted {
            trampolines,
            writes,
            entry_origs,
            syscall_returns,
            pc_map,
        })
    }

    /// One more than the largest id of a redirected entry.
    fn hook_slots(&self) -> u64 {
        let ids = self.windows.iter().filter_map(|w| w.entry);
        ids.max().map_or(0, |id| u64::from(id) + 1)
    }
}

/// The bytes that replace a window.
fn jump(window: &Window, bias: u64, target: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0xcc; window.bytes.len()];
    let place = bytes.first_chunk_mut::<JUMP_LEN>();
    *place.ok_or(Error::BadPlan(window.start))? = long(window.start.wrapping_add(bias), target)?;
    Ok(bytes)
}

/// A jump at an address.
fn long(at: u64, target: u64) -> Result<[u8; JUMP_LEN], Error> {
    let from = at.wrapping_add(JUMP_LEN as u64);
    let distance = i32::try_from(target.wrapping_sub(from) as i64);
    let distance = distance.map_err(|_| Error::OutOfReach { from, to: target })?;
    let mut bytes = [0xe9; JUMP_LEN];
    bytes[1..].copy_from_slice(&distance.to_le_bytes());
    Ok(bytes)
}

/// The bytes that replace a window too short for a jump: one to its stepping stone.
fn short(window: &Window, bias: u64) -> Result<Vec<u8>, Error> {
    let bad = || Error::BadPlan(window.start.wrapping_add(bias));
    let from = window.start.wrapping_add(SHORT_LEN);
    let stone = window.stone.ok_or_else(bad)?;
    let distance = i8::try_from(stone.wrapping_sub(from) as i64).map_err(|_| bad())?;
    let mut bytes = vec![0xcc; window.bytes.len()];
    let place = bytes.first_chunk_mut::<2>().ok_or_else(bad)?;
    *place = [0xeb, distance as u8];
    Ok(bytes)
}

/// Bytes that all trampolines need. No shape depends on addresses, except that a hook that is
/// missing makes it shorter or, by the word before a `syscall`, no longer.
pub fn length(plan: &Plan) -> Result<u64, Error> {
    let end = plan.segments.iter().map(|s| s.end).max().unwrap_or(0);
    let agent = AgentEntries {
        hooks: vec![1; plan.hook_slots() as usize],
        ..Default::default()
    };
    let measured = Plan {
        trampoline_bytes: u64::MAX,
        ..plan.clone()
    };
    let emitted = measured.emit(0, end.next_multiple_of(AREA_ALIGN), &agent, None)?;
    Ok(emitted.trampolines.len() as u64)
}
