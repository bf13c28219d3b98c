//! Assembly: the gate, whose system calls are the only ones that the filter lets through, and what stops
//! in the monitor.
//!
//! They have pages of their own, far from all other code (`geryon_abi::layout::GATE_BASE`): a thread that
//! sleeps in a call stands behind a `syscall` instruction with the call's result to come in rax, and
//! whichever one bit of its instruction pointer is flipped there, it goes on as if nothing had happened, or
//! dies at once with that result in its registers, where a successor finds it. What is no code of the gate
//! is `hlt`, which nobody may execute.

use crate::xmm::load_xmm;
use core::arch::global_asm;
use geryon_abi::layout::{Block, flight, rpc};
use geryon_abi::point::FaultPoint;

/// Held by r11 from a gate's first instruction to its `syscall`; the flags, which the kernel leaves
/// there, are never this.
const WAY_IN: u32 = 0x6761_7465;

/// The first instruction of a gate. (r11 is nobody's: the `syscall` instruction overwrites it.)
macro_rules! come_in {
    () => {
        "mov r11d, {way_in}"
    };
}

/// From here on, so many bytes behind the page's begin.
macro_rules! at {
    ($offset:literal) => {
        concat!(".org geryon_gate_begin + ", $offset, ", 0xf4")
    };
}

/// The `syscall` instruction, with a check before it: who has not come in by the front door was sent here
/// by a flipped bit in its instruction pointer, with arguments that are none. What follows it lies at an odd
/// multiple of 16, and begins with 16 bytes that do nothing. Of what flipped bits make of that address,
/// four lie in there, the fifth before the check, which it does not pass, and all others where nothing is
/// (a test of the monitor's image sees to it).
macro_rules! checked_syscall {
    ($label:literal, $behind:literal) => {
        concat!(
            ".globl ",
            $label,
            "\n.globl ",
            $behind,
            "
             .p2align 5
             nop dword ptr [rax]
             cmp r11d, {way_in}
             je 6f
             ud2
             6:\n",
            $label,
            ":\nsyscall\n",
            $behind,
            ":
             .rept 16
             nop
             .endr
             jmp 5f"
        )
    };
}

/// Where the code behind a `syscall` instruction goes on.
macro_rules! go_on_at {
    ($offset:literal) => {
        concat!(at!($offset), "\n5:")
    };
}

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

/// Before a call whose result is noted: that it has come to this gate, for the one that notes it, and for
/// who examines a thread that has died elsewhere.
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

/// A call's arguments from where rsi says; the gate's stack keeps that place, for the watchdog and for
/// what comes behind.
macro_rules! load_arguments {
    () => {
        "push rbx
         push rdx
         push rsi
         mov rbx, rsi
         mov rax, rdi
         test edx, {number}
         jz 7f
         cmp eax, gs:[{flight_nr}]
         jne geryon_unmade
         7:
         mov rdi, [rbx]
         mov rsi, [rbx+8]
         mov rdx, [rbx+16]
         mov r10, [rbx+24]
         mov r8, [rbx+32]
         mov r9, [rbx+40]
         bts rax, {unmade}"
    };
}

/// Behind a call that changes nothing that cannot be given back, which may have slept for long: were its
/// arguments still the same when it was taken up again? (The kernel leaves their registers as they were.)
macro_rules! check_arguments {
    () => {
        "test dword ptr [rsp+8], {arguments}
         jz 7f
         mov rbx, [rsp]
         cmp rdi, [rbx]
         jne geryon_unmade
         cmp rsi, [rbx+8]
         jne geryon_unmade
         cmp rdx, [rbx+16]
         jne geryon_unmade
         cmp r10, [rbx+24]
         jne geryon_unmade
         cmp r8, [rbx+32]
         jne geryon_unmade
         cmp r9, [rbx+40]
         jne geryon_unmade
         7:"
    };
}

/// The way out of a gate that has loaded its arguments from memory.
macro_rules! leave {
    () => {
        "pop rdx
         pop rdx
         pop rbx
         ret"
    };
}

