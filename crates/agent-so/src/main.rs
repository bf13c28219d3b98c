//! The agent as an image: panic handler, memory functions, nothing else.
#![no_std]
#![no_main]

use core::arch::{asm, global_asm};

extern crate geryon_agent;

global_asm!(
    ".globl memcpy",
    "memcpy:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "rep movsb",
    "ret",
    ".globl memset",
    "memset:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".globl memmove",
    "memmove:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "mov r8, rdi",
    "sub r8, rsi",
    "cmp r8, rdx",
    "jb 2f",
    "rep movsb",
    "ret",
    "2:",
    "std",
    "lea rdi, [rdi + rcx - 1]",
    "lea rsi, [rsi + rcx - 1]",
    "rep movsb",
    "cld",
    "ret",
    ".globl memcmp",
    ".globl bcmp",
    "memcmp:",
    "bcmp:",
    "xor ecx, ecx",
    // Words, as long as they are equal: six arguments are compared several times in each call.
    "5:",
    "lea r8, [rcx + 8]",
    "cmp r8, rdx",
    "ja 3f",
    "mov rax, [rdi + rcx]",
    "cmp rax, [rsi + rcx]",
    "jne 3f",
    "mov rcx, r8",
    "jmp 5b",
    "3:",
    "cmp rcx, rdx",
    "je 4f",
    "movzx eax, byte ptr [rdi + rcx]",
    "movzx r8d, byte ptr [rsi + rcx]",
    "inc rcx",
    "sub eax, r8d",
    "je 3b",
    "ret",
    "4:",
    "xor eax, eax",
    "ret",
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: ends the process by SIGILL inside the agent's image, which the monitor reports.
    unsafe { asm!("ud2", options(noreturn)) }
}

#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    // SAFETY: never called; the image has no entry of its own.
    unsafe { asm!("ud2", options(noreturn)) }
}
