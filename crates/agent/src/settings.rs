//! What only the leader is bound by, and whoever takes over is to be bound by, too: limits and CPUs. All
//! replicas keep in mind what the program has set.
//!
//! Limits of memory are set in every replica at once, for there a call has to fail, or a stack to end, where it
//! does in the leader. The others count what followers do not do (descriptors, bytes in files, processor time)
//! or what all replicas do together (processes).

use crate::gate::{guarded, real};
use crate::ids::{mine, slot_of};
use crate::state::{Here, block, block_at, leads, private};
use core::sync::atomic::Ordering;
use geryon_abi::layout::{CPU_WORDS, LIMITS, MAX_THREADS};
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const NR_SETRLIMIT: u16 = nr::setrlimit as u16;
const NR_SCHED_SETAFFINITY: u16 = nr::sched_setaffinity as u16;
const NR_PRLIMIT64: u16 = nr::prlimit64 as u16;

/// `RLIMIT_DATA`, `STACK`, `CORE`, `RSS`, `MEMLOCK`, `AS`, `NICE`, `RTPRIO`.
const IN_EACH: u32 = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 13 | 1 << 14;

/// setrlimit, prlimit64 or sched_setaffinity is about to be called: what is asked for?
pub fn ask(args: &[u64; 6], row: &Row) {
    let [id, which, new, ..] = *args;
    let asked = &mut block().asked;
    // Read now: where the call puts the old limit may be where the new one lies.
    asked.is_set = match row.nr {
        NR_SETRLIMIT => {
            (asked.id, asked.which) = (0, id as u32);
            read(which, &mut asked.words, 2)
        }
        NR_PRLIMIT64 => {
            (asked.id, asked.which) = (id as u32, which as u32);
            read(new, &mut asked.words, 2)
        }
        _ => {
            asked.id = id as u32;
            asked.words = [0; CPU_WORDS];
            let bytes = (which as u32 as usize).min(8 * CPU_WORDS);
            let there = read(new, &mut asked.words, bytes.div_ceil(8));
            if !bytes.is_multiple_of(8) {
                asked.words[bytes / 8] &= (1 << (8 * (bytes % 8))) - 1;
            }
            there
        }
    } as u32;
}

fn read(at: u64, to: &mut [u64; CPU_WORDS], words: usize) -> bool {
    at != 0
        && guarded(|| {
            for (k, word) in to.iter_mut().take(words).enumerate() {
                // SAFETY: inside `guarded`.
                *word = unsafe { ((at + 8 * k as u64) as *const u64).read_unaligned() };
            }
        })
}

/// All: the call has been made.
#[inline(always)]
pub fn were_set(b: Here, nr: u16, result: i64) {
    let is_its = matches!(nr, NR_SETRLIMIT | NR_PRLIMIT64 | NR_SCHED_SETAFFINITY);
    if is_its && result >= 0 && b.asked.is_set != 0 {
        keep(b, nr);
    }
}

#[cold]
fn keep(mut b: Here, nr: u16) {
    let asked = b.asked;
    b.asked.is_set = 0;
    if nr == NR_SCHED_SETAFFINITY {
        let slot = match asked.id {
            0 => Some(b.slot as usize),
            id => slot_of(id),
        };
        if let Some(slot) = slot {
            let mut of = block_at(slot);
            of.cpus = asked.words;
            of.is_bound = 1;
        }
        return;
    }
    let p = private();
    let is_own = asked.id == 0 || asked.id == p.shown_pid.get();
    let which = asked.which as usize;
    if which >= LIMITS {
        return;
    }
    if is_own {
        for (limit, word) in p.limits[which].iter().zip(asked.words) {
            limit.set(word);
        }
        p.limits_set.set(p.limits_set.get() | 1 << which);
    }
    if !leads() && IN_EACH & 1 << which != 0 {
        let target = if is_own { Some(0) } else { mine(asked.id) };
        if let Some(target) = target {
            limit(target, which);
        }
    }

    fn limit(target: u32, which: usize) {
        let words = block().asked.words.as_ptr() as u64;
        real(
            NR_PRLIMIT64 as u64,
            [target.into(), which as u64, words, 0, 0, 0],
        );
    }
}

/// New leader: a call that its predecessor has made has bound only that.
pub fn were_given(b: Here, nr: u16, result: i64) {
    let is_its = matches!(nr, NR_SETRLIMIT | NR_PRLIMIT64 | NR_SCHED_SETAFFINITY);
    if is_its {
        were_set(b, nr, result);
        apply();
    }
}

/// New leader: it is bound as its predecessor was.
pub fn apply() {
    let p = private();
    for (which, limit) in p.limits.iter().enumerate() {
        if p.limits_set.get() & 1 << which != 0 {
            real(
                NR_PRLIMIT64 as u64,
                [0, which as u64, limit.as_ptr() as u64, 0, 0, 0],
            );
        }
    }
    for slot in 0..MAX_THREADS {
        let b = block_at(slot);
        if b.this != 0 && b.is_bound != 0 {
            real(
                NR_SCHED_SETAFFINITY as u64,
                [
                    b.own_tid.load(Ordering::Relaxed).into(),
                    8 * CPU_WORDS as u64,
                    b.cpus.as_ptr() as u64,
                    0,
                    0,
                    0,
                ],
            );
        }
    }
}
