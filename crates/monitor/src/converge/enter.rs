//! A thread that computes enters its agent, from where it stands: those of all replicas, at the same point, or that of a
//! successor alone, which is to lead from there.

use super::Doing;
use crate::block_field;
use crate::meeting::{Meeting, Part};
use crate::state::Monitor;
use anyhow::Result;
use geryon_tracee::{Pid, Stopped};

impl Monitor {
    /// All enter their agents from where they stand.
    pub(super) fn lead_in(&mut self, m: &Meeting) {
        for part in &m.parts {
            self.enter_agent(part, "geryon_converged");
        }
    }

    /// A successor was asked to lead, and none of its threads has come to a call or a lock since: one of them is led to where
    /// it sees that. The replicas need not be at the same point, since nothing is logged. (Where none could be
    /// stopped in the program's code nothing happens.)
    ///
    /// # Errors
    /// One of them is gone.
    pub(crate) fn lead_in_alone(
        &mut self,
        replica: usize,
        pid: Pid,
        slots: &[usize],
    ) -> Result<()> {
        for slot in slots.iter().map(|s| *s as u32) {
            let Some((tid, pos, Doing::Computes)) = self.looked_at(pid, slot) else {
                continue;
            };
            let writing = self.writing(pid);
            let part = Part {
                replica,
                pid,
                tid,
                pos,
                writing,
            };
            if !self.hold(tid)? {
                continue;
            }
            if self.leave_trampoline(&part)? && self.is_computing(&part, slot)? {
                self.enter_agent(&part, "geryon_asked");
                return Ok(());
            }
            // It has come to a call meanwhile, and may have become a leader there.
            self.note_halt(pid, &[tid]);
            self.release(&[tid]);
        }
        Ok(())
    }

    /// The thread stands. (One that is gone is lost as it would be anywhere.)
    fn enter_agent(&mut self, part: &Part, entry: &str) {
        let enter = self.kit.image.symbol(entry);
        let thread = Stopped(part.tid);
        let Ok(mut regs) = thread.regs() else {
            return;
        };
        let Some(block) = self.kit.image.block_of(&regs) else {
            return;
        };
        let Ok(memory) = self.memory(part.pid) else {
            return;
        };
        let _ = memory.set_word(block + block_field!(return_to), regs.rip);
        regs.rip = enter;
        regs.orig_rax = u64::MAX;
        let _ = thread.set_breakpoint(None);
        let _ = thread.set_regs(&regs);
        let _ = thread.resume(0);
    }
}
