//! The first process: forked, traced from before its exec, filter installed by itself.

mod named;

use crate::limits::FileSize;
use crate::options::{Options, Variants};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::place::RANDOM_BITS;
use geryon_abi::point::FaultPoint;
use geryon_tracee::{Gate, Pid, install_filter, points, seize};
use named::Environment;
use std::ffi::CString;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Start the program. It stops at its exec event (or the pipe tells why it could not).
///
/// # Errors
/// When no process can be made or tracing is forbidden.
pub fn launch(
    o: &Options,
    gate: Gate,
    mask: &libc::sigset_t,
    limit: FileSize,
) -> Result<(Pid, std::fs::File)> {
    let path = CString::new(o.program.as_os_str().as_bytes())?;
    let args: Vec<CString> = o
        .args
        .iter()
        .map(|a| CString::new(a.as_bytes()))
        .collect::<Result<_, _>>()?;
    let mut argv: Vec<*const libc::c_char> = args.iter().map(|a| a.as_ptr()).collect();
    argv.push(std::ptr::null());
    let is_random = o.variants == Variants::None || randomness()? <= RANDOM_BITS;
    let mut environment = Environment::new();
    let (go_read, go_write) = pipe()?;
    let (fail_read, fail_write) = pipe()?;
    if points::fails(FaultPoint::LaunchFails) {
        return Err(std::io::Error::from_raw_os_error(libc::EAGAIN)).context("fork");
    }
    // SAFETY: the child calls only async-signal-safe functions until it execs or exits.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(std::io::Error::last_os_error()).context("fork");
    }
    if pid == 0 {
        use std::os::fd::AsRawFd;
        drop(go_write);
        let mut byte = 0u8;
        // SAFETY: as above; argument and environment lists end with null pointers and outlive the call.
        unsafe {
            while libc::read(go_read.as_raw_fd(), (&raw mut byte).cast(), 1) == -1 {}
            libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
            limit.restore();
            if !o.ignore_sigpipe {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            }
            if !is_random {
                libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            }
            libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV);
            if install_filter(gate).is_ok() {
                let environment = environment.of(std::process::id());
                libc::execve(path.as_ptr(), argv.as_ptr(), environment);
            }
            let errno = *libc::__errno_location();
            libc::write(fail_write.as_raw_fd(), (&raw const errno).cast(), 4);
            libc::_exit(127);
        }
    }
    drop(go_read);
    drop(fail_write);
    if let Err(e) = seize(pid) {
        geryon_tracee::kill(pid, libc::SIGKILL);
        bail!(
            "cannot trace the program: {e}\n  try: geryon doctor (it names the setting that forbids ptrace)"
        );
    }
    // SAFETY: one byte to our own pipe.
    unsafe {
        use std::os::fd::AsRawFd;
        libc::write(go_write.as_raw_fd(), c"x".as_ptr().cast(), 1);
    }
    Ok((pid, std::fs::File::from(fail_read)))
}

/// How many bits of addresses the kernel chooses by chance. (If too many, what lies where could not be told from an
/// address; that replicas differ does not depend on chance.)
fn randomness() -> Result<u32> {
    let path = "/proc/sys/vm/mmap_rnd_bits";
    let text = std::fs::read_to_string(path).context(path)?;
    text.trim().parse().context(path)
}

/// Why the exec failed, when it did.
pub fn exec_error(pipe: &mut std::fs::File) -> Option<i32> {
    let mut e = [0; 4];
    pipe.read_exact(&mut e).ok().map(|()| i32::from_le_bytes(e))
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the array outlives the call; the descriptors are new.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(std::io::Error::last_os_error()).context("pipe");
        }
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}
