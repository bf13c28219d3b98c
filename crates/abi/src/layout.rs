//! Where things lie in every replica, and the structures that monitor and agent share.
//!
//! The addresses are constants because the seccomp filter, which is inherited for ever,
//! names the agent's gate. They lie in a range that the kernel hands out neither to
//! programs (0x55..), nor to mappings (0x7f..), nor to non-PIE images; a program that asks
//! for it by a fixed address is refused.

pub mod ascent;
pub mod carries;
pub mod dumpable;
pub mod filter;
pub mod flight;
pub mod kin;
pub mod letter;
mod note;
pub mod object;
pub mod outdated;
pub mod owes;
pub mod place;
mod poll;
pub mod promotion;
pub mod repeat;
mod request;
pub mod role;
pub mod rpc;
pub mod sabotage;
pub mod same;
mod segment;
pub mod sent;
pub mod strict;
mod timer;
mod turns;
mod vain;
pub mod verify;
pub mod vforked;
pub mod wait;
pub mod waited;
pub mod who;
pub mod why;
mod word;

pub use letter::Letter;
pub use note::{Interruption, MAX_INTERRUPTIONS, MAX_TAKEN, Siginfo, Taken};
pub use place::Layout;
pub use poll::{KEPT, MOST, Poll, Which};
pub use request::{Reap, Report, enclosed, failed, reap};
pub use segment::{Alone, CoreLine, FollowerLine, Header, MARKS, Mark, OpenHeader, RingControl};
pub use sent::Sent;
pub use timer::{INTERVAL_TIMERS, KeptTimer, MAX_TIMERS, Timer};
pub use turns::{Turns, turn};
pub use vain::Vain;
pub use word::{Word32, Word64};

