//! The processor is the oracle: each instruction runs on it, and as the agent does it, from the
//! same memory, registers and flags.

extern crate std;

mod again;
mod calls;
mod passed;
mod replicas;
mod room;
mod stub;
mod vain;

use super::compute::{AF, PF, SF, apply, apply_cmpxchg, apply_load, new_value};
use super::decode::{Descriptor, Saved, compare_operands, mask, op, target};
use super::operand::{exchange, load};
use core::arch::asm;
use proptest::prelude::*;
use std::vec::Vec;

/// Flags that an instruction may change: CF, PF, AF, ZF, SF, OF.
const STATUS: u64 = 0x8d5;
const OF: u64 = 0x800;
/// Bytes around the operand, for bit offsets that reach outside it.
const REACH: usize = 1 << 10;
const WORDS: usize = 2 * REACH / 8;

const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RBX: usize = 3;
const R10: usize = 10;

/// Aligned as the widest operand wants it.
#[derive(Clone, PartialEq, Debug)]
#[repr(C, align(16))]
struct Memory([u64; WORDS]);

/// What an instruction works on. The operand lies in the middle of the memory, at rdi.
#[derive(Clone, PartialEq, Debug)]
struct State {
    memory: Memory,
    r: [u64; 16],
    flags: u64,
}

impl State {
    fn operand(&mut self) -> *mut u64 {
        self.memory.0[WORDS / 2..].as_mut_ptr()
    }
}

/// One form of an instruction.
struct Form {
    text: &'static str,
    op: u8,
    size: u8,
    source: u8,
    register: u8,
    immediate: i64,
    run: fn(&mut State),
}

macro_rules! on_processor {
    ($text:expr) => {
        |s: &mut State| {
            let operand = s.operand();
            // SAFETY: writes only within `memory` (bit offsets are kept in reach) and to the
            // registers named; rbx, which an operand cannot name, is exchanged around it.
            unsafe {
                asm!(
                    "xchg r9, rbx",
                    "push r8",
                    "popfq",
                    $text,
                    "pushfq",
                    "pop r8",
                    "xchg r9, rbx",
                    inout("rax") s.r[RAX], inout("rcx") s.r[RCX], inout("rdx") s.r[RDX],
                    inout("r9") s.r[RBX], inout("r10") s.r[R10], inout("r8") s.flags, in("rdi") operand,
                );
            }
            s.flags &= STATUS;
        }
    };
}

macro_rules! form {
    ($op:ident, $size:literal, $source:expr, $register:expr, $immediate:expr, $text:expr) => {
        Form {
            text: $text,
            op: op::$op,
            size: $size,
            source: $source,
            register: $register as u8,
            immediate: $immediate,
            run: on_processor!($text),
        }
    };
}

/// Memory and register, in all sizes; rcx, and r10, whose encoding differs.
macro_rules! with_register {
    ($op:ident, $name:literal) => {
        [
            form!($op, 1, 1, RCX, 0, concat!($name, " byte ptr [rdi], cl")),
            form!($op, 1, 2, RAX, 0, concat!($name, " byte ptr [rdi], ah")),
            form!($op, 1, 2, RCX, 0, concat!($name, " byte ptr [rdi], ch")),
            form!($op, 1, 2, RBX, 0, concat!($name, " byte ptr [rdi], bh")),
            form!($op, 1, 1, R10, 0, concat!($name, " byte ptr [rdi], r10b")),
            form!($op, 2, 1, RCX, 0, concat!($name, " word ptr [rdi], cx")),
            form!($op, 4, 1, RCX, 0, concat!($name, " dword ptr [rdi], ecx")),
            form!($op, 4, 1, RAX, 0, concat!($name, " dword ptr [rdi], eax")),
            form!($op, 8, 1, RCX, 0, concat!($name, " qword ptr [rdi], rcx")),
            form!($op, 8, 1, RAX, 0, concat!($name, " qword ptr [rdi], rax")),
            form!($op, 8, 1, R10, 0, concat!($name, " qword ptr [rdi], r10")),
        ]
    };
}

