//! Rewritten atomic instructions: the operation and its tick together, on a hashed clock; the
//! replay is value-checked (design, section 4). Also the instructions whose value is an input:
//! rdtsc, rdtscp, rdrand, rdseed.

use crate::clock::{advance, await_tick, of_address};
use crate::gate::real;
use crate::log::{first, get, publish, put, remember, take, view};
use crate::state::{block, leads, private};
use crate::stop::diverged;
use crate::wait::{Patience, announce, announce_end};
use core::arch::global_asm;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use geryon_abi::layout::{wait, why};
use geryon_abi::record::{detail_of, kind, kind_of, low_of, short_of, word};

global_asm!(
    ".globl geryon_atomic",
    "geryon_atomic:", // [rsp] return, [rsp+8] descriptor, [rsp+16] address
    "push r15",
    "push r14",
    "push r13",
    "push r12",
    "push r11",
    "push r10",
    "push r9",
    "push r8",
    "push rdi",
    "push rsi",
    "push rbp",
    "push rsp", // placeholder: replaced below
    "push rbx",
    "push rdx",
    "push rcx",
    "push rax",
    "lahf",
    "seto al",
    "movzx eax, ax",
    "push rax",               // flags; the registers lie above in encoding order
    "mov rdi, rsp",
    "lea rax, [rsp + 136 + 160]", // 17 words pushed, then RSP_DISPLACEMENT: the application's rsp
    "mov [rsp + 8 + 32], rax",
    "mov rsi, [rsp + 136 + 8]",
    "mov rdx, [rsp + 136 + 16]",
    "mov rbx, rsp",
    "mov r12, gs:[{hook_rsp}]",
    "mov gs:[{hook_rsp}], rsp",
    "mov rsp, gs:[0x18]", // what the agent leaves on the user's stack would differ
    "sub rsp, 256",
    "movups [rsp], xmm0",
    "movups [rsp+16], xmm1",
    "movups [rsp+32], xmm2",
    "movups [rsp+48], xmm3",
    "movups [rsp+64], xmm4",
    "movups [rsp+80], xmm5",
    "movups [rsp+96], xmm6",
    "movups [rsp+112], xmm7",
    "movups [rsp+128], xmm8",
    "movups [rsp+144], xmm9",
    "movups [rsp+160], xmm10",
    "movups [rsp+176], xmm11",
    "movups [rsp+192], xmm12",
    "movups [rsp+208], xmm13",
    "movups [rsp+224], xmm14",
    "movups [rsp+240], xmm15",
    "cld",
    "call geryon_on_atomic",
    "movups xmm0, [rsp]",
    "movups xmm1, [rsp+16]",
    "movups xmm2, [rsp+32]",
    "movups xmm3, [rsp+48]",
    "movups xmm4, [rsp+64]",
    "movups xmm5, [rsp+80]",
    "movups xmm6, [rsp+96]",
    "movups xmm7, [rsp+112]",
    "movups xmm8, [rsp+128]",
    "movups xmm9, [rsp+144]",
    "movups xmm10, [rsp+160]",
    "movups xmm11, [rsp+176]",
    "movups xmm12, [rsp+192]",
    "movups xmm13, [rsp+208]",
    "movups xmm14, [rsp+224]",
    "movups xmm15, [rsp+240]",
    "mov gs:[{hook_rsp}], r12",
    "mov rsp, rbx",
    "pop rax",
    "add al, 0x7f",
    "sahf",
    "pop rax",
    "pop rcx",
    "pop rdx",
    "pop rbx",
    "lea rsp, [rsp + 8]",
    "pop rbp",
    "pop rsi",
    "pop rdi",
    "pop r8",
    "pop r9",
    "pop r10",
    "pop r11",
    "pop r12",
    "pop r13",
    "pop r14",
    "pop r15",
    "ret",
    // From the monitor, for an rdtsc that was not rewritten and has trapped: the return address
    // was pushed below the red zone.
    ".globl geryon_rdtsc_trap",
    "geryon_rdtsc_trap:",
    "call geryon_rdtsc",
    "ret 128",
    ".globl geryon_rdtscp_trap",
    "geryon_rdtscp_trap:",
    "call geryon_rdtscp",
    "ret 128",
    // rdtsc, rdtscp, rdrand: everything but the result is preserved; result in rax (and rdx).
    ".globl geryon_rdtsc",
    "geryon_rdtsc:",
    "push rdi",
    "mov edi, 0",
    "jmp 6f",
    ".globl geryon_rdtscp",
    "geryon_rdtscp:",
    "push rdi",
    "mov edi, 1",
    "jmp 6f",
    ".globl geryon_rdrand",
    "geryon_rdrand:",
    "push rdi",
    "mov edi, 2",
    "6:",
    "push rsi",
    "push rcx",
    "push rdx",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbx",
    "push rax",
    "lahf",
    "seto al",
    "movzx eax, ax",
    "push rax",
    "mov rbx, rsp",
    "mov rsi, rsp",
    "push qword ptr gs:[{hook_rsp}]",
    "mov gs:[{hook_rsp}], rsp",
    "mov rsp, gs:[0x18]",
    "sub rsp, 256",
    "movups [rsp], xmm0",
    "movups [rsp+16], xmm1",
    "movups [rsp+32], xmm2",
    "movups [rsp+48], xmm3",
    "movups [rsp+64], xmm4",
    "movups [rsp+80], xmm5",
    "movups [rsp+96], xmm6",
    "movups [rsp+112], xmm7",
    "movups [rsp+128], xmm8",
    "movups [rsp+144], xmm9",
    "movups [rsp+160], xmm10",
    "movups [rsp+176], xmm11",
    "movups [rsp+192], xmm12",
    "movups [rsp+208], xmm13",
    "movups [rsp+224], xmm14",
    "movups [rsp+240], xmm15",
    "cld",
    "call geryon_on_value",
    "movups xmm0, [rsp]",
    "movups xmm1, [rsp+16]",
    "movups xmm2, [rsp+32]",
    "movups xmm3, [rsp+48]",
    "movups xmm4, [rsp+64]",
    "movups xmm5, [rsp+80]",
    "movups xmm6, [rsp+96]",
    "movups xmm7, [rsp+112]",
    "movups xmm8, [rsp+128]",
    "movups xmm9, [rsp+144]",
    "movups xmm10, [rsp+160]",
    "movups xmm11, [rsp+176]",
    "movups xmm12, [rsp+192]",
    "movups xmm13, [rsp+208]",
    "movups xmm14, [rsp+224]",
    "movups xmm15, [rsp+240]",
    "mov rsp, rbx",
    "sub rsp, 8",
    "pop qword ptr gs:[{hook_rsp}]",
    "pop rax",
    "add al, 0x7f",
    "sahf",
    "pop rax",
    "pop rbx",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdx",
    "pop rcx",
    "pop rsi",
    "pop rdi",
    "ret",
    hook_rsp = const core::mem::offset_of!(geryon_abi::layout::Block, hook_rsp),
);

