//! The ways into and out of the agent, and its system calls.

mod entry;
pub use entry::{AGAIN, BY_ITSELF, FOUND};
mod page;

/// What a gate checks: else this replica crashes, and the call counts as not made.
mod check {
    /// Behind the call: have its argument registers changed while it slept?
    pub const ARGUMENTS: u64 = 1;
    /// Before it: is it the one that the thread has taken off with (`Block::flight_nr`)?
    pub const NUMBER: u64 = 2;
}

unsafe extern "C" {
    fn geryon_syscall(nr: u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64;
    fn geryon_syscall_blocking(nr: u64, args: *const u64, checked: u64) -> i64;
    fn geryon_flight_syscall(nr: u64, args: *const u64, checked: u64) -> i64;
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
    fn geryon_deliver(frame: u64, siginfo: u64, how: u64) -> !;
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
    unsafe { geryon_syscall_blocking(nr, a.as_ptr(), checked as u64 * check::ARGUMENTS) }
}

/// The same for the call that the thread has taken off with.
#[inline(always)]
pub fn real_blocking_taken_off(nr: u64, a: &[u64; 6], checked: bool) -> i64 {
    let checks = check::NUMBER | (checked as u64 * check::ARGUMENTS);
    // SAFETY: as for `real`.
    unsafe { geryon_syscall_blocking(nr, a.as_ptr(), checks) }
}

/// As [`real_blocking`], for a call that answers at once, whatever signals are pending.
#[inline(always)]
pub fn real_in_flight(nr: u64, a: &[u64; 6], checked: bool) -> i64 {
    let checks = checked as u64 * (check::NUMBER | check::ARGUMENTS);
    // SAFETY: as for `real`.
    unsafe { geryon_flight_syscall(nr, a.as_ptr(), checks) }
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

/// Have the monitor deliver signals at the application state in `frame`, the first one and `more` on top of it;
/// `exact`: it is that of a thread in the midst of computation, every register counts (see `geryon_converged`).
pub fn deliver(frame: u64, siginfo: u64, more: u64, exact: bool) -> ! {
    // SAFETY: both point to this thread's agent stack, which nobody uses until the monitor has
    // read them.
    unsafe { geryon_deliver(frame, siginfo, 2 * more + exact as u64) }
}

/// Ask the monitor.
pub fn rpc(nr: u64, a: u64, b: u64, c: u64) -> i64 {
    // SAFETY: the filter stops the call in the monitor; the kernel never executes it.
    unsafe { geryon_rpc(nr, a, b, c) }
}

/// Run `f`; false when it touched memory that is not there. (One inside another returns to its own.)
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
