//! Symbolised backtraces of a stopped foreign process.
//!
//! A divergence report shows where each replica's thread stood. This crate turns the registers
//! and the memory of a stopped thread into frames: it follows `.eh_frame` (falling back to
//! `.debug_frame`, then to frame pointers), names functions from `.symtab` and `.dynsym`, and
//! lines from DWARF, also from separate debug files under `/usr/lib/debug`.
//!
//! [`Symbolizer`] keeps what it has parsed between calls; [`backtrace`] and [`symbol_at`] are the
//! same without that memory. Nothing is executed or written in the process, and everything that
//! is read from it is taken as hostile: bounded, checked, never trusted to be well formed.
//!
//! The thread must be stopped while it is looked at, and `regs` must be the application's
//! registers: for a thread stopped inside the agent, those that the agent's entry saved.
#![forbid(unsafe_code)]

mod elf;
mod image;
mod locate;
mod maps;
mod module;
mod symbolizer;
mod table;
mod unwind;

use std::fmt;

pub use image::ProcessMemory;
pub use locate::{entry, locate};
pub use maps::{Mapping, Maps};
pub use symbolizer::Symbolizer;

/// The memory of the stopped process.
pub trait Memory {
    /// Fills `buf` with the bytes from `addr` on; false when not all of them can be read.
    fn read(&self, addr: u64, buf: &mut [u8]) -> bool;
}

/// The registers that unwinding starts from: the program counter, and those that a function of
/// the x86-64 System V ABI preserves for its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the registers'")]
pub struct Regs {
    pub rip: u64,
    pub rsp: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

/// One frame of a backtrace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Where it stands: an instruction pointer for the first frame and for one that a signal
    /// interrupted, else a return address. Never translated.
    pub pc: u64,
    /// Path of the file, or a name such as `[vdso]`; none for anonymous memory.
    pub module: Option<String>,
    /// The address as the module's own headers count it (what `objdump` and `addr2line` take),
    /// hence equal in every replica; 0 outside modules. Of the original code, where `pc` was
    /// translated.
    pub offset: u64,
    /// Demangled name and the distance from its start, as `main+0x1d`.
    pub function: Option<String>,
    /// `file:line` of the innermost (possibly inlined) source line.
    pub source: Option<String>,
    /// Found without unwind information, by a frame pointer or a plausible return address:
    /// frames may be missing between this one and the one before.
    pub guessed: bool,
}

impl Frame {
    /// [`Frame::function`] without the distance.
    pub fn function_name(&self) -> Option<&str> {
        let function = self.function.as_deref()?;
        Some(
            function
                .rsplit_once("+0x")
                .map_or(function, |(name, _)| name),
        )
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:#014x} {}",
            self.pc,
            self.function.as_deref().unwrap_or("??")
        )?;
        if let Some(module) = &self.module {
            let short = module.rsplit('/').next().unwrap_or(module);
            write!(f, " ({short}+{:#x})", self.offset)?;
        }
        if let Some(source) = &self.source {
            write!(f, " at {source}")?;
        }
        if self.guessed {
            write!(f, " [guessed]")?;
        }
        Ok(())
    }
}

/// The frames of a stopped thread, innermost first, at most `max`. `pid` may be a tid.
///
/// For more than one backtrace, and for code in trampolines, use [`Symbolizer::backtrace`].
pub fn backtrace(pid: i32, regs: &Regs, memory: &dyn Memory, max: usize) -> Vec<Frame> {
    Symbolizer::new().backtrace(pid, regs, memory, &|_| None, max)
}

/// What is at the instruction `pc` of a process, running or stopped.
pub fn symbol_at(pid: i32, pc: u64) -> Frame {
    Symbolizer::new().symbol_at(pid, pc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_prints_what_it_knows() {
        let mut frame = Frame {
            pc: 0x1234,
            ..Frame::default()
        };
        assert_eq!(frame.to_string(), "0x000000001234 ??");
        frame.module = Some("/usr/lib/libc.so.6".into());
        frame.offset = 0x34;
        frame.function = Some("operator+0x4".into());
        frame.source = Some("a.c:7".into());
        frame.guessed = true;
        assert_eq!(
            frame.to_string(),
            "0x000000001234 operator+0x4 (libc.so.6+0x34) at a.c:7 [guessed]"
        );
        assert_eq!(frame.function_name(), Some("operator"));
    }
}