/// What the trampoline says of its instruction; mirrors `geryon_patch::descriptor`.
#[repr(C)]
struct Descriptor {
    site: u64,
    vaddr: u64,
    immediate: u64,
    op: u8,
    size: u8,
    source: u8,
    register: u8,
    len: u8,
    pad: [u8; 3],
}

mod op {
    pub const XADD: u8 = 0;
    pub const XCHG: u8 = 1;
    pub const CMPXCHG: u8 = 2;
    pub const ADD: u8 = 3;
    pub const SUB: u8 = 4;
    pub const AND: u8 = 5;
    pub const OR: u8 = 6;
    pub const XOR: u8 = 7;
    pub const INC: u8 = 8;
    pub const DEC: u8 = 9;
    pub const NEG: u8 = 10;
    pub const NOT: u8 = 11;
    pub const BTS: u8 = 12;
    pub const BTR: u8 = 13;
    pub const BTC: u8 = 14;
    pub const CMPXCHG8B: u8 = 15;
    pub const CMPXCHG16B: u8 = 16;
    pub const ADC: u8 = 17;
    pub const SBB: u8 = 18;
}

const CF: u64 = 1;
const PF: u64 = 4;
const AF: u64 = 0x10;
const ZF: u64 = 0x40;
const SF: u64 = 0x80;

