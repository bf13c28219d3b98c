//! Loads that find what they have found before, by way of their own stub, in several replicas.

extern crate std;

use super::replicas::{Group, Random, become_thread, meet};
use super::{RAX, STATUS};
use crate::atomic::decode::{Descriptor, mask, op};
use crate::log::tell_tail;
use crate::state::{block, leads};
use core::arch::global_asm;
use core::mem::offset_of;
use std::vec::Vec;

/// What a load's trampoline hands to the stub, and what it leaves.
#[repr(C)]
struct Trial {
    descriptor: u64,
    address: u64,
    flags: u64,
    /// What the load has made.
    value: u64,
    /// 1: on a value that the stub has found.
    found: u64,
    /// rcx, rdx, rsi, rdi and r8.
    kept: [u64; 5],
    /// The sum of what lies on the stack where the stubs have been.
    left: u64,
}

unsafe extern "C" {
    fn geryon_test_load(trial: *mut Trial);
}

global_asm!(
    ".globl geryon_test_load",
    "geryon_test_load:", // rdi = trial
    "push rbx",
    "push r15",
    "mov r15, rdi",
    "xor ebx, ebx",
    "lea rsp, [rsp - 128]",
    "push qword ptr [r15 + {kept}]",
    "push qword ptr [r15 + {address}]",
    "push qword ptr [r15 + {descriptor}]",
    "push qword ptr [r15 + {flags}]",
    "popfq",
    "mov rcx, [r15 + {kept}]",
    "mov rdx, [r15 + {kept} + 8]",
    "mov rsi, [r15 + {kept} + 16]",
    "mov rdi, [r15 + {kept} + 24]",
    "mov r8, [r15 + {kept} + 32]",
    "mov rax, -1",
    "call geryon_load",
    // 32 bytes (FOUND)
    "mov rax, [rsp - 16]",
    "mov qword ptr [rsp - 16], 0",
    "mov ebx, 1",
    ".nops 13",
    "mov r9d, 0",
    ".irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
    "mov r10, [rsp - 8 - 8 * \\n]",
    "lea r9, [r9 + r10]",
    ".endr",
    "mov [r15 + {left}], r9",
    "lea rsp, [rsp + 24 + 128]",
    "mov [r15 + {value}], rax",
    "mov [r15 + {found}], rbx",
    "mov [r15 + {kept}], rcx",
    "mov [r15 + {kept} + 8], rdx",
    "mov [r15 + {kept} + 16], rsi",
    "mov [r15 + {kept} + 24], rdi",
    "mov [r15 + {kept} + 32], r8",
    "pushfq",
    "pop qword ptr [r15 + {flags}]",
    "pop r15",
    "pop rbx",
    "ret",
    descriptor = const offset_of!(Trial, descriptor),
    address = const offset_of!(Trial, address),
    flags = const offset_of!(Trial, flags),
    value = const offset_of!(Trial, value),
    found = const offset_of!(Trial, found),
    kept = const offset_of!(Trial, kept),
    left = const offset_of!(Trial, left),
);

const SITES: usize = 12;

/// The load of `size` bytes at this site; what it has found, and whether the stub has.
fn load(site: usize, size: u8, address: u64, random: &mut Random) -> (u64, bool) {
    let descriptor = Descriptor {
        site: 0x40_0000 + site as u64,
        vaddr: 0x1000 + site as u64,
        immediate: 0,
        op: op::LOAD_ZERO,
        size,
        source: 1,
        register: RAX as u8,
        len: 5,
        constant: 0,
        spins: 0,
        pad: 0,
    };
    let kept = core::array::from_fn(|_| random.next());
    let mut trial = Trial {
        descriptor: &raw const descriptor as u64,
        address,
        flags: random.next() & STATUS | 2,
        value: 0,
        found: 0,
        kept,
        left: 1,
    };
    let flags = trial.flags & STATUS;
    // SAFETY: the address is of memory that the caller owns; the trampoline keeps what its callers need.
    unsafe { geryon_test_load(&mut trial) };
    assert_eq!(trial.kept, kept, "registers after a load");
    assert_eq!(trial.left, 0, "what lies on the stack");
    assert_eq!(trial.flags & STATUS, flags, "flags after a load");
    (trial.value, trial.found != 0)
}

/// The words change between loads (in all replicas alike), seldom; in between other records come, more seldom.
fn row(seed: u64) {
    become_thread(0);
    let (mut random, mut kept) = (Random(seed), Random(!seed));
    let mut words: Vec<u64> = (0..SITES).map(|_| random.next()).collect();
    let sizes: Vec<u8> = (0..SITES).map(|_| 1 << random.below(4)).collect();
    let (mut found, mut loads) = (0, 0);
    for turn in 0..40_000 {
        let range = if random.below(40) == 0 { SITES } else { 5 };
        let site = random.below(range);
        if random.below(20) == 0 {
            words[site] = random.next();
        }
        // (A site may have several operands.)
        let at = (site + random.below(8) / 7) % SITES;
        let address = &raw const words[at] as u64;
        let (value, by_stub) = load(site, sizes[site], address, &mut kept);
        assert_eq!(value, words[at] & mask(sizes[site]), "turn {turn}");
        loads += 1;
        found += u32::from(by_stub);
        if random.below(100) == 0 {
            meet(value);
        }
    }
    assert!(leads() || found > 0);
    assert!(!leads() || found > loads / 2, "{found} of {loads}");
    if !leads() {
        tell_tail(block());
    }
}

#[test]
fn loads_find_the_same_in_one_two_and_three_replicas() {
    for replicas in 1..=3 {
        for seed in 1..5 {
            Group::new(replicas).run(replicas, || row(seed));
        }
    }
}
