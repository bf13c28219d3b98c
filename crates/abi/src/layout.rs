//! Where things lie in every replica, and the structures that monitor and agent share.
//!
//! The addresses are constants because the seccomp filter, which is inherited for ever,
//! names the agent's gate. They lie in a range that the kernel hands out neither to
//! programs (0x55..), nor to mappings (0x7f..), nor to non-PIE images; a program that asks
//! for it by a fixed address is refused.

use core::mem::{align_of, offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Changes whenever a structure of this file does; checked by the agent at start.
pub const ABI_VERSION: u32 = 1;

/// The agent's image (text, then data).
pub const AGENT_BASE: u64 = 0x2fe5_0000_0000;
/// [`Private`], one for each process, private memory.
pub const PRIVATE_BASE: u64 = 0x2fe5_1000_0000;
/// Bytes reserved for [`Private`].
pub const PRIVATE_BYTES: u64 = 0x10_0000;
/// The thread blocks, private memory.
pub const BLOCKS_BASE: u64 = 0x2fe5_2000_0000;
/// One thread block with its agent stack.
pub const BLOCK_BYTES: u64 = 0x1_0000;
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
/// Bytes of the segment's header.
pub const HEADER_BYTES: u64 = 0x1_0000;
/// Distance between two rings of so many words.
pub const fn ring_stride(words: usize) -> u64 {
    0x1000 + (words as u64) * 8
}
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

/// Environment strings that the monitor appends at exec and the agent removes again.
pub const INJECTED_ENV: usize = 2;

/// The role of a process among its replicas.
pub mod role {
    /// Executes, records.
    pub const LEADER: u32 = 1;
    /// Replays.
    pub const FOLLOWER: u32 = 2;
}

/// What a copy of a leader's thread can do anew.
pub mod repeat {
    /// Nothing: the thread is in the midst of something.
    pub const NOTHING: u32 = 0;
    /// The call whose state is in the thread's frame.
    pub const CALL: u32 = 1;
    /// The wait for its first turn.
    pub const FIRST_TURN: u32 = 2;
}

/// How far a follower is on its way to lead.
pub mod promotion {
    /// Nobody has asked it to.
    pub const NONE: u32 = 0;
    /// The monitor: the former leader is gone, its log was replayed to the end.
    pub const ASKED: u32 = 1;
    /// One of its threads prepares the process.
    pub const UNDER_WAY: u32 = 2;
    /// It leads.
    pub const DONE: u32 = 3;
}

/// How far a leader's logged call is, so that its successor neither repeats nor omits it.
pub mod flight {
    /// None is under way, or its record is published.
    pub const NONE: u32 = 0;
    /// The call is made; whether it has happened the registers tell.
    pub const BEGUN: u32 = 1;
    /// It has returned (twice `BEGUN`: the gate shifts the word).
    pub const RETURNED: u32 = 2;
    /// Its record is being put into the ring.
    pub const LOGGING: u32 = 3;
    /// The record is whole up to `Block::flight_end`.
    pub const LOGGED: u32 = 4;
    /// The rest of a write that came back short is being written: `Block::flight_done` bytes are out,
    /// and what the registers tell.
    pub const FINISHING: u32 = 8;
    /// That has returned (twice `FINISHING`): besides, what is noted is out.
    pub const FINISHED: u32 = 16;
    /// All together has the result `Block::flight_total`.
    pub const SUMMED: u32 = 32;
}

/// What has to be confirmed before it happens (`--verify`).
pub mod verify {
    /// Outputs are confirmed before they happen.
    pub const OUTPUT: u32 = 0;
    /// Every logged call is a rendezvous.
    pub const ALL: u32 = 1;
    /// Nothing waits; divergence is found after the fact.
    pub const ASYNC: u32 = 2;
}

/// Numbers of the requests that the agent makes to the monitor: system-call numbers that
/// the kernel does not have, issued outside the gate so that the filter stops them.
pub mod rpc {
    /// First number.
    pub const BASE: u64 = 0x4759_0000;
    /// A replica differs: (address of [`super::Report`]).
    pub const DIVERGENCE: u64 = BASE + 1;
    /// Executable file mapping appeared: (address, length).
    pub const MAPPED: u64 = BASE + 2;
    /// Deliver a signal at the application state in the thread's frame: (frame, address of siginfo).
    pub const DELIVER: u64 = BASE + 3;
    /// Forked child starts: (sequence number of the fork in its parent, where to write the path of the
    /// new group's segment); answers 1 in the leader (2: it fetches its parent's leader's descriptors
    /// first), 0 in a follower, once its leader has come.
    pub const CHILD: u64 = BASE + 4;
    /// A vfork's child, in its parent's memory, starts: (slot).
    pub const VFORKED: u64 = BASE + 9;
    /// A message for the user: (address, length).
    pub const MESSAGE: u64 = BASE + 5;
    /// The leader is about to exec: (path address).
    pub const EXEC: u64 = BASE + 6;
    /// Test hook, see `Private::sabotage`.
    pub const SABOTAGED: u64 = BASE + 7;
    /// Deliver a signal on the user stack inside a hook: (address of siginfo).
    pub const DELIVER_HERE: u64 = BASE + 8;
    /// Copy memory from the former leader, whose call wrote it, to the same address: (address, length).
    pub const INHERIT: u64 = BASE + 10;
    /// The former leader's descriptors: (address of an array of words, first index, its length);
    /// answers how many words were written. A word is a descriptor, with bit 32 for close-on-exec.
    pub const DESCRIPTORS: u64 = BASE + 11;
    /// The program is about to send a signal that ends who gets it: (kind of target, target, signal).
    pub const KILLS: u64 = BASE + 12;
    /// What an id names: (id, which way, see [`super::who`]).
    pub const WHO: u64 = BASE + 13;
    /// A child that has ended: (address of a [`super::Reap`]); answers its id as the program knows
    /// it, 0 when none has ended yet, or -ECHILD.
    pub const REAP: u64 = BASE + 14;
    /// The pair of sleeping replicas is in the way: (see [`super::outdated`]).
    pub const OUTDATED: u64 = BASE + 15;
    /// A new leader has not waited for this child yet: (its id as the program knows it).
    pub const UNREAPED: u64 = BASE + 16;
    /// One past the last.
    pub const END: u64 = BASE + 17;
}

/// How much the sleeping replicas (a checkpoint) are in the way.
pub mod outdated {
    /// There should be younger ones soon: the log fills up.
    pub const SOON: u64 = 0;
    /// Nothing can go on before they are gone.
    pub const NOW: u64 = 1;
}

/// Which way an id is translated.
pub mod who {
    /// From the program's to the process's that it names now.
    pub const OWN: u64 = 0;
    /// From a process's to the program's.
    pub const SHOWN: u64 = 1;
    /// The asking process's parent, as the program knows it; 0 when that is outside.
    pub const PARENT: u64 = 2;
}

/// A wait for a child, whose parent goes on in another replica than that which the kernel knows as
/// its parent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reap {
    /// As waitid(2) has it: 0 any, 1 a process, 2 a process group.
    pub which: u64,
    /// Which one, as the program knows it.
    pub id: u64,
    /// 1: it stays to be waited for.
    pub keep: u64,
    /// Answer: the status as wait4 shows it.
    pub status: u64,
}

