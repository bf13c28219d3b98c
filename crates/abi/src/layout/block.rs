//! What holds for one thread of one replica.

use super::{
    CPU_WORDS, Interruption, LOOKED, MAX_CONTROL, MAX_INTERRUPTIONS, MAX_PENDING, MAX_PIECES,
    MAX_PROC_PATH, MAX_TAKEN, MAX_WITH_ID, NAME_BYTES, Poll, Sent, Siginfo, Taken, Timer, Vain,
};
use core::mem::offset_of;
use core::sync::atomic::AtomicU32;

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
    /// What the thread waits for, see [`super::wait`].
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
    /// This is a vfork's child, a process of its own in its parent's memory: see [`super::vforked`].
    pub vforked: u32,
    /// Written by the monitor: number of signals in `pending`.
    pub pending_count: AtomicU32,
    /// Depth of hooked functions at `interrupted_rsp`, to be restored by its rt_sigreturn.
    pub interrupted_suspend: u32,
    /// What was taken out of its C library's word about cancelling for the handler that runs there.
    pub interrupted_cancel: u32,
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
    /// Leader: what a copy of this thread can do anew as a follower, see [`super::repeat`].
    pub repeatable: u32,
    /// From there in the log: position at the start of the call, or behind a turn taken since. ([`super::repeat::END`]: from `pos`.)
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
    /// See [`super::flight`] (leader).
    pub flight: AtomicU32,
    /// Number of the call under way.
    pub flight_nr: u32,
    /// The gate that the thread has come to last; 0: none since this call has begun.
    pub flight_entered: u32,
    /// New leader: see [`super::carries`].
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
    /// Written by the monitor: 1 in a copy of a leader's thread that is to wait for its call's end, see [`super::repeat::END`].
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
    /// of its operand; 0, where the monitor has led the thread to it, and [`super::LOOK_ASKED`], where it is to lead.
    pub look: [u64; 2],
    /// Leader: place, address and value of the last looks that were made at loads, or at operations that change
    /// nothing; a loop may poll more than one word.
    pub looked: [[u64; 3]; LOOKED],
    /// Leader: the turn in which somebody was first seen waiting for it, and when that was (nanoseconds of the
    /// monotonic clock).
    pub kept: [u64; 2],
    /// Leader: the last count that it has given itself.
    pub looking: u32,
    /// In serial order: so many calls of which nothing is logged it has made since the last of them that all replicas met at.
    pub unlogged: u32,
    /// Leader: at so many calls it has had the turn, and others have waited for it.
    pub keeps: u32,
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
    /// What the program's seccomp filters let this thread do, see [`super::filter`].
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
};