/// Registers as the stub saved them: flags (lahf << 8 | seto), then encoding order.
#[repr(C)]
struct Saved {
    flags: u64,
    r: [u64; 16],
}

impl Saved {
    fn rflags(&self) -> (u64, bool) {
        (self.flags >> 8 & 0xff, self.flags & 1 != 0)
    }
    fn set_flags(&mut self, low: u64, overflow: bool) {
        self.flags = (low | 2) << 8 | overflow as u64;
    }
}

fn mask(size: u8) -> u64 {
    if size >= 8 {
        u64::MAX
    } else {
        (1 << (8 * size)) - 1
    }
}

fn source(d: &Descriptor, s: &Saved) -> u64 {
    match d.source {
        1 => s.r[d.register as usize & 15],
        2 => s.r[d.register as usize & 3] >> 8 & 0xff,
        3 => d.immediate,
        _ => 0,
    }
}

fn set_source(d: &Descriptor, s: &mut Saved, value: u64) {
    let r = d.register as usize & 15;
    match (d.source, d.size) {
        (1, 8) => s.r[r] = value,
        // A 32-bit result clears the upper half.
        (1, 4) => s.r[r] = value & 0xffff_ffff,
        (1, n) => s.r[r] = s.r[r] & !mask(n) | value & mask(n),
        (2, _) => s.r[r & 3] = s.r[r & 3] & !0xff00 | (value & 0xff) << 8,
        _ => {}
    }
}

fn load(address: u64, size: u8) -> u64 {
    // SAFETY: the application's own operand; it faults here as it would there.
    unsafe {
        match size {
            1 => (*(address as *const AtomicU8)).load(Ordering::SeqCst) as u64,
            2 => (*(address as *const AtomicU16)).load(Ordering::SeqCst) as u64,
            4 => (*(address as *const AtomicU32)).load(Ordering::SeqCst) as u64,
            _ => (*(address as *const AtomicU64)).load(Ordering::SeqCst),
        }
    }
}

/// Exchange if equal; the value seen.
fn exchange(address: u64, size: u8, old: u64, new: u64) -> u64 {
    macro_rules! at {
        ($t:ty, $n:ty) => {{
            // SAFETY: the application's own operand.
            let a = unsafe { &*(address as *const $t) };
            match a.compare_exchange(old as $n, new as $n, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(v) | Err(v) => v as u64,
            }
        }};
    }
    match size {
        1 => at!(AtomicU8, u8),
        2 => at!(AtomicU16, u16),
        4 => at!(AtomicU32, u32),
        _ => at!(AtomicU64, u64),
    }
}

/// What the operation makes of the old value.
fn new_value(d: &Descriptor, s: &Saved, old: u64) -> u64 {
    let src = source(d, s);
    let carry = s.rflags().0 & CF;
    let bit = 1u64 << (src & (8 * d.size as u64 - 1));
    let v = match d.op {
        op::XADD | op::ADD => old.wrapping_add(src),
        op::ADC => old.wrapping_add(src).wrapping_add(carry),
        op::SUB => old.wrapping_sub(src),
        op::SBB => old.wrapping_sub(src).wrapping_sub(carry),
        op::XCHG => src,
        op::AND => old & src,
        op::OR => old | src,
        op::XOR => old ^ src,
        op::INC => old.wrapping_add(1),
        op::DEC => old.wrapping_sub(1),
        op::NEG => old.wrapping_neg(),
        op::NOT => !old,
        op::BTS => old | bit,
        op::BTR => old & !bit,
        op::BTC => old ^ bit,
        _ => src,
    };
    v & mask(d.size)
}

