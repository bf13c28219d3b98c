//! Record locks of a lost leader. They are those of a table of descriptors: where the successor has another one, the
//! kernel lets go of them with the last of the former leader's threads.

use super::Takeover;
use crate::state::Monitor;
use geryon_tracee::Pid;

/// Of kcmp(2): is it one table of descriptors?
const KCMP_FILES: i32 = 2;

impl Monitor {
    /// `pid` has taken over: the user is to know of locks that the program believes it has.
    pub(super) fn tell_of_locks(&mut self, t: &Takeover, pid: Pid) {
        let former = t.predecessor(None);
        if have_own_tables(former, pid) && has_locks(&all_locks(), former) {
            self.say(
                "record locks (fcntl with F_SETLK, lockf) of a forked process are lost with its leader\n  try: flock, or \
                 F_OFD_SETLK, which stay",
            );
        }
    }
}

/// Nobody knows: no.
fn have_own_tables(one: Pid, other: Pid) -> bool {
    // SAFETY: plain numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0, 0) > 0 }
}

fn all_locks() -> String {
    geryon_tracee::text("/proc/locks").unwrap_or_default()
}

/// Has the process some, as /proc/locks has it? (Lines with an arrow are of those that wait.)
fn has_locks(all: &str, pid: Pid) -> bool {
    all.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_record = fields.next() == Some("POSIX");
        is_record && fields.nth(2).and_then(|f| f.parse().ok()) == Some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_locks_that_are_held_count() {
        let all = "1: POSIX  ADVISORY  WRITE 77 fe:00:12 0 9\n\
                   1: -> POSIX  ADVISORY  WRITE 78 fe:00:12 0 9\n\
                   2: FLOCK  ADVISORY  WRITE 79 fe:00:12 0 EOF\n";
        let have = [77, 78, 79, 7].map(|pid| has_locks(all, pid));
        assert_eq!(have, [true, false, false, false]);
        let own = std::process::id() as Pid;
        assert!(!have_own_tables(own, own));
    }
}
