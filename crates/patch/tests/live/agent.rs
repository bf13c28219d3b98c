//! What the trampolines come to in place of the agent, and how the tests' code is called.

use geryon_patch::AgentEntries;
use geryon_patch::descriptor;
use std::sync::Mutex;

/// General registers in encoding order (rsp is ignored), then the flags.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub registers: [u64; 16],
    pub flags: u64,
}

/// What the stub for atomics saw: descriptor, address, rsp, and where it is to go on.
#[repr(C)]
pub struct Seen {
    pub descriptor: u64,
    pub address: u64,
    pub rsp: u64,
    pub thunk: u64,
    pub rcx: u64,
}

pub static mut SEEN: Seen = Seen {
    descriptor: 0,
    address: 0,
    rsp: 0,
    thunk: 0,
    rcx: 0,
};
pub static mut SAVED_RSP: u64 = 0;
static mut SAVED_STATE: u64 = 0;
static mut RETURN: u64 = 0;
/// Loads that were found.
pub static mut LOADS: u64 = 0;
/// Tests share the statics above.
pub static LOCK: Mutex<()> = Mutex::new(());

std::arch::global_asm!(
    // test_run(state, code): loads the state, calls the code, stores the state.
    ".globl test_run",
    "test_run:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15",
    "mov [rip + {state}], rdi",
    "mov [rip + {rsp}], rsp",
    "push rsi",
    "push qword ptr [rdi + 128]; popfq",
    "mov rax, [rdi]; mov rcx, [rdi+8]; mov rdx, [rdi+16]; mov rbx, [rdi+24]; mov rbp, [rdi+40]",
    "mov rsi, [rdi+48]; mov r8, [rdi+64]; mov r9, [rdi+72]; mov r10, [rdi+80]; mov r11, [rdi+88]",
    "mov r12, [rdi+96]; mov r13, [rdi+104]; mov r14, [rdi+112]; mov r15, [rdi+120]",
    "mov rdi, [rdi+56]",
    "call qword ptr [rsp]",
    "mov [rsp], rdi",
    "pushfq",
    "mov rdi, [rip + {state}]",
    "pop qword ptr [rdi + 128]",
    "mov [rdi], rax; mov [rdi+8], rcx; mov [rdi+16], rdx; mov [rdi+24], rbx; mov [rdi+40], rbp",
    "mov [rdi+48], rsi; mov [rdi+64], r8; mov [rdi+72], r9; mov [rdi+80], r10; mov [rdi+88], r11",
    "mov [rdi+96], r12; mov [rdi+104], r13; mov [rdi+112], r14; mov [rdi+120], r15",
    "pop rax; mov [rdi+56], rax",
    "pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
    "ret",
    // Notes what it was given, then does the original instruction (a copy with a ret behind it).
    ".globl test_rmw",
    "test_rmw:",
    "mov [rip + {seen} + 32], rcx",
    "lea rcx, [rsp + {displacement}]",
    "mov [rip + {seen} + 16], rcx",
    "mov rcx, [rsp + {descriptor}]",
    "mov [rip + {seen}], rcx",
    "mov rcx, [rsp + {address}]",
    "mov [rip + {seen} + 8], rcx",
    "mov rcx, [rip + {seen} + 32]",
    "jmp qword ptr [rip + {seen} + 24]",
    // Finds the value.
    ".globl test_load",
    "test_load:",
    "pushfq",
    "inc qword ptr [rip + {loads}]",
    "popfq",
    "mov rcx, [rsp + {address}]",
    "mov rcx, [rcx]",
    "mov [rsp + 8 + {found}], rcx",
    "mov rcx, [rsp + {original}]",
    "ret",
    ".globl test_syscall",
    "test_syscall:",
    "mov [rip + {back}], rcx",
    "syscall",
    "jmp qword ptr [rip + {back}]",
    ".globl test_random",
    "test_random:",
    "movabs rax, 0x1122334455667788",
    "ret",
    ".globl test_time",
    "test_time:",
    "mov eax, 0x1111; mov edx, 0x2222; mov ecx, 0x3333",
    "ret",
    // Changes the word that says what is there.
    ".globl test_saved",
    "test_saved:",
    "push rax",
    "mov rax, [rsp + 16]",
    "lea rax, [rsp + rax + 16 + 8 + 128]",
    "mov qword ptr [rax + 512], 0x77",
    "pop rax",
    "ret",
    ".globl test_hook",
    "test_hook:",
    "lea rax, [rdi + rdi * 8]",
    "ret",
    state = sym SAVED_STATE,
    rsp = sym SAVED_RSP,
    seen = sym SEEN,
    back = sym RETURN,
    loads = sym LOADS,
    displacement = const descriptor::RSP_DISPLACEMENT,
    descriptor = const descriptor::STACK_DESCRIPTOR,
    address = const descriptor::STACK_ADDRESS,
    original = const descriptor::STACK_ORIGINAL,
    found = const descriptor::FOUND_VALUE,
);

unsafe extern "C" {
    fn test_run(state: *mut State, code: u64);
    fn test_rmw();
    fn test_load();
    fn test_syscall();
    fn test_random();
    fn test_time();
    fn test_saved();
    fn test_hook();
}

pub fn agent() -> AgentEntries {
    let of = |f: unsafe extern "C" fn()| f as usize as u64;
    AgentEntries {
        syscall: of(test_syscall),
        rdtsc: of(test_time),
        rdtscp: of(test_time),
        rdrand: of(test_random),
        rmw: of(test_rmw),
        load: of(test_load),
        xsavec: of(test_saved),
        hooks: vec![of(test_hook)],
    }
}

/// The arithmetic flags.
pub const FLAGS: u64 = 0x8d5;

pub fn run(code: u64, mut state: State) -> State {
    // SAFETY: the code is one of this file's snippets, which end in ret and keep the stack.
    unsafe { test_run(&mut state, code) };
    state.flags &= FLAGS;
    state
}
