//! What holds for one process of one replica.

use super::{
    KeptTimer, LIMITS, Layout, MAX_HOOKS, MAX_TIMERS, Secrets, Sent, Turns, Word32, Word64, strict,
};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Private control structure of one replica's process. The monitor writes it before any code of the
/// agent runs; what is a plain number stays as it is then. Of the rest: `role`, `own_pid`, `shown_pid` and
/// `shares_files` change where the process has one thread that runs (a fork's child) or that prepares it (a
/// promotion); `forks`, `file_maps`, `multi` and `tid_offset` inside the sections LIFE and MEMORY or while
/// there is one thread; `replica`, `orig` and the test-only words by the monitor.
#[repr(C)]
pub struct Private {
    /// [`super::ABI_VERSION`].
    pub version: u32,
    /// This replica's index.
    pub replica: Word32,
    /// See [`super::role`].
    pub role: Word32,
    /// Replicas of this group at start.
    pub replicas: u32,
    /// See [`super::verify`].
    pub verify: u32,
    /// 1 once the process has had a second thread.
    pub multi: Word32,
    /// 1 once memory is mapped that another process may store to.
    pub shares: Word32,
    /// Is the process one of the kin? See [`super::kin`].
    pub kin: Word32,
    /// 1 once it has memory that another process of the program stores to, with clocks: in which order they come there is not
    /// repeated, nor how many atomic instructions that takes.
    pub uncounted: Word32,
    /// 1 once another process may see, in what it finds in memory, how far this one is: the program has forked, or
    /// memory is mapped that others may store to.
    pub related: Word32,
    /// 1 while followers share the leader's descriptor table.
    pub shares_files: Word32,
    /// 1 until the injected environment has been removed again.
    pub env_injected: Word32,
    /// Address of envp[0] on the initial stack.
    pub envp: u64,
    /// TSC ticks for 2^20 nanoseconds.
    pub tsc_mult: u64,
    /// Where its memory lies, see [`Layout`]; of a copy it is what it is of its source.
    pub layout: Layout,
    /// What it has by chance.
    pub secrets: Secrets,
    /// 1: one thread runs at a time. (The monitor may set it while the process runs.)
    pub serial: Word32,
    /// See [`super::ascent`].
    pub ascent: Word32,
    /// Whose turn it is then.
    pub turns: Turns,
    /// Cores that the replicas may use.
    pub cores: u32,
    /// 1: there are more threads than cores, and who looks again and again keeps others from running.
    pub crowded: AtomicU32,
    /// How often a wait for another replica that runs on another core looks before it sleeps.
    pub patience: u32,
    /// 1: loads that decide about order are repeated, with clocks.
    pub loads: u32,
    /// 1: the leader stamps what it publishes, see `agent/log/stamps.rs`.
    pub stamps: Word32,
    /// See [`strict`].
    pub strict: AtomicU32,
    /// So many of `late` count.
    pub late_count: AtomicU32,
    /// Written by the monitor for a copy: before which records its threads do late what they do, see [`strict::late`].
    pub late: [Word64; strict::MOST_LATE],
    /// Offset of the thread id word from the thread pointer; 0 when unknown.
    pub tid_offset: Word64,
    /// Forks done so far.
    pub forks: Word64,
    /// File mappings done so far.
    pub file_maps: Word64,
    /// Sleepers on private clocks.
    pub sleepers: AtomicU32,
    /// See [`super::sabotage`]; the agent's test-only hook.
    pub sabotage: Word32,
    /// The logged call (counted over the process) at which to do it.
    pub sabotage_at: Word64,
    /// The core on which it is done, at each call from then on; or [`super::sabotage::ONCE`],
    /// [`super::sabotage::ALWAYS`].
    pub sabotage_core: Word32,
    /// Logged calls of the process so far (leader's count in the leader).
    pub calls: AtomicU64,
    /// Relocated originals of the hooked functions, by hook id; 0 when not present.
    pub orig: [Word64; MAX_HOOKS],
    /// Leader: signals that the program has sent its process, and that it has not been given: see `agent/sent.rs`.
    pub sent: Sent,
    /// Signals that it may read from a descriptor: of those nothing is known.
    pub sent_apart: Word64,
    /// Process id shown to the program.
    pub shown_pid: Word32,
    /// Own host process id.
    pub own_pid: Word32,
    /// See [`super::promotion`].
    pub promotion: AtomicU32,
    /// What this process has set timers to.
    pub timers: [KeptTimer; MAX_TIMERS],
    /// Written by the monitor for a successor: when its predecessor was lost (CLOCK_MONOTONIC, nanoseconds).
    pub lost_at: Word64,
    /// Messages already shown (a refused call is named once).
    pub refused_shown: AtomicU32,
    /// See [`super::owes`].
    pub owes: AtomicU32,
    /// 1: the program does not want to hear of its children's ends (by SIG_IGN or SA_NOCLDWAIT).
    pub discards: Word32,
    /// 1: the process is to have the children that its descendants leave (PR_SET_CHILD_SUBREAPER).
    pub reaps_orphans: Word32,
    /// See [`super::children`].
    pub children: Word32,
    /// 1: the program has opened a file below /proc for more than reading.
    pub proc_files: Word32,
    /// Which limits the program has set, a bit for each.
    pub limits_set: Word32,
    /// 1 once it has asked for memory that its forks do not have, or have empty.
    pub forks_apart: Word32,
    /// To what: soft and hard.
    pub limits: [[Word64; 2]; LIMITS],
    /// Name of the monitor's socket, from which descriptors come: see [`super::letter`].
    pub monitor: Word64,
    /// See [`super::dumpable`].
    pub dumpable: Word32,
    /// 1: another process of the program has the same descriptors, or the same directory, in the leader and
    /// in no follower: who took over could not share them.
    pub common: Word32,
    /// While it is [`super::dumpable::NO`]: how large a core might be before.
    pub core_limit: Word64,
    /// Where the program's next seccomp filter comes to lie, see [`super::filter`]; 0: it has none yet.
    pub filters_end: AtomicU64,
}
