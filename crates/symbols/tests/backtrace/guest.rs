//! A small C program that stops itself at a known place, and is traced there.

use geryon_symbols::{Frame, ProcessMemory, Regs, backtrace};
use std::cell::RefCell;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const FRAMES_MAX: usize = 64;

fn guest_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/guests")
        .join(name)
}

/// Compiles a guest in a directory of the test's own.
pub fn compile(test: &str, source: &str, output: &str, flags: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    let output = folder.join(output);
    // A new inode, for another process may still run the old one.
    let _ = std::fs::remove_file(&output);
    let mut gcc = Command::new("gcc");
    gcc.current_dir(&folder)
        .arg("-o")
        .arg(&output)
        .arg(guest_source(source))
        .args(flags)
        .arg("-pthread");
    let status = gcc.status().expect("gcc is needed for this test");
    assert!(status.success(), "{gcc:?}");
    output
}

/// A guest that has stopped itself and is traced.
pub struct Guest {
    pub child: Child,
    pub first_line: String,
    /// The threads that are traced.
    pub threads: RefCell<Vec<i32>>,
}

impl Guest {
    pub fn start(program: &Path, reads_line: bool) -> Guest {
        let mut child = Command::new(program)
            .env("LD_LIBRARY_PATH", program.parent().unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first_line = String::new();
        if reads_line {
            BufReader::new(child.stdout.take().unwrap())
                .read_line(&mut first_line)
                .unwrap();
        }
        let guest = Guest {
            child,
            first_line,
            threads: RefCell::default(),
        };
        let mut status = 0;
        // SAFETY: `status` is a live integer.
        let waited = unsafe { libc::waitpid(guest.pid(), &mut status, libc::WUNTRACED) };
        assert_eq!(waited, guest.pid());
        assert!(libc::WIFSTOPPED(status), "the guest ended: {status:#x}");
        guest.seize(guest.pid());
        guest
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Attaches to one thread of the stopped guest.
    pub fn seize(&self, tid: i32) {
        ptrace(libc::PTRACE_SEIZE, tid, 0);
        self.threads.borrow_mut().push(tid);
        ptrace(libc::PTRACE_INTERRUPT, tid, 0);
        let status = wait(tid);
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
    }

    pub fn regs(&self, tid: i32) -> Regs {
        // SAFETY: the structure consists of integers, for which zero is a value.
        let mut all: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one `user_regs_struct`, which `all` is.
        let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut all) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        Regs {
            rip: all.rip,
            rsp: all.rsp,
            rbp: all.rbp,
            rbx: all.rbx,
            r12: all.r12,
            r13: all.r13,
            r14: all.r14,
            r15: all.r15,
        }
    }

    pub fn memory(&self) -> ProcessMemory {
        ProcessMemory::open(self.pid()).unwrap()
    }

    pub fn backtrace(&self) -> Vec<Frame> {
        backtrace(
            self.pid(),
            &self.regs(self.pid()),
            &self.memory(),
            FRAMES_MAX,
        )
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        // The process is gone only when its tracer has seen every traced thread end.
        for &tid in self
            .threads
            .borrow()
            .iter()
            .filter(|&&tid| tid != self.pid())
        {
            // SAFETY: no status is asked for.
            unsafe { libc::waitpid(tid, std::ptr::null_mut(), libc::__WALL) };
        }
        let _ = self.child.wait();
    }
}

pub fn ptrace(request: libc::c_uint, tid: i32, data: usize) {
    // SAFETY: the requests used here take integers only; they touch no memory of ours.
    let result = unsafe { libc::ptrace(request, tid, 0usize, data) };
    assert_eq!(
        result,
        0,
        "request {request}: {}",
        std::io::Error::last_os_error()
    );
}

pub fn wait(tid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is a live integer.
    let waited = unsafe { libc::waitpid(tid, &mut status, libc::__WALL) };
    assert_eq!(waited, tid, "{}", std::io::Error::last_os_error());
    status
}
