//! What a run means, as opposed to what was typed.

use geryon_abi::layout::{LONG_RING_WORDS, RING_WORDS};
use geryon_fault::Fault;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// When an output may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Outputs are confirmed before they happen.
    Output,
    /// Every logged call is a rendezvous.
    All,
    /// The leader runs ahead; divergence is found after the fact.
    Async,
}

impl Verify {
    /// The number in the agent's control structure.
    pub fn code(self) -> u32 {
        use geryon_abi::layout::verify;
        match self {
            Verify::Output => verify::OUTPUT,
            Verify::All => verify::ALL,
            Verify::Async => verify::ASYNC,
        }
    }
}

/// How the threads' order is repeated in the followers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `Serial` where there are no more cores than replicas, else `Clocks`.
    Auto,
    /// Locks and atomics carry clocks; threads run in parallel.
    Clocks,
    /// One thread of a replica runs at a time.
    Serial,
}

impl Order {
    /// Does one thread run at a time, with so many replicas on this machine? With checkpoints it does
    /// unless it was asked for otherwise: in the other order a leader can seldom be copied.
    pub fn is_serial(self, replicas: u32, checkpoints: bool) -> bool {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match self {
            Order::Auto => checkpoints || (replicas > 1 && cores <= replicas as usize),
            Order::Clocks => false,
            Order::Serial => replicas > 1,
        }
    }
}

/// What follows when replicas differ (`--on-divergence`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDivergence {
    /// A replica that is outvoted is replaced by a copy of a healthy one.
    Replace,
    /// It is left out, and the rest go on.
    Drop,
    /// The run stops.
    Stop,
}

/// A fault that a test asks one replica's agent to make.
#[derive(Clone, Copy, Debug)]
pub struct Sabotage {
    /// Which replica.
    pub replica: u32,
    /// See `geryon_abi::layout::sabotage`.
    pub what: u32,
    /// At which output call, counted from 1.
    pub at: u64,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of replicas, at least 1.
    pub replicas: u32,
    /// The program, resolved.
    pub program: PathBuf,
    /// Its arguments, argv[0] first.
    pub args: Vec<OsString>,
    /// When outputs may happen.
    pub verify: Verify,
    /// How the threads' order is repeated.
    pub order: Order,
    /// What follows when replicas differ.
    pub on_divergence: OnDivergence,
    /// How often a pair of sleeping replicas is made (two replicas only).
    pub checkpoint: Option<Duration>,
    /// Where the report goes, besides stderr.
    pub report: Option<PathBuf>,
    /// Where it is written what happens, as JSON lines.
    pub journal: Option<PathBuf>,
    /// A fault to make.
    pub fault: Option<Fault>,
    /// Test hook.
    pub sabotage: Option<Sabotage>,
    /// Rewrite code (else every call traps: slow, for comparison).
    pub patch: bool,
    /// The program starts with SIGPIPE ignored.
    pub ignore_sigpipe: bool,
}

impl Options {
    /// Words in a thread's ring: with checkpoints it holds what sleeping replicas have not read.
    pub fn ring_words(&self) -> usize {
        match self.checkpoint {
            None => RING_WORDS,
            Some(_) => LONG_RING_WORDS,
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program exited.
    Exited(i32),
    /// The program died of a signal.
    Killed(i32),
    /// The replicas diverged and the run was stopped.
    Diverged,
}
