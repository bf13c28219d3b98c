//! Assembly: the ways into the agent and back. One label for one fact.

use crate::xmm::{load_xmm, save_xmm};
use core::arch::global_asm;
use geryon_abi::layout::{Block, PRIVATE_BASE, Private};

const _: () = assert!(core::mem::offset_of!(Block, frame) == 0x28);

/// How far below its stack pointer a function that was called on the user's stack may have left
/// traces (the originals of hooked functions are shallow).
const WIPE_BYTES: usize = 768;

/// Registers that a function need not keep, but for its result. Nobody asks for them, and yet the program may come to see them:
/// the dynamic linker puts all of them on its stack when it looks up the next function.
macro_rules! forget {
    () => {
        concat!(
            "xor ecx, ecx\nxor edx, edx\nxor esi, esi\nxor edi, edi\nxor r8d, r8d\nxor r9d, r9d\n",
            "xor r10d, r10d\nxor r11d, r11d\n",
            "pxor xmm0, xmm0\npxor xmm1, xmm1\npxor xmm2, xmm2\npxor xmm3, xmm3\npxor xmm4, xmm4\n",
            "pxor xmm5, xmm5\npxor xmm6, xmm6\npxor xmm7, xmm7\npxor xmm8, xmm8\npxor xmm9, xmm9\n",
            "pxor xmm10, xmm10\npxor xmm11, xmm11\npxor xmm12, xmm12\npxor xmm13, xmm13\n",
            "pxor xmm14, xmm14\npxor xmm15, xmm15"
        )
    };
}

/// Distance from a trampoline's return label back to the word that holds the address behind
/// the original `syscall` instruction. Mirrors `geryon_patch::SITE_WORD_OFFSET`.
const SITE_WORD: usize = 23;

/// From the return address of an atomic's trampoline to the instruction itself. Mirrors
/// `geryon_patch::descriptor::BY_ITSELF`.
pub const BY_ITSELF: usize = 22;

/// The same, to code that comes to the stub again. Mirrors `geryon_patch::descriptor::AGAIN`.
pub const AGAIN: usize = 27;

/// From the return address of a load's trampoline to what is such a return address for the stub for atomics. Mirrors
/// `geryon_patch::descriptor::FOUND`.
pub const FOUND: usize = 32;

