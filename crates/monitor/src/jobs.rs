//! Process groups, once another replica leads: which ones of the kernel's those are that the program knows.
//!
//! In the session of the first leader there is one of each, and a successor enters that of its predecessor; in another
//! session each replica has its own (see the agent's `jobs.rs`), and copies are in that of their source.

use crate::whom::group_of;
use geryon_tracee::Pid;
use std::collections::HashMap;

/// What the kernel says of groups, and the program does not mean.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// The numbers of groups to the kernel, with those to the program: where the two differ, or it is not the process of
    /// that number that says so.
    names: HashMap<Pid, Pid>,
    /// Processes that have ended, and are in a group until their parents have waited for them; of those that led, what the
    /// program calls them and their parents.
    unreaped: HashMap<Pid, Option<Led>>,
    /// When there are so many of them it is looked who is gone.
    enough: usize,
}

/// That is not done for fewer.
const FEW: usize = 64;

/// Is anybody in the group?
pub(crate) fn is_there(group: Pid) -> bool {
    // SAFETY: plain call; signal 0 is none.
    let sent = unsafe { libc::kill(group.wrapping_neg(), 0) };
    sent == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Has the process ended, and is it there still?
fn is_zombie(pid: Pid) -> bool {
    geryon_tracee::state(pid) == Some('Z')
}

/// A process's session; negative: it is gone.
pub(crate) fn session_of(pid: Pid) -> Pid {
    // SAFETY: plain call.
    unsafe { libc::getsid(pid) }
}

/// A process of the program's, and its parent, as it calls them.
pub(crate) type Led = (Pid, Pid);

impl Jobs {
    /// Who was in the group that the program calls `shown` is in `to` from now on.
    pub(crate) fn goes_on(&mut self, to: Pid, shown: Pid) {
        self.names.retain(|group, _| is_there(*group));
        self.names.insert(to, shown);
    }

    /// What the program calls it, if it was noted.
    pub(crate) fn shown(&self, group: Pid) -> Option<Pid> {
        self.names.get(&group).copied()
    }

    /// Which one it is, if it was noted and anybody is in it.
    pub(crate) fn actual(&self, shown: Pid) -> Option<Pid> {
        let named = self.names.iter().filter(|(_, s)| **s == shown);
        named.map(|(group, _)| *group).find(|g| is_there(*g))
    }

    /// A process has ended, which was this one of the program's if it led.
    pub(crate) fn awaits_its_parent(&mut self, pid: Pid, led: Option<Led>) {
        if self.unreaped.len() >= self.enough.max(FEW) {
            self.unreaped.retain(|p, _| is_zombie(*p));
            self.enough = self.unreaped.len() * 2;
        }
        if group_of(pid) != group_of(std::process::id() as Pid) && is_zombie(pid) {
            self.unreaped.insert(pid, led);
        }
    }

    /// Those that have ended, and are there still.
    pub(crate) fn unreaped(&self) -> impl Iterator<Item = (&Pid, &Option<Led>)> {
        self.unreaped.iter().filter(|(p, _)| is_zombie(**p))
    }
}

/// No process has this number.
pub(crate) const NONE: Pid = Pid::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_known_by_what_the_program_calls_it_as_long_as_it_is_there() {
        let own = group_of(std::process::id() as Pid);
        let mut jobs = Jobs::default();
        jobs.goes_on(own, 77);
        assert_eq!((jobs.shown(own), jobs.actual(77)), (Some(77), Some(own)));
        assert_eq!((jobs.shown(77), jobs.actual(own)), (None, None));
        // No process has this number.
        jobs.names.insert(NONE, 78);
        assert_eq!(jobs.actual(78), None);
    }
}
