//! What a run means, as opposed to what was typed.

use crate::plans::Asked;
use crate::rules::Rules;
use geryon_fault::Fault;
use geryon_tracee::points::FailAt;
pub use geryon_vote::{OnDivergence, OnRace, Replacements};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// When an output may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Outputs are confirmed before they happen: what is written or sent by a majority, others by all.
    Majority,
    /// Outputs are confirmed by all before they happen.
    Output,
    /// Every logged call is a rendezvous.
    All,
    /// The leader runs ahead; divergence is found after the fact.
    Async,
}

impl Verify {
    /// The number in the agent's control structure.
    fn code(self) -> u32 {
        use geryon_abi::layout::verify;
        match self {
            Verify::Majority => verify::MAJORITY,
            Verify::Output => verify::OUTPUT,
            Verify::All => verify::ALL,
            Verify::Async => verify::ASYNC,
        }
    }
}

/// How the threads' order is repeated in the followers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `Serial`; and `Clocks` from the second thread on, where there are cores for it, until the program does what `Clocks`
    /// does not repeat.
    Auto,
    /// Locks and atomics carry clocks; threads run in parallel.
    Clocks,
    /// One thread of a replica runs at a time.
    Serial,
}

/// With so many cores for each replica threads run in parallel, if nobody has chosen their order.
const CORES_EACH: usize = 2;

/// Cores that the replicas may use. `GERYON_CORES` says another number, for tests.
pub fn cores() -> usize {
    let said = std::env::var("GERYON_CORES").ok();
    let usable = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    said.and_then(|s| s.parse().ok()).unwrap_or_else(usable)
}

impl Order {
    /// Does the order change to clocks with the second thread, with this many replicas on so many cores?
    pub fn ascends(self, replicas: u32, cores: usize) -> bool {
        self == Order::Auto && replicas > 1 && cores >= CORES_EACH * replicas as usize
    }

    /// Does one thread of a replica run at a time in the beginning, with this many replicas?
    pub fn is_serial(self, replicas: u32) -> bool {
        match self {
            Order::Auto | Order::Serial => replicas > 1,
            Order::Clocks => false,
        }
    }
}

/// Which files the program may map to be shared and writable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedFiles {
    /// None.
    Refuse,
    /// Those in memory, where processes that share memory take turns.
    Memory,
    /// All.
    Map,
}

/// How replicas differ on purpose (`--variants`), so that what an attacker knows of one's memory is wrong in the
/// others. Source: seed 0, chapter 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variants {
    /// They are alike.
    #[default]
    None,
    /// Programs and libraries lie at other addresses in each.
    Code,
    /// So do stack, heap and mappings.
    Data,
    /// The same; and the C library of each has other secrets: what guards return addresses, and addresses that it keeps.
    Full,
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
    /// How often.
    pub often: Often,
    /// So many copies that take its place one after the other, the first one included, do it.
    pub times: u32,
}

/// How often a sabotaged replica misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Often {
    /// At one output call.
    Once,
    /// At each from then on that is made on this core: it is broken.
    OnCore(u32),
    /// At each from then on.
    Always,
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
    /// What follows when that fails because the program races.
    pub on_race: OnRace,
    /// How they differ on purpose.
    pub variants: Variants,
    /// What the replicas behind the first run instead of the program, in their order; none: the same.
    pub others: Vec<PathBuf>,
    /// What these may say differently.
    pub tolerated: Rules,
    /// What follows when replicas differ.
    pub on_divergence: OnDivergence,
    /// How often a pair of sleeping replicas is made (two replicas only).
    pub checkpoint: Option<Duration>,
    /// How often replicas may be made anew.
    pub max_replacements: Replacements,
    /// A new copy's memory is made its own at once, in the background.
    pub eager_copy: bool,
    /// Which files the program may map to be shared and writable.
    pub shared_files: SharedFiles,
    /// Where the report goes, besides stderr.
    pub report: Option<PathBuf>,
    /// Where it is written what happens, as JSON lines.
    pub journal: Option<PathBuf>,
    /// A fault to make.
    pub fault: Option<Fault>,
    /// Test hook: at most one for each replica.
    pub sabotage: Vec<Sabotage>,
    /// Test hook: what goes wrong where.
    pub fail_at: Vec<FailAt>,
    /// Rewrite code (else every call traps: slow, for comparison).
    pub patch: bool,
    /// Places at which threads are known to race, by build: ordered where they run in parallel.
    pub asked: Asked,
    /// The program starts with SIGPIPE ignored.
    pub ignore_sigpipe: bool,
}

impl Options {
    /// `--verify` as a number. A run that is to stop when one differs stops before anything leaves that this one has
    /// not confirmed.
    pub fn verify_code(&self) -> u32 {
        match (self.verify, self.on_divergence) {
            (Verify::Majority, OnDivergence::Stop) => Verify::Output.code(),
            (verify, _) => verify.code(),
        }
    }

    /// Do threads run in parallel from the second one on, on so many cores? A run that could not go back to serial order stays there.
    pub fn ascends(&self, cores: usize) -> bool {
        let may_descend = self.on_divergence.replaces()
            && self.variants == Variants::None
            && self.others.is_empty();
        self.order.ascends(self.replicas, cores) && may_descend
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_want_two_cores_for_each_replica() {
        assert!(Order::Auto.ascends(2, 4) && Order::Auto.ascends(3, 16));
        assert!(!Order::Auto.ascends(2, 3) && !Order::Auto.ascends(3, 4));
        assert!(!Order::Auto.ascends(1, 16), "one replica has them anyway");
        assert!(!Order::Serial.ascends(2, 16) && !Order::Clocks.ascends(2, 16));
    }

    #[test]
    fn nobody_who_has_not_asked_begins_with_clocks() {
        assert!(Order::Auto.is_serial(2) && Order::Auto.is_serial(3) && Order::Auto.is_serial(16));
        assert!(
            !Order::Auto.is_serial(1),
            "one replica has nobody to follow it"
        );
        assert!(!Order::Clocks.is_serial(3));
    }
}
