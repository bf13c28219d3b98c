//! The contract between an atomic's trampoline and the agent's stub for atomics.
//!
//! The 32-bit word at `gs:[PLAIN_GS_OFFSET]` says how many of these instructions the program does by itself: the
//! trampoline counts it down and runs the original one. When it is zero, the trampoline calls
//! [`crate::AgentEntries::rmw`] with every register and flag
//! as the application had it, except rsp. At the stub's first instruction:
//!
//! | address | content |
//! | --- | --- |
//! | `[rsp]` | return address |
//! | `[rsp + STACK_DESCRIPTOR]` | address of the static descriptor (8-aligned, read-only) |
//! | `[rsp + STACK_ADDRESS]` | effective address of the memory operand |
//! | `[rsp + STACK_ORIGINAL]` | the application's rcx |
//! | `rsp + RSP_DISPLACEMENT` | the application's rsp |
//!
//! The stub performs the operation, sets registers and flags as the instruction would, and
//! executes `ret`. It may overwrite the three stack words. Or it leaves the operation to the original
//! instruction, and goes on [`BY_ITSELF`] bytes behind its return address instead, with all registers as the
//! application had them, rsp included. Or [`AGAIN`] bytes behind it, in the same way: then the stub is called again.
//!
//! A load's trampoline calls [`crate::AgentEntries::load`] instead, with the same words. That stub may find the value without
//! more ado: then it stores it right below its return address, and executes `ret`, with all registers and flags as the
//! application had them but rsp; there the instruction is made on that word. Else it goes on as the other stub does, each time
//! [`FOUND`] bytes further behind its return address. What lies on the stack afterwards is the same in both cases, since the
//! program may come to see it: the stubs leave zeros below their return address, and the trampoline in its place.
//!
//! For [`Op::Bts`], [`Op::Btr`] and [`Op::Btc`] with a register source the bit offset is signed and may
//! reach outside the operand: the word operated on is at
//! `address + (offset >> log2(8 * size)) * size`, the bit is `offset & (8 * size - 1)`. With an
//! immediate source only the low bits count.

use serde::{Deserialize, Serialize};

/// The per-thread word (relative to GS) that says how many atomics and polls are left to the program.
pub const PLAIN_GS_OFFSET: u32 = 0x10;
/// From the stub's return address to code that runs the original instruction.
pub const BY_ITSELF: u64 = 22;
/// From the stub's return address to code that comes to the stub again.
pub const AGAIN: u64 = 27;
/// Bytes that a load's trampoline has for the instruction that is made on the value found.
pub const FOUND: u64 = 32;
/// Where, relative to rsp behind the stub's `ret`, the value found is.
pub const FOUND_VALUE: i64 = -16;
/// Where, relative to rsp at the stub's entry, the descriptor's address is.
pub const STACK_DESCRIPTOR: u64 = 8;
/// Where, relative to rsp at the stub's entry, the effective address is.
pub const STACK_ADDRESS: u64 = 16;
/// Where, relative to rsp at the stub's entry, the trampoline keeps the application's rcx.
pub const STACK_ORIGINAL: u64 = 24;
/// The application's rsp minus rsp at the stub's entry.
pub const RSP_DISPLACEMENT: u64 = crate::RED_ZONE + 32;

/// Bytes of an encoded descriptor.
pub const DESCRIPTOR_LEN: usize = 32;
/// Offset of the run-time address of the original instruction (u64).
pub const OFFSET_SITE: usize = 0;
/// Offset of its link-time address (u64): equal in all replicas, whatever their layout.
pub const OFFSET_VADDR: usize = 8;
/// Offset of the sign-extended immediate (i64), zero without one.
pub const OFFSET_IMM: usize = 16;
/// Offset of the operation (u8, [`Op`]).
pub const OFFSET_OP: usize = 24;
/// Offset of the operand size in bytes (u8).
pub const OFFSET_SIZE: usize = 25;
/// Offset of the kind of source operand (u8, [`Source`]'s tag).
pub const OFFSET_SOURCE: usize = 26;
/// Offset of the source register (u8), in encoding order.
pub const OFFSET_REGISTER: usize = 27;
/// Offset of the length of the original instruction (u8).
pub const OFFSET_LEN: usize = 28;
/// Offset of whether a compare's expected value is a constant (u8).
pub const OFFSET_CONSTANT: usize = 29;
/// Offset of whether a loop waits by it (u8); a zero byte follows.
pub const OFFSET_SPINS: usize = 30;

