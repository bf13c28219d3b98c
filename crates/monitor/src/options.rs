//! What a run means, as opposed to what was typed.

use std::ffi::OsString;
use std::path::PathBuf;

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
    /// Where the report goes, besides stderr.
    pub report: Option<PathBuf>,
    /// Test hook.
    pub sabotage: Option<Sabotage>,
    /// Rewrite code (else every call traps: slow, for comparison).
    pub patch: bool,
    /// The program starts with SIGPIPE ignored.
    pub ignore_sigpipe: bool,
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
