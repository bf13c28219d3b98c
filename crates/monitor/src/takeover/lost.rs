//! The processes that have led a group and are lost, their vforks' children, and their threads, which stand where they
//! are about to end.

use crate::maps::AddressSpace;
use crate::private_field;
use geryon_tracee::{Pid, Regs};
use std::collections::HashMap;

/// The last one, and what is left of those before it.
#[derive(Debug)]
pub(super) struct Lost {
    /// The former leader's process.
    pub(super) process: Pid,
    /// Its vforks' children, which run in its memory: on which slots.
    guests: Vec<(u64, Pid)>,
    /// Its threads, at their ends, with their registers.
    pub(super) bodies: HashMap<Pid, Regs>,
    /// Processes of those before it, and their threads, at their ends.
    pub(super) formers: Vec<Pid>,
    older: Vec<Pid>,
}

impl Lost {
    /// It has just been found missing.
    pub(super) fn new(process: Pid, guests: Vec<(u64, Pid)>) -> Lost {
        Lost {
            process,
            guests,
            bodies: HashMap::new(),
            formers: Vec::new(),
            older: Vec::new(),
        }
    }

    /// Is the process the former leader's, or that of a vfork's child of it?
    pub(super) fn is_of(&self, pid: Pid) -> bool {
        self.process == pid || self.guests.iter().any(|(_, g)| *g == pid)
    }

    /// Is it a leader's, the last one's or an earlier one's? Its descriptors are kept until the takeover is over.
    pub(super) fn has_led(&self, pid: Pid) -> bool {
        self.process == pid || self.formers.contains(&pid)
    }

    /// Is the last one in another program's memory already, and the monitor has yet to hear of it? Only who
    /// leads executes one, behind everything that it had to take over.
    pub(super) fn has_executed(&self) -> bool {
        AddressSpace::open(self.process).is_ok_and(|space| {
            let lives = space.all().is_ok_and(|maps| !maps.is_empty());
            lives && space.is_free(private_field!(promotion), 4)
        })
    }

    /// Those before it, which it had begun to take over from.
    pub(super) fn come_after(&mut self, before: Lost) {
        self.older.extend(before.older);
        self.formers.extend(before.formers);
        self.formers.push(before.process);
        self.older.extend(before.bodies.into_keys());
    }

    /// Threads that stand where they are about to end.
    pub(super) fn threads(&self) -> impl Iterator<Item = Pid> {
        self.bodies.keys().chain(&self.older).copied()
    }

    /// Whose threads these are.
    pub(super) fn processes(&self) -> impl Iterator<Item = Pid> {
        let guests = self.guests.iter().map(|(_, pid)| *pid);
        guests
            .chain(self.formers.iter().copied())
            .chain([self.process])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn who_is_in_another_programs_memory_has_executed_it() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let lost = Lost::new(child.id() as Pid, Vec::new());
        let since = Instant::now();
        while !lost.has_executed() && since.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        assert!(lost.has_executed());
        child.kill().expect("it is killed");
        // Its memory is gone, and so are its descriptors.
        while geryon_tracee::state(lost.process) != Some('Z') {
            std::thread::yield_now();
        }
        assert!(!lost.has_executed());
        child.wait().expect("it has ended");
    }
}
