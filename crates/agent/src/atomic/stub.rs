//! The way from a trampoline to `geryon_on_atomic` and back: every register and flag as it was,
//! but for what the instruction changes.

use crate::gate::{AGAIN, BY_ITSELF};
use crate::xmm::{load_xmm, save_xmm};
use core::arch::global_asm;
use geryon_abi::layout::Block;

/// Registers and flags, from where the stub has saved them.
macro_rules! restore {
    () => {
        concat!(
            "pop rax\nadd al, 0x7f\nsahf\npop rax\npop rcx\npop rdx\npop rbx\nlea rsp, [rsp + 8]\n",
            "pop rbp\npop rsi\npop rdi\npop r8\npop r9\npop r10\npop r11\npop r12\npop r13\npop r14\npop r15"
        )
    };
}

/// So many words lie below the return address.
pub(super) const WORDS: usize = 17;

/// They are no more, so that what the program may find on its stack is the same, however a load was made.
macro_rules! wipe {
    ($words:literal) => {
        concat!(".rept ", $words, "\npush 0\n.endr")
    };
}
pub(super) use wipe;

global_asm!(
    "2:",
    "jmp geryon_look",
    ".globl geryon_atomic",
    "geryon_atomic:", // [rsp] return, [rsp+8] descriptor, [rsp+16] address, [rsp+24] rcx
    "mov ecx, gs:[0x14]",
    "jrcxz 2b", // nothing is ordered
    "mov rcx, [rsp+24]",
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
    "mov rcx, r12",
    "mov gs:[{hook_rsp}], rsp",
    "mov rsp, gs:[0x18]", // what the agent leaves on the user's stack would differ
    "sub rsp, 256",
    save_xmm!("rsp"),
    "cld",
    "call geryon_on_atomic",
    "mov r13d, eax",
    load_xmm!("rsp"),
    "mov gs:[{hook_rsp}], r12",
    "mov rsp, rbx",
    "test r13d, r13d",
    "jnz 3f",
    restore!(),
    wipe!(17),
    "lea rsp, [rsp + 8 * {below}]",
    "ret",
    // The original instruction, with rsp as it was there: that of the return address, and behind its words.
    "3:",
    "cmp r13d, {signal}",
    "je 4f",
    "add qword ptr [rsp + 136], {itself}",
    restore!(),
    "ret {words}",
    // A signal comes first, then the instruction again.
    "4:",
    "add qword ptr [rsp + 136], {again} - {itself}",
    restore!(),
    "jmp geryon_look", // (adds the rest)
    itself = const BY_ITSELF,
    again = const AGAIN,
    signal = const super::SIGNAL,
    words = const 128 + 32 - 8,
    below = const WORDS,
    hook_rsp = const core::mem::offset_of!(Block, hook_rsp),
);
