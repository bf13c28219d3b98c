//! Assembly: the ways into and out of the agent. One label for one fact.

use crate::xmm::{load_xmm, save_xmm};
use core::arch::global_asm;
use geryon_abi::layout::{Block, flight};
use geryon_abi::point::FaultPoint;

// Numbers of Block's fields that the assembly uses; asserted against the structure below.
const PENDING: usize = core::mem::offset_of!(Block, pending_count);
const FREE: usize = core::mem::offset_of!(Block, free);

const _: () = assert!(core::mem::offset_of!(Block, frame) == 0x28);

/// How far below its stack pointer a function that was called on the user's stack may have left
/// traces (the originals of hooked functions are shallow).
const WIPE_BYTES: usize = 768;

/// Distance from a trampoline's return label back to the word that holds the address behind
/// the original `syscall` instruction. Mirrors `geryon_patch::SITE_WORD_OFFSET`.
pub const SITE_WORD: usize = SITE_WORD_VALUE;
const SITE_WORD_VALUE: usize = 23;

/// Held by r11 from a gate's first instruction to its `syscall`; the flags, which the kernel leaves
/// there, are never this.
const WAY_IN: u32 = 0x6761_7465;

/// Behind a `syscall` instruction: a result that is none is a crash, not an input of all replicas. (rcx
/// still says where the call was made, for who examines a thread that has died here.)
macro_rules! check_made {
    () => {
        "mov r11, rax
         btc r11, {unmade}
         cmp r11, 1024
         jb geryon_unmade"
    };
}

/// The first instruction of a gate. (r11 is nobody's: the `syscall` instruction overwrites it.)
macro_rules! come_in {
    () => {
        "mov r11d, {way_in}"
    };
}

/// The `syscall` instruction, with a check before it: who has not come in by the front door was sent here
/// by a flipped bit in its instruction pointer, with arguments that are none. What follows it lies at an odd
/// multiple of 16, and begins with 16 bytes that do nothing: of what flipped bits make of that address,
/// four lie in there, and the fifth before the check, which it does not pass. None leads back to the
/// instruction, where the call would be made again.
macro_rules! checked_syscall {
    ($label:literal, $behind:literal) => {
        concat!(
            ".p2align 5
             nop dword ptr [rax]
             cmp r11d, {way_in}
             je 6f
             ud2
             6:\n",
            $label,
            "\nsyscall\n",
            $behind,
            "\n.rept 16
             nop
             .endr"
        )
    };
}

/// Before that, where the result is noted: that a call has come to this gate, for the one that notes it,
/// and for who examines a thread that has died elsewhere.
macro_rules! note_gate {
    ($gate:literal) => {
        concat!("mov dword ptr gs:[{entered}], {", $gate, "}")
    };
}

