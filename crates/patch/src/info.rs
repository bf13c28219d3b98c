//! What instructions do with registers and memory, worked out once for each: the same ones are asked for again and again
//! while a function is looked at.

use iced_x86::{Code, Instruction, InstructionInfoFactory, OpAccess, Register};

/// So many are remembered: a power of two, and more than most functions have bytes.
const REMEMBERED: usize = 8192;

/// Remembers what it was asked last.
pub struct Info {
    factory: InstructionInfoFactory,
    known: Vec<Known>,
}

/// Of one instruction. General registers count whole, by their number.
#[derive(Clone, Copy, Default)]
struct Known {
    ip: u64,
    code: Code,
    /// Those that it does not just write.
    read: u16,
    /// Those that it does not just read.
    written: u16,
    /// It writes to memory.
    stores: bool,
}

impl Info {
    /// Knows nothing yet.
    pub fn new() -> Info {
        Info {
            factory: InstructionInfoFactory::new(),
            known: vec![Known::default(); REMEMBERED],
        }
    }

    /// Does the instruction write this general register, or a part of it, or may it?
    pub fn writes(&mut self, i: &Instruction, register: Register) -> bool {
        self.of(i).written & bit(register) != 0
    }

    /// Does it read it, or may it?
    pub fn reads(&mut self, i: &Instruction, register: Register) -> bool {
        self.of(i).read & bit(register) != 0
    }

    /// Either.
    pub fn uses(&mut self, i: &Instruction, register: Register) -> bool {
        self.writes(i, register) || self.reads(i, register)
    }

    /// The general registers that it reads.
    pub fn read(&mut self, i: &Instruction) -> impl Iterator<Item = Register> + use<> {
        registers(self.of(i).read)
    }

    /// And those that it writes.
    pub fn written(&mut self, i: &Instruction) -> impl Iterator<Item = Register> + use<> {
        registers(self.of(i).written)
    }

    /// Does it write to memory? (A call does.)
    pub fn stores(&mut self, i: &Instruction) -> bool {
        self.of(i).stores
    }

    fn of(&mut self, i: &Instruction) -> Known {
        let at = i.ip() as usize % REMEMBERED;
        let known = &self.known[at];
        // (What is no part of a loop is another instruction there.)
        if (known.ip, known.code) == (i.ip(), i.code()) {
            return *known;
        }
        let info = self.factory.info(i);
        let mut new = Known {
            ip: i.ip(),
            code: i.code(),
            ..Known::default()
        };
        for used in info.used_registers() {
            if used.access() != OpAccess::Write {
                new.read |= bit(used.register());
            }
            if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                new.written |= bit(used.register());
            }
        }
        new.stores = info.used_memory().iter().any(|m| {
            !matches!(
                m.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            )
        });
        self.known[at] = new;
        new
    }
}

/// None of no general register.
fn bit(register: Register) -> u16 {
    match register.is_gpr() {
        true => 1 << (register.full_register() as u32 - Register::RAX as u32),
        false => 0,
    }
}

fn registers(of: u16) -> impl Iterator<Item = Register> {
    (0..16)
        .filter(move |n| of & 1 << n != 0)
        .map(|n| Register::RAX + n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(code: &[u8], ip: u64) -> Instruction {
        Decoder::with_ip(64, code, ip, DecoderOptions::NONE).decode()
    }

    #[test]
    fn what_an_instruction_does_with_registers() {
        let mut info = Info::new();
        // add [rbx+8], r9d
        let i = decoded(&[0x44, 0x01, 0x4b, 8], 0x1000);
        assert!(info.stores(&i));
        assert_eq!(info.written(&i).count(), 0);
        let read: Vec<Register> = info.read(&i).collect();
        assert_eq!(read, [Register::RBX, Register::R9]);
        // cmove eax, ecx: eax may stay
        let i = decoded(&[0x0f, 0x44, 0xc1], 0x1000 + REMEMBERED as u64);
        assert!(info.writes(&i, Register::RAX) && info.reads(&i, Register::EAX));
        assert!(info.uses(&i, Register::RCX) && !info.writes(&i, Register::RCX));
        assert!(!info.stores(&i));
    }

    #[test]
    fn another_instruction_at_the_same_place_is_another() {
        let mut info = Info::new();
        let i = decoded(&[0xff, 0xc0], 0x1000); // inc eax
        assert!(info.writes(&i, Register::RAX));
        let mut nop = Instruction::with(Code::Nopd);
        nop.set_ip(0x1000);
        assert!(!info.writes(&nop, Register::RAX));
        assert!(info.writes(&i, Register::AL));
    }
}
