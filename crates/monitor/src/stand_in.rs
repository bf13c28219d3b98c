//! A process of the program has the id that its first leader had, for whoever looks. When another replica leads,
//! the kernel knows nobody by that id any more, and a signal that is sent by it from outside (`kill $(cat
//! nginx.pid)`) would reach nobody. So where the monitor may choose the ids of its children, a child of its own gets
//! that id and sends on what it is sent. (Who needs one: `run/known.rs`.)

use geryon_tracee::{Pid, StandIn};
use std::collections::HashMap;

/// Those who stand in, by the id that they have.
#[derive(Debug, Default)]
pub struct StandIns {
    all: HashMap<Pid, StandIn>,
    /// The monitor may not choose ids.
    forbidden: bool,
}

impl StandIns {
    /// These ids, and no others, have somebody who sends on to the process beside each (0: who is to get it is
    /// not known yet).
    pub fn keep(&mut self, wanted: &[(Pid, Pid)]) {
        self.all
            .retain(|id, _| wanted.iter().any(|(shown, _)| shown == id));
        for (shown, leader) in wanted {
            match self.all.get(shown) {
                Some(s) => s.send_to(*leader),
                None if *leader > 0 => self.make(*shown, *leader),
                None => {}
            }
        }
    }

    fn make(&mut self, shown: Pid, leader: Pid) {
        if self.forbidden {
            return;
        }
        let comm = geryon_tracee::text(format!("/proc/{leader}/comm")).unwrap_or_default();
        match StandIn::new(shown, leader, comm.trim_end()) {
            Ok(new) => {
                self.all.insert(shown, new);
            }
            // The remains of the first leader are not gone yet.
            Err(e) if e.raw_os_error() == Some(libc::EEXIST) => {}
            Err(_) => self.forbidden = true,
        }
    }

    /// A process is gone: nobody is sent anything by its id.
    pub fn lost(&self, pid: Pid) {
        self.all.values().for_each(|s| s.has_lost(pid));
    }

    /// Has this process, which has ended, stood in?
    pub fn has_ended(&mut self, pid: Pid) -> bool {
        self.all.remove(&pid).is_some()
    }

    /// None is needed any more: the run is over.
    pub fn end(&mut self) {
        self.all.clear();
    }
}
