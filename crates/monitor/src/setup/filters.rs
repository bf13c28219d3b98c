//! Seccomp filters of the program outlive an exec: those of the thread that makes it are read before it, and put into the
//! memory of the new program's agent, which evaluates them.

use super::Installer;
use crate::{block_field, private_field};
use anyhow::{Result, bail};
use geryon_abi::layout::block_address;
use geryon_abi::layout::filter::{
    FILTERS_BASE, FILTERS_BYTES, FIRST_ADDRESS, Filter, HEAD_BYTES, NONE, bytes_of, is_place,
};
use geryon_tracee::RemoteMemory;
use std::mem::offset_of;

/// The filters of a thread.
#[derive(Debug)]
pub struct Filters {
    /// As they are to lie from the area's begin on.
    bytes: Vec<u8>,
    /// What the thread's block says: the address of the newest one there, or that it has none.
    newest: u64,
}

impl Filters {
    /// Of the thread whose block says `newest`.
    ///
    /// # Errors
    /// When its memory cannot be read, or holds no such filters.
    pub fn read(memory: &RemoteMemory, newest: u64) -> Result<Filters> {
        let mut found = Vec::new();
        let mut at = newest;
        while at >= FIRST_ADDRESS {
            let head = memory.words::<2>(at)?;
            let count = (head[1] >> 32) as u32;
            let before = head[0];
            if !is_place(at, count) || count == 0 || before >= at {
                bail!("it has damaged its program's seccomp filters");
            }
            let mut bytes = vec![0; bytes_of(count) as usize];
            memory.read(at, &mut bytes)?;
            found.push(bytes);
            at = before;
        }
        let mut filters = Filters {
            bytes: Vec::new(),
            newest: at,
        };
        for mut filter in found.into_iter().rev() {
            let before = offset_of!(Filter, before);
            filter[before..before + 8].copy_from_slice(&filters.newest.to_le_bytes());
            filters.newest = filters.end();
            filters.bytes.extend(filter);
        }
        Ok(filters)
    }

    /// Where the next one would lie.
    fn end(&self) -> u64 {
        FILTERS_BASE + self.bytes.len() as u64
    }
}

impl Installer<'_> {
    /// Give the first thread these filters.
    ///
    /// # Errors
    /// When they cannot be mapped or written.
    pub fn put_filters(&self, filters: &Filters) -> Result<()> {
        if filters.newest == NONE {
            return Ok(());
        }
        let m = self.memory;
        if !filters.bytes.is_empty() {
            let gate = self.image.symbol("geryon_blocking_syscall");
            self.map_anonymous(gate, FILTERS_BASE, FILTERS_BYTES)?;
            m.write(FILTERS_BASE, &filters.bytes)?;
            m.set_word(private_field!(filters_end), filters.end())?;
        }
        m.set_word(block_address(0) + block_field!(filter), filters.newest)?;
        Ok(())
    }
}

const _: () = assert!(offset_of!(Filter, count) == 12 && HEAD_BYTES == 16);
