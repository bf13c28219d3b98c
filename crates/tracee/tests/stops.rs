//! A process that is sent SIGSTOP while it is halted is stopped by that when it goes on, also if it is made to call
//! something meanwhile; and one that comes to a breakpoint is known to, whatever the kernel says of it.

use geryon_tracee::{Event, Gate, Pid, Stop, Stopped, install_filter, kill, poll_for, seize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

std::arch::global_asm!(
    ".globl tracee_test_calls",
    ".globl tracee_test_called",
    "tracee_test_calls:",
    "syscall",
    "tracee_test_called:",
    "mov rdi, rax",
    "syscall",
);

unsafe extern "C" {
    fn tracee_test_calls();
    fn tracee_test_called();
}

/// The next stop.
fn next(pid: Pid) -> Option<Stop> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(stop) = poll_for(pid).expect("it is a child") {
            return Some(stop);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    None
}

/// A process that computes, and whose calls all stop but that one.
fn child() -> Pid {
    let called = tracee_test_called as *const () as u64;
    // SAFETY: a new mapping; the child makes only plain system calls.
    let (ready, pid) = unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        (&*page.cast::<AtomicU32>(), libc::fork())
    };
    if pid == 0 {
        let gate = Gate {
            start: called,
            end: called + 1,
        };
        ready.store(
            1 + u32::from(install_filter(gate).is_err()),
            Ordering::SeqCst,
        );
        loop {
            std::hint::spin_loop();
        }
    }
    while ready.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(ready.load(Ordering::SeqCst), 1, "no filter");
    pid
}

/// The same, halted.
fn halted_child() -> Pid {
    let pid = child();
    seize(pid).expect("it is a child");
    Stopped(pid).interrupt().expect("it lives");
    let halted = next(pid);
    assert!(
        matches!(halted, Some(Stop::Event(_, Event::Stop(_)))),
        "{halted:?}"
    );
    pid
}

#[test]
fn who_is_to_stop_stops_behind_a_call() {
    let pid = halted_child();
    kill(pid, libc::SIGSTOP);
    let at = tracee_test_calls as *const () as u64;
    let called = Stopped(pid).injected_syscall(at, libc::SYS_getpid, [0; 6]);
    Stopped(pid).resume(0).expect("it is halted");
    let stop = next(pid);
    kill(pid, libc::SIGKILL);
    assert_eq!(called.expect("it calls"), i64::from(pid));
    assert!(
        matches!(stop, Some(Stop::Signal(_, libc::SIGSTOP))),
        "{stop:?}"
    );
}

/// Three of some thirty runs on a virtual machine of two cores with a load of five: a breakpoint that the kernel called an `int1`, since
/// the register that tells was empty.
#[test]
fn what_the_kernel_takes_for_an_int1_is_a_breakpoint_where_one_is() {
    let pid = halted_child();
    let thread = Stopped(pid);
    let mut info = [0; 16];
    (info[0], info[1]) = (libc::SIGTRAP as u64, 1);
    info[2] = tracee_test_called as *const () as u64;
    assert!(!thread.is_breakpoint(&info), "there is none");
    // Where it stands: it spins.
    let at = thread.regs().expect("it is halted").rip;
    thread
        .set_breakpoint(Some(at))
        .expect("there is a register");
    thread.resume(0).expect("it is halted");
    let stop = next(pid);
    assert!(
        matches!(stop, Some(Stop::Signal(_, libc::SIGTRAP))),
        "{stop:?}"
    );
    let mut hit = thread.siginfo().expect("it is stopped by a signal");
    assert!(thread.is_breakpoint(&hit));
    hit[1] = 1;
    assert!(thread.is_breakpoint(&hit), "the kernel knows no cause");
    hit[2] += 1;
    assert!(!thread.is_breakpoint(&hit), "an int1 elsewhere");
    kill(pid, libc::SIGKILL);
}
