//! Where things lie in every replica, and the structures that monitor and agent share.
//!
//! The addresses are constants because the seccomp filter, which is inherited for ever,
//! names the agent's gate. They lie in a range that the kernel hands out neither to
//! programs (0x55..), nor to mappings (0x7f..), nor to non-PIE images; a program that asks
//! for it by a fixed address is refused.

pub mod ascent;
mod block;
pub mod carries;
pub mod children;
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
mod private;
pub mod promotion;
pub mod repeat;
mod request;
pub mod role;
pub mod rpc;
pub mod sabotage;
pub mod same;
pub mod secrets;
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

pub use block::{Asked, BLOCK_PLAIN, Block, UNLOGGED};
pub use letter::Letter;
pub use note::{Interruption, MAX_INTERRUPTIONS, MAX_TAKEN, Siginfo, Taken};
pub use place::Layout;
pub use poll::{KEPT, MOST, Poll, Which};
pub use private::Private;
pub use request::{Reap, Report, enclosed, failed, reap};
pub use secrets::Secrets;
pub use segment::{Alone, CoreLine, FollowerLine, Header, MARKS, Mark, OpenHeader, RingControl};
pub use sent::Sent;
pub use timer::{INTERVAL_TIMERS, KeptTimer, MAX_TIMERS, Timer};
pub use turns::{Turns, turn};
pub use vain::Vain;
pub use word::{Word32, Word64};

use core::mem::{align_of, size_of};

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
/// The same of no address, but of how far behind the beginning of a thread's control block its C library has the word that says
/// whether it may be cancelled at any moment.
pub const CANCEL_WORD: usize = MAX_HOOKS - 2;
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
