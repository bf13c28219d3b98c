//! Signals: those that the monitor itself receives, and those of the replicas.

use crate::block_field;
use crate::state::{Crash, GroupId, Monitor};
use crate::takeover::bare;
use anyhow::{Result, bail};
use geryon_abi::frame::{FRAME_BYTES, Frame};
use geryon_abi::layout::{BLOCK_BYTES, BLOCKS_BASE, MAX_PENDING, MAX_THREADS};
use geryon_tracee::{Pid, Regs, RemoteMemory, Stopped, is_breakpoint, signal_thread};
use std::mem::offset_of;
use std::time::{Duration, Instant};

mod together;

/// The monitor's own blocked signals.
pub struct Signals {
    set: libc::sigset_t,
    original: libc::sigset_t,
}

const OURS: [i32; 8] = [
    libc::SIGCHLD,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
];

impl Signals {
    /// Block what is to be waited for.
    ///
    /// # Errors
    /// When the kernel refuses (it does not).
    pub fn block() -> Result<Signals> {
        // SAFETY: plain calls on local sets.
        unsafe {
            let mut set = std::mem::zeroed();
            let mut original = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for s in OURS {
                libc::sigaddset(&raw mut set, s);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut original) != 0 {
                return Err(std::io::Error::last_os_error().into());
            }
            Ok(Signals { set, original })
        }
    }

    /// The mask that the program inherits.
    pub fn original(&self) -> &libc::sigset_t {
        &self.original
    }

    /// Wait for news of tracees; a signal that a person sent to the monitor is returned.
    pub fn wait(&self, limit: Duration) -> Option<i32> {
        let t = libc::timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        // SAFETY: plain call with local structures.
        let (s, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (
                libc::sigtimedwait(&raw const self.set, &raw mut info, &raw const t),
                info,
            )
        };
        // What a terminal sends (SI_KERNEL) has reached the leader as well.
        (s > 0 && s != libc::SIGCHLD && info.si_code <= 0).then_some(s)
    }

    /// As before.
    pub fn restore(&self) {
        // SAFETY: plain call.
        unsafe {
            libc::sigprocmask(
                libc::SIG_SETMASK,
                &raw const self.original,
                std::ptr::null_mut(),
            )
        };
    }
}

/// What a process does with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disposition {
    Ignored,
    Stops,
    Ends,
    Caught,
}

/// What a process does with all signals: bits by their numbers, from 1 on.
#[derive(Clone, Copy, Debug, Default)]
struct Dispositions {
    caught: u64,
    ignored: u64,
}

impl Dispositions {
    fn of(pid: Pid) -> Dispositions {
        let [caught, ignored] = sets(pid, ["SigCgt:", "SigIgn:"]);
        Dispositions { caught, ignored }
    }
}

/// Sets of signals that the kernel tells of a thread.
fn sets<const N: usize>(tid: Pid, names: [&str; N]) -> [u64; N] {
    let text = geryon_tracee::text(format!("/proc/{tid}/status")).unwrap_or_default();
    names.map(|name| {
        text.lines()
            .find_map(|l| l.strip_prefix(name))
            .and_then(|v| u64::from_str_radix(v.trim(), 16).ok())
            .unwrap_or(0)
    })
}

/// Signals that an instruction raises.
const RAISED: u64 = bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGFPE)
    | bit(libc::SIGILL)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGSYS);

pub(crate) const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// May an instruction have raised it?
pub(crate) fn is_raised(signal: i32) -> bool {
    RAISED & bit(signal) != 0
}

/// The signals for which a process has handlers, as bits.
pub(crate) fn caught(pid: Pid) -> u64 {
    Dispositions::of(pid).caught
}

/// The signals that are shut out of a thread, as bits.
pub(crate) fn blocked(tid: Pid) -> u64 {
    let [blocked] = sets(tid, ["SigBlk:"]);
    blocked
}

/// Would the process's kernel keep this signal for it, although nothing would come of it now? Its first thread blocks it.
pub(crate) fn keeps(pid: Pid, signal: i32) -> bool {
    let is_ignored = disposition(pid, signal) == Disposition::Ignored;
    is_ignored && signal != libc::SIGCONT && blocked(pid) & bit(signal) != 0
}