use core::mem::{align_of, offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Changes whenever a structure of these files does; checked by the agent at start.
pub const ABI_VERSION: u32 = 1;

/// The agent's image (text, then data).
pub const AGENT_BASE: u64 = 0x2fe5_0000_0000;
/// The pages of the image with its `syscall` instructions; of the first one the filter lets them pass. No
/// address there becomes one of other code when a bit is flipped.
pub const GATE_BASE: u64 = AGENT_BASE + 0xc0_0000;
/// Bytes of those pages.
pub const GATE_BYTES: u64 = 0x2000;
/// [`Private`], one for each process, private memory.
pub const PRIVATE_BASE: u64 = 0x2fe5_1000_0000;
/// Bytes reserved for [`Private`].
pub const PRIVATE_BYTES: u64 = 0x10_0000;
/// The thread blocks, private memory.
pub const BLOCKS_BASE: u64 = 0x2fe5_2000_0000;
/// One thread block with its agent stack.
pub const BLOCK_BYTES: u64 = 0x1_0000;
/// At the end of each, behind the stack, nothing is mapped once a thread has the block: a copy whose length
/// a fault has changed ends there, and not in all other threads' blocks, which a successor believes.
pub const GUARD_BYTES: u64 = 0x1000;
/// What threads have copied to write it, private memory: so many bytes for each slot, mapped as they are needed.
pub const COPIES_BASE: u64 = 0x2fe5_4000_0000;
/// Bytes for one slot's.
pub const COPY_BYTES: u64 = 0x20_0000;
/// Of what is larger, a few at one moment.
pub const LARGE_COPIES: usize = 8;
/// Where these are.
pub const LARGE_COPIES_BASE: u64 = 0x2fe8_0000_0000;
/// Bytes of one: more than one call takes.
pub const LARGE_COPY_BYTES: u64 = 0x1_0000_0000;
/// The group's shared segment: header, then one ring for each thread.
pub const SEGMENT_BASE: u64 = 0x2fe5_8000_0000;
/// Threads alive at one moment in one process.
pub const MAX_THREADS: usize = 512;
/// Replicas of one run.
pub const MAX_REPLICAS: usize = 16;
/// Words (8 bytes) in one ring; a power of two. What holds for a group its header says.
pub const RING_WORDS: usize = 1 << 15;
/// The same in a run with checkpoints: what sleeping replicas have not read has to fit in.
pub const LONG_RING_WORDS: usize = 1 << 20;
/// So many digests a thread keeps of what a call has written.
pub const MAX_PIECES: usize = 256;
/// Bytes of the largest structure with an id in it (struct sigevent).
pub const MAX_WITH_ID: usize = 64;
/// Bytes of a path below /proc in which ids are looked for.
pub const MAX_PROC_PATH: usize = 256;
/// Bytes of control data of a message with an id in it: as many descriptors as the kernel takes (253), and credentials.
pub const MAX_CONTROL: usize = 1088;
/// Words of a set of CPUs.
pub const CPU_WORDS: usize = 16;
/// Limits that a process has.
pub const LIMITS: usize = 16;
/// Bytes of a thread's name, with the zero behind it.
pub const NAME_BYTES: usize = 16;
/// How many atomics and polls are left to a thread of a serial run before it looks for the first time who waits for
/// the turn; and where somebody does, or it waits itself.
pub const FIRST_LOOK: u32 = 256;
/// In place of a look's descriptor: there is nothing to look at, the process is asked to lead.
pub const LOOK_ASKED: u64 = 1;
/// Places that wait of which a thread keeps what it has seen there.
pub const LOOKED: usize = 8;
/// Bytes of the segment's header.
pub const HEADER_BYTES: u64 = 0x1_0000;
/// So much at the segment's start is read-only in the replicas.
pub const SHUT_BYTES: u64 = core::mem::offset_of!(Header, open) as u64;
/// Distance between two rings of so many words.
pub const fn ring_stride(words: usize) -> u64 {
    0x1000 + (words as u64) * 8 + MARKS_BYTES + stamps_bytes(words)
}

/// Bytes of the stamps of a ring of so many words, behind its marks: those of runs with checkpoints alone have some.
const fn stamps_bytes(words: usize) -> u64 {
    if words == LONG_RING_WORDS {
        words as u64 * 8
    } else {
        0
    }
}

/// Bytes of a ring's marks, behind its words.
const MARKS_BYTES: u64 = (MARKS * size_of::<Mark>()) as u64;
/// Bytes of a whole segment with rings of so many words.
pub const fn segment_bytes(words: usize) -> u64 {
    HEADER_BYTES + ring_stride(words) * MAX_THREADS as u64
}
/// Function entries that can be hooked.
pub const MAX_HOOKS: usize = 64;
/// Index in `Private::orig` of `__errno_location`, which is called but not hooked.
pub const ERRNO_LOCATION: usize = MAX_HOOKS - 1;
/// Hashed clocks for operations whose object has no room for its own.
pub const CLOCKS: usize = 4096;
/// Children of one process whose ids are translated.
pub const MAX_CHILDREN: usize = 4096;
/// Threads that have announced their exit and may not be gone yet.
pub const MAX_EXITING: usize = 512;
/// Pending signals of one thread that wait for a safe point.
pub const MAX_PENDING: usize = 64;
/// Of them, so many are let in at one moment, each handler interrupted by the next one before its first instruction.
pub const MAX_TOGETHER: usize = 32;

/// Environment strings that the monitor appends at exec and the agent removes again.
pub const INJECTED_ENV: usize = 2;

/// Private control structure of one replica's process. The monitor writes it before any code of the
/// agent runs; what is a plain number stays as it is then. Of the rest: `role`, `own_pid`, `shown_pid` and
/// `shares_files` change where the process has one thread that runs (a fork's child) or that prepares it (a
/// promotion); `forks`, `file_maps`, `multi` and `tid_offset` inside the sections LIFE and MEMORY or while
/// there is one thread; `replica`, `orig` and the test-only words by the monitor.
#[repr(C)]
pub struct Private {
    /// [`ABI_VERSION`].
    pub version: u32,
    /// This replica's index.
    pub replica: Word32,
    /// See [`role`].
    pub role: Word32,
    /// Replicas of this group at start.
    pub replicas: u32,
    /// See [`verify`].
    pub verify: u32,
    /// 1 once the process has had a second thread.
    pub multi: Word32,
    /// 1 once memory is mapped that another process may store to.
    pub shares: Word32,
    /// Is the process one of the kin? See [`kin`].
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
    /// 1: one thread runs at a time. (The monitor may set it while the process runs.)
    pub serial: Word32,
    /// See [`ascent`].
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
    /// See [`sabotage`]; the agent's test-only hook.
    pub sabotage: Word32,
    /// The logged call (counted over the process) at which to do it.
    pub sabotage_at: Word64,
    /// The core on which it is done, at each call from then on; or [`sabotage::ONCE`],
    /// [`sabotage::ALWAYS`].
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
    /// See [`promotion`].
    pub promotion: AtomicU32,
    /// What this process has set timers to.
    pub timers: [KeptTimer; MAX_TIMERS],
    /// Written by the monitor for a successor: when its predecessor was lost (CLOCK_MONOTONIC, nanoseconds).
    pub lost_at: Word64,
    /// Messages already shown (a refused call is named once).
    pub refused_shown: AtomicU32,
    /// See [`owes`].
    pub owes: AtomicU32,
    /// 1: the program does not want to hear of its children's ends (by SIG_IGN or SA_NOCLDWAIT).
    pub discards: Word32,
    /// 1: the process is to have the children that its descendants leave (PR_SET_CHILD_SUBREAPER).
    pub reaps_orphans: Word32,
    /// See [`children`].
    pub children: Word32,
    /// 1: the program has opened a file below /proc for more than reading.
    pub proc_files: Word32,
    /// Which limits the program has set, a bit for each.
    pub limits_set: Word32,
    /// 1 once it has asked for memory that its forks do not have, or have empty.
    pub forks_apart: Word32,
    /// To what: soft and hard.
    pub limits: [[Word64; 2]; LIMITS],
    /// Name of the monitor's socket, from which descriptors come: see [`letter`].
    pub monitor: Word64,
    /// See [`dumpable`].
    pub dumpable: Word32,
    /// 1: another process of the program has the same descriptors, or the same directory, in the leader and
    /// in no follower: who took over could not share them.
    pub common: Word32,
    /// While it is [`dumpable::NO`]: how large a core might be before.
    pub core_limit: Word64,
    /// Where the program's next seccomp filter comes to lie, see [`filter`]; 0: it has none yet.
    pub filters_end: AtomicU64,
}

/// Who says which children of a process have ended ([`Private::children`]).
pub mod children {
    /// The kernel, unless the process has taken over.
    pub const BY_KERNEL: u32 = 0;
    /// It is about to be the monitor.
    pub const CHANGING: u32 = 1;
    /// The monitor.
    pub const BY_MONITOR: u32 = 2;
}

/// Offset of the count of atomics and polls that are the program's in a thread block (trampolines count down
/// `gs:[..]`).
pub const BLOCK_PLAIN: usize = 0x10;

/// The part of a thread block that the monitor reads or writes.
#[repr(C)]
pub struct Block {
    /// Own address.
    pub this: u64,
    /// The user's stack pointer while on the agent stack.
    pub user_rsp: u64,
    /// So many atomic instructions, and loads that wait, are left to the program; then one is the agent's.
    pub plain: u32,
    /// Non-zero: atomics and lock operations are recorded or replayed (`plain` is 0 then).
    pub ordered: u32,
    /// Top of the agent stack.
    pub stack_top: u64,
    /// Where the entry code returns to.
    pub return_to: u64,
    /// The saved application state while in the agent, else 0.
    pub frame: u64,
    /// Where to go when a guarded access faults; 0: nowhere.
    pub fault_rip: u64,
    /// The stack pointer that belongs to `fault_rip`.
    pub fault_rsp: u64,
    /// Index of the thread group.
    pub slot: u32,
    /// 1: the slot may be given to a new thread.
    pub free: AtomicU32,
    /// Position in the ring.
    pub pos: u64,
    /// Leader: lowest tail seen. Follower: highest head seen.
    pub limit: u64,
    /// Depth of hooked functions.
    pub suspend: u32,
    /// What the thread waits for, see [`wait`].
    pub waiting: AtomicU32,
    /// Detail of `waiting`: the address or position waited for.
    pub waiting_for: u64,
    /// The value waited for.
    pub waiting_value: u64,
    /// Word that the kernel clears when the thread is gone (CLONE_CHILD_CLEARTID).
    pub clear_tid: u64,
    /// Own host thread id; 0: it is just made.
    pub own_tid: AtomicU32,
    /// Thread id shown to the program.
    pub shown_tid: u32,
    /// This is a vfork's child, a process of its own in its parent's memory: see [`vforked`].
    pub vforked: u32,
    /// Written by the monitor: number of signals in `pending`.
    pub pending_count: AtomicU32,
    /// Depth of hooked functions at `interrupted_rsp`, to be restored by its rt_sigreturn.
    pub interrupted_suspend: u32,
    /// The user's stack pointer where a signal interrupted a hooked function; 0: none.
    pub interrupted_rsp: u64,
    /// Serial order, leader: 1 while this thread has the turn.
    pub has_turn: AtomicU32,
    /// 1: its turn was taken away; it runs beside whoever has it until it takes one again.
    pub robbed: AtomicU32,
    /// Serial order, follower: the position at which this thread last stood and waited.
    pub released: u64,
    /// Inside a hook: where on the user's stack one may push; 0 outside.
    pub hook_rsp: u64,
    /// Of which call `frame` is: its number and one. 0: of none (a thread that looks, or that has not begun).
    pub called: u64,
    /// Everything below this position of the ring was compared and found equal (follower).
    pub verified: u64,
    /// Set while a call is to be issued again after a handler: bytes to go back.
    pub back: u64,
    /// Leader: handlers in a row during which the interval timer has rung again.
    pub rings: u64,
    /// Number of entries ever made in `interruptions`.
    pub interruption_count: u64,
    /// Where signals interrupted the program.
    pub interruptions: [Interruption; MAX_INTERRUPTIONS],
    /// The alternate signal stack as the program set it: address, flags, size.
    pub altstack: [u64; 3],
    /// 1 while a follower writes to its line of the ring, or to its replica's words of the turn of the kin: a copy made now
    /// would write there, too. Or while a forked child has not come to its own log.
    pub publishing: AtomicU32,
    /// Serial order, leader: 1 when others have waited for this thread's turn for long.
    pub starves: AtomicU32,
    /// Leader: what a copy of this thread can do anew as a follower, see [`repeat`].
    pub repeatable: u32,
    /// From there in the log: position at the start of the call, or behind a turn taken since. ([`repeat::END`]: from `pos`.)
    pub call_start: u64,
    /// 1: the record of this thread's birth is in the log.
    pub born: AtomicU32,
    /// Follower: 1 while it carries out an operation whose turn has come.
    pub midway: AtomicU32,
    /// Leader: number of entries ever made in `taken`.
    pub taken_count: u64,
    /// Leader: calls that cannot simply be made again.
    pub taken: [Taken; MAX_TAKEN],
    /// Leader: where the file stood before the call that is under way, or its flags where that sets them.
    pub was_before: i64,
    /// Follower, waiting for its turn: where the record starts that says so.
    pub standing: u64,
    /// See [`flight`] (leader).
    pub flight: AtomicU32,
    /// Number of the call under way.
    pub flight_nr: u32,
    /// The gate that the thread has come to last; 0: none since this call has begun.
    pub flight_entered: u32,
    /// New leader: see [`carries`].
    pub carries: AtomicU32,
    /// Follower of another program: behind the first word of the record that it asks for, see the agent's `log/passed.rs`.
    pub asks: u64,
    /// The same: 1 from the beginning of a call that the leader's program alone makes to its end.
    pub passes_over: u32,
    pad4: u32,
    /// The same: how long what the leader has given a call is.
    pub their_length: u64,
    /// Digest of what it was given.
    pub flight_digest: u64,
    /// Digest of what all have agreed on last that this thread is to do.
    pub agreed: u64,
    /// What it returned, noted twice; `outcome::NOTHING` until then.
    pub flight_result: [u64; 2],
    /// Digest of what it wrote, right after it had; 0: not taken.
    pub flight_written: u64,
    /// Of a write in several parts: bytes that were out before the part under way.
    pub flight_done: u64,
    /// And with it.
    pub flight_total: u64,
    /// Position of its completion's record.
    pub flight_start: u64,
    /// Position behind it.
    pub flight_end: u64,
    /// Written by the monitor: 1 when it has halted the thread, whose call may have been cut short by it.
    pub halted: AtomicU32,
    /// Written by the monitor: 1 in a copy of a leader's thread that is to wait for its call's end, see [`repeat::END`].
    pub begun: AtomicU32,
    /// Written by the monitor at a promotion: 1 when the former leader has made this thread's next
    /// call, with the digest and the result that follow.
    pub given: AtomicU32,
    /// Number of that call.
    pub given_nr: u32,
    /// Its digest.
    pub given_digest: u64,
    /// Its result.
    pub given_result: u64,
    /// Digest of what it wrote; 0: not known.
    pub given_written: u64,
    /// What this thread is about to do at `intent_at` in the log: the first word that it would log
    /// (kind, number, hash of the object).
    pub intent: u64,
    /// The digest of what it is given, or the object's address.
    pub intent_digest: u64,
    /// See `intent`, which says nothing when the thread stands elsewhere by now.
    pub intent_at: u64,
    /// Position at which this thread made a call that is not logged last (a futex that no hook is
    /// around).
    pub unlogged_at: u64,
    /// Records consumed or produced (for progress reports).
    pub events: u64,
    /// The last records, newest at `events % 16`.
    pub last: [u64; 16],
    /// Leader: signals that the program has sent this thread, and that it has not been given.
    pub sent: Sent,
    /// Signals that wait for a safe point.
    pub pending: [Siginfo; MAX_PENDING],
    /// Leader: where the record of the oldest of these ends, while it is in the log and here; else 0.
    pub signal_logged: u64,
    /// How many there were then.
    pub signal_count: u32,
    /// How many of them the record holds: their handlers interrupt one another at once.
    pub signals_in_record: u32,
    /// Follower: how many of the leader's compares have failed here, one after the other, that would have
    /// succeeded on this replica's memory.
    pub contradicted: u64,
    /// What a call asks of a timer.
    pub timer_asked: Timer,
    /// Where the program wants to be told what is left of the sleep under way; 0: there is none.
    pub rest_at: u64,
    /// Where the kernel tells it.
    pub rest: [u64; 2],
    /// The signal that the program wants at the end of its parent (PR_SET_PDEATHSIG), and one more; 0: it has never said.
    pub at_parents_end: u32,
    /// The last child that it has waited for and that its process has not made, in this program; 0: none.
    pub orphan: u32,
    /// Where the log went on behind that; 0: it is not all there yet.
    pub orphan_at: u64,
    /// A vfork's child: as `Private::reaps_orphans`, of itself.
    pub reaps_orphans: u32,
    /// While a signal is delivered that ended a call with a mask of its own: 1, and that mask.
    pub call_mask: [u64; 2],
    /// Leader: digests of the pieces of what the call under way has written, if `flight_written` is one.
    pub pieces: [u64; MAX_PIECES],
    /// Leader: up to where it has shown its ring to the others. 0: it has shown nothing as a leader.
    pub published: u64,
    /// Of the code that the monitor puts in the way of a thread that computes: rax and the flags.
    pub scratch: [u64; 2],
    /// A look at who waits for the turn: the descriptor of the instruction before which it is made, and the address
    /// of its operand; 0, where the monitor has led the thread to it, and [`LOOK_ASKED`], where it is to lead.
    pub look: [u64; 2],
    /// Leader: place, address and value of the last looks that were made at loads, or at operations that change
    /// nothing; a loop may poll more than one word.
    pub looked: [[u64; 3]; LOOKED],
    /// Leader: the turn in which somebody was first seen waiting for it, and when that was (nanoseconds of the
    /// monotonic clock).
    pub kept: [u64; 2],
    /// Leader: the last count that it has given itself.
    pub looking: u32,
    /// A vfork's child: where its id is to be stored; 0: nowhere.
    pub vfork_tids: [u64; 2],
    /// What the kernel is shown instead of a structure of the program's in which an id stands.
    pub structure: [u8; MAX_WITH_ID],
    /// And instead of a path.
    pub path: [u8; MAX_PROC_PATH],
    /// And of a message's control data.
    pub control: [u8; MAX_CONTROL],
    /// Follower: 1 while a signal is the last that the log has said of a hooked function, and has ended its wait there.
    pub wait_ended: u32,
    /// What a call asks to be bound by, see [`Asked`].
    pub asked: Asked,
    /// 1: the program has bound the thread to these CPUs.
    pub is_bound: u32,
    /// A bit for each.
    pub cpus: [u64; CPU_WORDS],
    /// Follower: the record that stands before the end of a call that has written to a file below /proc; else 0.
    pub proc_file: u64,
    /// And where the leader has written.
    pub proc_offset: u64,
    /// 1: the leader's thread has the name that follows, and this one does not have it yet.
    pub is_named: u32,
    /// Its name, and zeros.
    pub name: [u8; NAME_BYTES],
    /// What the program's seccomp filters let this thread do, see [`filter`].
    pub filter: u64,
    /// What it polls, with clocks.
    pub poll: Poll,
    /// Leader: an operation that it makes again and again in vain, with clocks.
    pub vain: Vain,
    /// Leader: the number of the last load that it has marked in its ring.
    pub noted: u64,
    /// Follower: the number of the last load of its own of a word that threads store plainly.
    pub loaded: u64,
    /// Strict follower: 1 when it is to wait behind the present operation before it goes on, 2 behind the next one.
    pub holds: u32,
    pad5: u32,
}

/// What a call that sets a limit or CPUs was given.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// 1: it has not been made yet.
    pub is_set: u32,
    /// Of which process or thread, as the program knows it; 0: the caller.
    pub id: u32,
    /// Which limit.
    pub which: u32,
    /// The limit, soft and hard, or the CPUs.
    pub words: [u64; CPU_WORDS],
}

