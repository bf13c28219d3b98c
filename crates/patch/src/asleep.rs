//! A byte in an object that a thread sets before it waits for a condition, so that others see without the lock whether it
//! has to be woken. (jemalloc's background threads say so that they sleep for as long as nobody wakes them; who frees asks.)

use crate::flag;
use crate::info::Info;
use crate::look;
use crate::naps::Calls;
use crate::place::Place;
use iced_x86::{Instruction, Register};

/// So many instructions before the wait the byte is set.
const NEAR: usize = 16;
/// So many instructions are kept.
const KEPT: usize = 64;

/// Where in their objects such bytes lie: displacements.
#[derive(Debug, Default)]
pub struct Asleep {
    waits: Calls,
    /// The last instructions of a function.
    last: Vec<Instruction>,
    known: Vec<u64>,
}

impl Asleep {
    /// In a file that waits for conditions by these calls.
    pub fn new(waits: Calls) -> Asleep {
        Asleep {
            waits,
            ..Asleep::default()
        }
    }

    /// Can there be such bytes?
    pub fn may_be(&self) -> bool {
        !self.waits.is_empty()
    }

    /// A function begins.
    pub fn begin(&mut self) {
        self.last.clear();
    }

    /// Its next instruction.
    pub fn see(&mut self, i: &Instruction, info: &mut Info) {
        if self.waits.is_called(i) {
            for at in self.last.len().saturating_sub(NEAR)..self.last.len() {
                // (An object has several names where it begins with a lock, say.)
                let i = &self.last[at];
                let names = match flag::sets(i) && byte(i).is_some() {
                    true => Place::names(&self.last[..=at], info),
                    false => Vec::new(),
                };
                let known = names.iter().filter_map(Place::behind);
                // Every object has a first byte.
                self.known.extend(known.filter(|d| *d != 0));
            }
        }
        if self.last.len() == KEPT {
            self.last.drain(..KEPT / 2);
        }
        self.last.push(*i);
    }

    /// All have been seen.
    pub fn finish(&mut self) {
        self.known.sort_unstable();
        self.known.dedup();
    }

    /// Does it have one as its operand?
    pub fn is_one(&self, i: &Instruction) -> bool {
        byte(i).is_some_and(|at| self.has(at))
    }

    /// Is the byte at this displacement one?
    pub fn has(&self, displacement: u64) -> bool {
        self.known.binary_search(&displacement).is_ok()
    }

    /// Which of a function's instructions ask for one.
    pub fn asked(&self, lines: &[Instruction], info: &mut Info) -> Vec<usize> {
        let is_one = |at: &usize| {
            let i = &lines[*at];
            self.is_one(i) && look::load(i).is_some() && look::is_compared(&lines[*at..], info)
        };
        (0..lines.len()).filter(is_one).collect()
    }
}

/// The displacement of the byte in an object that is its operand.
pub fn byte(i: &Instruction) -> Option<u64> {
    let base = i.memory_base();
    let is_one = flag::is_byte(i)
        && base.is_gpr64()
        && base != Register::RSP
        && !matches!(i.memory_segment(), Register::FS | Register::GS);
    is_one.then(|| i.memory_displacement64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(code: &[u8]) -> Vec<Instruction> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        decoder.into_iter().collect()
    }

    /// mov byte [r14+0xac], 1; mov rdi, r14; (between) call 0x2000
    fn before_wait(between: &[u8]) -> Vec<u8> {
        let mut code = vec![
            0x41, 0xc6, 0x86, 0xac, 0, 0, 0, 1, 0x4c, 0x89, 0xf7, // 11 bytes
        ];
        code.extend(between);
        let distance = 0x1000 - (code.len() as i32 + 5);
        code.push(0xe8);
        code.extend(distance.to_le_bytes());
        code
    }

    fn known(code: &[u8]) -> Asleep {
        let mut asleep = Asleep::new(Calls::at(vec![0x2000]));
        let mut info = Info::new();
        decoded(code).iter().for_each(|i| asleep.see(i, &mut info));
        asleep.finish();
        asleep
    }

    #[test]
    fn who_sleeps_is_asked_for() {
        let asleep = known(&before_wait(&[]));
        // movzx ecx, byte [r8+0xac]; test cl, cl; je +0
        let asks = [0x41, 0x0f, 0xb6, 0x88, 0xac, 0, 0, 0, 0x84, 0xc9, 0x74, 0];
        let asked = |code: &[u8]| asleep.asked(&decoded(code), &mut Info::new());
        assert_eq!(asked(&asks), [0]);
        let mut other = asks;
        other[4] = 0xad;
        assert!(asked(&other).is_empty(), "another byte");
        assert!(asked(&asks[..8]).is_empty(), "it is not compared");
    }

    #[test]
    fn what_is_set_long_before_a_wait_is_none() {
        let far = known(&before_wait(&[0x90; NEAR]));
        assert!(!far.has(0xac));
        assert!(known(&before_wait(&[0x90; 4])).has(0xac));
    }

    #[test]
    fn what_another_function_sets_is_none() {
        let mut asleep = Asleep::new(Calls::at(vec![0x2000]));
        let lines = decoded(&before_wait(&[]));
        let mut info = Info::new();
        asleep.see(&lines[0], &mut info);
        asleep.begin();
        lines[1..].iter().for_each(|i| asleep.see(i, &mut info));
        asleep.finish();
        assert!(!asleep.has(0xac));
    }

    #[test]
    fn the_object_may_have_another_name_there() {
        // lea rdi, [rdi+0x28]; mov byte [rdi+0x44], 1; call 0x2000
        let code = [
            &[0x48, 0x8d, 0x7f, 0x28, 0xc6, 0x47, 0x44, 1][..],
            &[0xe8, 0xf3, 0x0f, 0, 0],
        ]
        .concat();
        assert!(known(&code).has(0x6c));
    }

    #[test]
    fn the_first_byte_of_an_object_is_none() {
        // mov byte [r14], 1 instead
        let code = [
            &[0x41, 0xc6, 0x06, 1][..],
            &[0xe8, 0xf7, 0x0f, 0, 0], // call 0x2000
        ]
        .concat();
        assert!(!known(&code).has(0));
        let same = [&[0x41, 0xc6, 0x46, 8, 1][..], &[0xe8, 0xf6, 0x0f, 0, 0]].concat();
        assert!(known(&same).has(8));
    }
}
