//! What follows from a verdict: the run goes on without a replica, or it stops.

use crate::options::{OnDivergence, Outcome};
use crate::state::Monitor;
use geryon_tracee::{Pid, kill};

/// Who is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// This follower.
    Follower(usize),
    /// The leader of the group.
    Leader,
    /// Somebody, and no majority says who.
    Unnamed,
}

impl Monitor {
    /// Say what follows from a verdict, and do it.
    pub(super) fn remedy(&mut self, blame: Blame, consequence: &str) {
        if matches!(blame, Blame::Follower(_)) && self.options.on_divergence == OnDivergence::Stop {
            eprintln!("geryon: stopped, as --on-divergence stop says");
            return self.stop();
        }
        eprintln!("geryon: {consequence}");
        match blame {
            Blame::Follower(replica) => {
                self.drop_replica(replica);
                if self.options.on_divergence == OnDivergence::Replace {
                    self.want(replica);
                }
            }
            Blame::Leader | Blame::Unnamed => self.stop(),
        }
    }

    /// The run is over, before any unconfirmed output.
    pub(super) fn stop(&mut self) {
        self.outcome = Some(Outcome::Diverged);
    }

    /// Take a replica out of the run, with all its processes.
    fn drop_replica(&mut self, replica: usize) {
        self.replicas[replica].dropped = true;
        let pids: Vec<Pid> = self
            .processes
            .iter()
            .filter(|(_, p)| p.replica == replica && p.group.is_some())
            .map(|(p, _)| *p)
            .collect();
        for g in self.groups.values_mut() {
            g.forget(replica);
        }
        for p in pids {
            kill(p, libc::SIGKILL);
        }
    }
}
