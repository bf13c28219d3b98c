//! What a signal's siginfo says of it.

use geryon_tracee::Pid;

/// Made by the kernel at an instruction, as opposed to sent.
pub(crate) fn is_fault(signal: i32, info: &[u64; 16]) -> bool {
    let code = info[1] as i32;
    matches!(
        signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP
    ) && code > 0
}

/// Is it the trap of an `int3`?
pub(crate) fn is_trap(info: &[u64; 16]) -> bool {
    const SI_KERNEL: i32 = 0x80;
    info[0] as i32 == libc::SIGTRAP && info[1] as i32 == SI_KERNEL
}

/// Was it sent by kill or tgkill? Then the kernel says by whom.
pub(crate) fn is_sent(info: &[u64; 16]) -> bool {
    matches!(info[1] as i32, libc::SI_USER | libc::SI_TKILL)
}

/// The same signal, of another sender.
pub(crate) fn with_sender(mut info: [u64; 16], sender: Pid) -> [u64; 16] {
    info[2] = info[2] & !u64::from(u32::MAX) | u64::from(sender as u32);
    info
}