/// Before a result is noted: it is none if this call has not come to this gate, or if there is one
/// already that is still to be logged.
macro_rules! check_unnoted {
    ($gate:literal) => {
        concat!(
            "cmp dword ptr gs:[{entered}], {",
            $gate,
            "}
             jne geryon_unmade
             test dword ptr gs:[{flight}], {noted}
             jnz geryon_unmade"
        )
    };
}

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
    "mov rsp, gs:[0x28]",
    "mov rdi, rsp",
    "cld",
    "call geryon_on_syscall",
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
    // ---- the gate: the only instructions whose system calls the filter lets through --
    ".globl geryon_gate_begin",
    "geryon_gate_begin:",
    ".globl geryon_syscall",
    "geryon_syscall:",               // extern "C" fn(nr, a1, .., a6) -> result
    come_in!(),
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp+8]",
    "bts rax, {unmade}",
    checked_syscall!("geryon_syscall_call:", "geryon_syscall_end:"),
    check_made!(),
    "ret",
    ".globl geryon_syscall_blocking",
    "geryon_syscall_blocking:",      // extern "C" fn(nr, arguments, checked) -> result;
    come_in!(),                      // gives EINTR when a signal is pending
    "push rbx",
    "push rdx",
    "push rsi",                      // where its arguments are, for the watchdog
    "mov rbx, rsi",
    "mov rax, rdi",
    "mov rdi, [rbx]",
    "mov rsi, [rbx+8]",
    "mov rdx, [rbx+16]",
    "mov r10, [rbx+24]",
    "mov r8, [rbx+32]",
    "mov r9, [rbx+40]",
    "bts rax, {unmade}",
    point_in_assembly!("halved"),
    point_in_assembly!("interrupted"),
    ".globl geryon_blocking_check",
    "geryon_blocking_check:",        // from here to the syscall the monitor may say `geryon_eintr`
    point_in_assembly!("signal"),
    "cmp dword ptr gs:[{pending}], 0",
    "jne geryon_eintr",
    ".globl geryon_blocking_syscall",
    ".globl geryon_blocking_end",
    note_gate!("gate_blocking"),
    checked_syscall!("geryon_blocking_syscall:", "geryon_blocking_end:"),
    point_in_assembly!("returned"),
    "cmp dword ptr [rsp+8], 0",
    "je 7f",
    "cmp rdi, [rbx]",                // it has slept for long: were its arguments still the same
    "jne geryon_unmade",             // when it was taken up again?
    "cmp rsi, [rbx+8]",
    "jne geryon_unmade",
    "cmp rdx, [rbx+16]",
    "jne geryon_unmade",
    "cmp r10, [rbx+24]",
    "jne geryon_unmade",
    "cmp r8, [rbx+32]",
    "jne geryon_unmade",
    "cmp r9, [rbx+40]",
    "jne geryon_unmade",
    "7:",
    check_unnoted!("gate_blocking"),
    "mov gs:[{flight_result}], rax",
    point_in_assembly!("call_noted"),
    ".globl geryon_flight_returned",
    "geryon_flight_returned:",
    "shl dword ptr gs:[{flight}], 1",
    point_in_assembly!("half_noted"),
    "mov gs:[{flight_result} + 8], rax",
    check_made!(),
    "pop rdx",
    "pop rdx",
    "pop rbx",
    "ret",
    ".globl geryon_eintr",
    "geryon_eintr:",
    "mov rax, -512",                 // as ERESTARTSYS: nothing has happened yet
    "test dword ptr gs:[{flight}], {noted}",
    "jnz geryon_unmade",
    "mov gs:[{flight_result}], rax",
    "mov gs:[{flight_result} + 8], rax",
    "pop rdx",
    "pop rdx",
    "pop rbx",
    "ret",
    ".globl geryon_flight_syscall",
    "geryon_flight_syscall:",        // as geryon_syscall, with its result kept for a successor
    come_in!(),
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp+8]",
    "bts rax, {unmade}",
    point_in_assembly!("fork_fails"),
    ".globl geryon_flight_end",
    note_gate!("gate_flight"),
    checked_syscall!("geryon_flight_call:", "geryon_flight_end:"),
    point_in_assembly!("returned"),
    check_unnoted!("gate_flight"),
    "mov gs:[{flight_result}], rax",
    point_in_assembly!("call_noted"),
    ".globl geryon_flight_end_returned",
    "geryon_flight_end_returned:",
    "shl dword ptr gs:[{flight}], 1",
    point_in_assembly!("half_noted"),
    "mov gs:[{flight_result} + 8], rax",
    check_made!(),
    "ret",
    ".globl geryon_unmade",
    "geryon_unmade:",                // the `syscall` instruction was not executed, or another call
    "ud2",
    ".globl geryon_sigreturn",
    "geryon_sigreturn:",             // extern "C" fn(user stack pointer) -> !
    "mov qword ptr gs:[0x28], 0",
    "mov rsp, rdi",
    "mov eax, 15",
    "syscall",
    "ud2",
    ".globl geryon_exit",
    "geryon_exit:",                  // extern "C" fn(block, status) -> !: no stack after the store
    "mov rdx, rdi",
    "mov rdi, rsi",
    "mov eax, 60",
    "mov dword ptr [rdx+{free}], 1",
    "syscall",
    "ud2",
    ".globl geryon_clone",
    "geryon_clone:",                 // extern "C" fn(flags, stack, ptid, ctid, tls, block, frame)
    "push r12",
    "push r13",
    "mov r12, r9",
    "mov r13, [rsp+24]",
    "mov r10, rcx",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jz 3f",
    "pop r13",
    "pop r12",
    "ret",
    "3:",                            // the new thread, on its agent stack
    "wrgsbase r12",
    "mov rsp, r13",
    "mov rdi, r12",
    "call geryon_thread_started",
    "mov rsp, r13",
    "jmp geryon_restore",
    ".globl geryon_gate_end",
    "geryon_gate_end:",
    ".globl geryon_first_turn_again",
    "geryon_first_turn_again:",      // a copy's thread waits anew for its first turn
    "mov rsp, gs:[0x28]",
    "cld",
    "call geryon_first_turn",
    "mov rsp, gs:[0x28]",
    "jmp geryon_restore",
    // ---- outside the gate: stops in the monitor --------------------------------------
    ".globl geryon_rpc",
    "geryon_rpc:",                   // extern "C" fn(nr, a, b, c) -> answer
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "syscall",
    "ret",
    ".globl geryon_deliver",
    "geryon_deliver:",               // extern "C" fn(frame, siginfo) -> !: SSE registers first
    load_xmm!("rdi"),
    "mov qword ptr gs:[0x28], 0",
    "mov eax, {deliver}",
    "syscall",                       // the monitor loads the rest from the frame
    "ud2",
    // ---- hooks ---------------------------------------------------------------------------
    // What the agent leaves on the user's stack would differ between leader and follower, and
    // programs pass uninitialised bytes on: hooks run on the agent stack.
    ".globl geryon_hook",
    "geryon_hook:",                  // eax = hook id, the rest as at the function's entry
    "cmp byte ptr gs:[0x10], 0",     // nothing to order: straight to the original
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
    "pop r11",
    "pop qword ptr gs:[{hook_rsp}]",
    "mov rsp, r11",
    "ret",
    "9:",
    "movabs r11, {orig}",
    "jmp qword ptr [r11 + rax*8]",
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
    "mov qword ptr gs:[0x30], 0",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    site = const SITE_WORD_VALUE,
    returned = const FaultPoint::CallReturned as u32,
    call_noted = const FaultPoint::CallNoted as u32,
    half_noted = const FaultPoint::CallHalfNoted as u32,
    halved = const FaultPoint::WriteHalved as u32,
    interrupted = const FaultPoint::CallInterrupted as u32,
    signal = const FaultPoint::SignalBeforeCall as u32,
    fork_fails = const FaultPoint::ForkFails as u32,
    unmade = const geryon_abi::outcome::UNMADE,
    pending = const PENDING,
    flight = const core::mem::offset_of!(Block, flight),
    entered = const core::mem::offset_of!(Block, flight_entered),
    gate_blocking = const flight::AT_BLOCKING,
    gate_flight = const flight::AT_ANSWERING,
    way_in = const WAY_IN,
    noted = const !(flight::BEGUN | flight::FINISHING),
    flight_result = const core::mem::offset_of!(Block, flight_result),
    free = const FREE,
    hook_rsp = const core::mem::offset_of!(Block, hook_rsp),
    orig = const geryon_abi::layout::PRIVATE_BASE + core::mem::offset_of!(geryon_abi::layout::Private, orig) as u64,
    wipe = const WIPE_BYTES,
    deliver = const geryon_abi::layout::rpc::DELIVER,
);

