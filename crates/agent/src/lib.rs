//! The code that runs inside every replica: no libc, no thread-local storage, no heap.
//!
//! Entered from rewritten `syscall` instructions ([`enter`]), rewritten function entries
//! ([`hook`]) and rewritten atomic instructions ([`atomic`]). The leader's agent records,
//! a follower's replays; both run the same walk over the system-call table ([`marshal`]).
#![no_std]

mod pidfd;
#[macro_use]
mod point;

pub mod access;
pub mod annotation;
pub mod atomic;
pub mod call;
pub mod children;
pub mod clock;
pub mod compare;
mod converged;
pub mod digest;
pub mod diverge;
pub mod dumpable;
pub mod enter;
pub mod event;
pub mod files;
pub mod gate;
pub mod hook;
pub mod ids;
pub mod jobs;
pub mod log;
mod look;
pub mod marshal;
mod mask;
pub mod memory;
mod nowhere;
mod orphan;
mod owner;
pub mod passage;
pub mod proc_files;
pub mod process;
pub mod promotion;
pub mod raise;
pub mod reap;
pub mod sabotage;
pub mod seccomp;
mod secrets;
pub mod sent;
pub mod serial;
pub mod settings;
pub mod shared;
mod shown;
mod sleep;
pub mod state;
pub mod stop;
mod stored;
pub mod thread;
pub mod timer;
mod timing;
pub mod undo;
pub mod wait;
mod waits;
mod xmm;
