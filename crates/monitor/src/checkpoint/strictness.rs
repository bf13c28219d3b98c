//! How strictly a copy repeats the leader's order (`agent/log/strict.rs`): words in its memory.

use super::search::Stretch;
use crate::state::Monitor;
use crate::{block_field, private_field};
use geryon_abi::layout::{MAX_THREADS, block_address, strict};
use geryon_tracee::Pid;

impl Monitor {
    /// Nobody is strict any more: who is to lead replays what is left, and waits for nobody.
    pub(crate) fn relax(&mut self) {
        if !self.has_stamps() {
            return;
        }
        let living: Vec<Pid> = self
            .groups
            .values()
            .flat_map(|g| g.living().map(|l| l.1))
            .collect();
        for pid in living {
            self.be_strict(pid, strict::NOT);
        }
    }

    /// From here on a copy repeats the leader's order in this way.
    pub(super) fn be_strict(&mut self, pid: Pid, how: u32) {
        let Ok(m) = self.memory(pid) else {
            return;
        };
        // (What goes wrong with its memory the copy's own end will tell.)
        let _ = m.write(private_field!(strict), &how.to_le_bytes());
        for slot in (0..MAX_THREADS).take_while(|_| how != strict::NOT) {
            let block = block_address(slot);
            let word = |field| m.word(block + field).unwrap_or(0);
            if word(block_field!(this)) == 0 {
                break;
            }
            // It may have been admitted to more.
            let _ = m.set_word(block + block_field!(limit), word(block_field!(pos)));
        }
    }

    /// These are late in a copy.
    pub(super) fn be_late(&mut self, pid: Pid, late: &[Stretch]) {
        let Ok(m) = self.memory(pid) else {
            return;
        };
        for (i, l) in late.iter().enumerate() {
            let at = private_field!(late) + 8 * i as u64;
            let _ = m.set_word(at, strict::late(l.slot, l.pos, l.onwards));
        }
        let count = late.len() as u32;
        let _ = m.write(private_field!(late_count), &count.to_le_bytes());
    }
}