macro_rules! with_immediate {
    ($op:ident, $name:literal) => {
        [
            form!($op, 1, 3, 0, 0x7f, concat!($name, " byte ptr [rdi], 0x7f")),
            form!($op, 1, 3, 0, -128, concat!($name, " byte ptr [rdi], -128")),
            form!($op, 2, 3, 0, -1, concat!($name, " word ptr [rdi], -1")),
            form!(
                $op,
                2,
                3,
                0,
                0x1234,
                concat!($name, " word ptr [rdi], 0x1234")
            ),
            form!($op, 4, 3, 0, -1, concat!($name, " dword ptr [rdi], -1")),
            form!(
                $op,
                4,
                3,
                0,
                0x7fff_ffff,
                concat!($name, " dword ptr [rdi], 0x7fffffff")
            ),
            form!($op, 8, 3, 0, -1, concat!($name, " qword ptr [rdi], -1")),
            form!(
                $op,
                8,
                3,
                0,
                i32::MIN as i64,
                concat!($name, " qword ptr [rdi], -0x80000000")
            ),
        ]
    };
}

macro_rules! alone {
    ($op:ident, $name:literal) => {
        [
            form!($op, 1, 0, 0, 0, concat!($name, " byte ptr [rdi]")),
            form!($op, 2, 0, 0, 0, concat!($name, " word ptr [rdi]")),
            form!($op, 4, 0, 0, 0, concat!($name, " dword ptr [rdi]")),
            form!($op, 8, 0, 0, 0, concat!($name, " qword ptr [rdi]")),
        ]
    };
}

macro_rules! bits {
    ($op:ident, $name:literal) => {
        [
            form!($op, 2, 1, RCX, 0, concat!($name, " word ptr [rdi], cx")),
            form!($op, 4, 1, RCX, 0, concat!($name, " dword ptr [rdi], ecx")),
            form!($op, 8, 1, RCX, 0, concat!($name, " qword ptr [rdi], rcx")),
            form!($op, 2, 3, 0, 9, concat!($name, " word ptr [rdi], 9")),
            form!($op, 2, 3, 0, 31, concat!($name, " word ptr [rdi], 31")),
            form!($op, 4, 3, 0, 31, concat!($name, " dword ptr [rdi], 31")),
            form!($op, 8, 3, 0, 63, concat!($name, " qword ptr [rdi], 63")),
            form!($op, 8, 3, 0, 127, concat!($name, " qword ptr [rdi], 127")),
        ]
    };
}

/// To a register, in all sizes.
macro_rules! to_register {
    ($op:ident, $name:literal) => {
        [
            form!($op, 1, 1, RCX, 0, concat!($name, " cl, byte ptr [rdi]")),
            form!($op, 1, 1, R10, 0, concat!($name, " r10b, byte ptr [rdi]")),
            form!($op, 2, 1, RCX, 0, concat!($name, " cx, word ptr [rdi]")),
            form!($op, 4, 1, RAX, 0, concat!($name, " eax, dword ptr [rdi]")),
            form!($op, 4, 1, R10, 0, concat!($name, " r10d, dword ptr [rdi]")),
            form!($op, 8, 1, RDX, 0, concat!($name, " rdx, qword ptr [rdi]")),
        ]
    };
}

