//! The agent's image: parsed once, laid out in a memfd that replicas map.

use anyhow::{Context, Result};
use geryon_abi::layout::kin::KIN_BYTES;
use geryon_abi::layout::{
    AGENT_BASE, BLOCK_BYTES, BLOCKS_BASE, GATE_BASE, GATE_BYTES, MAX_THREADS,
};
use geryon_abi::point::{FaultPoint, SECTION};
use geryon_patch::AgentEntries;
use geryon_tracee::{Gate, Regs, points};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::FromRawFd;

static BYTES: &[u8] = include_bytes!(env!("GERYON_AGENT_IMAGE"));

/// What the monitor needs to know of the image.
pub struct Image {
    /// The memory image: from `AGENT_BASE` on, then the gate's pages, and the memory of the kin's turn.
    pub memfd: File,
    /// Bytes that are mapped read-only and executable; the rest is data.
    pub code: u64,
    /// Bytes from `AGENT_BASE` on, in all.
    pub len: u64,
    symbols: HashMap<String, u64>,
    /// Where the agent's places are at which a test has something go wrong.
    pub points: Vec<(u64, FaultPoint)>,
    /// Addresses for trampolines.
    pub entries: AgentEntries,
}

impl Image {
    /// Lay the embedded image out.
    ///
    /// # Errors
    /// When no memfd can be made.
    pub fn load() -> Result<Image> {
        let elf = object::File::parse(BYTES).context("the embedded agent is not an ELF file")?;
        let mut flat = Vec::new();
        let mut code = u64::MAX;
        let mut gate = None;
        for s in elf.segments() {
            anyhow::ensure!(
                (AGENT_BASE..=GATE_BASE).contains(&s.address()),
                "the agent is linked at {:#x}",
                s.address()
            );
            let data = s.data()?;
            if s.address() == GATE_BASE {
                gate = Some(data);
                continue;
            }
            let at = (s.address() - AGENT_BASE) as usize;
            let end = at + s.size() as usize;
            if flat.len() < end {
                flat.resize(end.next_multiple_of(4096), 0);
            }
            flat[at..at + data.len()].copy_from_slice(data);
            if let object::SegmentFlags::Elf { p_flags, .. } = s.flags()
                && p_flags.0 & object::elf::PF_W.0 != 0
            {
                code = code.min(at as u64 & !4095);
            }
        }
        let gate = gate.filter(|g| g.len() as u64 == GATE_BYTES);
        let gate = gate.context("the agent has no gate")?;
        let symbols: HashMap<String, u64> = elf
            .symbols()
            .filter_map(|s| Some((s.name().ok()?.to_owned(), s.address())))
            .collect();
        let get = |n: &str| {
            symbols
                .get(n)
                .copied()
                .with_context(|| format!("the agent has no {n}"))
        };
        let stubs = get("GERYON_HOOK_STUBS")?;
        let hooks = (0..geryon_abi::hooks::HOOKS.len() as u64)
            .map(|i| stubs.next_multiple_of(16) + 16 * i)
            .collect();
        let entries = AgentEntries {
            syscall: get("geryon_entry")?,
            rdtsc: get("geryon_rdtsc")?,
            rdtscp: get("geryon_rdtscp")?,
            rdrand: get("geryon_rdrand")?,
            xsavec: get("geryon_xsavec")?,
            rmw: get("geryon_atomic")?,
            load: get("geryon_load")?,
            hooks,
        };
        let points = elf
            .section_by_name(SECTION)
            .context("the agent has no table of its points")?;
        let points = places(points.address(), points.data()?);
        let mut memfd = memfd("geryon-agent")?;
        memfd.write_all(&flat)?;
        memfd.write_all(gate)?;
        memfd.set_len(flat.len() as u64 + GATE_BYTES + KIN_BYTES)?;
        Ok(Image {
            memfd,
            code,
            len: flat.len() as u64,
            symbols,
            points,
            entries,
        })
    }

    /// Where the memory of the kin's turn begins in the file.
    pub fn kin_offset(&self) -> u64 {
        self.len + GATE_BYTES
    }

    /// Address of a symbol that the agent is known to have.
    ///
    /// # Panics
    /// When it has not: the image is part of this program.
    pub fn symbol(&self, name: &str) -> u64 {
        *self
            .symbols
            .get(name)
            .unwrap_or_else(|| panic!("the agent has no {name}"))
    }

    /// The gate of the filter.
    pub fn gate(&self) -> Gate {
        Gate {
            start: self.symbol("geryon_gate_begin"),
            end: self.symbol("geryon_gate_end"),
        }
    }

    /// The agent's code, but for the gate.
    pub fn text(&self) -> Range<u64> {
        AGENT_BASE..AGENT_BASE + self.code
    }

    /// True for an address in the agent.
    pub fn contains(&self, address: u64) -> bool {
        (AGENT_BASE..AGENT_BASE + self.len).contains(&address)
            || (GATE_BASE..GATE_BASE + GATE_BYTES).contains(&address)
    }

