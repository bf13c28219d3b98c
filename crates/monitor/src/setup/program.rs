//! A replica gets another program than the leader's (`--variant`): at the end of exec, before the first instruction, the
//! copy's segments are those of another file, as the kernel would have mapped them. Arguments, environment, interpreter, stack
//! and descriptors stay: nothing has used them yet.
//!
//! Source: seed 1, section 2 (variants that behave alike, whatever they are made from). To execute the file in the replica
//! would be simpler, and would give it a table of descriptors of its own.

use super::Installer;
use super::stack::{Initial, Words};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::Layout;
use object::elf::{ET_DYN, ET_EXEC, FileHeader64, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf::ProgramHeader64};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const PAGE: u64 = 4096;
const MAP_PRIVATE: u64 = 2;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MAP_ANONYMOUS: u64 = 0x20;
/// Entries of the auxiliary vector.
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_ENTRY: u64 = 9;
/// Where the heap starts, among what the kernel says of a process's memory.
const HEAP: usize = 4;

/// A segment that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
    protection: u64,
}

/// A program's file.
#[derive(Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    file: File,
    /// It may lie anywhere.
    moves: bool,
    entry: u64,
    /// Where its program headers lie, as linked, how many there are, and how long one is.
    headers: [u64; 3],
    interpreter: Option<Vec<u8>>,
    loads: Vec<Load>,
    alignment: u64,
}

impl Program {
    /// Read what the kernel would look at.
    ///
    /// # Errors
    /// When it is none that can be mapped; the message says why.
    pub fn read(path: &Path) -> Result<Program> {
        let shown = path.display();
        let mut bytes = Vec::new();
        let file = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes).map(|_| file));
        let file = file.with_context(|| format!("cannot read {shown}"))?;
        Program::parse(path, file, &bytes)
            .with_context(|| format!("{shown} cannot be run as a replica's program"))
    }

    fn parse(path: &Path, file: File, bytes: &[u8]) -> Result<Program> {
        let elf = FileHeader64::<Endianness>::parse(bytes)
            .context("it is no ELF file (a script's program is its interpreter)")?;
        let end = elf.endian()?;
        let all: &[ProgramHeader64<Endianness>] = elf.program_headers(end, bytes)?;
        let of_kind = |kind| all.iter().filter(move |s| s.p_type(end) == kind);
        let loads: Vec<Load> = of_kind(PT_LOAD)
            .map(|s| {
                let has = |bit, prot: i32| match s.p_flags(end).contains(bit) {
                    true => prot as u64,
                    false => 0,
                };
                Load {
                    offset: s.p_offset(end),
                    address: s.p_vaddr(end),
                    in_file: s.p_filesz(end),
                    in_memory: s.p_memsz(end),
                    protection: has(PF_R, libc::PROT_READ)
                        | has(PF_W, libc::PROT_WRITE)
                        | has(PF_X, libc::PROT_EXEC),
                }
            })
            .collect();
        let at = elf.e_phoff(end);
        let holder = loads
            .iter()
            .find(|l| l.offset <= at && at < l.offset + l.in_file);
        let Some(holder) = holder else {
            bail!("none of its segments has its program headers");
        };
        let moves = match elf.e_type(end) {
            ET_DYN => true,
            ET_EXEC => false,
            _ => bail!("it is no program"),
        };
        let interpreter = of_kind(PT_INTERP)
            .next()
            .and_then(|s| s.interpreter(end, bytes).ok().flatten())
            .map(<[u8]>::to_vec);
        Ok(Program {
            path: path.to_path_buf(),
            file,
            moves,
            entry: elf.e_entry(end),
            headers: [
                at - holder.offset + holder.address,
                all.len() as u64,
                size_of::<ProgramHeader64<Endianness>>() as u64,
            ],
            interpreter,
            alignment: of_kind(PT_LOAD)
                .map(|s| s.p_align(end))
                .fold(PAGE, u64::max),
            loads,
        })
    }

    /// Is this the file that a process has executed?
    pub fn is_of(&self, pid: geryon_tracee::Pid) -> bool {
        let id = |m: std::io::Result<std::fs::Metadata>| m.ok().map(|m| (m.dev(), m.ino()));
        let own = id(self.file.metadata());
        own.is_some() && own == id(std::fs::metadata(format!("/proc/{pid}/exe")))
    }

    /// The whole pages that it takes, as linked.
    fn extent(&self) -> Range<u64> {
        let start = self.loads.iter().map(|l| l.address).min().unwrap_or(0);
        let end = self.loads.iter().map(|l| l.address + l.in_memory).max();
        start & !(PAGE - 1)..end.unwrap_or(0).next_multiple_of(PAGE)
    }

    /// How far from where it was linked it is to lie, in place of another one that takes these pages: as far up as
    /// that one, for behind it there is the heap.
    fn bias(&self, taken: &Range<u64>) -> u64 {
        match self.moves {
            true => taken.end.saturating_sub(self.extent().end) / self.alignment * self.alignment,
            false => 0,
        }
    }

    /// May it take the place of that one?
    ///
    /// # Errors
    /// Why not.
    pub fn can_replace(&self, other: &Program) -> Result<()> {
        if self.interpreter != other.interpreter {
            bail!(
                "{} and {} are started by different dynamic linkers, or one of them by none\n  try: programs that are linked alike (readelf -l shows the interpreter)",
                other.path.display(),
                self.path.display()
            );
        }
        Ok(())
    }
}

