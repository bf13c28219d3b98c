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

#[cfg(test)]
mod tests {
    use super::Filters;
    use geryon_abi::layout::filter::{FILTERS_BASE, FILTERS_BYTES, NONE, STRICT, bytes_of};
    use geryon_tracee::RemoteMemory;

    fn put(at: u64, before: u64, instructions: &[u64]) {
        let head = [before, (instructions.len() as u64) << 32];
        for (i, word) in head.iter().chain(instructions).enumerate() {
            // SAFETY: the area is mapped, and nobody else uses it.
            unsafe { ((at + 8 * i as u64) as *mut u64).write(*word) };
        }
    }

    #[test]
    fn only_the_thread_s_own_are_carried() {
        let (prot, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
        );
        let at = FILTERS_BASE as *mut libc::c_void;
        // SAFETY: at an address where nothing is.
        let mapped = unsafe { libc::mmap(at, FILTERS_BYTES as usize, prot, flags, -1, 0) };
        assert_eq!(mapped, at);
        let (first, other, last) = (FILTERS_BASE, FILTERS_BASE + 32, FILTERS_BASE + 64);
        put(first, NONE, &[1, 2]);
        put(other, first, &[3, 4]);
        put(last, first, &[5, 6, 7]);
        let own = RemoteMemory::open(std::process::id() as i32).expect("own memory");
        let filters = Filters::read(&own, last).expect("filters");
        let words: Vec<u64> = filters
            .bytes
            .chunks_exact(8)
            .map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes")))
            .collect();
        let wanted = [NONE, 2 << 32, 1, 2, FILTERS_BASE, 3 << 32, 5, 6, 7];
        assert_eq!(words, wanted);
        assert_eq!(filters.newest, FILTERS_BASE + bytes_of(2));
        assert_eq!(Filters::read(&own, STRICT).expect("none").newest, STRICT);
        // Damaged: a round, too long, none at all.
        put(last, last, &[5]);
        assert!(Filters::read(&own, last).is_err());
        put(first, NONE, &[0; 5000]);
        assert!(Filters::read(&own, first).is_err());
        assert!(Filters::read(&own, FILTERS_BASE + 0x8_0000).is_err());
    }
}