fn parity(v: u64) -> u64 {
    if (v as u8).count_ones().is_multiple_of(2) {
        PF
    } else {
        0
    }
}

fn sign_zero(v: u64, size: u8) -> u64 {
    let v = v & mask(size);
    let mut f = parity(v);
    if v == 0 {
        f |= ZF;
    }
    if v >> (8 * size as u32 - 1) & 1 != 0 {
        f |= SF;
    }
    f
}

fn after_add(s: &mut Saved, a: u64, b: u64, carry: u64, size: u8) {
    let (a, b) = (a & mask(size), b & mask(size));
    let wide = a as u128 + b as u128 + carry as u128;
    let v = wide as u64 & mask(size);
    let mut f = sign_zero(v, size) | (a ^ b ^ v) & AF;
    f |= (wide >> (8 * size as u32)) as u64 & CF;
    let top = 8 * size as u32 - 1;
    s.set_flags(f, (!(a ^ b) & (a ^ v)) >> top & 1 != 0);
}

fn after_sub(s: &mut Saved, a: u64, b: u64, borrow: u64, size: u8) {
    let (a, b) = (a & mask(size), b & mask(size));
    let v = a.wrapping_sub(b).wrapping_sub(borrow) & mask(size);
    let mut f = sign_zero(v, size) | (a ^ b ^ v) & AF;
    if (a as u128) < b as u128 + borrow as u128 {
        f |= CF;
    }
    let top = 8 * size as u32 - 1;
    s.set_flags(f, ((a ^ b) & (a ^ v)) >> top & 1 != 0);
}

/// Results and flags of the operation, from the value it observed.
fn apply(d: &Descriptor, s: &mut Saved, old: u64) {
    let src = source(d, s);
    let (flags, overflow) = s.rflags();
    let carry = flags & CF;
    match d.op {
        op::XADD => {
            after_add(s, old, src, 0, d.size);
            set_source(d, s, old);
        }
        op::ADD => after_add(s, old, src, 0, d.size),
        op::ADC => after_add(s, old, src, carry, d.size),
        op::SUB => after_sub(s, old, src, 0, d.size),
        op::SBB => after_sub(s, old, src, carry, d.size),
        op::NEG => after_sub(s, 0, old, 0, d.size),
        op::XCHG => set_source(d, s, old),
        op::AND | op::OR | op::XOR => {
            let v = new_value(d, s, old);
            s.set_flags(sign_zero(v, d.size), false);
        }
        op::INC => {
            after_add(s, old, 1, 0, d.size);
            s.flags = s.flags & !(CF << 8) | carry << 8;
        }
        op::DEC => {
            after_sub(s, old, 1, 0, d.size);
            s.flags = s.flags & !(CF << 8) | carry << 8;
        }
        op::BTS | op::BTR | op::BTC => {
            let bit = old >> (src & (8 * d.size as u64 - 1)) & 1;
            s.set_flags(flags & !CF | bit, overflow);
        }
        _ => {}
    }
}

/// Accumulator, flags and success of a compare-and-exchange.
fn apply_cmpxchg(d: &Descriptor, s: &mut Saved, expected: u64, seen: u64) {
    if d.op == op::CMPXCHG8B {
        let (flags, overflow) = s.rflags();
        s.set_flags(
            if seen == expected {
                flags | ZF
            } else {
                flags & !ZF
            },
            overflow,
        );
        if seen != expected {
            s.r[0] = seen & 0xffff_ffff;
            s.r[2] = seen >> 32;
        }
        return;
    }
    after_sub(s, expected, seen, 0, d.size);
    if seen != expected & mask(d.size) {
        match d.size {
            8 => s.r[0] = seen,
            4 => s.r[0] = seen & 0xffff_ffff,
            n => s.r[0] = s.r[0] & !mask(n) | seen,
        }
    }
}

