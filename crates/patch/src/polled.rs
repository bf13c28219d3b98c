//! Loads in loops that wait for others: what they look at, others store.

use crate::classify::is_call;
use crate::info::Info;
use crate::look::{any_load, is_compared, load, stores};
use crate::loops::{LONGEST, Loop, is_fixed};
use crate::naps::Naps;
use crate::place::Place;
use iced_x86::{Instruction, Mnemonic, Register};

/// What was found.
#[derive(Debug, Default)]
pub struct Polled {
    /// All of them.
    pub all: Vec<usize>,
    /// Those in loops that sleep, or wait by a function; and by which loops end that wait for a condition. (These look while they hold
    /// a lock, which orders them.)
    pub waited_for: Vec<usize>,
    /// Those of the last kind alone.
    pub conditions: Vec<usize>,
}

/// Loads in loops that wait (they say so, or nap), or store nothing and call nothing, whose address stays the same all over
/// the loop: compilers leave few there that nobody else may change. (In a long one that compares bytes, or indexes, they do.)
/// In one that waits for others or for input by a function: those by which it ends.
pub fn polled(lines: &[Instruction], loops: &[Loop], naps_of: &Naps, info: &mut Info) -> Polled {
    let mut out = Polled::default();
    let is_nap = |i: &Instruction| naps_of.is_nap(i);
    let is_wait = |i: &Instruction| naps_of.is_wait(i);
    let may_be_long = lines.iter().any(|i| is_nap(i) || is_wait(i));
    let long = |at| {
        let l = Loop::of_length(lines, at, LONGEST)?;
        l.body.iter().any(|i| is_nap(i) || is_wait(i)).then_some(l)
    };
    let is_known = |at: &usize| loops.binary_search_by_key(at, Loop::end).is_ok();
    let longer: Vec<Loop> = match may_be_long {
        true => (0..lines.len())
            .filter(|at| !is_known(at))
            .filter_map(long)
            .collect(),
        false => Vec::new(),
    };
    for l in loops.iter().chain(&longer) {
        let asks = l.is_short() && l.asks_the_same(info);
        let calls = l.body.iter().any(is_call);
        let naps = l.says_so() || l.body.iter().any(is_nap);
        let looks = (asks || !calls) && l.stores_nothing(info);
        let waits = l.body.iter().any(is_wait);
        if l.body.iter().any(|i| naps_of.is_for_condition(i)) {
            let ends = |k: &usize| {
                load(&l.body[*k]).is_some() && is_fixed(*k, &l.body, info) && l.ends_by(*k, info)
            };
            let found = (0..l.body.len()).filter(ends).map(|k| l.from + k);
            out.conditions.extend(found);
        }
        if !naps && !looks && !waits {
            continue;
        }
        let says = l.is_short() || naps;
        let is_one = |k: &usize| {
            let i = &l.body[*k];
            let is_word = i.memory_size().size() >= 4 && i.memory_index() == Register::None;
            load(i).is_some()
                && is_fixed(*k, &l.body, info)
                && ((naps || looks) && (says || is_word) && (naps || !l.counts_up_to(*k, info))
                    || waits && l.ends_by(*k, info))
        };
        let found = (0..l.body.len()).filter(is_one).map(|k| l.from + k);
        let begin = out.all.len();
        out.all.extend(found);
        if l.body.iter().any(|i| is_nap(i) || is_wait(i)) {
            out.waited_for.extend_from_slice(&out.all[begin..]);
        }
    }
    out.waited_for.extend_from_slice(&out.conditions);
    out
}

/// Loads of words that the function waits for elsewhere: what another thread stores to end the wait it may ask for without
/// waiting, too. (bowtie2 asks so whether a buffer has been written, before it takes the lock to wait for that.)
pub fn asked_as_well(lines: &[Instruction], waited_for: &[usize]) -> Vec<usize> {
    let place = |at: &usize| Place::of(&lines[*at]);
    let places: Vec<Place> = waited_for.iter().filter_map(place).collect();
    let is_one =
        |at: &usize| load(&lines[*at]).is_some() && place(at).is_some_and(|p| places.contains(&p));
    let all = 0..lines.len();
    all.filter(|_| !places.is_empty()).filter(is_one).collect()
}