/// What a test can make one replica do wrong, at a chosen logged call.
pub mod sabotage {
    /// Nothing.
    pub const NONE: u32 = 0;
    /// Instead of a core: on any, at one call.
    pub const ONCE: u32 = u32::MAX;
    /// Instead of a core: on any, at each call from then on.
    pub const ALWAYS: u32 = u32::MAX - 1;
    /// Change a scalar argument.
    pub const ARGUMENT: u32 = 1;
    /// Change a byte of an in-buffer.
    pub const CONTENT: u32 = 2;
    /// Swap the call for another number.
    pub const ORDER: u32 = 3;
    /// Make one call too many.
    pub const EXTRA: u32 = 4;
    /// Crash.
    pub const CRASH: u32 = 5;
    /// Stop making progress.
    pub const HANG: u32 = 6;
    /// Flip a bit of the next output behind its confirmation, where nobody looks any more.
    pub const UNCHECKED: u32 = 7;
}

/// One follower's line in a ring's control page.
#[repr(C, align(64))]
pub struct FollowerLine {
    /// Words consumed; the leader may overwrite what lies below.
    pub tail: AtomicU64,
    /// Position up to which this follower has verified outputs.
    pub ack: AtomicU64,
}

/// Control page of one ring.
#[repr(C, align(4096))]
pub struct RingControl {
    /// Words published by the leader.
    pub head: AtomicU64,
    pad0: [u64; 7],
    /// Bit i: follower i sleeps on `head`.
    pub follower_sleeps: AtomicU32,
    pad1: [u32; 15],
    /// Non-zero while the leader sleeps on a follower's line.
    pub leader_sleeps: AtomicU32,
    pad2: [u32; 15],
    /// By replica index.
    pub followers: [FollowerLine; MAX_REPLICAS],
}