unsafe extern "C" {
    fn geryon_syscall(nr: u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64;
    fn geryon_syscall_blocking(nr: u64, args: *const u64, checked: u64) -> i64;
    fn geryon_flight_syscall(nr: u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64;
    fn geryon_sigreturn(rsp: u64) -> !;
    fn geryon_exit(block: u64, status: u64) -> !;
    fn geryon_clone(
        flags: u64,
        stack: u64,
        ptid: u64,
        ctid: u64,
        tls: u64,
        block: u64,
        frame: u64,
    ) -> i64;
    fn geryon_rpc(nr: u64, a: u64, b: u64, c: u64) -> i64;
    fn geryon_deliver(frame: u64, siginfo: u64) -> !;
    fn geryon_on_user_stack(function: u64, a: u64, b: u64, c: u64, d: u64) -> i64;
    fn geryon_guarded(function: unsafe extern "C" fn(*mut u8), argument: *mut u8) -> u64;
}

/// Execute a system call natively.
#[inline(always)]
pub fn real(nr: u64, a: [u64; 6]) -> i64 {
    // SAFETY: the arguments are the application's own, or constants of the agent; what the
    // kernel does to application memory is what it would do without the agent.
    unsafe { geryon_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]) }
}

/// Execute a call that may block; -512 when a signal is pending before it has begun. `checked`: if its
/// registers have changed while it slept, this replica crashes, and the call counts as not made.
#[inline(always)]
pub fn real_blocking(nr: u64, a: &[u64; 6], checked: bool) -> i64 {
    // SAFETY: as for `real`.
    unsafe { geryon_syscall_blocking(nr, a.as_ptr(), checked as u64) }
}