/// Is it a descriptor from which a process reads its signals?
pub(crate) fn are_read_from(pid: Pid, fd: u64) -> bool {
    let name = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    name.is_ok_and(|name| name.as_os_str() == "anon_inode:[signalfd]")
}

/// Does the process ignore this signal because it has said so?
pub(crate) fn ignores(pid: Pid, signal: i32) -> bool {
    Dispositions::of(pid).ignored & bit(signal) != 0
}

/// Is it a signal of job control that stops, where nothing else is said?
pub(crate) fn is_stop(signal: i32) -> bool {
    matches!(
        signal,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU
    )
}

/// Would this signal stop the process?
pub(crate) fn stops(pid: Pid, signal: i32) -> bool {
    disposition(pid, signal) == Disposition::Stops
}

/// Would this signal end the process?
pub(crate) fn ends(pid: Pid, signal: i32) -> bool {
    disposition(pid, signal) == Disposition::Ends
}

fn disposition(pid: Pid, signal: i32) -> Disposition {
    let all = Dispositions::of(pid);
    if all.caught & bit(signal) != 0 {
        return Disposition::Caught;
    }
    if all.ignored & bit(signal) != 0 {
        return Disposition::Ignored;
    }
    match signal {
        libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT => Disposition::Ignored,
        stop if is_stop(stop) => Disposition::Stops,
        _ => Disposition::Ends,
    }
}

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

/// Where the mask is in the kernel's `struct ucontext`.
const UC_SIGMASK: u64 = 296;

/// Was it sent by kill or tgkill? Then the kernel says by whom.
pub(crate) fn is_sent(info: &[u64; 16]) -> bool {
    matches!(info[1] as i32, libc::SI_USER | libc::SI_TKILL)
}

/// The same signal, of another sender.
pub(crate) fn with_sender(mut info: [u64; 16], sender: Pid) -> [u64; 16] {
    info[2] = info[2] & !u64::from(u32::MAX) | u64::from(sender as u32);
    info
}

/// The mask of the call that a signal has ended, if it had its own.
fn call_mask(m: &RemoteMemory, block: Option<u64>) -> Result<Option<u64>> {
    let Some(block) = block else {
        return Ok(None);
    };
    let at = block + block_field!(call_mask);
    let [is_there, mask] = m.words(at)?;
    m.set_word(at, 0)?;
    Ok((is_there == 1).then_some(mask))
}

fn signal_in(info: &[u64; 16]) -> Result<i32> {
    let signal = info[0] as i32;
    if !(1..=64).contains(&signal) {
        bail!("there is no signal {signal}");
    }
    Ok(signal)
}

