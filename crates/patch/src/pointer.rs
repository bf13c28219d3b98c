//! A function's address at a fixed place that is made while the program runs: the first thread that calls through it finds out
//! what this processor is best at, and stores the address of that. (So does Rust's memchr.) All others call what they find
//! there, and whether that is the one who finds out depends on who comes first.

use crate::classify::is_call;
use crate::look::{any_load, any_store};
use crate::place::fixed_word;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// What is known of registers, in one run of instructions.
#[derive(Debug, Default)]
struct Registers {
    /// They hold the address of these words.
    points: [Option<u64>; 16],
    /// They hold what was found there, by the instruction with this number.
    found: [Option<(u64, usize)>; 16],
}

/// What an instruction does with a word at a fixed place.
enum Use {
    Stores(u64),
    /// It calls what the instruction with this number has loaded from there.
    Calls(u64, usize),
}

impl Registers {
    /// The next instruction, and its number.
    fn see(&mut self, i: &Instruction, number: usize) -> Option<Use> {
        let word = self.word(i);
        if any_store(i).is_some() {
            return word
                .filter(|_| i.memory_size().size() == 8)
                .map(Use::Stores);
        }
        if is_indirect(i) {
            let found = at(i.op0_register()).and_then(|r| self.found[r]);
            *self = Registers::default();
            return found.map(|(word, load)| Use::Calls(word, load));
        }
        let goes = matches!(
            i.flow_control(),
            FlowControl::Return | FlowControl::UnconditionalBranch
        );
        if is_call(i) || goes {
            *self = Registers::default();
            return None;
        }
        if let Some(to) = at(i.op0_register()).filter(|_| i.op0_kind() == OpKind::Register) {
            let is_whole = i.op0_register().size() == 8;
            let loads = i.mnemonic() == Mnemonic::Mov && any_load(i).is_some();
            let is_lea = i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand();
            self.found[to] = word.filter(|_| is_whole && loads).map(|w| (w, number));
            self.points[to] = (is_whole && is_lea).then(|| i.ip_rel_memory_address());
        }
        None
    }

    /// The word at a fixed place that it loads or stores.
    fn word(&self, i: &Instruction) -> Option<u64> {
        let by_register = || {
            let base = at(i.memory_base()).filter(|_| i.memory_index() == Register::None)?;
            Some(self.points[base]?.wrapping_add(i.memory_displacement64()))
        };
        fixed_word(i).or_else(by_register)
    }
}

fn is_indirect(i: &Instruction) -> bool {
    let flow = i.flow_control();
    matches!(
        flow,
        FlowControl::IndirectCall | FlowControl::IndirectBranch
    ) && i.op0_kind() == OpKind::Register
}

fn at(register: Register) -> Option<usize> {
    let is_whole = register.is_gpr32() || register.is_gpr64();
    is_whole.then(|| register.full_register().number())
}

/// The pass over a file.
#[derive(Debug, Default)]
pub struct Pointers {
    registers: Registers,
    stored: Vec<u64>,
    called: Vec<(usize, u64)>,
}

impl Pointers {
    /// A piece begins.
    pub fn begin(&mut self) {
        self.registers = Registers::default();
    }

    /// Its next instruction.
    pub fn see(&mut self, i: &Instruction, piece: usize) {
        match self.registers.see(i, 0) {
            Some(Use::Stores(word)) => self.stored.push(word),
            Some(Use::Calls(word, _)) => self.called.push((piece, word)),
            None => {}
        }
    }

    /// All has been seen: these words, sorted, and the pieces that call through them.
    pub fn finish(&mut self) -> (Vec<u64>, Vec<usize>) {
        self.stored.sort_unstable();
        let mut called = std::mem::take(&mut self.called);
        called.retain(|c| self.stored.binary_search(&c.1).is_ok());
        let mut words: Vec<u64> = called.iter().map(|c| c.1).collect();
        words.sort_unstable();
        words.dedup();
        (words, called.iter().map(|c| c.0).collect())
    }
}

/// Which of a function's instructions load what is called through these words, which are sorted.
pub fn called(lines: &[Instruction], words: &[u64]) -> Vec<usize> {
    let mut registers = Registers::default();
    let mut found = Vec::new();
    for (number, i) in lines.iter().enumerate().filter(|_| !words.is_empty()) {
        if let Some(Use::Calls(word, load)) = registers.see(i, number)
            && words.binary_search(&word).is_ok()
        {
            found.push(load);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decode(code: &[u8]) -> Vec<Instruction> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        decoder.into_iter().collect()
    }

    fn words(code: &[u8]) -> Vec<u64> {
        let mut pointers = Pointers::default();
        pointers.begin();
        decode(code).iter().for_each(|i| pointers.see(i, 7));
        let (words, pieces) = pointers.finish();
        assert!(pieces.iter().all(|p| *p == 7));
        words
    }

    /// lea rax, [rip+0x100]; mov rax, [rax]; mov rsi, r14; call rax
    const CALL: [u8; 15] = [
        0x48, 0x8d, 0x05, 0, 1, 0, 0, 0x48, 0x8b, 0, 0x4c, 0x89, 0xf6, 0xff, 0xd0,
    ];

    #[test]
    fn a_pointer_that_is_called_and_stored_is_one() {
        // lea rcx, [rip+0xf1]: the same; mov [rcx], rdx
        let store = [0x48, 0x8d, 0x0d, 0xf1, 0, 0, 0, 0x48, 0x89, 0x11];
        let both = [&CALL[..], &store].concat();
        assert_eq!(words(&both), [0x1107]);
        assert_eq!(called(&decode(&both), &[0x1107]), [1]);
        assert_eq!(words(&CALL), [], "a table");
        // mov rax, [rip+0x100]; jmp rax; mov [rip+0xf7], rdx
        let direct = [
            0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xff, 0xe0, 0x48, 0x89, 0x15, 0xf7, 0, 0, 0,
        ];
        assert_eq!(words(&direct), [0x1107]);
        assert_eq!(called(&decode(&direct), &[0x1107]), [0]);
    }

    #[test]
    fn what_is_not_called_is_none() {
        // mov rax, [rip+0x100]; mov rax, rdx; call rax; mov [rip+0xf4], rdx
        let other = [
            0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x48, 0x89, 0xd0, 0xff, 0xd0, 0x48, 0x89, 0x15, 0xf4, 0,
            0, 0,
        ];
        assert_eq!(words(&other), []);
        // A call in between may return another address.
        let between = [
            0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xe8, 0, 0, 0, 0, 0xff, 0xd0, 0x48, 0x89, 0x15, 0xf2, 0,
            0, 0,
        ];
        assert_eq!(words(&between), []);
    }
}
