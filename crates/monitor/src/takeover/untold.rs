//! Signals that the kernel has given to a leader's thread which was killed before they were in its block: no
//! queue holds them any more, and its successor has them from here. What is in the block already it has from
//! there: whether the count of those was written is what tells the two apart, and it is written once.

use crate::signals::{bit, is_raised};
use crate::state::{GroupId, Monitor};
use geryon_tracee::{Pid, Siginfo};

/// All that is known of a signal whose thread was gone when it was asked.
pub(crate) fn bare(signal: i32) -> Siginfo {
    let mut info = [0; 16];
    info[0] = signal as u64;
    if signal == libc::SIGCHLD {
        // Which child it is is found out when it is taken.
        info[1] = libc::CLD_EXITED as u64;
    }
    info
}

impl Monitor {
    /// A leader's thread was killed between its stop for this signal and its being noted.
    pub(crate) fn untold(&mut self, tid: Pid, info: &Siginfo) {
        let signal = info[0] as i32;
        let Some(t) = self.threads.get_mut(&tid) else {
            return;
        };
        // (What an instruction has raised its successor finds itself.)
        if is_raised(signal) {
            return;
        }
        t.untold.push(*info);
        let child = info[2] as u32 as Pid;
        if signal == libc::SIGCHLD && info[1] as i32 > 0 {
            self.child_untold(child);
        }
    }

    /// Is there a child of whose end the lost leader's handler of SIGCHLD was not told, and is to be?
    pub(super) fn owes_child_signal(&self, id: GroupId, pid: Pid) -> bool {
        let shown = self.groups.get(&id).map(|g| g.name.shown);
        crate::signals::caught(pid) & bit(libc::SIGCHLD) != 0
            && shown.is_some_and(|shown| self.has_untold_child(shown))
    }
}