    /// The block of a thread with these registers. A newborn thread still has its creator's GS; its own
    /// block is where clone was told.
    pub fn block_of(&self, regs: &Regs) -> Option<u64> {
        let end = BLOCKS_BASE + BLOCK_BYTES * MAX_THREADS as u64;
        let cloned = self.symbol("geryon_clone_done")..self.symbol("geryon_clone_end");
        let block = match cloned.contains(&regs.rip) && regs.rax == 0 {
            true => regs.r12,
            false => regs.gs_base,
        };
        let is_block = (BLOCKS_BASE..end).contains(&block) && block.is_multiple_of(BLOCK_BYTES);
        is_block.then_some(block)
    }

    /// The thread group of a thread with these registers.
    pub fn slot_of(&self, regs: &Regs) -> Option<usize> {
        self.block_of(regs)
            .map(|b| ((b - BLOCKS_BASE) / BLOCK_BYTES) as usize)
    }

    /// The nearest symbol below an address of the image.
    pub fn name_of(&self, address: u64) -> Option<&str> {
        self.symbols
            .iter()
            .filter(|(_, a)| **a <= address)
            .max_by_key(|(_, a)| **a)
            .map(|(n, _)| n.as_str())
    }
}

/// The table of places in the agent, which lies at `start`.
fn places(start: u64, table: &[u8]) -> Vec<(u64, FaultPoint)> {
    let (entries, _) = table.as_chunks::<8>();
    let place = |(i, e): (usize, &[u8; 8])| {
        let half = |n: usize| i32::from_le_bytes([e[n], e[n + 1], e[n + 2], e[n + 3]]);
        let at = start.checked_add_signed(8 * i as i64 + i64::from(half(0)))?;
        Some((at, FaultPoint::numbered(half(4) as u32)?))
    };
    entries.iter().enumerate().filter_map(place).collect()
}

/// An anonymous file, closed at exec.
///
/// # Errors
/// When the kernel refuses.
pub fn memfd(name: &str) -> Result<File> {
    let name = std::ffi::CString::new(name)?;
    if points::fails(FaultPoint::MemfdFails) {
        return Err(std::io::Error::from_raw_os_error(libc::EMFILE)).context("memfd_create");
    }
    // SAFETY: plain system call; the descriptor is new and owned by the File.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error()).context("memfd_create");
    }
    // SAFETY: as above.
    Ok(unsafe { File::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// See `checked_syscall` in the agent's gate/page.rs.
    #[test]
    fn whichever_bit_flips_behind_a_call_leads_on_or_nowhere() {
        const NOP: u8 = 0x90;
        const HLT: u8 = 0xf4;
        let image = Image::load().expect("an image");
        let mut pages = vec![0; GATE_BYTES as usize];
        image
            .memfd
            .read_exact_at(&mut pages, image.len)
            .expect("the pages");
        for end in [
            "geryon_syscall_end",
            "geryon_blocking_end",
            "geryon_flight_end",
            "geryon_clone_done",
            "geryon_rpc_end",
        ] {
            let behind = image.symbol(end);
            for bit in 0..64 {
                let to = behind ^ 1 << bit;
                let Some(code) = to
                    .checked_sub(GATE_BASE)
                    .and_then(|at| pages.get(at as usize..))
                else {
                    assert!(!image.text().contains(&to), "{end}, bit {bit}");
                    continue;
                };
                match bit {
                    0..4 => assert_eq!(code[0], NOP, "{end}, bit {bit}"),
                    // A nop, and the check.
                    4 => assert_eq!(code[..6], [0x0f, 0x1f, 0, 0x41, 0x81, 0xfb], "{end}"),
                    _ => assert_eq!(code[0], HLT, "{end}, bit {bit}"),
                }
            }
        }
    }

    /// See `Stopped::injected_syscall`.
    #[test]
    fn an_injected_call_passes_and_what_follows_it_stops() {
        let image = Image::load().expect("an image");
        let (gate, at) = (image.gate(), image.symbol("geryon_injected"));
        let mut code = [0; 12];
        image
            .memfd
            .read_exact_at(&mut code, image.len + (at - GATE_BASE))
            .expect("the code");
        // syscall; mov rdi, rax; mov eax, ..; syscall
        assert_eq!(code[..6], [0x0f, 0x05, 0x48, 0x89, 0xc7, 0xb8]);
        assert_eq!(code[10..], [0x0f, 0x05]);
        // The filter sees the address behind a call.
        assert!((gate.start..gate.end).contains(&(at + 2)));
        assert!(at + 12 >= gate.end);
    }

    #[test]
    fn a_newborn_thread_is_not_its_creator() {
        let image = Image::load().expect("an image");
        let (creator, newborn) = (BLOCKS_BASE, BLOCKS_BASE + 3 * BLOCK_BYTES);
        // SAFETY: plain numbers.
        let mut regs: Regs = unsafe { std::mem::zeroed() };
        (regs.gs_base, regs.r12) = (creator, newborn);
        assert_eq!(image.slot_of(&regs), Some(0));
        regs.rip = image.symbol("geryon_clone_done");
        assert_eq!(image.slot_of(&regs), Some(3));
        // The creator, and another one before its clone.
        assert_eq!(image.slot_of(&Regs { rax: 77, ..regs }), Some(0));
        regs.rip = image.symbol("geryon_clone");
        assert_eq!(image.slot_of(&regs), Some(0));
        regs.gs_base = creator + 8;
        assert_eq!(image.slot_of(&regs), None);
    }
}
