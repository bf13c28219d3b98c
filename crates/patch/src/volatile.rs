//! Words at fixed places that optimised code loads twice, with no store, call or branch target in between, or in each round of a
//! loop that does nothing else (it would have loaded them once before it), and that no
//! instruction of the file uses as its operand but loads and stores: so a compiler treats only what the program has declared
//! volatile, or loads as a relaxed atomic. Threads meet by such words (memcached's threads tell the time by one), and often
//! nothing else shows it.
//!
//! Where a compiler does not optimise it loads everything anew each time, words on the stack, too; so such files are known.
//! (Of 21 programs and libraries of Debian 12 ten have such words, five at most; those that were looked up are volatile.)

use crate::classify::is_call;
use crate::look;
use crate::place::fixed_word;
use crate::refs::Refs;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

/// So many loaded places are kept in mind at a time.
const KEPT: usize = 8;
/// Where words on the stack are loaded twice more often than once in so many bytes of code, nothing was optimised.
const RARE: u64 = 4096;

/// A load of what may have changed since.
struct Load {
    place: Place,
    size: usize,
    at: u64,
    /// How many branches came before it.
    branches: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Link-time address.
    Fixed(u64),
    /// Behind the frame pointer.
    Frame(u64),
}

/// A place that was loaded twice.
struct Twice {
    place: Place,
    first: u64,
    /// Behind the second load.
    end: u64,
}

/// What is found in a file.
pub struct Volatile {
    /// The last loads.
    last: Vec<Load>,
    twice: Vec<Twice>,
    /// How many conditional branches have been seen.
    branches: usize,
    /// Words that instructions use without loading them first.
    used: Vec<u64>,
    info: InstructionInfoFactory,
}

impl Default for Volatile {
    fn default() -> Volatile {
        Volatile {
            last: Vec::new(),
            twice: Vec::new(),
            branches: 0,
            used: Vec::new(),
            info: InstructionInfoFactory::new(),
        }
    }
}

impl Volatile {
    /// A function begins.
    pub fn begin(&mut self) {
        self.last.clear();
    }

    /// Its next instruction.
    pub fn see(&mut self, i: &Instruction) {
        let moves = matches!(
            i.mnemonic(),
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd | Mnemonic::Lea
        );
        if !moves && let Some(word) = fixed_word(i) {
            self.used.push(word);
        }
        let place = place(i).filter(|_| moves && look::any_load(i).is_some());
        if self.last.is_empty() && place.is_none() {
            return;
        }
        let size = i.memory_size().size();
        let same = |l: &&Load| Some(l.place) == place && l.size == size;
        if let Some(first) = self.last.iter().find(same) {
            self.twice.push(Twice {
                place: first.place,
                first: first.at,
                end: i.next_ip(),
            });
        }
        if i.flow_control() == FlowControl::ConditionalBranch {
            self.sees_loop(i);
            self.branches += 1;
        }
        let goes_on = matches!(
            i.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch
        );
        if !goes_on || is_call(i) || self.stores(i) {
            self.last.clear();
        }
        if let Some(place) = place
            && self.last.len() < KEPT
        {
            self.last.push(Load {
                place,
                size,
                at: i.ip(),
                branches: self.branches,
            });
        }
    }

    /// Does this branch lead back to a load of a fixed word, with no other branch in between?
    fn sees_loop(&mut self, branch: &Instruction) {
        let back_to = |l: &&Load| {
            l.at == branch.near_branch_target()
                && l.branches == self.branches
                && matches!(l.place, Place::Fixed(_))
        };
        if let Some(load) = self.last.iter().find(back_to) {
            self.twice.push(Twice {
                place: load.place,
                first: load.at,
                end: branch.next_ip(),
            });
        }
    }

    /// Does it store anything but on the stack?
    fn stores(&mut self, i: &Instruction) -> bool {
        let stack = [Register::RSP, Register::RBP];
        self.info.info(i).used_memory().iter().any(|m| {
            let reads = matches!(
                m.access(),
                OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            );
            !reads && !stack.contains(&m.base())
        })
    }

