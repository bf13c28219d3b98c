//! Standard streams that the caller had closed. Rust's start-up code opens /dev/null in their
//! place; the program is to find them closed, as it would natively.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Bit i: descriptor i was closed when Geryon started.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// libc calls what this section holds before it calls `main`, and so before the start-up code.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// SIGPIPE was ignored when Geryon started (Rust's start-up code ignores it in any case).
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: asks for a disposition.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut now) == 0 {
            PIPE_IGNORED.store(now.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
        }
    }
    for fd in 0..3 {
        // SAFETY: asks for the flags of a descriptor, open or not.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
}

/// Let the streams that were closed be closed again in the program; Geryon keeps its stand-ins,
/// so that no file of its own gets their numbers.
pub fn close_again_at_exec() {
    for fd in (0..3).filter(|fd| CLOSED.load(Ordering::Relaxed) & (1 << fd) != 0) {
        // SAFETY: changes a flag of a descriptor that Rust's start-up code opened.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Did the caller ignore SIGPIPE? The program is to inherit that.
pub fn pipe_was_ignored() -> bool {
    PIPE_IGNORED.load(Ordering::Relaxed)
}