/// Head of the shared segment of one process group.
#[repr(C)]
pub struct Header {
    /// [`ABI_VERSION`].
    pub version: u32,
    /// Replicas at start.
    pub replicas: u32,
    /// Words in each ring, a power of two.
    pub ring_words: u64,
    /// Bit i: replica i takes part. Cleared by the monitor when it drops one.
    pub alive: AtomicU32,
    /// Index of the leader.
    pub leader: AtomicU32,
    /// Host process id of the leader (fds are fetched from there).
    pub leader_pid: AtomicU32,
    /// Set by the monitor when the group must stop where it is.
    pub frozen: AtomicU32,
    /// Divergences reported (rule of the report: first wins).
    pub diverged: AtomicU32,
    /// Bit i: replica i is being made. Nothing that it has still to read is overwritten, and nobody
    /// waits for its confirmation yet.
    pub joining: AtomicU32,
    /// Bit i: replica i (which is in `joining`, too) stands still until it is needed: it reads nothing.
    pub sleeping: AtomicU32,
    /// 1: the monitor knows that the sleeping ones hold up much of the log.
    pub crowded: AtomicU32,
    /// Changes when a child of the process ends (counted once one of its replicas has taken over).
    pub child_events: AtomicU32,
    /// 1 once a process of the run goes on in another replica: ids as the program knows them name
    /// others now.
    pub taken_over: AtomicU32,
    /// File mappings replayed, by replica: a descriptor is not closed before these agree.
    pub file_maps: [AtomicU64; MAX_REPLICAS],
}

/// A signal that waits for a safe point, with the kernel's siginfo.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Siginfo(pub [u64; 16]);

/// Calls that one thread of a leader has made last and that a mistaken leader cannot simply leave to
/// its successor, see [`Taken`].
pub const MAX_TAKEN: usize = 64;

/// A call that has changed something outside the process's memory before the others have followed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Position of the record of its completion.
    pub start: u64,
    /// Position behind it.
    pub end: u64,
    /// Its result.
    pub result: i64,
    /// Its first argument.
    pub first: u64,
    /// Where the file stood before, for calls that set its offset.
    pub was: i64,
    /// Digest of what it was given.
    pub digest: u64,
    /// Number of the call.
    pub nr: u32,
    /// 1: it was confirmed before it happened.
    pub confirmed: u32,
}

/// A point at which a handler was started: what its frame shows, and where the thread really
/// goes on (in a trampoline).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Interruption {
    /// Program counter in the signal frame: the original code's.
    pub shown: u64,
    /// Where to go on.
    pub resume: u64,
    /// Stack pointer there.
    pub rsp: u64,
}

/// Handlers that may be active at one time in one thread, for the translation of their frames.
pub const MAX_INTERRUPTIONS: usize = 32;