impl Monitor {
    /// A signal is about to reach a replica's thread.
    pub(crate) fn on_signal(&mut self, tid: Pid, signal: i32) -> Result<()> {
        let tracee = Stopped(tid);
        let thread = self.threads[&tid].clone();
        let pid = thread.pid;
        if signal == libc::SIGTRAP && self.on_point(tid, pid)? {
            return Ok(());
        }
        if signal == libc::SIGTRAP && thread.enters_handler {
            return self.on_handler_entered(tid, pid);
        }
        if let Some(info) = thread.inject
            && info[0] as i32 == signal
        {
            self.keep_queued(tid, signal);
            return self.finish_injection(tid, signal, &info);
        }
        let info = self.siginfo(tid, signal);
        let Some((group, replica)) = self.membership(pid) else {
            if self.is_held_for_newborn(pid, signal, &info) {
                return Ok(tracee.resume(0)?);
            }
            // Not replicated yet: as it would be natively.
            return Ok(tracee.resume(signal)?);
        };
        let leads = self.leads(group, replica);
        if let Some(g) = self.groups.get_mut(&group).filter(|_| leads)
            && is_stop(signal)
        {
            g.job.stops_later(signal);
        }
        if leads && signal == libc::SIGCONT {
            self.job_is_let_go_on(group);
        }
        let info = match info {
            Ok(info) if info[0] as i32 == signal => info,
            // It was killed meanwhile, and is gone, or stands at its end.
            other => {
                if leads {
                    self.untold(tid, &bare(signal));
                }
                return other.map(drop);
            }
        };
        if thread.trap_left && is_trap(&info) {
            if let Some(t) = self.threads.get_mut(&tid) {
                t.trap_left = false;
            }
            return Ok(tracee.resume(0)?);
        }
        if signal == libc::SIGTRAP && self.on_converging_breakpoint(tid, &info)? {
            return Ok(());
        }
        if is_breakpoint(&info) {
            if !self.on_breakpoint(tid, pid)? {
                // One that was left over.
                tracee.set_breakpoint(None)?;
            }
            return Ok(tracee.resume(0)?);
        }
        if is_fault(signal, &info) {
            if self.stores_into_inherited(pid, signal, &info) {
                return Ok(());
            }
            return self.on_fault(tid, pid, group, replica, signal, &info);
        }
        if !leads {
            // A follower's signals come from the log.
            return Ok(tracee.resume(0)?);
        }
        if self.has_come(group, signal) {
            return Ok(tracee.resume(0)?);
        }
        if thread.inject.is_some()
            && let Some(t) = self.threads.get_mut(&tid)
        {
            // The kernel takes the lowest number first; the log has another one as the next.
            t.overtaken.push(info);
            return Ok(tracee.resume(0)?);
        }
        let adopted = self.groups.get(&group).is_some_and(|g| g.adopted);
        let info = if adopted && signal == libc::SIGCHLD {
            match self.child_signal(tid, pid, &info) {
                Some(info) => info,
                None => return Ok(tracee.resume(0)?),
            }
        } else {
            self.as_known(info)
        };
        let disposition = disposition(pid, signal);
        if matches!(disposition, Disposition::Caught | Disposition::Ignored) {
            self.child_signal_came(group, &info);
        }
        match disposition {
            Disposition::Ignored => tracee.resume(0)?,
            Disposition::Stops => tracee.resume(signal)?,
            Disposition::Ends => {
                self.leave_out_at_signal(pid);
                // (With a vfork's child the program's process, in whose memory it is, does not end.)
                if !self.is_guest(pid) {
                    self.expect_end(group);
                }
                // (It may be killed before it comes to that end.)
                self.untold(tid, &info);
                tracee.resume(signal)?;
            }
            // Nobody has to repeat it.
            Disposition::Caught if self.options.replicas == 1 && !self.in_agent(tid)? => {
                tracee.set_siginfo(&info)?;
                tracee.resume(signal)?;
            }
            Disposition::Caught => self.queue(tid, pid, &info)?,
        }
        Ok(())
    }

    /// What a signal that has come to a thread is to show.
    fn siginfo(&mut self, tid: Pid, signal: i32) -> Result<[u64; 16]> {
        let resent = self.threads.get_mut(&tid).map(|t| &mut t.resent);
        if let Some(resent) = resent
            && let Some(i) = resent.iter().position(|info| info[0] as i32 == signal)
        {
            let info = resent.remove(i);
            self.keep_queued(tid, signal);
            return Ok(info);
        }
        let info = Stopped(tid).siginfo()?;
        Ok(self.as_inherited(tid, info))
    }

    /// What a thread's signal showed before it was sent on to a new leader, if it was.
    fn as_inherited(&mut self, tid: Pid, info: [u64; 16]) -> [u64; 16] {
        let pid = self.threads.get(&tid).map(|t| t.pid);
        let process = pid.and_then(|pid| self.processes.get_mut(&pid));
        let was = process.and_then(|p| crate::takeover::as_it_was(&mut p.inherited, &info));
        was.unwrap_or(info)
    }

    /// The sender as the program knows it, where another replica has taken its place.
    pub(crate) fn as_known(&self, info: [u64; 16]) -> [u64; 16] {
        let group = self.membership(info[2] as Pid).map(|(id, _)| id);
        match group.and_then(|id| self.groups.get(&id)) {
            Some(g) if is_sent(&info) => with_sender(info, g.name.shown),
            _ => info,
        }
    }

