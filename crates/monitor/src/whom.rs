//! To whom the program sends a signal.

use geryon_tracee::Pid;

/// To whom a call sends a signal.
pub(crate) struct Whom {
    /// As kill's first argument.
    target: Pid,
    /// The process of that thread.
    owner: Option<Pid>,
    /// The sender's process group.
    own: Pid,
}

/// A process's process group.
pub(crate) fn group_of(pid: Pid) -> Pid {
    // SAFETY: plain call.
    unsafe { libc::getpgid(pid) }
}

impl Whom {
    /// Of a call of this number that the process `pid` makes (`owner`: of a thread; `group`: what the kernel
    /// calls a group); None: nobody.
    pub(crate) fn of(
        pid: Pid,
        nr: u64,
        target: u64,
        owner: impl Fn(Pid) -> Option<Pid>,
        group: impl Fn(Pid) -> Pid,
    ) -> Option<Whom> {
        let target = target as u32 as Pid;
        let target = match nr == libc::SYS_pidfd_send_signal as u64 {
            true => pid_of_descriptor(pid, target)?,
            false if target < -1 => group(target.wrapping_neg()).wrapping_neg(),
            false => target,
        };
        Some(Whom {
            target,
            owner: owner(target),
            own: group_of(pid),
        })
    }

    /// A process that is called `shown`, is led by `leader`, and is in this process group?
    pub(crate) fn includes(&self, shown: Pid, leader: Option<Pid>, group: Option<Pid>) -> bool {
        let owns = |leader| self.owner == Some(leader) || self.is_process(leader);
        match self.target > 0 {
            // (Whose leader may still have to say who it is.)
            true => shown == self.target || leader.is_some_and(owns),
            false => group.is_some_and(|g| self.is_in_group(g)),
        }
    }

    /// Does it mean a process group?
    pub(crate) fn is_group(&self) -> bool {
        self.target <= 0
    }

    /// The process?
    pub(crate) fn is_process(&self, pid: Pid) -> bool {
        match self.target {
            t if t > 0 => pid == t,
            _ => self.is_in_group(group_of(pid)),
        }
    }

    /// The processes of this group? (The target is no process.)
    fn is_in_group(&self, group: Pid) -> bool {
        match self.target {
            0 => group == self.own,
            -1 => true,
            t => group == t.wrapping_neg(),
        }
    }
}

/// The process that a pidfd of a process stands for.
pub(crate) fn pid_of_descriptor(pid: Pid, fd: Pid) -> Option<Pid> {
    let info = geryon_tracee::text(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    info.lines()
        .find_map(|l| l.strip_prefix("Pid:"))?
        .trim()
        .parse()
        .ok()
}