    /// The words that are volatile, in a file with so many bytes of code, all of whose branches are known.
    pub fn words(&mut self, refs: &Refs, bytes: u64) -> Vec<u64> {
        let in_one_go = |t: &&Twice| refs.entered(t.first, t.end).is_none();
        let (mut words, mut on_stack) = (Vec::new(), 0);
        for t in self.twice.iter().filter(in_one_go) {
            match t.place {
                Place::Fixed(word) => words.push(word),
                Place::Frame(_) => on_stack += 1,
            }
        }
        if on_stack * RARE > bytes {
            return Vec::new();
        }
        self.used.sort_unstable();
        words.retain(|w| self.used.binary_search(w).is_err());
        words
    }
}

fn place(i: &Instruction) -> Option<Place> {
    if let Some(word) = fixed_word(i) {
        return Some(Place::Fixed(word));
    }
    let in_frame = i.memory_base() == Register::RBP && i.memory_index() == Register::None;
    in_frame.then(|| Place::Frame(i.memory_displacement64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// mov eax, [0x1106]; add ecx, eax
    const LOAD: [u8; 8] = [0x8b, 0x05, 0, 1, 0, 0, 0x01, 0xc1];
    /// The same word, eight bytes behind it: mov edx, [0x1106]; add ecx, edx
    const AGAIN: [u8; 8] = [0x8b, 0x15, 0xf8, 0, 0, 0, 0x01, 0xd1];
    /// As many bytes of code as there have to be for one that is loaded twice on the stack.
    const LONG: u64 = RARE;

    fn found(code: &[&[u8]], bytes: u64) -> Vec<u64> {
        let code = code.concat();
        let segment = 0x1000..0x1000 + code.len() as u64;
        let mut refs = Refs::new(std::slice::from_ref(&segment));
        let mut volatile = Volatile::default();
        volatile.begin();
        for i in Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE) {
            if i.is_jcc_short() {
                refs.add(i.near_branch_target());
            }
            volatile.see(&i);
        }
        refs.finish();
        volatile.words(&refs, bytes)
    }

    #[test]
    fn a_word_that_is_loaded_twice_in_one_go() {
        assert_eq!(found(&[&LOAD, &AGAIN], LONG), [0x1106]);
        assert_eq!(found(&[&LOAD, &LOAD], LONG), [], "another word");
        assert_eq!(found(&[&LOAD], LONG), []);
    }

    #[test]
    fn what_may_have_changed_in_between_is_loaded_again_anyway() {
        // mov [rdi], ecx; nop..: the second load is at 0x1108 all the same.
        let first = &LOAD[..6];
        assert_eq!(found(&[first, &[0x89, 0x0f], &AGAIN], LONG), []);
        // On the stack: mov [rbp], ecx would be three bytes; push rcx; nop
        assert_eq!(found(&[first, &[0x51, 0x90], &AGAIN], LONG), [0x1106]);
        // jne 0x1008
        assert_eq!(found(&[first, &[0x75, 0], &AGAIN], LONG), []);
    }

    #[test]
    fn a_word_that_a_loop_does_nothing_but_load() {
        // mov eax, [0x1106]; cmp eax, ecx; je 0x1000
        let load = &LOAD[..6];
        assert_eq!(found(&[load, &[0x39, 0xc8, 0x74, 0xf6]], LONG), [0x1106]);
        // It stores, too: mov [rdi], ecx
        let stores = [0x39, 0xc8, 0x89, 0x0f, 0x74, 0xf4];
        assert_eq!(found(&[load, &stores], LONG), []);
        // It goes other ways, too: jne 0x1008
        let branches = [0x75, 0, 0x39, 0xc8, 0x74, 0xf4];
        assert_eq!(found(&[load, &branches], LONG), []);
        // Another load lies before it: nop
        let not_first = [0x39, 0xc8, 0x74, 0xf5];
        assert_eq!(found(&[&[0x90], load, &not_first], LONG), []);
    }

    #[test]
    fn what_an_instruction_uses_in_memory_is_not_volatile() {
        // cmp ecx, [0x1106]
        let compare = [0x3b, 0x0d, 0xf0, 0, 0, 0];
        assert_eq!(found(&[&LOAD, &AGAIN, &compare], LONG), []);
    }

    #[test]
    fn who_loads_words_on_the_stack_twice_does_not_optimise() {
        // mov eax, [rbp-4]; mov edx, [rbp-4]
        let stack = [0x8b, 0x45, 0xfc, 0x8b, 0x55, 0xfc];
        assert_eq!(found(&[&LOAD, &AGAIN, &stack], LONG), [0x1106]);
        assert_eq!(found(&[&LOAD, &AGAIN, &stack], LONG - 1), []);
    }
}