/// Private control structure of one replica's process.
#[repr(C)]
pub struct Private {
    /// [`ABI_VERSION`].
    pub version: u32,
    /// This replica's index.
    pub replica: u32,
    /// See [`role`].
    pub role: u32,
    /// Replicas of this group at start.
    pub replicas: u32,
    /// See [`verify`].
    pub verify: u32,
    /// 1 once the process has had a second thread.
    pub multi: u32,
    /// 1 while followers share the leader's descriptor table.
    pub shares_files: u32,
    /// 1 until the injected environment has been removed again.
    pub env_injected: u32,
    /// Address of envp[0] on the initial stack.
    pub envp: u64,
    /// TSC ticks for 2^20 nanoseconds.
    pub tsc_mult: u64,
    /// 1: one thread runs at a time.
    pub serial: u32,
    /// Cores that the replicas may use.
    pub cores: u32,
    /// How often a wait looks without giving the core away; follows the number of threads.
    pub spin_turns: AtomicU32,
    /// Offset of the thread id word from the thread pointer; 0 when unknown.
    pub tid_offset: u64,
    /// Forks done so far.
    pub forks: u64,
    /// File mappings done so far.
    pub file_maps: u64,
    /// Sleepers on private clocks.
    pub sleepers: AtomicU32,
    /// See [`sabotage`]; the agent's test-only hook.
    pub sabotage: u32,
    /// The logged call (counted over the process) at which to do it.
    pub sabotage_at: u64,
    /// The core on which it is done, at each call from then on; or [`sabotage::ONCE`],
    /// [`sabotage::ALWAYS`].
    pub sabotage_core: u32,
    /// Logged calls of the process so far (leader's count in the leader).
    pub calls: AtomicU64,
    /// Relocated originals of the hooked functions, by hook id; 0 when not present.
    pub orig: [u64; MAX_HOOKS],
    /// Process id shown to the program.
    pub shown_pid: u32,
    /// Own host process id.
    pub own_pid: u32,
    /// See [`promotion`].
    pub promotion: AtomicU32,
    /// The real-time interval timer, in microseconds: its interval, the time it was set for, and when.
    pub timer: [u64; 3],
    /// Messages already shown (a refused call is named once).
    pub refused_shown: AtomicU32,
}

/// Offset of the "operations are ordered" byte in a thread block (read by trampolines as `gs:[..]`).
pub const BLOCK_ORDERED: usize = 0x10;

/// The part of a thread block that the monitor reads or writes.
#[repr(C)]
pub struct Block {
    /// Own address.
    pub this: u64,
    /// The user's stack pointer while on the agent stack.
    pub user_rsp: u64,
    /// Non-zero: atomics and lock operations are recorded or replayed.
    pub ordered: u64,
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
    /// Own host thread id.
    pub own_tid: u32,
    /// Thread id shown to the program.
    pub shown_tid: u32,
    /// 1: this is a vfork's child, a process of its own in its parent's memory.
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
    /// Everything below this position of the ring was compared and found equal (follower).
    pub verified: u64,
    /// Set while a call is to be issued again after a handler: bytes to go back.
    pub back: u64,
    /// Number of entries ever made in `interruptions`.
    pub interruption_count: u64,
    /// Where signals interrupted the program.
    pub interruptions: [Interruption; MAX_INTERRUPTIONS],
    /// The alternate signal stack as the program set it: address, flags, size.
    pub altstack: [u64; 3],
    /// 1 while a follower writes to its line of the ring: a copy made now would write there, too.
    pub publishing: AtomicU32,
    pad2: u32,
    /// Leader: what a copy of this thread can do anew as a follower, see [`repeat`].
    pub repeatable: u32,
    /// From there in the log: position at the start of the call, or behind a turn taken since.
    pub call_start: u64,
    /// 1: the record of this thread's birth is in the log.
    pub born: AtomicU32,
    /// Follower: 1 while it carries out an operation whose turn has come.
    pub midway: AtomicU32,
    /// Leader: number of entries ever made in `taken`.
    pub taken_count: u64,
    /// Leader: calls that cannot simply be made again.
    pub taken: [Taken; MAX_TAKEN],
    /// Leader: where the file stood before the call that is under way.
    pub offset_before: i64,
    /// Follower, waiting for its turn: where the record starts that says so.
    pub standing: u64,
    /// See [`flight`] (leader).
    pub flight: AtomicU32,
    /// Number of the call under way.
    pub flight_nr: u32,
    /// Digest of what it was given.
    pub flight_digest: u64,
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
    pad3: u32,
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
    /// Signals that wait for a safe point.
    pub pending: [Siginfo; MAX_PENDING],
}

