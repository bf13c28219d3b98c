//! What follows from a verdict: the run goes on without a replica, or it stops.

use crate::journal::Event;
use crate::options::Outcome;
use crate::state::Monitor;
use geryon_tracee::{Pid, kill};
use geryon_vote::{Blame, Remedy, sentence};

impl Monitor {
    /// Say what follows from a verdict, and do it.
    pub(super) fn remedy(&mut self, blame: Blame, consequence: &str) {
        let asked_out = blame.outvoted().is_some_and(|r| self.replicas[r].asked_out);
        let policy = self.options.on_divergence;
        let remedy = geryon_vote::remedy(blame, asked_out, self.has_variants(), policy);
        let say = || eprintln!("geryon: {consequence}");
        match remedy {
            Remedy::Alarm => self.give_up(self.alarm()),
            Remedy::StopAsAsked => self.give_up("stopped, as --on-divergence stop says"),
            Remedy::Stop => self.give_up(consequence),
            Remedy::TakeOut(replica) => {
                say();
                self.note_failure(replica);
                self.drop_replica(replica);
                self.lose(replica);
            }
            Remedy::Depose(replica) => {
                say();
                self.depose(replica);
            }
        }
    }

    /// No majority says who is wrong, and the user wants to go on with the leader: those who differ
    /// from it are taken out.
    pub(super) fn believe(&mut self, leader: usize, against: Vec<usize>) {
        let names: Vec<String> = against.iter().map(|r| (r + 1).to_string()).collect();
        let (replica, are) = match against.len() {
            1 => ("replica", "is"),
            _ => ("replicas", "are"),
        };
        eprintln!(
            "geryon: WARNING: the leader (replica {}) is believed, right or wrong, as --on-divergence leader says; {replica} {} {are} taken out",
            leader + 1,
            names.join(", ")
        );
        self.console.journal.tell(&Event::LeaderBelieved {
            replica: leader,
            against: against.clone(),
        });
        for replica in against {
            self.replicas[replica].ran_on = self.cores_of(replica);
            self.drop_replica(replica);
            self.lose(replica);
        }
    }

    /// The run cannot go on: say why, and stop it.
    pub(crate) fn give_up(&mut self, why: &str) {
        eprintln!("geryon: {why}");
        self.stop(why);
    }

    /// All others stand against the leader, in what may be a race.
    pub(crate) fn stop_in_doubt(&mut self, leader: usize, what: &str) {
        eprintln!(
            "geryon: divergence: replica {} (the leader) {what}",
            leader + 1
        );
        self.give_up(&sentence::in_doubt(self.checkpoints.is_some()));
    }

    /// The run is over, before any unconfirmed output.
    pub(super) fn stop(&mut self, why: &str) {
        self.console
            .journal
            .tell(&Event::Stopped { why: why.into() });
        self.outcome = Some(Outcome::Diverged);
    }

    /// Take a replica out of the run, with all its processes.
    pub(crate) fn drop_replica(&mut self, replica: usize) {
        self.watch.begin_anew();
        if !std::mem::replace(&mut self.replicas[replica].dropped, true) {
            self.console.journal.tell(&Event::Dropped { replica });
        }
        let pids: Vec<Pid> = self
            .processes
            .iter()
            .filter(|(_, p)| p.replica == replica && (p.group.is_some() || p.parent.is_some()))
            .map(|(p, _)| *p)
            .collect();
        for g in self.groups.values_mut() {
            g.forget(replica);
        }
        for p in pids {
            self.disown(p);
            kill(p, libc::SIGKILL);
        }
    }
}