/// Those that only load, or store.
fn plain() -> Vec<Form> {
    let mut all = Vec::new();
    all.extend(with_register!(STORE, "mov"));
    all.extend(with_immediate!(STORE, "mov"));
    all.extend(to_register!(LOAD, "mov"));
    all.extend(to_register!(COMPARE_TO, "cmp"));
    all.extend(to_register!(LOAD_ADD, "add"));
    all.extend(to_register!(LOAD_SUB, "sub"));
    all.extend(to_register!(LOAD_AND, "and"));
    all.extend(to_register!(LOAD_OR, "or"));
    all.extend(to_register!(LOAD_XOR, "xor"));
    all.extend(with_register!(COMPARE, "cmp"));
    all.extend(with_register!(TEST, "test"));
    all.extend(with_immediate!(COMPARE, "cmp"));
    all.extend(with_immediate!(TEST, "test"));
    all.push(form!(LOAD_ZERO, 1, 1, RCX, 0, "movzx ecx, byte ptr [rdi]"));
    all.push(form!(LOAD_ZERO, 2, 1, R10, 0, "movzx r10d, word ptr [rdi]"));
    all.push(form!(LOAD_ZERO, 2, 1, RAX, 0, "movzx rax, word ptr [rdi]"));
    all.push(form!(LOAD_SIGN4, 1, 1, RCX, 0, "movsx ecx, byte ptr [rdi]"));
    all.push(form!(
        LOAD_SIGN4,
        2,
        1,
        R10,
        0,
        "movsx r10d, word ptr [rdi]"
    ));
    all.push(form!(LOAD_SIGN8, 1, 1, RCX, 0, "movsx rcx, byte ptr [rdi]"));
    all.push(form!(LOAD_SIGN8, 2, 1, R10, 0, "movsx r10, word ptr [rdi]"));
    all.push(form!(
        LOAD_SIGN8,
        4,
        1,
        RAX,
        0,
        "movsxd rax, dword ptr [rdi]"
    ));
    all
}

fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    all.extend(with_register!(XADD, "lock xadd"));
    all.extend(with_register!(XCHG, "xchg"));
    all.extend(with_register!(CMPXCHG, "lock cmpxchg"));
    all.extend(with_register!(ADD, "lock add"));
    all.extend(with_register!(SUB, "lock sub"));
    all.extend(with_register!(AND, "lock and"));
    all.extend(with_register!(OR, "lock or"));
    all.extend(with_register!(XOR, "lock xor"));
    all.extend(with_register!(ADC, "lock adc"));
    all.extend(with_register!(SBB, "lock sbb"));
    all.extend(with_immediate!(ADD, "lock add"));
    all.extend(with_immediate!(SUB, "lock sub"));
    all.extend(with_immediate!(AND, "lock and"));
    all.extend(with_immediate!(OR, "lock or"));
    all.extend(with_immediate!(XOR, "lock xor"));
    all.extend(with_immediate!(ADC, "lock adc"));
    all.extend(with_immediate!(SBB, "lock sbb"));
    all.extend(alone!(INC, "lock inc"));
    all.extend(alone!(DEC, "lock dec"));
    all.extend(alone!(NEG, "lock neg"));
    all.extend(alone!(NOT, "lock not"));
    all.extend(bits!(BTS, "lock bts"));
    all.extend(bits!(BTR, "lock btr"));
    all.extend(bits!(BTC, "lock btc"));
    all.push(form!(CMPXCHG8B, 8, 0, 0, 0, "lock cmpxchg8b [rdi]"));
    all.extend(plain());
    all
}

/// Only the stub does it.
fn wide_form() -> Form {
    form!(CMPXCHG16B, 16, 0, 0, 0, "lock cmpxchg16b [rdi]")
}

/// Flags that the architecture leaves open.
fn open_flags(op: u8) -> u64 {
    match op {
        op::AND | op::OR | op::XOR | op::TEST => AF,
        op::BTS | op::BTR | op::BTC => OF | SF | AF | PF,
        _ => 0,
    }
}

