//! Whoever is killed while it stands in a stop reports that it is about to end, also when its tracer was about to have it go
//! on.

use geryon_tracee::{Event, Pid, Stop, Stopped, kill, poll_for, seize};
use std::thread;
use std::time::{Duration, Instant};

/// So many are killed, each of which stops all the time.
const KILLED: u64 = 1500;
/// (The tracer may be interrupted between the clock and the request. It was 84 to 133 of them when it looked at none.)
const MISSED: usize = 15;

#[test]
fn an_end_is_reported() {
    let missed = (0..KILLED).filter(|n| !reports_its_end(*n)).count();
    assert!(
        missed < MISSED,
        "{missed} of {KILLED} ends were not reported"
    );
}

/// One process that is killed between two of its stops, or in one.
fn reports_its_end(n: u64) -> bool {
    // SAFETY: the child makes only plain system calls.
    let pid: Pid = unsafe { libc::fork() };
    if pid == 0 {
        loop {
            // SAFETY: no memory is involved.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
    }
    seize(pid).expect("it is a child");
    Stopped(pid).interrupt().expect("it lives");
    let killer = thread::spawn(move || {
        // Shortly, and at any moment.
        thread::sleep(Duration::from_micros(150 + n * 37 % 211));
        kill(pid, libc::SIGKILL);
    });
    let begin = Instant::now();
    let mut told = false;
    loop {
        let Some(stop) = poll_for(pid).expect("it is a child") else {
            continue;
        };
        match stop {
            Stop::Event(_, Event::Exit) => {
                told = true;
                Stopped(pid).let_end().expect("it stands at its end");
            }
            Stop::Killed(..) | Stop::Exited(..) => break,
            _ => {
                assert!(begin.elapsed() < Duration::from_secs(20));
                // (One that was killed meanwhile reports its end.)
                Stopped(pid).resume_to_syscall().ok();
            }
        }
    }
    killer.join().expect("it only kills");
    told
}