/// Loads of what lies on the stack, whose address the function gives away, in loops that do not store there; and behind
/// such a loop, too, for the last look may be there.
pub fn polled_on_stack(lines: &[Instruction], loops: &[Loop], info: &mut Info) -> Vec<usize> {
    /// So far behind an address that is given away its object may reach.
    const OBJECT: u64 = 64;
    let on_stack =
        |i: &Instruction| i.memory_base() == Register::RSP && i.memory_index() == Register::None;
    let place = Instruction::memory_displacement64;
    let given: Vec<u64> = lines
        .iter()
        .filter(|i| i.mnemonic() == Mnemonic::Lea && on_stack(i))
        .map(place)
        .collect();
    let escapes = |at: u64| given.iter().any(|g| at.wrapping_sub(*g) < OBJECT);
    let mut out = Vec::new();
    for l in loops {
        let is_one = |k: &usize| {
            let i = &l.body[*k];
            any_load(i).is_some()
                && on_stack(i)
                && escapes(place(i))
                && is_compared(&l.body[*k..], info)
                && !l
                    .body
                    .iter()
                    .any(|s| on_stack(s) && place(s) == place(i) && stores(s, info))
        };
        out.extend((0..l.body.len()).filter(is_one).map(|k| l.from + k));
    }
    let known: Vec<u64> = out.iter().map(|at| place(&lines[*at])).collect();
    let again = |at: &usize| {
        let i = &lines[*at];
        any_load(i).is_some()
            && on_stack(i)
            && known.contains(&place(i))
            && is_compared(&lines[*at..], info)
    };
    out.extend((0..lines.len()).filter(again));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    const WAIT: u64 = 0x2000;
    const CONDITION: u64 = 0x3000;

    /// Those of code at 0x1000.
    fn found(code: &[u8]) -> Vec<usize> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        let loops = Loop::all(&lines);
        let naps = Naps::at(Vec::new(), vec![WAIT], vec![CONDITION]);
        let found = polled(&lines, &loops, &naps, &mut Info::new());
        let mut all = found.all;
        all.extend(asked_as_well(&lines, &found.waited_for));
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn a_loop_that_waits_for_others_ends_by_what_they_store() {
        // mov eax, [rbx+4]; test eax, eax; jne 0x1011; call WAIT; add [rbx+8], ecx; jmp 0x1000; ret
        let mut code = [
            0x8b, 0x43, 4, 0x85, 0xc0, 0x75, 0x0a, 0xe8, 0xf4, 0x0f, 0, 0, 1, 0x4b, 8, 0xeb, 0xef,
            0xc3,
        ];
        assert_eq!(found(&code), [0]);
        // It calls something else.
        code[8] = 0xf5;
        assert_eq!(found(&code), []);
    }

    #[test]
    fn what_a_condition_is_for_may_be_asked_before_the_lock_is_taken() {
        // cmp [rbx+0x30], rcx; je +0; call LOCK; cmp [rbx+0x30], rcx; je +7; call CONDITION; jmp -13
        let mut code = [
            0x48, 0x39, 0x4b, 0x30, 0x74, 0, 0xe8, 0xf5, 0x2f, 0, 0, 0x48, 0x39, 0x4b, 0x30, 0x74,
            7, 0xe8, 0xea, 0x1f, 0, 0, 0xeb, 0xf3, 0xc3,
        ];
        assert_eq!(found(&code), [0, 3]);
        // The first one asks for another word.
        code[3] = 0x38;
        assert_eq!(found(&code), [3]);
    }

    #[test]
    fn a_loop_that_looks_for_the_first_other_one_waits_for_nobody() {
        // mov rsi, [r13]; add rcx, 16; cmp [rcx], rsi; je 0x1000
        let goes_along = [
            0x49, 0x8b, 0x75, 0, 0x48, 0x83, 0xc1, 0x10, 0x48, 0x39, 0x31, 0x74, 0xf3,
        ];
        assert_eq!(found(&goes_along), []);
        // mov rsi, [r13]; nop; cmp [rcx], rsi; je 0x1000
        let stays = [0x49, 0x8b, 0x75, 0, 0x90, 0x48, 0x39, 0x31, 0x74, 0xf6];
        assert_eq!(found(&stays), [0]);
    }

    #[test]
    fn what_is_asked_on_the_way_round_does_not_end_it() {
        // mov eax, [rbx+4]; test eax, eax; jne +5 (over the call); call WAIT; add [rbx+8], ecx; jmp 0x1000
        let goes_on = [
            0x8b, 0x43, 4, 0x85, 0xc0, 0x75, 5, 0xe8, 0xf4, 0x0f, 0, 0, 1, 0x4b, 8, 0xeb, 0xef,
        ];
        assert_eq!(found(&goes_on), []);
    }
}
