//! Verdicts on a replica that is gone or must go: it died, it hangs, it ended unlike the others.

use crate::checkpoint::Testimony;
use crate::cores::CoreSet;
use crate::journal::Event;
use crate::report::json::{Side, Written};
use crate::report::variants::LOST;
use crate::report::words::signal_name;
use crate::state::{End, GroupId, Monitor};
use geryon_tracee::Pid;
use geryon_vote::{Charge, Settlement, loss};

/// A replica that is gone, or must go.
pub(super) struct Loss {
    /// In which group it was noticed.
    pub group: GroupId,
    /// Which one.
    pub replica: usize,
    /// In one sentence.
    pub cause: String,
    /// All of it, as lines for the user.
    pub text: String,
    /// Where it stood.
    pub backtrace: Vec<String>,
    /// It is gone: no vote is needed.
    pub certain: bool,
    /// On which cores it ran.
    pub cores: CoreSet,
    /// It was not killed from outside.
    pub own_fault: bool,
}

impl Monitor {
    /// A follower ended although its leader lives.
    pub(crate) fn lost(&mut self, id: GroupId, replica: usize, end: End) {
        if self.ends(id) {
            return;
        }
        let cause = match end {
            End::Exited(c) => format!(
                "replica {} exited with {c} and the leader did not",
                replica + 1
            ),
            End::Killed(s) => format!(
                "replica {} was killed by signal {s} ({})",
                replica + 1,
                signal_name(s)
            ),
        };
        self.settle_loss(Loss {
            group: id,
            replica,
            text: format!("geryon: divergence: {cause}\n"),
            cause,
            backtrace: Vec::new(),
            certain: matches!(end, End::Killed(_)),
            cores: self.replicas[replica].ran_on.clone(),
            own_fault: end != End::Killed(libc::SIGKILL),
        });
    }

    /// The watchdog's verdict on a replica.
    pub(crate) fn stuck(&mut self, id: GroupId, replica: usize, what: &str) {
        self.stuck_at(id, replica, what, &[]);
    }

    /// The same of one some of whose threads stand in these places, before records that are there, whatever the others do.
    pub(crate) fn stuck_at(
        &mut self,
        id: GroupId,
        replica: usize,
        what: &str,
        places: &[(u32, u64)],
    ) {
        if self.accuse(id, replica, what, places) {
            return;
        }
        if self.testimony(id, replica) == Testimony::Later {
            return;
        }
        let Some(text) = self.describe_stuck(id, replica, what) else {
            return;
        };
        self.settle_loss(Loss {
            group: id,
            replica,
            cause: format!("replica {} {what}", replica + 1),
            text,
            backtrace: Vec::new(),
            certain: false,
            cores: self.cores_of(replica),
            own_fault: true,
        });
    }

    /// The order that the leader has logged brings all others to a stand.
    pub(crate) fn charged_with_order(&mut self, id: GroupId, leader: usize, what: &str) {
        match self.charge_against_leader(id, true) {
            Charge::Proven => self.stuck(id, leader, what),
            Charge::Later => {}
            Charge::Doubtful => self.stop_in_doubt(leader, what),
        }
    }

    /// The replicas disagree about the end itself.
    pub(crate) fn diverged_after(&mut self, id: GroupId, replica: usize, what: &str) {
        self.broken(id, replica, what);
    }

    /// A replica did what none may do.
    pub(crate) fn broken(&mut self, id: GroupId, replica: usize, what: &str) {
        if self.ends(id) || self.is_dropped(replica) {
            return;
        }
        let cause = format!("replica {} {what}", replica + 1);
        self.settle_loss(Loss {
            group: id,
            replica,
            text: format!("geryon: divergence: {cause}\n"),
            cause,
            backtrace: Vec::new(),
            certain: false,
            cores: self.cores_of(replica),
            own_fault: true,
        });
    }

    /// A stop of a thread could not be served: what the thread asked for makes no sense.
    ///
    /// # Errors
    /// The same, when the thread belongs to no replica yet.
    pub(crate) fn cannot_serve(&mut self, tid: Pid, error: anyhow::Error) -> anyhow::Result<()> {
        let process = self
            .threads
            .get(&tid)
            .and_then(|t| self.processes.get(&t.pid));
        let Some((id, replica)) = process.and_then(|p| Some((p.group?, p.replica)).or(p.parent))
        else {
            return Err(error);
        };
        self.broken(id, replica, &format!("cannot be served: {error:#}"));
        Ok(())
    }

    /// Decide what the loss means for the run, tell it, and go on or stop.
    pub(super) fn settle_loss(&mut self, loss: Loss) {
        let replica = loss.replica;
        let leads = self.leads(loss.group, replica);
        if !self.groups.contains_key(&loss.group) || self.is_on_try(replica) {
            return;
        }
        let asked_out = self.replicas[replica].asked_out && !loss.own_fault;
        if !asked_out {
            eprint!("{}", loss.text);
            self.console.journal.tell(&Event::FaultSeen {
                replica: Some(replica),
                cores: loss.cores.clone(),
                why: loss.cause.clone(),
            });
        }
        self.replicas[replica].ran_on.clone_from(&loss.cores);
        if leads && self.ends_as_agreed(loss.group) {
            return;
        }
        if loss.own_fault {
            self.failed_on(replica, &loss.cores);
        }
        let is_arbitrated = self.testimony(loss.group, replica) == Testimony::Guilty;
        self.end_replay_of_several();
        let known = self.what_is_lost(&loss, asked_out, is_arbitrated);
        if !asked_out {
            self.report_loss(loss, known.is_named_by_others());
        }
        match known.settle() {
            Settlement::Unsettled => self.give_up(loss::UNSETTLED),
            Settlement::Irreplaceable => self.give_up(LOST),
            Settlement::Blamed(blame, consequence) => {
                self.remedy(blame, &consequence);
                if is_arbitrated {
                    self.is_arbitrated(replica);
                }
            }
        }
    }

    /// What is known of a loss when it is decided what follows.
    fn what_is_lost(&self, loss: &Loss, asked_out: bool, is_arbitrated: bool) -> loss::Loss {
        let id = loss.group;
        loss::Loss {
            replica: loss.replica,
            leads: self.leads(id, loss.replica),
            total: self.replicas.iter().filter(|r| !r.dropped).count(),
            is_certain: loss.certain,
            own_fault: loss.own_fault,
            asked_out,
            is_arbitrated,
            is_arbitrating: self.is_arbitrating(id),
            has_variants: self.has_variants(),
            succeeds: self.has_survivors(id) || self.confirmed_exit(id).is_some(),
            on_divergence: self.options.on_divergence,
        }
    }

    fn report_loss(&mut self, loss: Loss, is_outvoted: bool) {
        let (verdict, outvoted) = match is_outvoted {
            true => ("outvoted", vec![loss.replica]),
            false => ("no majority", Vec::new()),
        };
        self.write_report(&Written {
            verdict: verdict.into(),
            cause: loss.cause,
            outvoted,
            replicas: vec![Side {
                replica: loss.replica,
                backtrace: loss.backtrace,
                ..Side::default()
            }],
            message: loss.text,
            ..Written::default()
        });
    }
}