/// No source operand but those the operation implies.
pub const SOURCE_NONE: u8 = 0;
/// A register: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 8, ...
pub const SOURCE_REGISTER: u8 = 1;
/// Bits 8 to 15 of register 0 to 3: ah, ch, dh, bh.
pub const SOURCE_HIGH_BYTE: u8 = 2;
/// The immediate.
pub const SOURCE_IMMEDIATE: u8 = 3;

/// The operation of an atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Op {
    /// `xadd`: memory += source; source = old memory.
    Xadd = 0,
    /// `xchg`: memory and source change places; no flags.
    Xchg = 1,
    /// `cmpxchg`: accumulator (al, ax, eax, rax) against memory.
    Cmpxchg = 2,
    /// `add`.
    Add = 3,
    /// `sub`.
    Sub = 4,
    /// `and`.
    And = 5,
    /// `or`.
    Or = 6,
    /// `xor`.
    Xor = 7,
    /// `inc`: carry flag kept.
    Inc = 8,
    /// `dec`: carry flag kept.
    Dec = 9,
    /// `neg`.
    Neg = 10,
    /// `not`: no flags.
    Not = 11,
    /// `bts`: only the carry flag.
    Bts = 12,
    /// `btr`: only the carry flag.
    Btr = 13,
    /// `btc`: only the carry flag.
    Btc = 14,
    /// `cmpxchg8b` on edx:eax, ecx:ebx; only the zero flag; size 8.
    Cmpxchg8b = 15,
    /// `cmpxchg16b` on rdx:rax, rcx:rbx; only the zero flag; size 16.
    Cmpxchg16b = 16,
    /// `adc`: reads the carry flag.
    Adc = 17,
    /// `sbb`: reads the carry flag.
    Sbb = 18,
    /// `mov` from memory.
    Load = 19,
    /// `movzx` from memory to a register of 4 or 8 bytes.
    LoadZero = 20,
    /// `cmp` of memory with the source.
    Compare = 21,
    /// `cmp` of a register with memory.
    CompareTo = 22,
    /// `test` of memory with the source.
    Test = 23,
    /// `pause`: no operand.
    Pause = 24,
    /// A call whose result decides whether a loop goes on, or a fence: no operand.
    MayWait = 25,
    /// `mov` to memory.
    Store = 26,
    /// `movsx` or `movsxd` from memory to a register of 4 bytes.
    LoadSign4 = 27,
    /// The same, of 8 bytes.
    LoadSign8 = 28,
    /// `add` of memory to a register.
    LoadAdd = 29,
    /// `sub` of memory from a register.
    LoadSub = 30,
    /// `and` of memory into a register.
    LoadAnd = 31,
    /// `or` of memory into a register.
    LoadOr = 32,
    /// `xor` of memory into a register.
    LoadXor = 33,
}

impl Op {
    /// All operations, in the order of their numbers.
    pub const ALL: [Op; 34] = [
        Op::Xadd,
        Op::Xchg,
        Op::Cmpxchg,
        Op::Add,
        Op::Sub,
        Op::And,
        Op::Or,
        Op::Xor,
        Op::Inc,
        Op::Dec,
        Op::Neg,
        Op::Not,
        Op::Bts,
        Op::Btr,
        Op::Btc,
        Op::Cmpxchg8b,
        Op::Cmpxchg16b,
        Op::Adc,
        Op::Sbb,
        Op::Load,
        Op::LoadZero,
        Op::Compare,
        Op::CompareTo,
        Op::Test,
        Op::Pause,
        Op::MayWait,
        Op::Store,
        Op::LoadSign4,
        Op::LoadSign8,
        Op::LoadAdd,
        Op::LoadSub,
        Op::LoadAnd,
        Op::LoadOr,
        Op::LoadXor,
    ];
}