impl Installer<'_> {
    /// The process has this program, and gets that one.
    ///
    /// # Errors
    /// When there is no room for it, or an injected call fails.
    pub fn load(&mut self, old: &Program, new: &Program) -> Result<()> {
        let mut stack = Words::at(self.memory, self.start.rsp);
        let Initial { vector, .. } = stack.initial()?;
        let mut entries = stack.words[vector.clone()].to_vec();
        let was = value_of(&mut entries, AT_ENTRY)?.wrapping_sub(old.entry);
        let taken = old.extent();
        let taken = taken.start + was..taken.end + was;
        let bias = new.bias(&taken);
        let wanted = new.extent();
        let wanted = wanted.start + bias..wanted.end + bias;
        let heap = geryon_tracee::memory_layout(self.tracee.0).map_or(0, |l| l[HEAP]);
        if wanted.end > heap {
            bail!(
                "there is no room for {}: it would end at {:#x}, and the heap starts at {heap:#x}\n  try: build it as a position-independent executable (-pie)",
                new.path.display(),
                wanted.end
            );
        }
        let gate = self.image.symbol("geryon_blocking_syscall");
        let call = |nr, args, what: &str| self.call(gate, nr, args, what);
        let unmap = [taken.start, taken.end - taken.start, 0, 0, 0, 0];
        call(libc::SYS_munmap, unmap, "unmap a program")?;
        let scratch = (self.start.rsp - 4096) & !15;
        let from = [new.file.as_fd()];
        let [fd] = super::receive::receive(&call, self.memory, self.passage, scratch, from)?;
        for l in &new.loads {
            self.map_segment(l, bias, fd)?;
        }
        call(libc::SYS_close, [fd, 0, 0, 0, 0, 0], "close a program")?;
        let [headers, count, len] = new.headers;
        let changes = [
            (AT_PHDR, headers + bias),
            (AT_PHENT, len),
            (AT_PHNUM, count),
            (AT_ENTRY, new.entry + bias),
        ];
        for (kind, value) in changes {
            *value_of(&mut entries, kind)? = value;
        }
        let bytes: Vec<u8> = entries.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.memory
            .write(self.start.rsp + 8 * vector.start as u64, &bytes)?;
        if new.interpreter.is_none() {
            self.start.rip = new.entry + bias;
            self.tracee.set_regs(&self.start)?;
        }
        // (Where the kernel does not take it /proc/self/auxv shows the other program's.)
        self.tell_kernel(&entries, Layout::default());
        Ok(())
    }

    fn map_segment(&self, l: &Load, bias: u64, fd: u64) -> Result<()> {
        let at = |start: u64, len: u64, flags: u64, fd: u64, offset: u64| {
            let flags = flags | MAP_PRIVATE | MAP_FIXED_NOREPLACE;
            let args = [start, len, l.protection, flags, fd, offset];
            let gate = self.image.symbol("geryon_blocking_syscall");
            self.call(gate, libc::SYS_mmap, args, "map a program")
        };
        let first = (l.address + bias) & !(PAGE - 1);
        let from_file = l.address + bias + l.in_file;
        let end = (l.address + bias + l.in_memory).next_multiple_of(PAGE);
        let mut mapped = first;
        if l.in_file != 0 {
            mapped = from_file.next_multiple_of(PAGE);
            at(first, mapped - first, 0, fd, l.offset & !(PAGE - 1))?;
            if l.in_memory > l.in_file {
                let rest = vec![0; (mapped - from_file) as usize];
                self.memory.write(from_file, &rest)?;
            }
        }
        if end > mapped {
            at(mapped, end - mapped, MAP_ANONYMOUS, u64::MAX, 0)?;
        }
        Ok(())
    }
}

/// The value of this kind in the auxiliary vector.
fn value_of(entries: &mut [u64], kind: u64) -> Result<&mut u64> {
    let mut all = entries.as_chunks_mut::<2>().0.iter_mut();
    let found = all.find(|[k, _]| *k == kind);
    found
        .map(|[_, value]| value)
        .with_context(|| format!("the auxiliary vector has no entry {kind}"))
}