/// As [`real`], for a call that may be under way when the leader is lost (`Block::flight`).
pub fn real_in_flight(nr: u64, a: [u64; 6]) -> i64 {
    // SAFETY: as for `real`.
    unsafe { geryon_flight_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]) }
}

/// Give the application's state back to the kernel's signal frame at `rsp`.
pub fn sigreturn(rsp: u64) -> ! {
    // SAFETY: the kernel checks the frame; a bad one kills the program as it would natively.
    unsafe { geryon_sigreturn(rsp) }
}

/// End this thread; its block may be given away as soon as the store is seen.
pub fn exit(block: u64, status: u64) -> ! {
    // SAFETY: `block` is this thread's own block, and the code behind does not use its stack.
    unsafe { geryon_exit(block, status) }
}

/// Create a thread whose agent state is `block`, its application state `frame` on that block's stack.
pub fn clone_thread(a: [u64; 5], block: u64, frame: u64) -> i64 {
    // SAFETY: `block` is unused (its `free` word was 1) and `frame` lies on its stack.
    unsafe { geryon_clone(a[0], a[1], a[2], a[3], a[4], block, frame) }
}

/// Have the monitor deliver a signal at the application state in `frame`.
pub fn deliver(frame: u64, siginfo: u64) -> ! {
    // SAFETY: both point to this thread's agent stack, which nobody uses until the monitor has
    // read them.
    unsafe { geryon_deliver(frame, siginfo) }
}

/// Ask the monitor.
pub fn rpc(nr: u64, a: u64, b: u64, c: u64) -> i64 {
    // SAFETY: the filter stops the call in the monitor; the kernel never executes it.
    unsafe { geryon_rpc(nr, a, b, c) }
}

/// Run `f`; false when it touched memory that is not there.
///
/// `f` must not hold anything that needs dropping: a fault leaves it in the middle.
pub fn guarded<F: FnMut()>(mut f: F) -> bool {
    unsafe extern "C" fn run<F: FnMut()>(f: *mut u8) {
        // SAFETY: the pointer is the closure below, alive for the whole call.
        unsafe { (*(f as *mut F))() }
    }
    // SAFETY: on a fault the monitor moves the thread to the label that belongs to this call,
    // with the stack pointer it had; callee-saved registers are restored from there.
    unsafe { geryon_guarded(run::<F>, (&raw mut f).cast()) == 1 }
}

/// Inside a hook: call a C function on the user's stack.
///
/// # Safety
/// `function` must be the address of a function that takes up to four integer arguments.
pub unsafe fn on_user_stack(function: u64, a: [u64; 4]) -> i64 {
    // SAFETY: the entry of the hook has set `hook_rsp`; the function is the caller's promise.
    unsafe { geryon_on_user_stack(function, a[0], a[1], a[2], a[3]) }
}

/// Inside a hook: ask the monitor, with the stack pointer on the user's stack (a handler's frame
/// will be built there).
pub fn rpc_on_user_stack(nr: u64, a: u64, b: u64) -> i64 {
    // SAFETY: `geryon_rpc` takes four integers.
    unsafe { on_user_stack(geryon_rpc as *const () as u64, [nr, a, b, 0]) }
}