/// Word operated on: bit instructions with a register offset reach outside their operand.
fn target(d: &Descriptor, s: &Saved, address: u64) -> u64 {
    if matches!(d.op, op::BTS | op::BTR | op::BTC) && d.source == 1 {
        let raw = source(d, s);
        let offset = match d.size {
            2 => raw as u16 as i16 as i64,
            4 => raw as u32 as i32 as i64,
            _ => raw as i64,
        };
        let bits = 8 * d.size as i64;
        return address.wrapping_add_signed(offset.div_euclid(bits) * d.size as i64);
    }
    address
}

#[unsafe(no_mangle)]
extern "C" fn geryon_on_atomic(s: &mut Saved, d: &Descriptor, address: u64) {
    let at = target(d, s, address);
    if d.op == op::CMPXCHG16B {
        return wide(s, d, at);
    }
    let compares = matches!(d.op, op::CMPXCHG | op::CMPXCHG8B);
    if toggles_own_cancellation(s, d, at) {
        let (expected, new) = compare_operands(s, d);
        let seen = exchange(at, d.size, expected, new);
        return apply_cmpxchg(d, s, expected, seen);
    }
    if leads() {
        lead(s, d, at, compares)
    } else {
        follow(s, d, at, compares)
    }
}

/// Around every cancellable call glibc sets and clears the "asynchronous" bit of the thread's own
/// descriptor. Nobody else looks at it unless pthread_cancel is used, and how often a wait loops
/// is each replica's own affair: no order.
fn toggles_own_cancellation(s: &Saved, d: &Descriptor, at: u64) -> bool {
    /// Bytes of glibc's thread descriptor, from the thread pointer on.
    const DESCRIPTOR: u64 = 0x900;
    const ASYNCHRONOUS: u64 = 2;
    if d.op != op::CMPXCHG || d.size != 4 {
        return false;
    }
    let base: u64;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags));
    }
    let (expected, new) = compare_operands(s, d);
    at.wrapping_sub(base) < DESCRIPTOR && expected ^ new == ASYNCHRONOUS
}

fn compare_operands(s: &Saved, d: &Descriptor) -> (u64, u64) {
    if d.op == op::CMPXCHG8B {
        let pair = |hi: usize, lo: usize| s.r[hi] << 32 | s.r[lo] & 0xffff_ffff;
        (pair(2, 0), pair(1, 3))
    } else {
        (s.r[0] & mask(d.size), source(d, s) & mask(d.size))
    }
}

/// Detail of an atomic's record: the compare failed, nothing was written, no tick.
const FAILED: u8 = 1;

fn site(d: &Descriptor) -> u16 {
    (d.vaddr ^ d.vaddr >> 16) as u16
}

fn lead(s: &mut Saved, d: &Descriptor, at: u64, compares: bool) {
    let b = block();
    let slot = of_address(at);
    slot.enter();
    let (expected, seen) = if compares {
        let (expected, new) = compare_operands(s, d);
        (expected, exchange(at, d.size, expected, new))
    } else {
        let mut old = load(at, d.size);
        loop {
            let seen = exchange(at, d.size, old, new_value(d, s, old));
            if seen == old {
                break;
            }
            old = seen;
        }
        (0, old)
    };
    let failed = compares && expected != seen;
    let now = slot.clock.load(Ordering::Relaxed);
    if !failed {
        slot.clock.store(now.wrapping_add(1), Ordering::Relaxed);
    }
    slot.leave();
    let w = word(kind::ATOMIC, if failed { FAILED } else { 0 }, site(d), now);
    put(b, w);
    put(b, expected);
    put(b, seen);
    remember(b, w);
    publish(b);
    if compares {
        apply_cmpxchg(d, s, expected, seen)
    } else {
        apply(d, s, seen)
    }
}

