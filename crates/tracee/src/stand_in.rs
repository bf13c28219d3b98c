//! A process that has the id of one that is gone, and sends on to another one what it is sent: whoever knows a
//! program by its id (from a pid file, say) reaches it all the same.

use crate::Pid;
use std::ffi::CString;
use std::io::{Error, Result};
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals that nobody can wait for.
const UNWAITED: [i32; 2] = [libc::SIGKILL, libc::SIGSTOP];
/// Between two attempts to reach somebody who is changing, in nanoseconds.
const AGAIN_NS: i64 = 2_000_000;

/// Such a process. It ends with this value, and with the thread that has made it.
#[derive(Debug)]
pub struct StandIn {
    pid: Pid,
    /// Shared with it: whom it sends on to.
    target: *mut AtomicI32,
}

/// `struct clone_args` of linux/sched.h.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

impl StandIn {
    /// Of `pid`, for `target`, under this name (as in /proc/PID/comm).
    ///
    /// # Errors
    /// EPERM without CAP_CHECKPOINT_RESTORE (or CAP_SYS_ADMIN), EEXIST as long as the id is taken, ENOSYS before
    /// Linux 5.5.
    pub fn new(pid: Pid, target: Pid, name: &str) -> Result<StandIn> {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: a new mapping at an address that the kernel chooses.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<AtomicI32>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let mut new = StandIn {
            pid: 0,
            target: page.cast(),
        };
        new.send_to(target);
        let args = CloneArgs {
            exit_signal: libc::SIGCHLD as u64,
            set_tid: (&raw const pid) as u64,
            set_tid_size: 1,
            ..CloneArgs::default()
        };
        // SAFETY: as fork(2): what the child does may be done there, and it does not come back.
        match unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) } {
            -1 => Err(Error::last_os_error()),
            // SAFETY: this is the child.
            0 => unsafe { stand_in(new.target, name.as_ptr()) },
            made => {
                new.pid = made as Pid;
                Ok(new)
            }
        }
    }

    /// Its id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Send on to this process from now on; 0: keep what comes until there is one.
    pub fn send_to(&self, target: Pid) {
        self.target().store(target, Ordering::SeqCst);
    }

    /// That process is gone: nobody is sent anything by its id any more.
    pub fn has_lost(&self, target: Pid) {
        let order = Ordering::SeqCst;
        // (Somebody else may have come already.)
        let _ = self.target().compare_exchange(target, 0, order, order);
    }

    fn target(&self) -> &AtomicI32 {
        // SAFETY: mapped for the life of self.
        unsafe { &*self.target }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if self.pid > 0 {
            // SAFETY: plain calls about a child of this process that nobody else waits for by its id.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL);
            }
        }
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.target.cast(), size_of::<AtomicI32>()) };
    }
}

/// What the process does.
///
/// # Safety
/// Only in a process that was just forked. Nothing here takes a lock or allocates.
unsafe fn stand_in(target: *const AtomicI32, name: *const libc::c_char) -> ! {
    // SAFETY: plain calls; everything that they are given outlives them.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, name);
        // What is sent to the program's whole process group its other processes get themselves.
        libc::setpgid(0, 0);
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        for signal in UNWAITED {
            libc::sigdelset(&raw mut all, signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        loop {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigwaitinfo(&raw const all, &raw mut info);
            if signal > 0 {
                send_on(&*target, signal, &raw mut info);
            }
        }
    }
}

/// Until somebody has got it: who leads may be changing.
///
/// # Safety
/// As for [`stand_in`].
unsafe fn send_on(target: &AtomicI32, signal: i32, info: *mut libc::siginfo_t) {
    // SAFETY: the caller's promise.
    unsafe {
        let with_value = (*info).si_code == libc::SI_QUEUE;
        loop {
            let to = target.load(Ordering::SeqCst);
            let sent = match with_value {
                _ if to == 0 => -1,
                // (Only what was queued so may be passed on with what it says.)
                true => libc::syscall(libc::SYS_rt_sigqueueinfo, to, signal, info),
                false => i64::from(libc::kill(to, signal)),
            };
            let gone = to == 0 || *libc::__errno_location() == libc::ESRCH;
            if sent == 0 || !gone {
                return;
            }
            let pause = libc::timespec {
                tv_sec: 0,
                tv_nsec: AGAIN_NS,
            };
            libc::nanosleep(&raw const pause, std::ptr::null_mut());
        }
    }
}
