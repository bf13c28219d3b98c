//! The application's registers as the agent's entry saves them.

use core::mem::{offset_of, size_of};

/// Saved application state, at the top of the agent stack.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub struct Frame {
    /// SSE registers.
    pub xmm: [[u64; 2]; 16],
    /// r15 and so on, as at the call.
    pub r15: u64,
    /// r14.
    pub r14: u64,
    /// r13.
    pub r13: u64,
    /// r12.
    pub r12: u64,
    /// rbp.
    pub rbp: u64,
    /// rbx.
    pub rbx: u64,
    /// r9.
    pub r9: u64,
    /// r8.
    pub r8: u64,
    /// r10.
    pub r10: u64,
    /// rdx.
    pub rdx: u64,
    /// rsi.
    pub rsi: u64,
    /// rdi.
    pub rdi: u64,
    /// Number on entry, result on return.
    pub rax: u64,
    /// The flags register, as pushed.
    pub flags: u64,
    /// The user's stack pointer.
    pub rsp: u64,
    /// Where execution goes on: the trampoline's return, or behind an unpatched `syscall`.
    pub resume: u64,
    /// What rcx shall show: the address behind the original `syscall`.
    pub rcx: u64,
    /// Keeps the size a multiple of 16.
    pub pad: u64,
}

impl Frame {
    /// The call's arguments in order.
    pub fn args(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }
    /// Other arguments.
    pub fn set_args(&mut self, args: [u64; 6]) {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9] = args;
    }
    /// The flags register as the kernel would show it in r11.
    pub fn rflags(&self) -> u64 {
        const SHOWN: u64 = 0xcd5;
        0x202 | (self.flags & SHOWN)
    }
}

/// Size of [`Frame`].
pub const FRAME_BYTES: usize = size_of::<Frame>();
/// Size of its general part, which the entry code pushes.
pub const FRAME_GENERAL: usize = FRAME_BYTES - 256;

const _: () = {
    assert!(FRAME_BYTES.is_multiple_of(16));
    assert!(offset_of!(Frame, r15) == 256);
    assert!(offset_of!(Frame, rax) == 256 + 12 * 8);
    assert!(offset_of!(Frame, pad) == 256 + 17 * 8);
};
