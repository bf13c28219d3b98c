//! Atomic operations by which a loop waits for another thread: it makes the same one until it finds something else, and does
//! nothing else that anybody could see. (`while (lock.exchange(true)) sched_yield();`) The agent may let time go by before it is
//! made again in vain.

use crate::classify::is_atomic;
use crate::info::Info;
use crate::loops::{Loop, is_fixed};
use crate::naps::Naps;

/// Which of a function's instructions are such operations.
pub fn spins(loops: &[Loop], naps: &Naps, info: &mut Info) -> Vec<usize> {
    let mut out = Vec::new();
    for l in loops {
        let is_one = |k: &usize| is_atomic(&l.body[*k]) && is_fixed(*k, &l.body, info);
        let found: Vec<usize> = (0..l.body.len()).filter(is_one).collect();
        if !found.is_empty() && waits(l, naps, info) {
            out.extend(found.into_iter().map(|k| l.from + k));
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Does it say so, or nap, or is it short, and does it store nothing but in the function's own frame and by such operations?
fn waits(l: &Loop, naps: &Naps, info: &mut Info) -> bool {
    let says = l.says_so() || l.body.iter().any(|i| naps.is_nap(i));
    (says || l.is_short() && l.asks_the_same(info)) && l.stores_own_but(is_atomic, info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Instruction};

    const NAP: u64 = 0x2000;

    fn found(code: &[u8]) -> Vec<usize> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        let naps = Naps::at(vec![NAP], Vec::new(), Vec::new());
        spins(&Loop::all(&lines), &naps, &mut Info::new())
    }

    #[test]
    fn an_exchange_until_it_finds_another_value_waits() {
        // call NAP; mov eax, 1; xchg [rbx], eax; mov [rsp+4], eax; mov eax, [rsp+4]; test eax, eax; jne 0x1000
        let mut code = [
            0xe8, 0xfb, 0x0f, 0, 0, 0xb8, 1, 0, 0, 0, 0x87, 0x03, 0x89, 0x44, 0x24, 4, 0x8b, 0x44,
            0x24, 4, 0x85, 0xc0, 0x75, 0xe8,
        ];
        assert_eq!(found(&code), [2]);
        // It stores what others may see: mov [rdi+0x24], eax.
        code[13..16].copy_from_slice(&[0x47, 0x24, 0x90]);
        assert_eq!(found(&code), []);
    }

    #[test]
    fn who_goes_along_waits_for_nobody() {
        // mov eax, 1; xchg [rbx], eax; add rbx, 4; test eax, eax; jne 0x1000
        let along = [
            0xb8, 1, 0, 0, 0, 0x87, 0x03, 0x48, 0x83, 0xc3, 4, 0x85, 0xc0, 0x75, 0xf1,
        ];
        assert_eq!(found(&along), []);
    }
}
