//! ptrace as types: stops, registers, remote memory, remote calls, and the seccomp filter.
//!
//! All unsafe of talking to another process lives here.

mod affinity;
mod breakpoint;
mod extended;
mod filter;
mod memory;
mod outlive;
mod passage;
pub mod points;
mod queue;
mod scheduling;
mod stand_in;
mod stat;
mod stop;

pub use affinity::{affinity, set_affinity};
pub use extended::xsave_offset;
pub use filter::{Gate, install_filter};
pub use memory::RemoteMemory;
pub use outlive::outlive;
pub use passage::{Passage, descriptor_of};
pub use queue::{Queue, Siginfo, queue_signal};
pub use scheduling::{Scheduling, scheduling, set_scheduling};
pub use stand_in::StandIn;
pub use stat::{
    Used, core_of, cpu_ticks, exit_signal, memory_layout, processor_time, reaches_all, sleeps,
    state, text, thread_ticks, used,
};
pub use stop::{Event, Pid, Stop, await_report, poll_for, wait_any, wait_for, wait_next};

use geryon_abi::point::FaultPoint;
use std::io::{Error, Result};
use std::time::{Duration, Instant};

/// A look at a thread takes no longer, unless another one has had our core meanwhile.
const LOOK: Duration = Duration::from_micros(4);
/// So many looks, on a machine on which each takes longer.
const LOOKS: u32 = 8;

/// General registers of a stopped thread.
pub type Regs = libc::user_regs_struct;

/// A traced thread that is stopped (the caller's promise: operations fail with ESRCH otherwise).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stopped(pub Pid);

fn ptrace(request: libc::c_uint, pid: Pid, addr: usize, data: usize) -> Result<()> {
    // SAFETY: requests used here either take integers or pointers to buffers that outlive the call.
    if unsafe { libc::ptrace(request, pid, addr, data) } == -1 {
        return Err(Error::last_os_error());
    }
    Ok(())
}

/// Options set on every tracee (inherited by what it creates).
pub const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_EXITKILL;

/// Attach to a process without stopping it.
///
/// # Errors
/// What ptrace(2) says; EPERM where the system forbids tracing.
pub fn seize(pid: Pid) -> Result<()> {
    ptrace(libc::PTRACE_SEIZE, pid, 0, OPTIONS as usize)
}

/// Attach to a process and all threads and processes that it makes, which stop for their signals, and before they end.
///
/// # Errors
/// As [`seize`].
pub fn seize_descendants(pid: Pid) -> Result<()> {
    let made = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
    let options = made | libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_EXITKILL;
    ptrace(libc::PTRACE_SEIZE, pid, 0, options as usize)
}

impl Stopped {
    /// Registers.
    ///
    /// # Errors
    /// ESRCH when the thread is gone or runs.
    pub fn regs(self) -> Result<Regs> {
        self.dies_at(FaultPoint::LookKilled);
        let mut regs = std::mem::MaybeUninit::<Regs>::zeroed();
        ptrace(libc::PTRACE_GETREGS, self.0, 0, regs.as_mut_ptr() as usize)?;
        // SAFETY: PTRACE_GETREGS filled it; it is plain data anyway.
        Ok(unsafe { regs.assume_init() })
    }

    /// Set the registers.
    ///
    /// # Errors
    /// ESRCH when the thread is gone or runs.
    pub fn set_regs(self, regs: &Regs) -> Result<()> {
        ptrace(
            libc::PTRACE_SETREGS,
            self.0,
            0,
            std::ptr::from_ref(regs) as usize,
        )
    }

    /// Let it run, with a signal (0: none).
    ///
    /// # Errors
    /// ESRCH when the thread is gone, or was killed meanwhile and has come to its end: that is
    /// reported next.
    pub fn resume(self, signal: i32) -> Result<()> {
        self.go(libc::PTRACE_CONT, signal)
    }

    /// Let it run to the next end of a system call.
    ///
    /// # Errors
    /// As for [`Stopped::resume`].
    pub fn resume_to_syscall(self) -> Result<()> {
        self.go(libc::PTRACE_SYSCALL, 0)
    }

