//! Decides which bytes of an ELF file become jumps, and what they jump to.
//!
//! The crate is pure: it takes the bytes of a file and gives a [`Plan`], takes
//! addresses and gives an [`Emitted`]. It makes no system call and has no unsafe
//! code; writing the bytes into a process is the monitor's work.
//!
//! ```text
//! file bytes --Plan::new--> Plan --Plan::emit(bias, area, agent)--> Emitted
//!   elf, frames, coverage     |                                       trampolines, writes,
//!   sweep, datarefs           +-- serde: cached on disk               address tables
//!   window
//! ```
//!
//! A *site* is an instruction (or function entry) to intercept. Its *window* is the
//! run of whole instructions, at least [`JUMP_LEN`] bytes long, that is overwritten by
//! a `jmp` and moved to a *trampoline*. What must never lie inside a window, except at
//! its start: anything some other code could jump to.
//!
//! All addresses in a [`Plan`] are link-time addresses of the file; all addresses in
//! an [`Emitted`] are run-time addresses.
#![forbid(unsafe_code)]

mod asked;
mod asleep;
mod asm;
mod classify;
mod constant;
mod control;
mod coverage;
mod datarefs;
pub mod descriptor;
mod doubly;
mod elf;
mod emit;
mod error;
mod flag;
mod frames;
mod getters;
mod info;
mod learned;
mod length;
mod loads;
mod look;
mod loops;
mod mark;
mod naps;
mod once;
mod out_of_line;
mod own;
mod paired;
mod place;
mod plan;
mod pointer;
mod polled;
mod refs;
mod room;
mod seed;
mod sentry;
mod shapes;
mod spin;
mod spread;
mod stone;
mod survey;
mod sweep;
mod twice;
mod unfolded;
mod vain;
mod volatile;
mod window;

pub use asked::{Asked, asked_at};
pub use control::cancel_word;
pub use emit::{AgentEntries, Emitted};
pub use error::Error;
pub use learned::learnable;
pub use length::{INSTRUCTION_MAX, instruction_len};
pub use out_of_line::{OutOfLine, can_be_out_of_line, out_of_line, out_of_line_len};
pub use plan::{Options, Plan, Site, SiteKind, Stats, Unpatched, Window, has_glibc};
pub use sentry::{Expected, Sentry, sentry, sentry_flags, sentry_len, sentry_site};
pub use survey::{Found, survey};

/// Bytes of the `jmp rel32` that replaces the start of a window.
pub const JUMP_LEN: usize = 5;

/// Version of the serialised [`Plan`] and of the trampoline shapes; a cache keyed by
/// it never mixes two.
pub const PLAN_VERSION: u32 = 62;

/// The 8-byte word at `ret - SITE_WORD_OFFSET` of a syscall trampoline, where `ret` is
/// the address the trampoline passes in rcx, holds the run-time address behind the
/// original `syscall` instruction.
pub const SITE_WORD_OFFSET: u64 = 23;

/// A signal restart that sets the instruction pointer to `ret - REISSUE_OFFSET` lands
/// on a jump that issues the call again, as it would land on `syscall` itself.
pub const REISSUE_OFFSET: u64 = 2;

/// What the trampolines of `rdtsc`, `rdtscp`, `rdrand` and atomics subtract from rsp
/// first, so that the application's red zone is not touched.
pub const RED_ZONE: u64 = 128;

/// The trampoline area starts on a multiple of this.
pub const AREA_ALIGN: u64 = 4096;
