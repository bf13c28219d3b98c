//! What a process is given to be a replica.

use crate::image::Image;
use crate::plans::Plans;
use crate::programs::Programs;
use geryon_tracee::Passage;

/// It is the same for all of them, but for their programs.
pub struct Kit {
    /// The agent.
    pub image: Image,
    /// Patch plans of the files that replicas map.
    pub plans: Plans,
    /// The programs of a run whose replicas have different ones.
    pub programs: Option<Programs>,
    /// From where replicas get descriptors.
    pub passage: Passage,
    /// It may reach processes that are not dumpable, or another user's.
    pub reaches_all: bool,
    /// Time stamp counter ticks in 2^20 ns.
    pub tsc_mult: u64,
}