/// The second operand of an atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// None, or implied by the operation.
    None,
    /// A register, in encoding order.
    Register(u8),
    /// ah, ch, dh or bh: 0 to 3.
    HighByte(u8),
    /// A constant, sign-extended.
    Immediate(i64),
}

/// What a trampoline tells the agent about an atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// Run-time address of the original instruction.
    pub site: u64,
    /// Link-time address of the original instruction.
    pub vaddr: u64,
    /// The operation.
    pub op: Op,
    /// Operand size in bytes: 1, 2, 4, 8 or 16.
    pub size: u8,
    /// The second operand.
    pub source: Source,
    /// Length of the original instruction.
    pub len: u8,
    /// See [`crate::Window::constants`].
    pub constant: bool,
    /// See [`crate::Window::spins`].
    pub spins: bool,
}

impl Descriptor {
    /// The bytes that the agent reads.
    #[must_use]
    pub fn encode(&self) -> [u8; DESCRIPTOR_LEN] {
        let (tag, register, imm) = match self.source {
            Source::None => (SOURCE_NONE, 0, 0),
            Source::Register(r) => (SOURCE_REGISTER, r, 0),
            Source::HighByte(r) => (SOURCE_HIGH_BYTE, r, 0),
            Source::Immediate(i) => (SOURCE_IMMEDIATE, 0, i),
        };
        let mut out = [0; DESCRIPTOR_LEN];
        out[OFFSET_SITE..][..8].copy_from_slice(&self.site.to_le_bytes());
        out[OFFSET_VADDR..][..8].copy_from_slice(&self.vaddr.to_le_bytes());
        out[OFFSET_IMM..][..8].copy_from_slice(&imm.to_le_bytes());
        out[OFFSET_OP] = self.op as u8;
        out[OFFSET_SIZE] = self.size;
        out[OFFSET_SOURCE] = tag;
        out[OFFSET_REGISTER] = register;
        out[OFFSET_LEN] = self.len;
        out[OFFSET_CONSTANT] = u8::from(self.constant);
        out[OFFSET_SPINS] = u8::from(self.spins);
        out
    }

    /// The reverse of [`Descriptor::encode`]; `None` if the bytes are not a descriptor.
    #[must_use]
    pub fn decode(bytes: &[u8; DESCRIPTOR_LEN]) -> Option<Descriptor> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let source = match bytes[OFFSET_SOURCE] {
            SOURCE_NONE => Source::None,
            SOURCE_REGISTER => Source::Register(bytes[OFFSET_REGISTER]),
            SOURCE_HIGH_BYTE => Source::HighByte(bytes[OFFSET_REGISTER]),
            SOURCE_IMMEDIATE => Source::Immediate(word(OFFSET_IMM) as i64),
            _ => return None,
        };
        Some(Descriptor {
            site: word(OFFSET_SITE),
            vaddr: word(OFFSET_VADDR),
            op: *Op::ALL.get(usize::from(bytes[OFFSET_OP]))?,
            size: bytes[OFFSET_SIZE],
            source,
            len: bytes[OFFSET_LEN],
            constant: bytes[OFFSET_CONSTANT] != 0,
            spins: bytes[OFFSET_SPINS] != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_descriptor_survives_encoding() {
        for (number, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, number);
            for source in [
                Source::None,
                Source::Register(12),
                Source::HighByte(3),
                Source::Immediate(-5),
            ] {
                let d = Descriptor {
                    site: 0x7fff_1234_5678,
                    vaddr: 0x5678,
                    op,
                    size: 8,
                    source,
                    len: 5,
                    constant: op == Op::Cmpxchg,
                    spins: op == Op::Xchg,
                };
                assert_eq!(Descriptor::decode(&d.encode()), Some(d));
            }
        }
    }
}
