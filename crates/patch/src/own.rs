//! Words of a thread's own that no operand shows to be such: where a function has said that they lie. (errno. A follower that has been told
//! what came of a call has not made it, and its own errno need not be what the leader's is, unless the program asks.)

use crate::classify::is_call;
use crate::elf::{Image, Symbol};
use crate::info::Info;
use crate::naps::Calls;
use iced_x86::{Instruction, Mnemonic, Register};

/// So many instructions before a load are looked at for where its address comes from.
const FAR: usize = 512;
const NAMES: [&[u8]; 2] = [b"__errno_location", b"__h_errno_location"];

/// Calls that say where the thread's own words lie.
#[derive(Debug, Default)]
pub struct Own(Calls);

impl Own {
    /// Those of a file.
    pub fn of(image: &Image, symbols: &[Symbol]) -> Own {
        Own(Calls::named(image, symbols, &NAMES))
    }

    /// Is the operand of the last of these instructions such a word?
    pub fn is_one(&self, lines: &[Instruction], info: &mut Info) -> bool {
        let Some((last, before)) = lines.split_last() else {
            return false;
        };
        let mut base = last.memory_base();
        if self.0.is_empty() || !base.is_gpr64() {
            return false;
        }
        for i in before.iter().rev().take(FAR) {
            if base == Register::RAX && is_call(i) {
                return self.0.is_called(i);
            }
            if !info.writes(i, base) {
                continue;
            }
            if i.mnemonic() != Mnemonic::Mov || !i.op1_register().is_gpr64() {
                return false;
            }
            base = i.op1_register();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn is_own(code: &[u8]) -> bool {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        Own(Calls::at(vec![0x1000])).is_one(&lines, &mut Info::new())
    }

    #[test]
    fn errno_is_the_threads_own() {
        // call 0x1000; mov rbx, rax; nop; mov eax, [rbx]
        let mut code = [
            0xe8, 0xfb, 0xff, 0xff, 0xff, 0x48, 0x89, 0xc3, 0x90, 0x8b, 0x03,
        ];
        assert!(is_own(&code));
        // pop rbx in the nop's place
        code[8] = 0x5b;
        assert!(!is_own(&code));
        // call 0x1001
        assert!(!is_own(&[0xe8, 0xfc, 0xff, 0xff, 0xff, 0x8b, 0x00]));
        assert!(is_own(&[0xe8, 0xfb, 0xff, 0xff, 0xff, 0x8b, 0x00]));
    }
}
