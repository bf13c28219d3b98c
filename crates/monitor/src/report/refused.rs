//! What is said of a call that the agent refuses: its name, the place, and what to do instead.

use crate::block_field;
use crate::state::Monitor;
use geryon_abi::frame::Frame;
use geryon_abi::table;
use geryon_tracee::{Pid, Regs};
use std::mem::offset_of;

impl Monitor {
    /// A message of the agent: a refused call. Of a group only the leader's counts.
    pub(crate) fn on_message(&mut self, pid: Pid, regs: &Regs) {
        let Some((group, replica)) = self.membership(pid) else {
            return;
        };
        if !self.leads(group, replica) {
            return;
        }
        let (nr, detail) = (regs.rsi, regs.rdx);
        let pc = self.calling_pc(pid, regs.gs_base).unwrap_or(0);
        let place = self.place(pid, pc);
        let text = match table::row(nr) {
            Some(row) => {
                let command = table::command(nr, detail);
                let notes = [command.map_or("", |c| c.note), row.note];
                let note = notes.into_iter().find(|n| !n.is_empty());
                let note = note.unwrap_or("see: geryon syscalls");
                let command = command
                    .map(|c| format!(" with {}", c.name))
                    .unwrap_or_default();
                format!("{}{command} is refused (at {place}): {note}", row.name)
            }
            None => format!(
                "system call {nr} is unknown and refused (at {place}); see: geryon syscalls"
            ),
        };
        self.say(&text);
    }

    /// A call of another architecture is answered with ENOSYS.
    pub(crate) fn refuse_foreign_call(&mut self, pid: Pid, pc: u64, nr: u64) {
        let led = self.membership(pid).is_some_and(|(g, r)| self.leads(g, r));
        if led {
            let place = self.place(pid, pc);
            self.say(&format!(
                "int 0x80 is refused (call {nr} of 32-bit programs, at {place}): 32-bit calls do not pass the log; \
                 use the syscall instruction"
            ));
        }
    }

    /// Where the program made the call that the thread with this block is in.
    fn calling_pc(&mut self, pid: Pid, block: u64) -> Option<u64> {
        let m = self.memory(pid).ok()?;
        let frame = m.word(block.wrapping_add(block_field!(frame))).ok()?;
        m.word(frame.wrapping_add(offset_of!(Frame, rcx) as u64))
            .ok()
    }
}