    pub(crate) fn in_agent(&self, tid: Pid) -> Result<bool> {
        let regs = Stopped(tid).regs()?;
        let end = BLOCKS_BASE + BLOCK_BYTES * MAX_THREADS as u64;
        Ok(self.image.contains(regs.rip) || (BLOCKS_BASE..end).contains(&regs.rsp))
    }

    /// Put a caught signal where the leader's thread finds it at its next safe point.
    fn queue(&mut self, tid: Pid, pid: Pid, info: &[u64; 16]) -> Result<()> {
        let tracee = Stopped(tid);
        let noted = self.note_pending(tid, pid, info);
        if noted.is_err() {
            self.untold(tid, info);
        }
        let Some((mut regs, block)) = noted? else {
            return Ok(tracee.resume(info[0] as i32)?);
        };
        let check = self.image.symbol("geryon_blocking_check");
        let call = self.image.symbol("geryon_blocking_syscall");
        let end = self.image.symbol("geryon_blocking_end");
        let eintr = self.image.symbol("geryon_eintr");
        let mask = tracee.mask()?;
        // Those that are caught wait, too: the kernel knows their order, and the masks of handlers. What ends
        // the program ends it, and what an instruction raises comes at once (where it is blocked, the kernel
        // takes its handler away).
        tracee.set_mask(mask | Dispositions::of(pid).caught & !RAISED)?;
        if let Some(t) = self.threads.get_mut(&tid) {
            t.held_mask.get_or_insert(mask);
        }
        self.interrupt_computation(pid, ((block - BLOCKS_BASE) / BLOCK_BYTES) as u32, true);
        if regs.rip == call && regs.rax == libc::SYS_restart_syscall as u64 {
            // It was stopped in a sleep, which would go on: it ends, with its rest told already.
            const ERESTART_RESTARTBLOCK: i64 = -516;
            regs.rip = end;
            regs.rax = ERESTART_RESTARTBLOCK as u64;
            regs.orig_rax = u64::MAX;
            tracee.set_regs(&regs)?;
        } else if (check..=call).contains(&regs.rip) {
            regs.rip = eintr;
            tracee.set_regs(&regs)?;
        } else if regs.rip == end && (-516..=-512).contains(&(regs.rax as i64)) {
            // The kernel would restart the call; the agent shall see that it was interrupted.
            regs.orig_rax = u64::MAX;
            tracee.set_regs(&regs)?;
        }
        Ok(tracee.resume(0)?)
    }

    /// Write it into the thread's block. The count, which is written last and at once, says that it is there: an
    /// error says that it is not. None: it is no thread of the program's.
    fn note_pending(
        &mut self,
        tid: Pid,
        pid: Pid,
        info: &[u64; 16],
    ) -> Result<Option<(Regs, u64)>> {
        let regs = Stopped(tid).regs()?;
        let Some(block) = self.image.block_of(&regs) else {
            return Ok(None);
        };
        let m = self.memory(pid)?;
        let at = block + block_field!(pending_count);
        let count = m.word(at)? as u32;
        if (count as usize) < MAX_PENDING {
            let to = block + block_field!(pending) + 128 * u64::from(count);
            for (i, w) in info.iter().enumerate() {
                m.set_word(to + 8 * i as u64, *w)?;
            }
            m.write(at, &(count + 1).to_le_bytes())?;
        } else {
            self.say(&format!(
                "more than {MAX_PENDING} signals wait for a thread that is in the midst of something; the next ones are lost"
            ));
        }
        Ok(Some((regs, block)))
    }