/// The instruction as `lead` does it, without clock and log.
fn in_software(form: &Form, s: &mut State) {
    let d = Descriptor {
        site: 0,
        vaddr: 0,
        immediate: form.immediate as u64,
        op: form.op,
        size: form.size,
        source: form.source,
        register: form.register,
        len: 0,
        constant: 0,
        spins: 0,
        pad: 0,
    };
    // As `lahf` and `seto` save them, and `add al, 0x7f; sahf` brings them back.
    let mut saved = Saved {
        flags: (s.flags & 0xd5 | 2) << 8 | (s.flags & OF != 0) as u64,
        r: s.r,
    };
    let at = target(&d, &saved, s.operand() as u64);
    if op::loads(d.op) {
        apply_load(&d, &mut saved, load(at, d.size));
    } else if matches!(d.op, op::CMPXCHG | op::CMPXCHG8B) {
        let (expected, new) = compare_operands(&saved, &d);
        let seen = exchange(at, d.size, expected, new);
        apply_cmpxchg(&d, &mut saved, expected, seen);
    } else {
        let old = load(at, d.size);
        let new = new_value(&d, &saved, old);
        assert_eq!(new & !mask(d.size), 0);
        assert_eq!(exchange(at, d.size, old, new), old);
        apply(&d, &mut saved, old);
    }
    s.r = saved.r;
    let (low, overflow) = saved.rflags();
    assert_eq!(saved.flags >> 16, 0);
    s.flags = low & STATUS | if overflow { OF } else { 0 };
}

/// Words near the edges of all sizes, and any.
fn operand() -> impl Strategy<Value = u64> {
    let edge = prop::sample::select(std::vec![
        0,
        1,
        2,
        0xf,
        0x10,
        0x7f,
        0x80,
        0xff,
        0x7fff,
        0x8000,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x1_0000_0000,
        u64::MAX >> 1,
        1 << 63,
        u64::MAX
    ]);
    prop_oneof![
        any::<u64>(),
        edge.clone(),
        (edge, -2i64..3).prop_map(|(e, d)| e.wrapping_add_signed(d))
    ]
}

fn compare(form: &Form, start: &State) -> Result<(), TestCaseError> {
    let (mut real, mut ours) = (start.clone(), start.clone());
    (form.run)(&mut real);
    in_software(form, &mut ours);
    let open = open_flags(form.op);
    let (memory, own) = (&real.memory, &ours.memory);
    let differs = memory.0.iter().zip(&own.0).position(|(a, b)| a != b);
    prop_assert_eq!(differs, None, "memory of {}", form.text);
    prop_assert_eq!(real.r, ours.r, "registers of {}: {:x?}", form.text, start.r);
    prop_assert_eq!(
        real.flags & !open,
        ours.flags & !open,
        "flags of {}",
        form.text
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_form_does_what_the_processor_does(
        values in prop::array::uniform4(operand()),
        high in any::<u64>(),
        old in operand(),
        // A compare-and-exchange finds what it expects, or all but the upper half.
        alike in 0..4,
        filler in any::<u64>(),
        flags in any::<u64>(),
    ) {
        let flags = flags & STATUS;
        for form in forms() {
            let mut s = State { memory: Memory([filler; WORDS]), r: [0x5555_5555_5555_5555; 16], flags };
            for (register, value) in [RAX, RCX, RBX, R10].into_iter().zip(values) {
                s.r[register] = value;
            }
            s.r[RDX] = high;
            s.memory.0[WORDS / 2] = match (form.op, alike) {
                (op::CMPXCHG8B, 0 | 1) => s.r[RDX] << 32 | s.r[RAX] & 0xffff_ffff,
                (_, 0) => s.r[RAX],
                (_, 1) => s.r[RAX] & mask(form.size) | old & !mask(form.size),
                _ => old,
            };
            if matches!(form.op, op::BTS | op::BTR | op::BTC) {
                // Keep the offset, as the operand size reads it, in reach.
                let bits = 8 * REACH as i64;
                let offset = (s.r[RCX] as i64).rem_euclid(2 * bits - 64) - bits;
                let upper = if form.size == 8 { 0 } else { s.r[RCX] & !mask(form.size) };
                s.r[RCX] = offset as u64 & mask(form.size) | upper;
            }
            compare(&form, &s)?;
        }
    }
}