    /// One instruction, delivering a signal.
    ///
    /// # Errors
    /// As for [`Stopped::resume`].
    pub fn step(self, signal: i32) -> Result<()> {
        self.go(libc::PTRACE_SINGLESTEP, signal)
    }

    /// Let a thread that has reported its end go.
    ///
    /// # Errors
    /// ESRCH when the thread is gone.
    pub fn let_end(self) -> Result<()> {
        ptrace(libc::PTRACE_CONT, self.0, 0, 0)
    }

    /// A test may have its process killed here.
    fn dies_at(self, point: FaultPoint) {
        if points::fails(point) {
            kill(self.0, libc::SIGKILL);
        }
    }

    /// Whoever is killed in one stop comes to the next one, its end, without being asked. To resume it
    /// there would hide its end from us. It takes far longer from the one to the other than we do
    /// from the look to the request, unless another thread has our core just there, that of the killer, say: so we look
    /// again if the look has taken long. (Nothing can be done about the few instructions between the clock and
    /// the request.)
    fn go(self, request: libc::c_uint, signal: i32) -> Result<()> {
        self.dies_at(FaultPoint::ResumeKilled);
        const ENDS: i32 = libc::SIGTRAP | libc::PTRACE_EVENT_EXIT << 8;
        for _ in 0..LOOKS {
            let begin = Instant::now();
            match self.siginfo() {
                // si_code lies behind si_signo and si_errno.
                Ok(info) if info[1] as i32 == ENDS => {
                    return Err(Error::from_raw_os_error(libc::ESRCH));
                }
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Err(e),
                // A group stop has none.
                _ => {}
            }
            if begin.elapsed() < LOOK {
                break;
            }
        }
        ptrace(request, self.0, 0, signal as usize)
    }

    /// Stay in a group stop.
    ///
    /// # Errors
    /// ESRCH when the thread is gone.
    pub fn listen(self) -> Result<()> {
        ptrace(libc::PTRACE_LISTEN, self.0, 0, 0)
    }

    /// Message of the last event (a new thread's id, say).
    ///
    /// # Errors
    /// ESRCH when the thread is gone.
    pub fn event_message(self) -> Result<u64> {
        let mut message: libc::c_ulong = 0;
        ptrace(
            libc::PTRACE_GETEVENTMSG,
            self.0,
            0,
            &raw mut message as usize,
        )?;
        Ok(message)
    }

    /// The signal at a signal-delivery stop, as 16 words.
    ///
    /// # Errors
    /// EINVAL when the stop has none.
    pub fn siginfo(self) -> Result<[u64; 16]> {
        let mut info = [0u64; 16];
        ptrace(
            libc::PTRACE_GETSIGINFO,
            self.0,
            0,
            info.as_mut_ptr() as usize,
        )?;
        Ok(info)
    }

    /// Replace it.
    ///
    /// # Errors
    /// EINVAL when the stop has none.
    pub fn set_siginfo(self, info: &[u64; 16]) -> Result<()> {
        ptrace(libc::PTRACE_SETSIGINFO, self.0, 0, info.as_ptr() as usize)
    }

    /// Blocked signals.
    ///
    /// # Errors
    /// ESRCH when the thread is gone.
    pub fn mask(self) -> Result<u64> {
        let mut mask = 0u64;
        ptrace(libc::PTRACE_GETSIGMASK, self.0, 8, &raw mut mask as usize)?;
        Ok(mask)
    }

    /// Set the blocked signals.
    ///
    /// # Errors
    /// ESRCH when the thread is gone.
    pub fn set_mask(self, mask: u64) -> Result<()> {
        ptrace(libc::PTRACE_SETSIGMASK, self.0, 8, &raw const mask as usize)
    }

    /// Make the thread execute one system call at the `syscall` instruction at `at`, and give the
    /// registers back as they were. All signals are blocked meanwhile.
    ///
    /// # Errors
    /// When the thread dies on the way; the call's own result is in the value.
    pub fn remote_syscall(self, at: u64, nr: i64, args: [u64; 6]) -> Result<i64> {
        let saved = self.regs()?;
        let mask = self.mask()?;
        self.set_mask(u64::MAX)?;
        self.set_regs(&calling(saved, at, nr, args))?;
        let mut halves = 0;
        while halves < 2 {
            self.resume_to_syscall()?;
            match wait_for(self.0)? {
                Stop::Syscall(_) => halves += 1,
                Stop::Event(
                    _,
                    Event::Seccomp | Event::Clone | Event::Fork | Event::Vfork | Event::Stop(_),
                ) => {}
                end @ (Stop::Exited(..) | Stop::Killed(..) | Stop::Event(_, Event::Exit)) => {
                    return Err(stop::ended(end));
                }
                other => return Err(Error::other(format!("unexpected stop {other:?}"))),
            }
        }
        let result = self.regs()?.rax as i64;
        self.set_regs(&saved)?;
        self.set_mask(mask)?;
        Ok(result)
    }