    /// Load the application's state from the agent's frame, then deliver. `exact`: as it was in the midst of
    /// computation, not behind a call.
    pub(crate) fn deliver(
        &mut self,
        tid: Pid,
        pid: Pid,
        frame_at: u64,
        info_at: u64,
        exact: bool,
    ) -> Result<()> {
        let tracee = Stopped(tid);
        let mut regs = tracee.regs()?;
        let block = self.image.block_of(&regs);
        let m = self.memory(pid)?;
        let info = m.words::<16>(info_at)?;
        let within = call_mask(m, block)?;
        let mut bytes = [0u8; FRAME_BYTES];
        m.read(frame_at, &mut bytes)?;
        let word = |o: usize| u64::from_le_bytes(bytes[o..o + 8].try_into().expect("8 bytes"));
        regs.r15 = word(offset_of!(Frame, r15));
        regs.r14 = word(offset_of!(Frame, r14));
        regs.r13 = word(offset_of!(Frame, r13));
        regs.r12 = word(offset_of!(Frame, r12));
        regs.rbp = word(offset_of!(Frame, rbp));
        regs.rbx = word(offset_of!(Frame, rbx));
        regs.r9 = word(offset_of!(Frame, r9));
        regs.r8 = word(offset_of!(Frame, r8));
        regs.r10 = word(offset_of!(Frame, r10));
        regs.rdx = word(offset_of!(Frame, rdx));
        regs.rsi = word(offset_of!(Frame, rsi));
        regs.rdi = word(offset_of!(Frame, rdi));
        regs.rax = word(offset_of!(Frame, rax));
        regs.rsp = word(offset_of!(Frame, rsp));
        regs.rip = word(offset_of!(Frame, resume));
        regs.rcx = word(offset_of!(Frame, rcx));
        regs.r11 = word(offset_of!(Frame, pad));
        regs.eflags = match exact {
            true => word(offset_of!(Frame, flags)),
            // As the kernel leaves them behind a call.
            false => regs.r11,
        };
        regs.orig_rax = u64::MAX;
        tracee.set_regs(&regs)?;
        self.inject(tid, pid, info, within)
    }

    /// Send the thread a signal that it will take at once, with the given siginfo; its handler runs under
    /// the thread's mask, or under the one of the call that it has ended (`within`).
    pub(crate) fn inject(
        &mut self,
        tid: Pid,
        pid: Pid,
        info: [u64; 16],
        within: Option<u64>,
    ) -> Result<()> {
        let tracee = Stopped(tid);
        let signal = signal_in(&info)?;
        let now = tracee.mask()?;
        let bit = 1u64 << (signal - 1);
        let t = self.threads.entry(tid).or_default();
        t.pid = pid;
        t.inject = Some(info);
        let mask = t.held_mask.take().unwrap_or(now);
        let within = within.unwrap_or(mask) & !bit;
        // The handler's frame shows the mask that will be in force behind it.
        t.frame_mask = (within != mask).then_some(mask);
        tracee.set_mask(within)?;
        signal_thread(pid, tid, signal)?;
        Ok(tracee.resume(0)?)
    }

    /// The thread is about to return from a handler: the kernel's signal frame lies at `frame`. Send it
    /// a signal that it will take as soon as it has.
    pub(crate) fn deliver_beyond(
        &mut self,
        tid: Pid,
        pid: Pid,
        frame: u64,
        info_at: u64,
    ) -> Result<()> {
        let tracee = Stopped(tid);
        let m = self.memory(pid)?;
        let info = m.words::<16>(info_at)?;
        let signal = signal_in(&info)?;
        let bit = 1u64 << (signal - 1);
        let at = frame.wrapping_add(UC_SIGMASK);
        let restored = m.word(at)?;
        let shut_out = restored & bit != 0;
        if shut_out {
            m.set_word(at, restored & !bit)?;
        }
        let t = self.threads.entry(tid).or_default();
        t.pid = pid;
        t.inject = Some(info);
        t.held_mask = None;
        t.frame_mask = shut_out.then_some(restored);
        tracee.set_mask(u64::MAX)?;
        signal_thread(pid, tid, signal)?;
        Ok(tracee.resume(0)?)
    }

    /// Of these signals each that is sent comes. Where another one stands in for one that the monitor has sent, which
    /// is still to come, what it says is shown then.
    fn keep_queued(&mut self, tid: Pid, signal: i32) {
        const FIRST_QUEUED: i32 = 32;
        if signal < FIRST_QUEUED {
            return;
        }
        let sender = |info: &[u64; 16]| (info[1] as i32, info[2] as u32);
        let ours = (libc::SI_TKILL, std::process::id());
        if let Ok(info) = Stopped(tid).siginfo()
            && info[0] as i32 == signal
            && sender(&info) != ours
        {
            let info = self.as_inherited(tid, info);
            if let Some(t) = self.threads.get_mut(&tid) {
                t.resent.push(info);
            }
        }
    }

