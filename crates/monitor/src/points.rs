//! Places in the agent at which a test has something go wrong (`--fail-at`): a breakpoint over each
//! `nop`, as long as the time of its place has not come.

use crate::state::{Monitor, Process};
use anyhow::Result;
use geryon_abi::outcome::UNMADE;
use geryon_abi::point::{Deed, FaultPoint};
use geryon_tracee::{Pid, Regs, RemoteMemory, Stopped, kill, points, signal_thread};

const NOP: u8 = 0x90;
const BREAKPOINT: u8 = 0xcc;
/// si_code of a breakpoint instruction's signal.
const SI_KERNEL: i32 = 0x80;

impl Monitor {
    /// Arm the places in a replica's agent, whose memory may be a copy of another one's.
    pub(crate) fn arm_points(&self, replica: usize, memory: &RemoteMemory) -> Result<()> {
        if self.options.fail_at.is_empty() {
            return Ok(());
        }
        for (at, point) in &self.kit.image.points {
            let byte = match points::is_armed(*point, replica) {
                true => BREAKPOINT,
                false => NOP,
            };
            memory.write(*at, &[byte])?;
        }
        Ok(())
    }

    /// A thread has run into a breakpoint instruction. True: it was one of ours, and the thread was
    /// seen to.
    pub(crate) fn on_point(&mut self, tid: Pid, pid: Pid) -> Result<bool> {
        if self.options.fail_at.is_empty() {
            return Ok(false);
        }
        let tracee = Stopped(tid);
        if tracee.siginfo()?[1] as i32 != SI_KERNEL {
            return Ok(false);
        }
        let at = tracee.regs()?.rip.wrapping_sub(1);
        let place = self.kit.image.points.iter().find(|(a, _)| *a == at);
        let Some(point) = place.map(|(_, p)| *p) else {
            return Ok(false);
        };
        let replica = self.processes.get(&pid).map_or(0, |p: &Process| p.replica);
        if !self.is_meant(point, pid, &tracee.regs()?) {
            tracee.resume(0)?;
            return Ok(true);
        }
        let due = points::fails_in(point, replica);
        if !points::is_armed(point, replica) {
            // It costs a stop each time. (The memory is not kept: it may be that of a program which
            // is about to be replaced. And the process may have no first thread any more.)
            RemoteMemory::open(tid)?.write(at, &[NOP])?;
        }
        if due {
            self.fail(tid, pid, point)?;
        } else {
            tracee.resume(0)?;
        }
        Ok(true)
    }

    /// The time has come for what goes wrong at the place where the thread stands.
    fn fail(&mut self, tid: Pid, pid: Pid, point: FaultPoint) -> Result<()> {
        let tracee = Stopped(tid);
        match point.deed() {
            Deed::Dies => {
                kill(pid, libc::SIGKILL);
                return Ok(());
            }
            Deed::Gives(result) => {
                let mut regs = tracee.regs()?;
                regs.rax = result as u64;
                tracee.set_regs(&regs)?;
            }
            Deed::Skips(result) => {
                let mut regs = tracee.regs()?;
                let end = match point {
                    FaultPoint::ForkFails => "geryon_flight_end",
                    _ => "geryon_blocking_end",
                };
                regs.rip = self.kit.image.symbol(end);
                regs.rcx = regs.rip;
                regs.rax = result as u64;
                tracee.set_regs(&regs)?;
            }
            Deed::Halves => {
                let mut regs = tracee.regs()?;
                regs.rdx /= 2;
                tracee.set_regs(&regs)?;
                self.note_halt(pid, &[tid]);
            }
            Deed::Delays => {
                let mut regs = tracee.regs()?;
                regs.rax = points::delay_ns();
                tracee.set_regs(&regs)?;
            }
            Deed::Signals => signal_thread(pid, tid, libc::SIGWINCH)?,
            Deed::Monitor => {}
        }
        Ok(tracee.resume(0)?)
    }

    /// Is it the passing of one for whom the place is meant?
    fn is_meant(&self, point: FaultPoint, pid: Pid, regs: &Regs) -> bool {
        // The gate sets this bit as well.
        let nr = (regs.rax & !(1 << UNMADE)) as i64;
        let member = self.membership(pid);
        let leads = member.is_some_and(|(id, r)| self.leads(id, r));
        match point {
            FaultPoint::WriteHalved => leads && nr == libc::SYS_write && regs.rdx > 1,
            FaultPoint::CallInterrupted => nr != libc::SYS_write,
            FaultPoint::ForkFails => member.is_some() && !leads && nr == libc::SYS_clone,
            FaultPoint::SignalBeforeCall => leads,
            _ => true,
        }
    }

    /// A process may be killed by a test here.
    pub(crate) fn dies_at(&self, point: FaultPoint, pid: Pid) {
        if points::fails(point) {
            kill(pid, libc::SIGKILL);
        }
    }

    /// A leader is lost: a test may have the successor follow, or another follower.
    pub(crate) fn lose_another(&self, successor: usize) {
        for g in self.groups.values().filter(|g| g.leader == successor) {
            if let Some(p) = g.members[successor].pid {
                self.dies_at(FaultPoint::SuccessorChosen, p);
            }
            if let Some((_, p)) = g.followers().next() {
                self.dies_at(FaultPoint::SecondLost, p);
            }
        }
    }

    /// What has failed since it was asked last goes into the journal.
    pub(crate) fn tell_points(&mut self) {
        while let Some(f) = points::take_failed() {
            self.console
                .journal
                .tell(&crate::journal::Event::PointFailed {
                    point: f.point.name(),
                    replica: f.replica,
                });
        }
    }
}