fn follow(s: &mut Saved, d: &Descriptor, at: u64, compares: bool) {
    let mut b = block();
    let mut w = view(b, 0);
    while kind_of(w) == kind::SIGNAL {
        take(b, 1);
        crate::raise::follow_signal_here(b, w);
        w = view(b, 0);
    }
    if kind_of(w) != kind::ATOMIC || short_of(w) != site(d) {
        let ours = [
            word(kind::ATOMIC, 0, site(d), 0),
            at,
            d.site,
            d.vaddr,
            load(at, d.size),
            s.r[0],
            0,
            0,
        ];
        let code = if kind_of(w) == kind::ATOMIC {
            why::SITE
        } else {
            why::KIND
        };
        diverged(code, b.pos, ours);
    }
    let (expected, seen) = (view(b, 1), view(b, 2));
    b.verified = b.pos + 1;
    if detail_of(w) == FAILED {
        take(b, 3);
        remember(b, w);
        // The leader's compare failed on this value; whatever memory holds here, so does ours.
        let (mine, _) = compare_operands(s, d);
        if mine == seen {
            diverged(
                why::OUTCOME,
                b.pos - 3,
                [w, mine, seen, at, d.site, 0, 0, 0],
            );
        }
        return apply_cmpxchg(d, s, mine, seen);
    }
    let clock = &of_address(at).clock;
    let tick = low_of(w);
    await_tick(clock, tick);
    if compares {
        let (mine, new) = compare_operands(s, d);
        if mine != expected {
            // Seeded by a plain load that was too early or too late: fail, so that the
            // program's loop comes again with the value that is there now.
            let now = load(at, d.size);
            if now != mine {
                return apply_cmpxchg(d, s, mine, now);
            }
        }
        await_value(at, d.size, mine);
        while exchange(at, d.size, mine, new) != mine {
            await_value(at, d.size, mine);
        }
        take(b, 3);
        remember(b, w);
        advance(clock, tick.wrapping_add(1));
        return apply_cmpxchg(d, s, mine, mine);
    }
    loop {
        await_value(at, d.size, seen);
        if exchange(at, d.size, seen, new_value(d, s, seen)) == seen {
            break;
        }
    }
    take(b, 3);
    remember(b, w);
    advance(clock, tick.wrapping_add(1));
    apply(d, s, seen);
}

/// Another thread's plain store (the release of a lock, say) has yet to come.
fn await_value(at: u64, size: u8, value: u64) {
    if load(at, size) == value {
        return;
    }
    announce(wait::VALUE, at, value);
    let mut patience = Patience::new();
    while load(at, size) != value {
        if patience.spend() {
            patience = Patience::new();
        }
    }
    announce_end();
}