    /// The same with one stop instead of two: a `syscall` instruction at `at` is followed by a move of
    /// its result to rdi and by a second one, which the filter stops. A call that was interrupted when
    /// the thread stopped goes on.
    ///
    /// # Errors
    /// As for [`Stopped::remote_syscall`].
    pub fn injected_syscall(self, at: u64, nr: i64, args: [u64; 6]) -> Result<i64> {
        let saved = resumable(self.regs()?);
        let mask = self.mask()?;
        self.set_mask(u64::MAX)?;
        self.set_regs(&calling(saved, at, nr, args))?;
        let mut is_to_stop = false;
        let mut signal = 0;
        loop {
            self.resume(std::mem::take(&mut signal))?;
            match wait_for(self.0)? {
                Stop::Event(_, Event::Seccomp) => break,
                Stop::Event(_, Event::Clone | Event::Fork | Event::Vfork | Event::Stop(_)) => {}
                // Nobody can block it. It would stop the process, and nobody would hear of that.
                Stop::Signal(_, libc::SIGSTOP) => is_to_stop = true,
                Stop::Signal(_, it) => signal = it,
                end @ (Stop::Exited(..) | Stop::Killed(..) | Stop::Event(_, Event::Exit)) => {
                    return Err(stop::ended(end));
                }
                other => return Err(Error::other(format!("unexpected stop {other:?}"))),
            }
        }
        let result = self.regs()?.rdi as i64;
        // Their number of a call, which is none, makes the kernel pass over the second one.
        self.set_regs(&saved)?;
        self.set_mask(mask)?;
        if is_to_stop && !self.is_to_go_on()? {
            self.send(libc::SIGSTOP)?;
        }
        Ok(result)
    }

