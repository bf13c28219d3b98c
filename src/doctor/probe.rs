//! The questions of `geryon doctor` to the kernel: all of its unsafe code.

use std::ffi::c_long;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr;

/// What may be done to a traced child.
pub struct Tracee {
    /// PTRACE_SEIZE and a stop.
    pub seize: io::Result<()>,
    /// A write to a page without write permission.
    pub memory: io::Result<()>,
    /// A copy of one of its descriptors.
    pub getfd: io::Result<()>,
}

/// What a call returned, or errno.
fn check(result: impl Into<c_long>) -> io::Result<c_long> {
    match result.into() {
        result if result < 0 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Runs `action` in a forked child, and returns what it returned. The action must
/// make system calls only: a lock that another thread held at the fork is never
/// given back.
fn in_child(action: fn() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: the child runs nothing but `action`, which by this function's
    // contract makes system calls only, and leaves by _exit.
    let child = unsafe {
        match libc::fork() {
            0 => {
                // An errno is below 256, and so fits into an exit code.
                let errno = action().err().and_then(|error| error.raw_os_error());
                libc::_exit(errno.unwrap_or(0))
            }
            child => check(child)?,
        }
    };
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    check(unsafe { libc::waitpid(child as libc::pid_t, &raw mut status, 0) })?;
    match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::Error::other("the trial was killed")),
    }
}

/// Forks a child that waits, tries everything on it, and ends it.
pub fn tracee() -> io::Result<Tracee> {
    let (_reader, writer) = io::pipe()?;
    // SAFETY: the child makes system calls only until it is killed here, or by the
    // kernel when this thread ends.
    let child = unsafe {
        match libc::fork() {
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    libc::pause();
                }
            }
            child => check(child)? as libc::pid_t,
        }
    };
    let seize = seize(child);
    let found = Tracee {
        memory: write_code(child),
        getfd: copy_fd(child, writer.as_raw_fd()),
        seize,
    };
    // SAFETY: `child` is our own and not yet waited for, so the id is still its.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, ptr::null_mut(), libc::__WALL);
    }
    Ok(found)
}

fn seize(child: libc::pid_t) -> io::Result<()> {
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: neither request touches our memory.
    unsafe {
        check(libc::ptrace(libc::PTRACE_SEIZE, child, none, none))?;
        check(libc::ptrace(libc::PTRACE_INTERRUPT, child, none, none))?;
        check(libc::waitpid(child, ptr::null_mut(), libc::__WALL))?;
    }
    Ok(())
}

/// Writes to the code of this function in the child the byte that is there.
fn write_code(child: libc::pid_t) -> io::Result<()> {
    let address = write_code as *const () as u64;
    let path = format!("/proc/{child}/mem");
    let memory = File::options().read(true).write(true).open(path)?;
    let mut byte = [0];
    memory.read_exact_at(&mut byte, address)?;
    memory.write_all_at(&byte, address)
}

fn copy_fd(child: libc::pid_t, fd: libc::c_int) -> io::Result<()> {
    // SAFETY: the calls take integers; what they return is closed here, once.
    unsafe {
        let pidfd = check(libc::syscall(libc::SYS_pidfd_open, child, 0))?;
        let copy = check(libc::syscall(libc::SYS_pidfd_getfd, pidfd, fd, 0));
        libc::close(pidfd as libc::c_int);
        libc::close(copy? as libc::c_int);
    }
    Ok(())
}

/// The second word of CPU features that the kernel lets user code use.
pub fn hwcap2() -> u64 {
    // SAFETY: getauxval only reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) }
}

/// Whether a filter may be installed, and may stop a thread in its tracer.
pub fn seccomp() -> io::Result<()> {
    let action = libc::SECCOMP_RET_TRACE;
    // SAFETY: the kernel reads four bytes at `action`.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    })?;
    in_child(|| {
        let mut allow = libc::sock_filter {
            code: (libc::BPF_RET | libc::BPF_K) as u16,
            jt: 0,
            jf: 0,
            k: libc::SECCOMP_RET_ALLOW,
        };
        let program = libc::sock_fprog {
            len: 1,
            filter: &raw mut allow,
        };
        // SAFETY: `program` and the one instruction that it points to outlive the
        // call, which copies them.
        unsafe {
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            let mode = libc::SECCOMP_MODE_FILTER;
            check(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program))?;
        }
        Ok(())
    })
}

/// Whether a memfd can be created and mapped as code.
pub fn memfd() -> io::Result<()> {
    const LENGTH: usize = 4096;
    // SAFETY: the name is a C string; the mapping is new, not touched, and removed
    // before the function returns.
    unsafe {
        let fd = check(libc::memfd_create(
            c"geryon-doctor".as_ptr(),
            libc::MFD_CLOEXEC,
        ))? as libc::c_int;
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        let place = libc::mmap(
            ptr::null_mut(),
            LENGTH,
            protection,
            libc::MAP_PRIVATE,
            fd,
            0,
        );
        let error = io::Error::last_os_error();
        libc::close(fd);
        if place == libc::MAP_FAILED {
            return Err(error);
        }
        libc::munmap(place, LENGTH);
    }
    Ok(())
}

/// Whether the kernel has the global expedited barrier.
pub fn membarrier() -> io::Result<()> {
    // SAFETY: the query takes integers and changes nothing.
    let offered =
        check(unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0) })?;
    if offered & c_long::from(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0 {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    Ok(())
}

/// The soft and the hard limit.
pub fn rlimit(resource: libc::__rlimit_resource_t) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` outlives the call.
    check(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// Whether rdtsc can be made to trap.
pub fn tsc() -> io::Result<()> {
    in_child(|| {
        // SAFETY: the call takes integers and changes only this child, which
        // executes no rdtsc any more.
        check(unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) }).map(drop)
    })
}