global_asm!(
    // ---- entries ------------------------------------------------------------------
    ".globl geryon_entry_trap",
    "geryon_entry_trap:",            // from the monitor: rcx = address behind the syscall
    "mov gs:[0x08], rsp",            // keep the user's stack pointer
    "mov rsp, gs:[0x18]",            // the agent stack of this thread
    "push 0",                        // Frame.pad
    "push rcx",                      // Frame.rcx
    "jmp 2f",
    ".globl geryon_entry",
    "geryon_entry:",                 // from a trampoline: rcx = its return label
    "mov gs:[0x08], rsp",
    "mov rsp, gs:[0x18]",
    "push 0",                        // Frame.pad
    "push qword ptr [rcx - {site}]", // Frame.rcx: what the kernel would leave there
    "2:",
    "push rcx",                      // Frame.resume
    "push qword ptr gs:[0x08]",      // Frame.rsp
    "pushfq",                        // Frame.flags
    "push rax",                      // Frame.rax
    "push rdi",
    "push rsi",
    "push rdx",
    "push r10",
    "push r8",
    "push r9",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 256",
    save_xmm!("rsp"),
    "mov gs:[0x28], rsp",            // Block.frame: the monitor finds the application here
    ".globl geryon_again",
    "geryon_again:",                 // a copy's thread issues its source's call anew
    "mov qword ptr gs:[0x30], 0",    // (which may have been in a guarded access)
    "mov rsp, gs:[0x28]",
    "mov rdi, rsp",
    "cld",
    "call geryon_on_syscall",
    "cmp dword ptr gs:[{holds}], 0",
    "je geryon_restore",
    "call geryon_hold",
    // ---- the way back: rsp = frame -------------------------------------------------
    ".globl geryon_restore",
    "geryon_restore:",
    load_xmm!("rsp"),
    "add rsp, 256",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "pop r9",
    "pop r8",
    "pop r10",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "pop r11",                       // result
    "pop rax",                       // flags
    "mov qword ptr gs:[0x28], 0",
    "mov ecx, eax",                  // popf costs 10 ns: put the flags back one by one
    "mov ah, al",
    "bt ecx, 10",
    "jnc 8f",
    "std",
    "8:",
    "shr ecx, 11",
    "and ecx, 1",
    "mov al, cl",
    "mov rcx, [rsp+8]",              // Frame.resume
    "mov gs:[0x20], rcx",
    "mov rcx, [rsp+16]",             // Frame.rcx
    "add al, 0x7f",                  // 1 + 127 overflows: OF as it was
    "sahf",
    "mov rax, r11",
    "mov r11, [rsp+24]",             // Frame.pad holds rflags by now
    "mov rsp, [rsp]",
    "jmp qword ptr gs:[0x20]",
    ".globl geryon_first_turn_again",
    "geryon_first_turn_again:",      // a copy's thread waits anew for its first turn
    "mov qword ptr gs:[0x30], 0",
    "mov rsp, gs:[0x28]",
    "cld",
    "call geryon_first_turn",
    "mov rsp, gs:[0x28]",
    "jmp geryon_restore",
    // ---- converged threads, in the midst of computation ----------------------------------------------
    ".globl geryon_look",
    "geryon_look:",                  // from the stub for atomics, with all its words on the stack
    "pop qword ptr gs:[0x20]",
    "pop qword ptr gs:[{look}]",
    "pop qword ptr gs:[{look} + 8]",
    "mov rcx, gs:[0x20]",
    "lea rcx, [rcx + {itself}]",       // then the program runs the instruction
    "mov gs:[0x20], rcx",
    "pop rcx",
    "lea rsp, [rsp + 128]",
    "jmp 3f",
    ".globl geryon_asked",
    "geryon_asked:",                 // from the monitor, as below: there is nothing to log, the process is to lead
    "mov qword ptr gs:[{look}], {asked}",
    "jmp 3f",
    ".globl geryon_converged",
    "geryon_converged:",             // from the monitor: gs:[0x20] = where the thread stood
    "mov qword ptr gs:[{look}], 0",
    "3:",
    "mov gs:[0x08], rsp",            // (nothing of the program's may change, flags and red zone included)
    "mov rsp, gs:[0x18]",
    "push r11",                      // Frame.pad
    "push rcx",                      // Frame.rcx
    "push qword ptr gs:[0x20]",      // Frame.resume
    "push qword ptr gs:[0x08]",      // Frame.rsp
    "pushfq",                        // Frame.flags
    "push rax",
    "push rdi",
    "push rsi",
    "push rdx",
    "push r10",
    "push r8",
    "push r9",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 256",
    save_xmm!("rsp"),
    "mov gs:[0x28], rsp",
    ".globl geryon_look_again",
    "geryon_look_again:",            // a copy's thread looks anew
    "mov qword ptr gs:[0x30], 0",
    "mov rsp, gs:[0x28]",
    "mov rdi, rsp",
    "cld",
    "call geryon_on_converged",
    load_xmm!("rsp"),                // it goes on as if nothing had been
    "add rsp, 256",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "pop r9",
    "pop r8",
    "pop r10",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "pop rax",
    "mov rcx, [rsp+16]",
    "mov gs:[0x20], rcx",
    "mov rcx, [rsp+24]",
    "mov r11, [rsp+32]",
    "mov qword ptr gs:[0x28], 0",
    "popfq",
    "mov rsp, [rsp]",
    "jmp qword ptr gs:[0x20]",
    // ---- hooks ---------------------------------------------------------------------------
    // What the agent leaves on the user's stack would differ between leader and follower, and
    // programs pass uninitialised bytes on: hooks run on the agent stack.
    ".globl geryon_hook",
    "geryon_hook:",                  // eax = hook id, the rest as at the function's entry
    "cmp dword ptr gs:[0x14], 0",    // nothing to order: straight to the original
    "je 9f",
    ".globl geryon_hook_always",
    "geryon_hook_always:",           // for functions that have no original
    "mov r11, rsp",
    "mov rsp, gs:[0x18]",
    "push qword ptr gs:[{hook_rsp}]",
    "push r11",
    "mov gs:[{hook_rsp}], r11",
    "lea r11, [rip + GERYON_HOOKS_INNER]",
    "call qword ptr [r11 + rax*8]",
    "cmp dword ptr gs:[{holds}], 0",
    "jne 6f",
    "7:",
    "pop r11",
    "pop qword ptr gs:[{hook_rsp}]",
    "mov rsp, r11",
    forget!(),                       // what is left there depends on who ran what
    "ret",
    "6:",                            // (it keeps the function's result)
    "push rax",
    "sub rsp, 8",
    "call geryon_hold",
    "add rsp, 8",
    "pop rax",
    "jmp 7b",
    "9:",
    "movabs r11, {orig}",
    "jmp qword ptr [r11 + rax*8]",
    ".globl geryon_hook_cancel",
    "geryon_hook_cancel:",           // the program is about to cancel a thread
    "cmp dword ptr gs:[0x14], 0",
    "je 9b",
    "push rdi",                      // it says so in a call as if it were its own: all can wait there
    "push rax",
    "mov eax, {times}",
    "xor edi, edi",
    "mov esi, {about_to_cancel}",
    "lea rcx, [rip + 8f]",
    "jmp geryon_entry",
    "8:",
    "pop rax",
    "pop rdi",
    "jmp 9b",
    ".globl geryon_on_user_stack",
    "geryon_on_user_stack:",         // extern "C" fn(function, a, b, c, d) -> result
    "push rbx",
    "push qword ptr gs:[0x18]",
    "push qword ptr gs:[{hook_rsp}]",
    "mov rbx, rsp",
    "mov gs:[0x18], rsp",            // calls made there find the rest of this stack
    "and qword ptr gs:[0x18], -16",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov rcx, r8",
    "mov rsp, gs:[{hook_rsp}]",
    "and rsp, -16",
    "call rax",
    "lea rdi, [rsp - {wipe}]",       // what it left behind depends on who ran it
    "mov r8, rax",
    "xor eax, eax",
    "mov ecx, {wipe} / 8",
    "rep stosq",
    "mov rax, r8",
    "mov rsp, rbx",
    "pop qword ptr gs:[{hook_rsp}]",
    "pop qword ptr gs:[0x18]",
    "pop rbx",
    "ret",
    // ---- guarded access ----------------------------------------------------------------
    ".globl geryon_guarded",
    "geryon_guarded:",               // extern "C" fn(function, argument) -> 1, or 0 after a fault
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "push qword ptr gs:[0x30]",       // (of the call around this one, if it is inside another)
    "push qword ptr gs:[0x38]",
    "lea rax, [rip + 4f]",
    "mov gs:[0x38], rsp",
    "mov gs:[0x30], rax",
    "mov rax, rdi",
    "mov rdi, rsi",
    "sub rsp, 8",
    "call rax",
    "add rsp, 8",
    "mov eax, 1",
    "jmp 5f",
    "4:",
    "xor eax, eax",
    "5:",
    "pop qword ptr gs:[0x38]",
    "pop qword ptr gs:[0x30]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    site = const SITE_WORD,
    look = const core::mem::offset_of!(Block, look),
    asked = const geryon_abi::layout::LOOK_ASKED,
    itself = const BY_ITSELF,
    hook_rsp = const core::mem::offset_of!(Block, hook_rsp),
    times = const geryon_abi::layout::ascent::NR_TIMES,
    about_to_cancel = const geryon_abi::layout::ascent::ABOUT_TO_CANCEL,
    orig = const PRIVATE_BASE + core::mem::offset_of!(Private, orig) as u64,
    wipe = const WIPE_BYTES,
    holds = const core::mem::offset_of!(Block, holds),
);
