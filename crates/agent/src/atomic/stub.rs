//! The way from a trampoline to `geryon_on_atomic` and back: every register and flag as it was,
//! but for what the instruction changes.

use crate::xmm::{load_xmm, save_xmm};
use core::arch::global_asm;
use geryon_abi::layout::Block;

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
    "mov gs:[{hook_rsp}], rsp",
    "mov rsp, gs:[0x18]", // what the agent leaves on the user's stack would differ
    "sub rsp, 256",
    save_xmm!("rsp"),
    "cld",
    "call geryon_on_atomic",
    load_xmm!("rsp"),
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
    hook_rsp = const core::mem::offset_of!(Block, hook_rsp),
);
