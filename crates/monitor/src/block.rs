//! Pieces of a thread's block, read at once: one call of the kernel for each field would make 64 threads
//! take milliseconds.

use geryon_abi::frame::Frame;
use geryon_abi::layout::{Block, block_address};
use geryon_tracee::RemoteMemory;
use std::mem::offset_of;
use std::ops::Range;

/// Who has the block, where its thread stands, and what it waits for.
pub const HEAD: Range<u64> = 0..offset_of!(Block, verified) as u64;
/// What the thread has under way, and up to its last records.
pub const COURSE: Range<u64> = offset_of!(Block, flight) as u64..offset_of!(Block, pending) as u64;

/// The arguments of the call whose frame lies there.
///
/// # Errors
/// When it cannot be read.
pub fn arguments(memory: &RemoteMemory, frame: u64) -> std::io::Result<[u64; 6]> {
    const IN_ORDER: [usize; 6] = [
        offset_of!(Frame, rdi),
        offset_of!(Frame, rsi),
        offset_of!(Frame, rdx),
        offset_of!(Frame, r10),
        offset_of!(Frame, r8),
        offset_of!(Frame, r9),
    ];
    let mut args = [0; 6];
    for (arg, offset) in args.iter_mut().zip(IN_ORDER) {
        *arg = memory.word(frame.wrapping_add(offset as u64))?;
    }
    Ok(args)
}

/// A piece as it was when it was read. What has to be older or newer than something else is read apart.
#[derive(Clone, Debug)]
pub struct Piece {
    from: u64,
    bytes: Vec<u8>,
}

impl Piece {
    /// These bytes of a thread's block; zeros where it cannot be read.
    pub fn read(memory: &RemoteMemory, slot: usize, fields: Range<u64>) -> Piece {
        let mut bytes = vec![0; (fields.end - fields.start) as usize];
        if memory
            .read(block_address(slot) + fields.start, &mut bytes)
            .is_err()
        {
            bytes.fill(0);
        }
        Piece {
            from: fields.start,
            bytes,
        }
    }

    /// Eight bytes at this offset in the block.
    ///
    /// # Panics
    /// When they are not in the piece.
    pub fn word(&self, field: u64) -> u64 {
        let (words, _) = self.bytes[(field - self.from) as usize..].as_chunks::<8>();
        u64::from_le_bytes(words[0])
    }

    /// Several words from this offset on.
    ///
    /// # Panics
    /// When they are not in the piece.
    pub fn words<const N: usize>(&self, field: u64) -> [u64; N] {
        std::array::from_fn(|i| self.word(field + 8 * i as u64))
    }
}
