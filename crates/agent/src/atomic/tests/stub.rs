//! The agent's stubs, reached as a trampoline reaches them.

use super::replicas::Random;
use super::{Form, STATUS};
use crate::atomic::decode::Descriptor;
use core::arch::{asm, global_asm};
use core::mem::offset_of;

pub(super) const RSP: usize = 4;

/// What a trampoline hands to the stub, and what the stub leaves.
#[repr(C)]
struct Trial {
    r: [u64; 16],
    flags: u64,
    descriptor: u64,
    address: u64,
    rsp_after: u64,
    xmm: [u128; 16],
}

unsafe extern "C" {
    fn geryon_test_trampoline(trial: *mut Trial);
}

global_asm!(
    ".globl geryon_test_trampoline",
    "geryon_test_trampoline:", // rdi = trial
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "push rdi",                    // lies at the application's rsp
    "mov [rdi + 4*8], rsp",
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "movups xmm\\n, [rdi + {xmm} + \\n*16]",
    ".endr",
    "lea rsp, [rsp - 128]",        // RED_ZONE
    "push qword ptr [rdi + 8]",    // STACK_ORIGINAL: rcx
    "push qword ptr [rdi + {address}]",
    "push qword ptr [rdi + {descriptor}]",
    "push qword ptr [rdi + {flags}]",
    "popfq",
    "mov rax, [rdi]",
    "mov rcx, [rdi + 1*8]",
    "mov rdx, [rdi + 2*8]",
    "mov rbx, [rdi + 3*8]",
    "mov rbp, [rdi + 5*8]",
    "mov rsi, [rdi + 6*8]",
    ".irp n,8,9,10,11,12,13,14,15",
    "mov r\\n, [rdi + \\n*8]",
    ".endr",
    "mov rdi, [rdi + 7*8]",
    "call geryon_atomic",
    "push rdi",
    "mov rdi, [rsp + 8 + 24 + 128]",
    "mov [rdi], rax",
    "mov [rdi + 1*8], rcx",
    "mov [rdi + 2*8], rdx",
    "mov [rdi + 3*8], rbx",
    "mov [rdi + 5*8], rbp",
    "mov [rdi + 6*8], rsi",
    ".irp n,8,9,10,11,12,13,14,15",
    "mov [rdi + \\n*8], r\\n",
    ".endr",
    "pop rax",
    "mov [rdi + 7*8], rax",
    "pushfq",                      // no instruction since the stub has changed them
    "pop qword ptr [rdi + {flags}]",
    "lea rsp, [rsp + 24 + 128]",
    "mov [rdi + {rsp_after}], rsp",
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "movups [rdi + {xmm} + \\n*16], xmm\\n",
    ".endr",
    "pop rdi",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    flags = const offset_of!(Trial, flags),
    descriptor = const offset_of!(Trial, descriptor),
    address = const offset_of!(Trial, address),
    rsp_after = const offset_of!(Trial, rsp_after),
    xmm = const offset_of!(Trial, xmm),
);

/// Run an instruction through the stub; the application's stack pointer.
pub(super) fn through_stub(form: &Form, address: u64, r: &mut [u64; 16], flags: &mut u64) -> u64 {
    let descriptor = Descriptor {
        site: 0x40_0000,
        vaddr: form.text.as_ptr() as u64,
        immediate: form.immediate as u64,
        op: form.op,
        size: form.size,
        source: form.source,
        register: form.register,
        len: 5,
        constant: 0,
        spins: 0,
        pad: 0,
    };
    let xmm = core::array::from_fn(|i| u128::from(r[i]) << 64 | u128::from(!r[i]));
    let mut trial = Trial {
        r: *r,
        flags: *flags | 2,
        descriptor: &raw const descriptor as u64,
        address,
        rsp_after: 0,
        xmm,
    };
    // SAFETY: `address` is an operand that the caller owns; the trampoline keeps the registers
    // that its callers need.
    unsafe { geryon_test_trampoline(&mut trial) };
    assert_eq!(
        trial.rsp_after, trial.r[4],
        "stack pointer after {}",
        form.text
    );
    assert!(trial.xmm == xmm, "SSE registers after {}", form.text);
    *r = core::array::from_fn(|i| if i == RSP { r[i] } else { trial.r[i] });
    *flags = trial.flags & STATUS;
    trial.r[RSP]
}

/// An instruction whose value is an input, through its stub: rax, rcx, rdx.
pub(super) fn value_through_stub(which: usize, random: &mut Random) -> [u64; 3] {
    unsafe extern "C" {
        fn geryon_rdtsc();
        fn geryon_rdtscp();
        fn geryon_rdrand();
    }
    let stub = [
        geryon_rdtsc as *const (),
        geryon_rdtscp as *const (),
        geryon_rdrand as *const (),
    ][which];
    let kept: [u64; 6] = core::array::from_fn(|_| random.next());
    let [mut a, mut c, mut d, mut f] = [0, 1, 2, random.next() & STATUS | 2];
    let before = f & STATUS;
    let mut now = kept;
    let [di, si, r8, r9, r10, r11] = &mut now;
    // SAFETY: the stub keeps all registers but its results.
    unsafe {
        asm!(
            "push r12", "popfq", "call r13", "pushfq", "pop r12",
            inout("rax") a, inout("rcx") c, inout("rdx") d, inout("r12") f, in("r13") stub,
            inout("rdi") *di, inout("rsi") *si, inout("r8") *r8, inout("r9") *r9, inout("r10") *r10, inout("r11") *r11,
        );
    }
    assert_eq!(now, kept, "registers after a value");
    assert_eq!(f & STATUS, before, "flags after a value");
    [a, c, d]
}