/// `Block::intent` of a wait that is not logged: it may end for no reason, and be made again or not.
pub const UNLOGGED: u64 = u64::MAX;

/// Why a thread waits inside the agent.
pub mod wait {
    /// It does not.
    pub const NONE: u32 = 0;
    /// Follower: for the leader's next record.
    pub const RECORD: u32 = 1;
    /// Follower: for its turn on a clock.
    pub const TURN: u32 = 2;
    /// Leader: for confirmation.
    pub const CONFIRM: u32 = 3;
    /// Leader: for room in the ring.
    pub const ROOM: u32 = 4;
    /// Anyone: inside a real system call.
    pub const KERNEL: u32 = 5;
    /// For memory to show a value that another thread stores.
    pub const VALUE: u32 = 6;
    /// Leader: for followers to have mapped a file.
    pub const MAPS: u32 = 7;
    /// Stopped for good, by a divergence.
    pub const DIVERGED: u32 = 8;
}

/// What a replica tells the monitor when it differs from the log.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Report {
    /// See [`why`].
    pub why: u32,
    /// Thread group.
    pub slot: u32,
    /// Position of the record in the ring.
    pub pos: u64,
    /// The record as the leader wrote it (first eight words).
    pub theirs: [u64; 8],
    /// What this replica would have written there.
    pub ours: [u64; 8],
    /// Application state of this replica's thread (address of its frame; 0 in a hook).
    pub frame: u64,
    /// Return address of the application code.
    pub pc: u64,
}

/// Kinds of divergence.
pub mod why {
    /// Another call, or another kind of operation.
    pub const KIND: u32 = 1;
    /// The same call with other arguments or content.
    pub const DIGEST: u32 = 2;
    /// Another lock, or another atomic instruction.
    pub const SITE: u32 = 3;
    /// The same operation gave another result.
    pub const OUTCOME: u32 = 4;
    /// A local operation failed here that succeeded in the leader.
    pub const LOCAL: u32 = 5;
    /// What the record says that a call wrote is not what the leader says that it wrote.
    pub const DAMAGED: u32 = 6;
}

/// One past the last address that belongs to Geryon in a replica.
pub const RESERVED_END: u64 = SEGMENT_BASE + segment_bytes(LONG_RING_WORDS);

/// Does `[start, start + len)` touch what belongs to Geryon?
pub const fn touches_reserved(start: u64, len: u64) -> bool {
    start < RESERVED_END && start.saturating_add(len) > AGENT_BASE
}

/// Address of thread block `slot`.
pub const fn block_address(slot: usize) -> u64 {
    BLOCKS_BASE + BLOCK_BYTES * slot as u64
}

/// Address of the ring of thread group `slot`, of so many words.
#[inline(always)]
pub const fn ring_address(slot: usize, words: usize) -> u64 {
    SEGMENT_BASE + HEADER_BYTES + ring_stride(words) * slot as u64
}

const _: () = {
    assert!(offset_of!(Block, ordered) == BLOCK_ORDERED);
    assert!(offset_of!(Block, user_rsp) == 8);
    assert!(offset_of!(Block, stack_top) == 0x18);
    assert!(offset_of!(Block, return_to) == 0x20);
    assert!(offset_of!(Block, frame) == 0x28);
    assert!(offset_of!(Block, fault_rip) == 0x30);
    assert!(offset_of!(Block, fault_rsp) == 0x38);
    assert!(size_of::<Block>() < 0x4000);
    assert!(size_of::<Private>() as u64 <= PRIVATE_BYTES);
    assert!(size_of::<RingControl>() == 4096);
    assert!(align_of::<RingControl>() == 4096);
    assert!(size_of::<Header>() as u64 <= HEADER_BYTES);
    assert!(RING_WORDS.is_power_of_two() && LONG_RING_WORDS.is_power_of_two());
    assert!(RING_WORDS <= LONG_RING_WORDS);
    assert!(BLOCKS_BASE + BLOCK_BYTES * MAX_THREADS as u64 <= SEGMENT_BASE);
    assert!(AGENT_BASE < PRIVATE_BASE && PRIVATE_BASE + PRIVATE_BYTES <= BLOCKS_BASE);
};
