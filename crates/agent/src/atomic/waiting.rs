//! Operations by which a thread waits for another one: loads, and those that change nothing.

use super::decode::{Descriptor, mask, op};
use super::operand::load;
use crate::gate::guarded;
use geryon_abi::frame::Frame;

/// One that was about to be made: place, address, and what memory held there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The instruction.
    pub site: u64,
    at: u64,
    value: u64,
}

impl Waiting {
    /// The operation before which a thread looks (`Block::look`), if it is one that waits.
    pub fn of(look: [u64; 2], frame: &Frame) -> Option<Waiting> {
        let [descriptor, at] = look;
        if descriptor == 0 {
            return None;
        }
        // SAFETY: the trampoline's constant.
        let d = unsafe { &*(descriptor as *const Descriptor) };
        match d.op {
            op::PAUSE => {
                return Some(Waiting {
                    site: d.site,
                    at: 0,
                    value: 0,
                });
            }
            op::MAY_WAIT => return None,
            _ => {}
        }
        let mut value = None;
        // (A bad address faults when the program goes there.)
        guarded(|| value = Some(load(at, d.size)));
        let value = value?;
        let waits = match d.op {
            op::CMPXCHG => frame.rax & mask(d.size) != value,
            op::XCHG => d.source == 1 && numbered(frame, d.register) & mask(d.size) == value,
            n => op::loads(n),
        };
        waits.then_some(Waiting {
            site: d.site,
            at,
            value,
        })
    }

    /// Is it before a call in a loop that may wait for its result, or before a fence?
    pub fn is_likely(look: [u64; 2]) -> bool {
        // SAFETY: the trampoline's constant.
        look[0] != 0 && unsafe { &*(look[0] as *const Descriptor) }.op == op::MAY_WAIT
    }

    /// As the block keeps it.
    pub fn words(self) -> [u64; 3] {
        [self.site, self.at, self.value]
    }
}

/// A register by its number in instructions.
fn numbered(f: &Frame, n: u8) -> u64 {
    match n & 15 {
        0 => f.rax,
        1 => f.rcx,
        2 => f.rdx,
        3 => f.rbx,
        4 => f.rsp,
        5 => f.rbp,
        6 => f.rsi,
        7 => f.rdi,
        8 => f.r8,
        9 => f.r9,
        10 => f.r10,
        11 => f.pad,
        12 => f.r12,
        13 => f.r13,
        14 => f.r14,
        _ => f.r15,
    }
}
