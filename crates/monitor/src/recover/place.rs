//! On which cores replicas run: where each ran when it failed, and where its next copy may run.
//!
//! What the program is told of its affinity comes from the leader, which is never confined.

use crate::cores::{CoreSet, Lesson};
use crate::journal::Event;
use crate::state::Monitor;
use geryon_tracee::{Pid, affinity, core_of, set_affinity};

impl Monitor {
    /// The cores that the living threads of a replica run on.
    pub(crate) fn cores_of(&self, replica: usize) -> CoreSet {
        let of = |t: &Pid| self.processes.get(t).is_some_and(|p| p.replica == replica);
        let threads = self.threads.iter().filter(|(_, t)| of(&t.pid));
        threads.filter_map(|(tid, _)| core_of(*tid)).collect()
    }

    /// A process is being killed: its threads are still there. Where did they run?
    pub(crate) fn note_dying(&mut self, pid: Pid) {
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        // The first thread's end says it for all.
        if std::mem::replace(&mut p.leaving.dying, true) {
            return;
        }
        let replica = p.replica;
        if !self.is_dropped(replica) {
            self.replicas[replica].ran_on = self.cores_of(replica);
        }
    }

    /// The replica failed by itself while it ran on these cores.
    pub(crate) fn failed_on(&mut self, replica: usize, cores: &CoreSet) {
        self.replicas[replica].ran_on.clone_from(cores);
        let Ok(allowed) = affinity(0) else {
            return;
        };
        match self.recovery.cores.failed(replica, cores.clone(), &allowed) {
            Lesson::None => {}
            Lesson::Avoid(from) => self.replicas[replica].flees = from,
            Lesson::NoOther(cores) => {
                let on = list(&cores);
                self.console
                    .journal
                    .tell(&Event::NoOtherCore { replica, cores });
                self.say(&format!(
                    "replica {} fails again and again on {on}, and there is no other core to move it to; try: a wider taskset or cpuset",
                    replica + 1
                ));
            }
        }
    }

    /// Before the copy of a source has other threads: where may it run?
    pub(crate) fn confine(&mut self, replica: usize, source: usize, copy: Pid) {
        let avoided = self.recovery.cores.avoided(replica);
        let Ok(allowed) = affinity(0) else {
            return;
        };
        let to = &allowed - avoided;
        // Cores may have been taken away from all meanwhile.
        let confined = to.len() < allowed.len() && !to.is_empty();
        if !confined && !self.replicas[source].confined {
            self.replicas[replica].confined = false;
            return;
        }
        let cores = if confined { &to } else { &allowed };
        if let Err(e) = set_affinity(copy, cores) {
            let what = format!(
                "cannot say on which cores replica {} runs: {e}",
                replica + 1
            );
            return self.say(&what);
        }
        self.replicas[replica].confined = confined;
        let from = std::mem::take(&mut self.replicas[replica].flees);
        if !from.is_empty() && confined {
            eprintln!(
                "geryon: replica {} has failed again and again on {}; its copy runs on {}",
                replica + 1,
                list(&from),
                list(&to)
            );
            self.console
                .journal
                .tell(&Event::Moved { replica, from, to });
        }
    }

    /// The replica is to lead, and what it may do is seen by the program: no core is kept from it.
    pub(crate) fn unconfine(&mut self, replica: usize) {
        if self.recovery.cores.avoided(replica).is_empty() && !self.replicas[replica].confined {
            return;
        }
        self.replicas[replica].confined = false;
        let Ok(allowed) = affinity(0) else {
            return;
        };
        for (tid, t) in &self.threads {
            let p = self.processes.get(&t.pid);
            if p.is_some_and(|p| p.replica == replica) {
                // One that is gone needs none.
                let _ = set_affinity(*tid, &allowed);
            }
        }
    }
}

/// For a message.
pub(crate) fn list(cores: &CoreSet) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    match numbers.len() {
        0 => "no core".into(),
        1 => format!("core {}", numbers[0]),
        _ => format!("cores {}", numbers.join(", ")),
    }
}
