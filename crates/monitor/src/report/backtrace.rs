//! Where a stopped thread is: names of places, backtraces as the program would have them.

use crate::block_field;
use crate::state::Monitor;
use geryon_abi::frame::{FRAME_BYTES, Frame};
use geryon_abi::layout::block_address;
use geryon_patch::descriptor::OFFSET_SITE;
use geryon_symbols::{Memory, Regs};
use geryon_tracee::{Pid, RemoteMemory, Stopped};
use std::mem::offset_of;

/// Frames shown of each backtrace.
const FRAMES: usize = 12;

struct Remote<'a>(&'a RemoteMemory);

impl Memory for Remote<'_> {
    fn read(&self, addr: u64, buf: &mut [u8]) -> bool {
        self.0.read(addr, buf).is_ok()
    }
}

impl Monitor {
    /// Where a program counter is.
    pub(crate) fn place(&mut self, tid: Pid, pc: u64) -> String {
        if let Some(n) = self
            .kit
            .image
            .name_of(pc)
            .filter(|_| self.kit.image.contains(pc))
        {
            return format!("{pc:#x} in the agent ({n})");
        }
        let pid = self.process_of(tid);
        self.console.symbolizer.symbol_at(pid, pc).to_string()
    }

    /// Backtrace of a stopped thread, from its registers or from given ones.
    pub(crate) fn backtrace_of(&mut self, tid: Pid, regs: Option<Regs>) -> Vec<String> {
        let pid = self.process_of(tid);
        let Some(regs) = regs.or_else(|| registers(tid)) else {
            return Vec::new();
        };
        if self.memory(pid).is_err() {
            return Vec::new();
        }
        let p = &self.processes[&pid];
        let Some(memory) = p.memory.as_ref() else {
            return Vec::new();
        };
        let areas = p.group.and_then(|g| self.groups.get(&g)).map(|g| &g.areas);
        let translate = |a: u64| areas.and_then(|m| m.original(a));
        self.console
            .symbolizer
            .backtrace(pid, &regs, &Remote(memory), &translate, FRAMES)
            .iter()
            .enumerate()
            .map(|(i, f)| format!("#{i} {f}"))
            .collect()
    }

    /// Backtrace of a thread that stands in the agent: from the application state it saved.
    pub(super) fn trace_in_agent(&mut self, tid: Pid, pid: Pid, slot: u32) -> Vec<String> {
        let Ok(m) = self.memory(pid) else {
            return Vec::new();
        };
        let block = block_address(slot as usize);
        let word = |at: u64| m.word(at).ok().filter(|w| *w != 0);
        let saved = word(block + block_field!(frame))
            .and_then(|frame| in_call(m, frame))
            .or_else(|| word(block + block_field!(hook_rsp)).and_then(|at| in_stub(m, at)));
        // (In a function that is hooked the agent's own code may have used registers that its callers want back: their frames
        // are found by the stack.)
        let hooked = || {
            let at = word(block + block_field!(hook_rsp))?;
            Some(Regs {
                // The call, and not what comes behind it.
                rip: word(at)? - 1,
                rsp: at + 8,
                ..registers(tid)?
            })
        };
        let regs = saved.or_else(hooked);
        self.backtrace_of(tid, regs)
    }

    /// The process of a thread; one that is not known may be a process itself.
    fn process_of(&self, tid: Pid) -> Pid {
        self.threads.get(&tid).map_or(tid, |t| t.pid)
    }
}

/// The application's registers in a call, from the frame that its entry has saved.
fn in_call(m: &RemoteMemory, frame: u64) -> Option<Regs> {
    let mut bytes = [0u8; FRAME_BYTES];
    m.read(frame, &mut bytes).ok()?;
    let word = |o: usize| u64::from_le_bytes(bytes[o..o + 8].try_into().expect("8 bytes"));
    Some(Regs {
        rip: word(offset_of!(Frame, rcx)),
        rsp: word(offset_of!(Frame, rsp)),
        rbp: word(offset_of!(Frame, rbp)),
        rbx: word(offset_of!(Frame, rbx)),
        r12: word(offset_of!(Frame, r12)),
        r13: word(offset_of!(Frame, r13)),
        r14: word(offset_of!(Frame, r14)),
        r15: word(offset_of!(Frame, r15)),
    })
}

/// The same at an atomic instruction or a load, from where the stub has saved them (`agent/atomic/stub.rs`): flags, the
/// registers in encoding order, the trampoline's address, the descriptor. None: it is no such place.
fn in_stub(m: &RemoteMemory, at: u64) -> Option<Regs> {
    const SAVED: u64 = 8 * 17;
    const DESCRIPTOR: u64 = SAVED + 8;
    /// The stub's words, what a trampoline pushes, and what the program may have below its stack pointer.
    const TO_RSP: u64 = SAVED + 32 + 128;
    let register = |n: u64| m.word(at + 8 + 8 * n).ok();
    let rsp = register(4).filter(|rsp| *rsp == at + TO_RSP)?;
    let descriptor = m.word(at + DESCRIPTOR).ok()?;
    Some(Regs {
        rip: m.word(descriptor + OFFSET_SITE as u64).ok()?,
        rsp,
        rbp: register(5)?,
        rbx: register(3)?,
        r12: register(12)?,
        r13: register(13)?,
        r14: register(14)?,
        r15: register(15)?,
    })
}

/// What an unwinder needs of a stopped thread's registers.
fn registers(tid: Pid) -> Option<Regs> {
    let r = Stopped(tid).regs().ok()?;
    Some(Regs {
        rip: r.rip,
        rsp: r.rsp,
        rbp: r.rbp,
        rbx: r.rbx,
        r12: r.r12,
        r13: r.r13,
        r14: r.r14,
        r15: r.r15,
    })
}
