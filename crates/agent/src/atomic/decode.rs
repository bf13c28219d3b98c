//! What the instruction is and what it works on: the trampoline's descriptor and the registers
//! that the stub saved.

/// What the trampoline says of its instruction; mirrors `geryon_patch::descriptor`.
#[repr(C)]
pub(super) struct Descriptor {
    pub(super) site: u64,
    pub(super) vaddr: u64,
    pub(super) immediate: u64,
    pub(super) op: u8,
    pub(super) size: u8,
    pub(super) source: u8,
    pub(super) register: u8,
    pub(super) len: u8,
    /// A compare expects a constant.
    pub(super) constant: u8,
    /// A loop waits by it.
    pub(super) spins: u8,
    pub(super) pad: u8,
}

pub(super) mod op {
    /// Where the operand's size is in the descriptor.
    pub const SIZE_AT: usize = core::mem::offset_of!(super::Descriptor, size);
    pub const XADD: u8 = 0;
    pub const XCHG: u8 = 1;
    pub const CMPXCHG: u8 = 2;
    pub const ADD: u8 = 3;
    pub const SUB: u8 = 4;
    pub const AND: u8 = 5;
    pub const OR: u8 = 6;
    pub const XOR: u8 = 7;
    pub const INC: u8 = 8;
    pub const DEC: u8 = 9;
    pub const NEG: u8 = 10;
    pub const NOT: u8 = 11;
    pub const BTS: u8 = 12;
    pub const BTR: u8 = 13;
    pub const BTC: u8 = 14;
    pub const CMPXCHG8B: u8 = 15;
    pub const CMPXCHG16B: u8 = 16;
    pub const ADC: u8 = 17;
    pub const SBB: u8 = 18;
    /// The first of those that only load.
    pub const LOAD: u8 = 19;
    pub const LOAD_ZERO: u8 = 20;
    pub const COMPARE: u8 = 21;
    pub const COMPARE_TO: u8 = 22;
    pub const TEST: u8 = 23;
    /// Those that only load.
    pub const fn loads(op: u8) -> bool {
        matches!(op, LOAD..=TEST | LOAD_SIGN4..=LOAD_XOR)
    }
    /// `pause`.
    pub const PAUSE: u8 = 24;
    /// A call whose result decides whether a loop goes on, or a fence.
    pub const MAY_WAIT: u8 = 25;
    /// `mov` to memory.
    pub const STORE: u8 = 26;
    /// `movsx` from memory to a register of 4 bytes.
    pub const LOAD_SIGN4: u8 = 27;
    /// The same, of 8 bytes.
    pub const LOAD_SIGN8: u8 = 28;
    /// `add` of memory to a register.
    pub const LOAD_ADD: u8 = 29;
    /// `sub` of memory from a register.
    pub const LOAD_SUB: u8 = 30;
    /// `and`, `or`, `xor` of memory into a register.
    pub const LOAD_AND: u8 = 31;
    pub const LOAD_OR: u8 = 32;
    pub const LOAD_XOR: u8 = 33;
}

/// Registers as the stub saved them: flags (lahf << 8 | seto), then encoding order.
#[repr(C)]
pub(super) struct Saved {
    pub(super) flags: u64,
    pub(super) r: [u64; 16],
}

impl Saved {
    pub(super) fn rflags(&self) -> (u64, bool) {
        (self.flags >> 8 & 0xff, self.flags & 1 != 0)
    }
    pub(super) fn set_flags(&mut self, low: u64, overflow: bool) {
        self.flags = (low | 2) << 8 | overflow as u64;
    }
}

pub(super) fn mask(size: u8) -> u64 {
    if size >= 8 {
        u64::MAX
    } else {
        (1 << (8 * size)) - 1
    }
}

pub(super) fn source(d: &Descriptor, s: &Saved) -> u64 {
    match d.source {
        1 => s.r[d.register as usize & 15],
        2 => s.r[d.register as usize & 3] >> 8 & 0xff,
        3 => d.immediate,
        _ => 0,
    }
}

pub(super) fn set_source(d: &Descriptor, s: &mut Saved, value: u64) {
    let r = d.register as usize & 15;
    match (d.source, d.size) {
        (1, 8) => s.r[r] = value,
        // A 32-bit result clears the upper half.
        (1, 4) => s.r[r] = value & 0xffff_ffff,
        (1, n) => s.r[r] = s.r[r] & !mask(n) | value & mask(n),
        (2, _) => s.r[r & 3] = s.r[r & 3] & !0xff00 | (value & 0xff) << 8,
        _ => {}
    }
}

/// Word operated on: bit instructions with a register offset reach outside their operand.
pub(super) fn target(d: &Descriptor, s: &Saved, address: u64) -> u64 {
    if matches!(d.op, op::BTS | op::BTR | op::BTC) && d.source == 1 {
        let raw = source(d, s);
        let offset = match d.size {
            2 => raw as u16 as i16 as i64,
            4 => raw as u32 as i32 as i64,
            _ => raw as i64,
        };
        let bits = 8 * d.size as i64;
        return address.wrapping_add_signed(offset.div_euclid(bits) * d.size as i64);
    }
    address
}

pub(super) fn compare_operands(s: &Saved, d: &Descriptor) -> (u64, u64) {
    if d.op == op::CMPXCHG8B {
        let pair = |hi: usize, lo: usize| s.r[hi] << 32 | s.r[lo] & 0xffff_ffff;
        (pair(2, 0), pair(1, 3))
    } else {
        (s.r[0] & mask(d.size), source(d, s) & mask(d.size))
    }
}
