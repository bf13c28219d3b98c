//! The kernel's own copy of the auxiliary vector, which it shows as /proc/PID/auxv: without the vDSO, too.

use super::Installer;
use geryon_abi::layout::{Layout, PRIVATE_BASE, PRIVATE_BYTES};
use geryon_tracee::memory_layout;

/// The longest vector that is passed.
const WORDS: usize = 128;
const PR_SET_MM: u64 = 35;
const PR_SET_MM_MAP: u64 = 14;
/// Words of the kernel's `struct prctl_mm_map` before the vector's address: eleven addresses.
const ADDRESSES: usize = 11;

impl Installer<'_> {
    /// Tell the kernel, and where heap, stack and the rest lie from now on, with which it is asked. False where it
    /// does not take that (without CONFIG_CHECKPOINT_RESTORE): a program that reads that file finds the vDSO.
    pub fn tell_kernel(&self, vector: &[u64], layout: Layout) -> bool {
        let pid = self.tracee.0;
        let Some(names) = memory_layout(pid).filter(|_| vector.len() <= WORDS) else {
            return false;
        };
        let addresses: [u64; ADDRESSES] = names.map(|name| layout.place(name));
        let vector_at = PRIVATE_BASE + PRIVATE_BYTES - 4096;
        let map_at = vector_at + 8 * WORDS as u64;
        let mut map = addresses.to_vec();
        map.push(vector_at);
        // Its size in bytes, and no other executable (both 32 bits).
        map.push((8 * vector.len() as u64) | (u64::from(u32::MAX) << 32));
        let write = |at: u64, words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            self.memory.write(at, &bytes)
        };
        if write(vector_at, vector).is_err() || write(map_at, &map).is_err() {
            return false;
        }
        let gate = self.image.symbol("geryon_blocking_syscall");
        let args = [PR_SET_MM, PR_SET_MM_MAP, map_at, 8 * map.len() as u64, 0, 0];
        let done = self.tracee.remote_syscall(gate, libc::SYS_prctl, args);
        let clean = write(vector_at, &vec![0; WORDS + map.len()]);
        done.is_ok_and(|r| r == 0) && clean.is_ok()
    }
}
