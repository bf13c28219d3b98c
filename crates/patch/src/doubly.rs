//! Double-checked locking: a function asks whether a word of an object has been made, takes a lock if it has not, asks again, and makes
//! it. What it finds when it first asks no lock orders. (jemalloc's trees grow so.)

use crate::classify::is_call;
use crate::elf::{Image, Symbol};
use crate::info::Info;
use crate::look::{any_store, load};
use crate::naps::Calls;
use crate::once::asks_whether_made;
use crate::paired;
use crate::place::Place;
use iced_x86::Instruction;

const LOCKS: [&[u8]; 5] = [
    b"pthread_mutex_lock",
    b"pthread_mutex_trylock",
    b"pthread_rwlock_wrlock",
    b"pthread_spin_lock",
    b"mtx_lock",
];
/// A function of more instructions is not looked at.
const MOST: usize = 4096;

/// Where a file takes locks, and which of its functions may ask so.
#[derive(Debug, Default)]
pub struct Doubly {
    locks: Calls,
    /// The function's instructions so far.
    lines: Vec<Instruction>,
    /// It calls others.
    calls: bool,
}

impl Doubly {
    /// Of a file that takes locks by these calls.
    pub fn of(image: &Image, symbols: &[Symbol]) -> Doubly {
        Doubly {
            locks: Calls::named(image, symbols, &LOCKS),
            ..Doubly::default()
        }
    }

    /// Which calls take locks.
    pub fn locks(self) -> Calls {
        self.locks
    }

    /// A function begins.
    pub fn begin(&mut self) {
        self.lines.clear();
        self.calls = false;
    }

    /// Its next instruction.
    pub fn see(&mut self, i: &Instruction) {
        if self.lines.len() < MOST {
            self.lines.push(*i);
            self.calls |= is_call(i);
        }
    }

    /// Is it, all of which has been seen, such a function?
    pub fn is_one(&self, info: &mut Info) -> bool {
        self.calls && !asked(&self.lines, &self.locks, info).is_empty()
    }
}

/// Which of a function's instructions ask first.
pub fn asked(lines: &[Instruction], locks: &Calls, info: &mut Info) -> Vec<usize> {
    let mut out = paired::asked(lines, info);
    out.extend(by_name(lines, locks, info));
    out
}

/// Those before a lock is taken by a function that is known by its name.
fn by_name(lines: &[Instruction], locks: &Calls, info: &mut Info) -> Vec<usize> {
    let takes: Vec<usize> = (0..lines.len())
        .filter(|at| locks.is_called(&lines[*at]))
        .collect();
    let (Some(first), Some(last)) = (takes.first(), takes.last()) else {
        return Vec::new();
    };
    let asks = |at: &usize| load(&lines[*at]).is_some() && asks_whether_made(&lines[*at..]);
    let is_made = |at: &usize| {
        let place = Place::of(&lines[*at]);
        let is_it = |i: &Instruction| any_store(i).is_some() && Place::of(i) == place;
        place.is_some() && lines[*at..].iter().any(is_it)
    };
    let again = (*first..lines.len()).filter(|at| asks(at) && is_made(at));
    let again: Vec<(usize, Vec<Place>)> = again
        .map(|at| (at, Place::names(&lines[..=at], info)))
        .collect();
    if again.is_empty() {
        return Vec::new();
    }
    let mut is_first = |at: usize| {
        let (Some(place), Some(lock)) = (Place::of(&lines[at]), takes.iter().find(|t| at < **t))
        else {
            return false;
        };
        let mut same = again
            .iter()
            .filter(|(k, names)| k > lock && names.contains(&place));
        // (The object keeps its name until the lock is taken, and until it is asked again, or has another one then.)
        same.any(|(k, names)| {
            let until = if names[0] == place { k } else { lock };
            place.stays(&lines[at + 1..*until], info)
        })
    };
    (0..*last).filter(|at| asks(at) && is_first(*at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    const LOCK: u64 = 0x1000;

    /// Those of this code, and whether it is such a function.
    fn found(code: &[u8]) -> (Vec<usize>, bool) {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        let mut doubly = Doubly {
            locks: Calls::at(vec![LOCK]),
            ..Doubly::default()
        };
        doubly.begin();
        lines.iter().for_each(|i| doubly.see(i));
        let is_one = doubly.is_one(&mut Info::new());
        (asked(&lines, &doubly.locks(), &mut Info::new()), is_one)
    }

    /// mov rax, [rbx+8]; test rax, rax; jne +2; call LOCK; mov rax, [rbx+8]; test rax, rax; jne +4; mov [rbx+8], rcx; ret
    const CODE: [u8; 29] = [
        0x48, 0x8b, 0x43, 8, 0x48, 0x85, 0xc0, 0x75, 0x13, 0xe8, 0xf2, 0xff, 0xff, 0xff, 0x48,
        0x8b, 0x43, 8, 0x48, 0x85, 0xc0, 0x75, 4, 0x48, 0x89, 0x4b, 8, 0xc3, 0x90,
    ];

    #[test]
    fn who_asks_again_with_the_lock_has_asked_without_it() {
        assert_eq!(found(&CODE), (vec![0], true));
    }

    #[test]
    fn the_object_may_have_another_name_then() {
        // mov rax, [rdi+8]; ...; mov rbx, rdi; call LOCK; ...
        let mut code = [&CODE[..9], &[0x48, 0x89, 0xfb], &CODE[9..]].concat();
        code[2] = 0x47;
        code[13..17].copy_from_slice(&(-17i32).to_le_bytes());
        assert_eq!(found(&code), (vec![0], true));
    }

    #[test]
    fn another_word_is_another_matter() {
        // It asks for another one with the lock.
        let mut other = CODE;
        other[17] = 16;
        assert_eq!(found(&other), (vec![], false));
        // It makes another one.
        let mut other = CODE;
        other[26] = 16;
        assert_eq!(found(&other), (vec![], false));
        // The same name of another object: pop rbx in the place of a nop behind the jump.
        let mut other = [&CODE[..9], &[0x5b], &CODE[9..]].concat();
        other[11..15].copy_from_slice(&(-15i32).to_le_bytes());
        assert_eq!(found(&other), (vec![], false));
    }
}
