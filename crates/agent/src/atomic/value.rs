//! Instructions whose value is an input: rdtsc, rdtscp, rdrand, rdseed. The leader's value is
//! logged, whatever the processor would say here.

use super::saved;
use crate::diverge::diverged;
use crate::event::plain;
use crate::gate::real;
use crate::log::{first, get, passed, publish, put, remember, verified};
use crate::state::{block, have_own_programs, leads, private};
use crate::wait::intend;
use crate::xmm::{load_xmm, save_xmm};
use core::arch::global_asm;
use geryon_abi::layout::{Block, why};
use geryon_abi::record::{kind, kind_of, word};
use geryon_abi::table::nr;

const RED_ZONE: u64 = 128;

global_asm!(
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
    "jmp 6f",
    // Behind xsavec: everything is preserved.
    ".globl geryon_xsavec",
    "geryon_xsavec:",
    "push rdi",
    "mov edi, 3",
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
    save_xmm!("rsp"),
    "cld",
    "call geryon_on_value",
    load_xmm!("rsp"),
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
    hook_rsp = const core::mem::offset_of!(Block, hook_rsp),
);

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
    rsi: u64,
    rdi: u64,
    /// The trampoline.
    returns_to: u64,
    /// Of xsavec: its operand's displacement, sign-extended.
    displacement: u64,
}

/// An instruction whose value is an input: 0 rdtsc, 1 rdtscp, 2 rdrand. Or 3: xsavec was made.
#[unsafe(no_mangle)]
extern "C" fn geryon_on_value(which: u64, regs: &mut ValueRegs) {
    if which == 3 {
        // What was below the red zone: the stub's frame lies from `regs` to the displacement.
        let stack = regs as *const ValueRegs as u64 + size_of::<ValueRegs>() as u64 + RED_ZONE;
        // SAFETY: the program's instruction has just written there.
        return unsafe { saved::settle(stack.wrapping_add(regs.displacement) as *mut u64) };
    }
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
    intend(b, ours, 0);
    if have_own_programs() && !leads() && passed::find(b, ours, None) == Some(false) {
        return if which == 2 { random() } else { ticks() };
    }
    while !leads()
        && let Some(w) = first(b)
    {
        if kind_of(w) == kind::SIGNAL {
            crate::raise::follow_signal_here(b, w);
            continue;
        }
        remember(b, w);
        if w == ours {
            let v = get(b);
            verified(b);
            return v;
        }
        diverged(why::KIND, b.pos - 1, plain(ours));
    }
    let v = if which == 2 { random() } else { ticks() };
    put(b, ours);
    put(b, v);
    remember(b, ours);
    publish(b);
    v
}

fn random() -> u64 {
    let mut v = 0u64;
    real(nr::getrandom, [&raw mut v as u64, 8, 0, 0, 0, 0]);
    v
}

/// The time stamp counter, as far as the system clock knows it (the instruction itself traps).
pub fn ticks() -> u64 {
    const MONOTONIC_RAW: u64 = 4;
    let mut t = [0u64; 2];
    real(
        nr::clock_gettime,
        [MONOTONIC_RAW, t.as_mut_ptr() as u64, 0, 0, 0, 0],
    );
    let ns = t[0] as u128 * 1_000_000_000 + t[1] as u128;
    ((ns * private().tsc_mult as u128) >> 20) as u64
}