global_asm!(
    ".pushsection .geryon_gate, \"ax\", @progbits",
    ".p2align 12, 0xf4",
    ".globl geryon_gate_begin",
    "geryon_gate_begin:",
    // ---- calls that may block ---------------------------------------------------------
    at!(0xa0),
    ".globl geryon_syscall_blocking",
    "geryon_syscall_blocking:",      // extern "C" fn(nr, arguments, checked) -> result;
    come_in!(),                      // gives EINTR when a signal is pending
    load_arguments!(),
    point_in_assembly!("halved"),
    point_in_assembly!("interrupted"),
    ".globl geryon_blocking_check",
    "geryon_blocking_check:",        // from here to the syscall the monitor may say `geryon_eintr`
    point_in_assembly!("signal"),
    "cmp dword ptr gs:[{pending}], 0",
    "jne geryon_eintr",
    note_gate!("gate_blocking"),
    checked_syscall!("geryon_blocking_syscall", "geryon_blocking_end"),
    go_on_at!(0x1a0),
    point_in_assembly!("returned"),
    check_arguments!(),
    check_unnoted!("gate_blocking"),
    "mov gs:[{flight_result}], rax",
    point_in_assembly!("call_noted"),
    ".globl geryon_flight_returned",
    "geryon_flight_returned:",
    "shl dword ptr gs:[{flight}], 1",
    point_in_assembly!("half_noted"),
    "mov gs:[{flight_result} + 8], rax",
    check_made!(),
    leave!(),
    ".globl geryon_eintr",
    "geryon_eintr:",
    "mov rax, -512",                 // as ERESTARTSYS: nothing has happened yet
    "test dword ptr gs:[{flight}], {noted}",
    "jnz geryon_unmade",
    "mov gs:[{flight_result}], rax",
    "mov gs:[{flight_result} + 8], rax",
    leave!(),
    // ---- ends, of handlers and of threads ------------------------------------------------
    at!(0x320),
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
    // ---- births ----------------------------------------------------------------------------
    at!(0x3e0),
    ".globl geryon_clone",
    "geryon_clone:",                 // extern "C" fn(flags, stack, ptid, ctid, tls, block, frame)
    come_in!(),
    "push r12",
    "push r13",
    "mov r12, r9",
    "mov r13, [rsp+24]",
    "mov r10, rcx",
    "mov eax, 56",
    "bts rax, {unmade}",
    checked_syscall!("geryon_clone_call", "geryon_clone_done"),
    go_on_at!(0x4a0),
    "test rax, rax",
    "jz 3f",
    check_made!(),
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
    ".globl geryon_clone_end",
    "geryon_clone_end:",
    // ---- calls whose result is nobody's but the caller's ---------------------------------
    at!(0x7c0),
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
    checked_syscall!("geryon_syscall_call", "geryon_syscall_end"),
    go_on_at!(0x8a0),
    check_made!(),
    "ret",
    // ---- the same, with the result kept for a successor ----------------------------------
    at!(0xda0),
    ".globl geryon_flight_syscall",
    "geryon_flight_syscall:",        // extern "C" fn(nr, arguments, checked) -> result
    come_in!(),
    load_arguments!(),
    point_in_assembly!("fork_fails"),
    note_gate!("gate_flight"),
    checked_syscall!("geryon_flight_call", "geryon_flight_end"),
    go_on_at!(0xf20),
    point_in_assembly!("returned"),
    check_arguments!(),
    check_unnoted!("gate_flight"),
    "mov gs:[{flight_result}], rax",
    point_in_assembly!("call_noted"),
    ".globl geryon_flight_end_returned",
    "geryon_flight_end_returned:",
    "shl dword ptr gs:[{flight}], 1",
    point_in_assembly!("half_noted"),
    "mov gs:[{flight_result} + 8], rax",
    check_made!(),
    leave!(),
    // ---- calls that the monitor makes a stopped thread make ------------------------------
    at!(0xff0),
    "cmp r11d, {way_in}",            // nobody else comes here
    "je 6f",
    "ud2",
    "6:",
    ".globl geryon_injected",
    "geryon_injected:",
    "syscall",
    "mov rdi, rax",
    ".globl geryon_gate_end",
    ".set geryon_gate_end, geryon_gate_begin + 0x1000",
    "mov eax, {injected}",           // it stops here, outside the gate
    "syscall",
    "ud2",
    // ---- outside the gate: stops in the monitor ------------------------------------------
    at!(0x16e0),
    ".globl geryon_rpc",
    "geryon_rpc:",                   // extern "C" fn(nr, a, b, c) -> answer
    come_in!(),
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    checked_syscall!("geryon_rpc_call", "geryon_rpc_end"),
    go_on_at!(0x17a0),
    "ret",
    at!(0x1900),
    ".globl geryon_deliver",
    "geryon_deliver:",               // extern "C" fn(frame, siginfo, how) -> !: SSE registers first
    load_xmm!("rdi"),
    "mov qword ptr gs:[0x28], 0",
    "mov eax, {deliver}",
    "syscall",                       // the monitor loads the rest from the frame
    "ud2",
    at!(0x2000),
    ".popsection",
    deliver = const rpc::DELIVER,
    injected = const rpc::INJECTED,
    returned = const FaultPoint::CallReturned as u32,
    call_noted = const FaultPoint::CallNoted as u32,
    half_noted = const FaultPoint::CallHalfNoted as u32,
    halved = const FaultPoint::WriteHalved as u32,
    interrupted = const FaultPoint::CallInterrupted as u32,
    signal = const FaultPoint::SignalBeforeCall as u32,
    fork_fails = const FaultPoint::ForkFails as u32,
    unmade = const geryon_abi::outcome::UNMADE,
    pending = const core::mem::offset_of!(Block, pending_count),
    flight_nr = const core::mem::offset_of!(Block, flight_nr),
    number = const super::check::NUMBER,
    arguments = const super::check::ARGUMENTS,
    flight = const core::mem::offset_of!(Block, flight),
    entered = const core::mem::offset_of!(Block, flight_entered),
    gate_blocking = const flight::AT_BLOCKING,
    gate_flight = const flight::AT_ANSWERING,
    way_in = const WAY_IN,
    noted = const !(flight::BEGUN | flight::FINISHING | flight::AWAITING_ROOM),
    flight_result = const core::mem::offset_of!(Block, flight_result),
    free = const core::mem::offset_of!(Block, free),
);