/// `Block::intent` of a wait that is not logged: it may end for no reason, and be made again or not.
pub const UNLOGGED: u64 = u64::MAX;

/// Here nothing is ever mapped: what the kernel is told where the program names a place of Geryon's.
pub const NOWHERE_BASE: u64 = LARGE_COPIES_BASE + LARGE_COPIES as u64 * LARGE_COPY_BYTES;
/// Bytes of that.
pub const NOWHERE_BYTES: u64 = 0x1000_0000;
/// One past the last address that belongs to Geryon in a replica.
pub const RESERVED_END: u64 = NOWHERE_BASE + NOWHERE_BYTES;

/// Does `[start, start + len)` touch what belongs to Geryon?
pub const fn touches_reserved(start: u64, len: u64) -> bool {
    start < RESERVED_END && start.saturating_add(len) > AGENT_BASE
}

/// Address of thread block `slot`.
pub const fn block_address(slot: usize) -> u64 {
    BLOCKS_BASE + BLOCK_BYTES * slot as u64
}

/// Where the agent stack in thread block `slot` begins.
pub const fn stack_top(slot: usize) -> u64 {
    block_address(slot) + BLOCK_BYTES - GUARD_BYTES
}

/// Address of the ring of thread group `slot`, of so many words.
#[inline(always)]
pub const fn ring_address(slot: usize, words: usize) -> u64 {
    SEGMENT_BASE + HEADER_BYTES + ring_stride(words) * slot as u64
}