    /// Does a SIGCONT wait, so that what is to stop the process came before it, and is void?
    fn is_to_go_on(self) -> Result<bool> {
        for queue in [Queue::Thread, Queue::Process] {
            let mut all = self.queued(queue)?.into_iter();
            if all.any(|info| info[0] as i32 == libc::SIGCONT) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Send the thread a signal.
    fn send(self, signal: i32) -> Result<()> {
        // SAFETY: plain call.
        match unsafe { libc::syscall(libc::SYS_tkill, self.0, signal) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Make the thread fork its process, with more flags of clone(2), by the call `nr`, at `at` (see
    /// [`Stopped::injected_syscall`]). The new process is traced from its first instruction on, without
    /// a stop of its parent's that would tell of it: [`settle_forked`] has to be called for it.
    ///
    /// # Errors
    /// As for [`Stopped::remote_syscall`].
    pub fn fork(self, at: u64, nr: i64, flags: i32) -> Result<i64> {
        self.set_options(OPTIONS & !libc::PTRACE_O_TRACECLONE)?;
        let flags = flags | libc::CLONE_PTRACE;
        let result = self.injected_syscall(at, nr, [flags as u64, 0, 0, 0, 0, 0]);
        self.set_options(OPTIONS)?;
        result
    }

    fn set_options(self, options: i32) -> Result<()> {
        ptrace(libc::PTRACE_SETOPTIONS, self.0, 0, options as usize)
    }

    /// The filter has stopped a call through the vsyscall page: it is not made, and the thread comes to its
    /// next stop where it would return to.
    ///
    /// # Errors
    /// When the thread dies on the way.
    pub fn return_from_vsyscall(self) -> Result<()> {
        // The kernel lets a tracer do no more than that: it emulates the return by itself.
        self.set_regs(&Regs {
            orig_rax: u64::MAX,
            ..self.regs()?
        })?;
        self.interrupt()?;
        self.resume(0)?;
        match wait_for(self.0)? {
            Stop::Event(_, Event::Stop(_)) => Ok(()),
            end @ (Stop::Exited(..) | Stop::Killed(..) | Stop::Event(_, Event::Exit)) => {
                Err(stop::ended(end))
            }
            other => Err(Error::other(format!("unexpected stop {other:?}"))),
        }
    }

    /// Run to the end of the system call it is in (after an exec event).
    ///
    /// # Errors
    /// When the thread dies on the way.
    pub fn finish_syscall(self) -> Result<()> {
        self.resume_to_syscall()?;
        match wait_for(self.0)? {
            Stop::Syscall(_) => Ok(()),
            end @ (Stop::Exited(..) | Stop::Killed(..) | Stop::Event(_, Event::Exit)) => {
                Err(stop::ended(end))
            }
            other => Err(Error::other(format!("unexpected stop {other:?}"))),
        }
    }
}

/// Wait for a newborn process's or thread's first stop.
///
/// # Errors
/// ESRCH when it has died; its end is reported by [`wait_any`].
pub fn settle(pid: Pid) -> Result<()> {
    loop {
        match wait_for(pid)? {
            Stop::Event(_, Event::Stop(_)) => return Ok(()),
            end @ (Stop::Exited(..) | Stop::Killed(..) | Stop::Event(_, Event::Exit)) => {
                return Err(stop::ended(end));
            }
            // The rest of the injected call.
            _ => Stopped(pid).resume(0)?,
        }
    }
}

/// Wait for the first stop of a process that was made by [`Stopped::fork`].
///
/// # Errors
/// As for [`settle`].
pub fn settle_forked(pid: Pid) -> Result<()> {
    settle(pid)?;
    Stopped(pid).set_options(OPTIONS)
}

/// The registers with which a call is made at `at`.
fn calling(mut regs: Regs, at: u64, nr: i64, args: [u64; 6]) -> Regs {
    regs.rip = at;
    regs.rax = nr as u64;
    regs.orig_rax = u64::MAX;
    [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = args;
    regs
}

/// The registers with which an interrupted call goes on in the very thread whose call it is: one that waits
/// for a time waits for the rest of it, which the kernel has kept. (Issued again, a sleep that has told its
/// rest where it had been told its time would be another one.)
pub fn resumable(regs: Regs) -> Regs {
    const ERESTART_RESTARTBLOCK: i64 = -516;
    let mut again = restartable(regs);
    if again.rip != regs.rip && regs.rax as i64 == ERESTART_RESTARTBLOCK {
        again.rax = libc::SYS_restart_syscall as u64;
    }
    again
}

/// The registers with which an interrupted call is issued again, in a copy of its thread. (The kernel
/// restarts a call by itself only where it interrupted it; elsewhere its mark would be seen as the result.)
pub fn restartable(mut regs: Regs) -> Regs {
    let interrupted = (-516..=-512).contains(&(regs.rax as i64));
    if regs.orig_rax as i64 >= 0 && interrupted {
        regs.rip -= 2;
        regs.rax = regs.orig_rax;
    }
    regs.orig_rax = u64::MAX;
    regs
}

/// Address and length of a thread's list of robust mutexes.
///
/// # Errors
/// ESRCH when it is gone.
pub fn robust_list(tid: Pid) -> Result<(u64, u64)> {
    let (mut head, mut len) = (0u64, 0u64);
    // SAFETY: the kernel writes the two words, which outlive the call.
    let r = unsafe { libc::syscall(libc::SYS_get_robust_list, tid, &raw mut head, &raw mut len) };
    if r == -1 {
        return Err(Error::last_os_error());
    }
    Ok((head, len))
}

/// Send a signal to one thread.
///
/// # Errors
/// ESRCH when it is gone.
pub fn signal_thread(pid: Pid, tid: Pid, signal: i32) -> Result<()> {
    // SAFETY: plain system call.
    if unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) } == -1 {
        return Err(Error::last_os_error());
    }
    Ok(())
}

/// Kill a process that this monitor started.
pub fn kill(pid: Pid, signal: i32) {
    // SAFETY: plain system call; a process that is gone is fine.
    unsafe { libc::kill(pid, signal) };
}