/// cmpxchg16b: ordered, its outcome is logged as one word (the low half and success).
fn wide(s: &mut Saved, d: &Descriptor, at: u64) {
    let b = block();
    let slot = of_address(at);
    let perform = |s: &mut Saved| -> bool {
        let ok: u8;
        let (mut lo, mut hi) = (s.r[0], s.r[2]);
        // SAFETY: the application's own operand; rbx, which an operand cannot name and a class of
        // registers may still contain, is exchanged around the instruction.
        unsafe {
            core::arch::asm!(
                "xchg {bx}, rbx", "lock cmpxchg16b [rdi]", "sete r8b", "mov rbx, {bx}",
                bx = inout(reg) s.r[3] => _, in("rdi") at, out("r8b") ok,
                inout("rax") lo, inout("rdx") hi, in("rcx") s.r[1], options(nostack),
            );
        }
        let (flags, overflow) = s.rflags();
        s.set_flags(if ok != 0 { flags | ZF } else { flags & !ZF }, overflow);
        if ok == 0 {
            (s.r[0], s.r[2]) = (lo, hi);
            lo = 0;
            hi = 0;
        }
        let _ = (lo, hi);
        ok != 0
    };
    if leads() {
        slot.enter();
        let ok = perform(s);
        let now = slot.clock.load(Ordering::Relaxed);
        slot.clock.store(now.wrapping_add(1), Ordering::Relaxed);
        slot.leave();
        let w = word(kind::ATOMIC, 0, site(d), now);
        put(b, w);
        put(b, ok as u64);
        put(b, if ok { 0 } else { s.r[0] });
        remember(b, w);
        publish(b);
        return;
    }
    let (w, ok, low) = (get(b), get(b), get(b));
    remember(b, w);
    if kind_of(w) != kind::ATOMIC || short_of(w) != site(d) {
        diverged(
            why::SITE,
            b.pos - 3,
            [
                word(kind::ATOMIC, 0, site(d), 0),
                at,
                d.site,
                d.vaddr,
                0,
                0,
                0,
                0,
            ],
        );
    }
    await_tick(&slot.clock, low_of(w));
    let mine = perform(s);
    advance(&slot.clock, low_of(w).wrapping_add(1));
    if mine as u64 != ok || (!mine && s.r[0] != low) {
        diverged(
            why::OUTCOME,
            b.pos - 3,
            [w, mine as u64, s.r[0], at, d.site, 0, 0, 0],
        );
    }
}

/// Registers as the stubs of rdtsc and its kin saved them.
#[repr(C)]
struct ValueRegs {
    flags: u64,
    rax: u64,
    rbx: u64,
    r11: u64,
    r10: u64,
    r9: u64,
    r8: u64,
    rdx: u64,
    rcx: u64,
}

/// An instruction whose value is an input: 0 rdtsc, 1 rdtscp, 2 rdrand.
#[unsafe(no_mangle)]
extern "C" fn geryon_on_value(which: u64, regs: &mut ValueRegs) {
    let v = value(which);
    if which == 2 {
        regs.rax = v;
        return;
    }
    regs.rax = v & 0xffff_ffff;
    regs.rdx = v >> 32;
    if which == 1 {
        // The core's number would differ between replicas.
        regs.rcx = 0;
    }
}

fn value(which: u64) -> u64 {
    let b = block();
    if b.suspend != 0 {
        return if which == 2 { random() } else { ticks() };
    }
    let ours = word(kind::VALUE, which as u8 + 1, 0xffff, 0);
    if leads() {
        let v = if which == 2 { random() } else { ticks() };
        put(b, ours);
        put(b, v);
        remember(b, ours);
        publish(b);
        v
    } else {
        let mut w = first(b);
        while kind_of(w) == kind::SIGNAL {
            crate::raise::follow_signal_here(b, w);
            w = first(b);
        }
        remember(b, w);
        if w != ours {
            diverged(why::KIND, b.pos - 1, [ours, 0, 0, 0, 0, 0, 0, 0]);
        }
        get(b)
    }
}

fn random() -> u64 {
    const NR_GETRANDOM: u64 = 318;
    let mut v = 0u64;
    real(NR_GETRANDOM, [&raw mut v as u64, 8, 0, 0, 0, 0]);
    v
}

/// The time stamp counter, as far as the system clock knows it (the instruction itself traps).
pub fn ticks() -> u64 {
    const NR_CLOCK_GETTIME: u64 = 228;
    const MONOTONIC_RAW: u64 = 4;
    let mut t = [0u64; 2];
    real(
        NR_CLOCK_GETTIME,
        [MONOTONIC_RAW, t.as_mut_ptr() as u64, 0, 0, 0, 0],
    );
    let ns = t[0] as u128 * 1_000_000_000 + t[1] as u128;
    ((ns * private().tsc_mult as u128) >> 20) as u64
}

#[cfg(test)]
mod tests;