    fn finish_injection(&mut self, tid: Pid, signal: i32, info: &[u64; 16]) -> Result<()> {
        let tracee = Stopped(tid);
        tracee.set_siginfo(info)?;
        let t = self.threads.entry(tid).or_default();
        t.inject = None;
        let overtaken = std::mem::take(&mut t.overtaken);
        t.resent.extend(&overtaken);
        for info in overtaken {
            signal_thread(t.pid, tid, info[0] as i32)?;
        }
        if t.frame_mask.is_some() || !t.on_top.is_empty() {
            t.enters_handler = true;
            return Ok(tracee.step(signal)?);
        }
        Ok(tracee.resume(signal)?)
    }

    fn on_fault(
        &mut self,
        tid: Pid,
        pid: Pid,
        group: GroupId,
        replica: usize,
        signal: i32,
        info: &[u64; 16],
    ) -> Result<()> {
        let tracee = Stopped(tid);
        let mut regs = tracee.regs()?;
        let block = self.image.block_of(&regs);
        let mut broken = false;
        if self.image.contains(regs.rip) {
            let m = self.memory(pid)?;
            // The agent's own code has no illegal instruction but where it says that something is broken, and
            // in a call of the program it has no faults that are the program's.
            broken = signal == libc::SIGILL;
            if let Some(b) = block {
                broken |= m.word(b + block_field!(frame))? != 0;
                let to = m.word(b + block_field!(fault_rip))?;
                if to != 0 {
                    regs.rip = to;
                    regs.rsp = m.word(b + block_field!(fault_rsp))?;
                    tracee.set_regs(&regs)?;
                    return Ok(tracee.resume(0)?);
                }
            }
        } else if signal == libc::SIGSEGV {
            let m = self.memory(pid)?;
            let mut code = [0u8; 3];
            if m.read(regs.rip, &mut code).is_ok() {
                let stub = match code {
                    [0x0f, 0x31, _] => Some(("geryon_rdtsc_trap", 2)),
                    [0x0f, 0x01, 0xf9] => Some(("geryon_rdtscp_trap", 3)),
                    _ => None,
                };
                if let Some((name, len)) = stub {
                    regs.rsp = regs.rsp.wrapping_sub(136);
                    m.set_word(regs.rsp, regs.rip + len)?;
                    regs.rip = self.image.symbol(name);
                    tracee.set_regs(&regs)?;
                    return Ok(tracee.resume(0)?);
                }
            }
        }
        if !broken && disposition(pid, signal) == Disposition::Caught {
            return Ok(tracee.resume(signal)?);
        }
        // Fatal: the others decide whether the program or this replica is at fault.
        let slot = block.map_or(0, |b| ((b - BLOCKS_BASE) / BLOCK_BYTES) as u32);
        let crash = Crash {
            replica,
            tid,
            slot,
            signal,
            pc: regs.rip,
            pc_name: self.layout(pid).name(regs.rip),
            address: info[2],
            pos: 0,
            in_agent: false,
            broken,
            others_done: 0,
            when: Instant::now(),
        };
        self.on_crash(group, crash)
    }

    pub(crate) fn on_group_stop(&mut self, tid: Pid, signal: i32) -> Result<()> {
        let tracee = Stopped(tid);
        if is_stop(signal) {
            if let Some(t) = self.threads.get_mut(&tid) {
                t.listens = true;
            }
            if let Some(pid) = self.threads.get(&tid).map(|t| t.pid) {
                self.job_changes(pid, Some(signal));
            }
            return Ok(tracee.listen()?);
        }
        // It may stop only now for a halt that was given up.
        if let Some(pid) = self.threads.get(&tid).map(|t| t.pid) {
            self.job_changes(pid, None);
            self.note_halt(pid, &[tid]);
        }
        Ok(tracee.resume(0)?)
    }
}