/// Address of the marks of that ring.
pub const fn marks_address(slot: usize, words: usize) -> u64 {
    ring_address(slot, words) + 0x1000 + words as u64 * 8
}

/// Address of the stamps of that ring, if it has some.
pub const fn stamps_address(slot: usize, words: usize) -> u64 {
    marks_address(slot, words) + MARKS_BYTES
}

const _: () = {
    assert!(offset_of!(Block, plain) == BLOCK_PLAIN);
    assert!(offset_of!(Block, user_rsp) == 8);
    assert!(offset_of!(Block, ordered) == 0x14);
    assert!(offset_of!(Block, stack_top) == 0x18);
    assert!(offset_of!(Block, return_to) == 0x20);
    assert!(offset_of!(Block, frame) == 0x28);
    assert!(offset_of!(Block, fault_rip) == 0x30);
    assert!(offset_of!(Block, fault_rsp) == 0x38);
    assert!(size_of::<Block>() < 0x4800);
    assert!(size_of::<Private>() as u64 <= PRIVATE_BYTES);
    assert!(size_of::<RingControl>() == 4096);
    assert!(align_of::<RingControl>() == 4096);
    assert!(size_of::<Header>() as u64 <= HEADER_BYTES);
    assert!(RING_WORDS.is_power_of_two() && LONG_RING_WORDS.is_power_of_two());
    assert!(RING_WORDS <= LONG_RING_WORDS);
    assert!(BLOCKS_BASE + BLOCK_BYTES * MAX_THREADS as u64 <= COPIES_BASE);
    assert!(COPIES_BASE + COPY_BYTES * MAX_THREADS as u64 <= SEGMENT_BASE);
    assert!(SEGMENT_BASE + segment_bytes(LONG_RING_WORDS) <= LARGE_COPIES_BASE);
    assert!(GATE_BASE + GATE_BYTES <= PRIVATE_BASE);
    assert!(AGENT_BASE < PRIVATE_BASE && PRIVATE_BASE + PRIVATE_BYTES <= BLOCKS_BASE);
};
