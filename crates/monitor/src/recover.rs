//! Recovery: a replica that was taken out is replaced by a copy of a healthy one, while the program
//! goes on. (Design, section 10; the order of steps and the state to carry are those of "Copying a
//! live process"; replacement by fork: seed 3, section 3.6, without its copy of all memory.)

mod apart;
mod copy;
mod credentials;
mod dead;
mod demote;
mod eager;
mod files;
mod halt;
mod parting;
mod place;
mod proven;
mod replica;
mod thread;
mod together;
mod waits;

pub use dead::Dead;
pub(crate) use eager::Unsharing;
pub use eager::can_populate;
pub(crate) use replica::{Made, Seat};

use crate::cores::Cores;
use crate::journal::Event;
use crate::options::Replacements;
use crate::state::{Group, GroupId, Monitor, Otherwise};
use anyhow::Result;
use geryon_tracee::Pid;
use geryon_vote::{Budget, Due, Failed, Sequel, TakenOut, Then, due, sentence};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A replica that is to be made anew.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its index.
    pub replica: usize,
    /// Since when it is missing.
    pub since: Instant,
    /// When it was tried last.
    pub tried: Option<Instant>,
    /// Why that failed.
    pub why: String,
    /// It was not lost: all others go on from the leader's state.
    pub is_foreseen: bool,
}

/// What makes replicas anew.
#[derive(Debug)]
pub struct Recovery {
    /// Replicas that are to be made anew.
    pub(crate) wanted: Vec<Wanted>,
    /// Threads of such replicas that are about to end, and are let to when there is time.
    pub(crate) dead: Vec<Dead>,
    /// How many were made anew of late.
    budget: Budget,
    /// Where replicas have failed.
    cores: Cores,
    /// Copies whose memory is being made their own, by the thread that does it.
    pub(crate) unsharing: HashMap<Pid, Unsharing>,
    /// How long the source of the last copy stood still.
    pub(crate) pause: Duration,
}

impl Recovery {
    /// Nobody is missing yet.
    pub(crate) fn new(bound: Replacements, seats: usize) -> Recovery {
        Recovery {
            wanted: Vec::new(),
            dead: Vec::new(),
            budget: Budget::new(bound),
            cores: Cores::new(seats),
            unsharing: HashMap::new(),
            pause: Duration::ZERO,
        }
    }

    /// Have the replica made anew as soon as its processes are gone.
    pub(crate) fn want(&mut self, replica: usize) {
        self.want_copy(replica, false);
    }

    /// The same. `is_foreseen`: it was not lost, and nobody needs to be told.
    pub(crate) fn want_copy(&mut self, replica: usize, is_foreseen: bool) {
        self.wanted.push(Wanted {
            replica,
            is_foreseen,
            since: Instant::now(),
            tried: None,
            why: String::new(),
        });
    }

    /// Is it about to be made anew?
    pub(crate) fn wants(&self, replica: usize) -> bool {
        self.wanted.iter().any(|w| w.replica == replica)
    }
}

/// What came of one attempt for one group.
pub(crate) enum Attempt {
    /// The group has the replica again; a copy of this one.
    Done(usize),
    /// Not now, for this reason.
    Later(String),
    /// Never, for this reason.
    Never(String),
}

impl Monitor {
    /// Will there be fewer replicas than were asked for when so many more are made? (When checkpoints were woken there are more.)
    fn lacks_replicas(&self, wanted: usize) -> bool {
        self.alive_mask().count_ones() as usize + wanted < self.options.replicas as usize
    }

    /// The replica was taken out. Have it made anew, if that is wanted.
    pub(crate) fn lose(&mut self, replica: usize) {
        if self.recovery.wants(replica) {
            // A process of one that was half made: it is on its way still, and counts once.
            return;
        }
        let taken_out = TakenOut {
            is_given_up: self.replicas[replica].given_up,
            is_alone_of_its_kind: self.kit.programs.is_some(),
            are_lacking: self.lacks_replicas(self.recovery.wanted.len()),
            on_divergence: self.options.on_divergence,
        };
        match taken_out.sequel() {
            Sequel::Nothing => {}
            Sequel::Without(why) => self.tell_given_up(replica, why.into()),
            Sequel::Copy => self.recovery.want(replica),
        }
    }

    /// It will not be made anew.
    pub(crate) fn tell_given_up(&mut self, replica: usize, why: String) {
        self.replicas[replica].given_up = true;
        let cores = self.replicas[replica].ran_on.clone();
        self.console.journal.tell(&Event::GivenUp {
            replica,
            cores,
            why,
        });
    }

    /// So many were made anew within so short a time that this one is not.
    fn exceeds(&mut self, replica: usize, made: usize) {
        let bound = self.options.max_replacements;
        let left = self.replicas.iter().filter(|r| !r.dropped).count();
        let going = sentence::without_it(left);
        let why = format!(
            "{made} replacements within {} s are enough (--max-replacements {bound})",
            bound.within_s
        );
        eprintln!(
            "geryon: replica {}, which ran on {}, is given up: {why}; {going}",
            replica + 1,
            place::list(&self.replicas[replica].ran_on)
        );
        self.tell_given_up(replica, why);
        self.drop_replica(replica);
    }

    /// Is somebody missing?
    pub(crate) fn recovers(&self) -> bool {
        !self.recovery.wanted.is_empty()
    }

    /// Try to replace those that are missing.
    ///
    /// # Errors
    /// Geryon's own failures.
    pub(crate) fn recover(&mut self) -> Result<()> {
        let mut left = std::mem::take(&mut self.recovery.wanted).into_iter();
        while let Some(mut w) = left.next() {
            if self.outcome.is_some() {
                return Ok(());
            }
            match due(w.tried, &self.recovery.budget, Instant::now()) {
                Due::NotYet => {
                    self.recovery.wanted.push(w);
                    continue;
                }
                Due::TooMany(made) => {
                    self.exceeds(w.replica, made);
                    continue;
                }
                Due::Now => {}
            }
            w.tried = Some(Instant::now());
            // What goes wrong with a process of a replica is no failure of the run.
            self.running.follows_again = w.is_foreseen;
            let attempt = self.try_replace(w.replica);
            self.running.follows_again = false;
            let (why, is_final) = match attempt {
                Ok(Attempt::Done(source)) => {
                    self.replaced(&w, source);
                    continue;
                }
                Ok(Attempt::Later(why)) => (why, false),
                Ok(Attempt::Never(why)) => (why, true),
                Err(e) => (format!("{e:#}"), false),
            };
            let failed = Failed {
                is_final,
                since: w.since.elapsed(),
                is_unproven: why == proven::NOT_PAST,
                is_last: self.alive_mask().count_ones() == 1,
                stays: self.running.stays,
                may_descend: self.may_descend(),
            };
            match failed.then() {
                Then::Again => {
                    w.why = why;
                    self.recovery.wanted.push(w);
                }
                Then::Descend => {
                    w.why = why;
                    self.recovery.wanted.push(w);
                    self.recovery.wanted.extend(left);
                    self.descend(
                        "with clocks the leader cannot be copied where its threads wait",
                        Otherwise::Stays,
                    );
                    return Ok(());
                }
                Then::GiveUp => {
                    eprintln!("geryon: replica {} is not replaced: {why}", w.replica + 1);
                    self.tell_given_up(w.replica, why);
                    // Some of its processes may have been made.
                    self.drop_replica(w.replica);
                }
            }
        }
        Ok(())
    }

    fn replaced(&mut self, w: &Wanted, source: usize) {
        self.replicas[w.replica].dropped = false;
        self.replicas[w.replica].asked_out = false;
        self.replicas[w.replica].failed_at.clear();
        if w.is_foreseen {
            self.console.journal.tell(&Event::Followed {
                replica: w.replica,
                source,
                total_us: w.since.elapsed().as_micros() as u64,
            });
            return;
        }
        self.replicas[w.replica].replaced += 1;
        self.recovery.budget.spend(Instant::now());
        let root = self
            .membership(self.family.root)
            .map(|(id, _)| &self.groups[&id]);
        let event = Event::Replaced {
            replica: w.replica,
            source,
            source_leads: root.is_some_and(|g| g.leader == source),
            pause_us: self.recovery.pause.as_micros() as u64,
            total_us: w.since.elapsed().as_micros() as u64,
            pid: root.and_then(|g| g.members[w.replica].pid),
        };
        self.console.journal.tell(&event);
        let whole = self.replicas.iter().filter(|r| !r.dropped).count();
        eprintln!(
            "geryon: replica {} is replaced by a copy of replica {} after {:.1} ms; {whole} replicas again",
            w.replica + 1,
            source + 1,
            w.since.elapsed().as_secs_f64() * 1e3
        );
    }

    /// The living groups that lack a replica, parents before their children.
    fn lacking(&self, replica: usize) -> Vec<GroupId> {
        let lacks =
            |g: &Group| g.members[replica].pid.is_none() && g.leader_pid().is_some() && !g.ending;
        let groups = self.groups.iter().filter(|(_, g)| lacks(g));
        let mut found: Vec<GroupId> = groups.map(|(id, _)| *id).collect();
        found.sort_unstable();
        found
    }

    /// Does a process of a replica that was taken out still do anything? The kernel may be long in
    /// freeing the memory of one that does not.
    fn has_remains(&self, replica: usize) -> bool {
        let left: Vec<Pid> = self
            .processes
            .iter()
            .filter(|(pid, p)| {
                let g = p.group.and_then(|g| self.groups.get(&g));
                let member = g.and_then(|g| g.members[replica].pid);
                // A vfork's child of one that was made anew is none of them.
                let lives = member == Some(**pid) || (member.is_some() && p.guest.is_some());
                p.replica == replica && !lives
            })
            .map(|(pid, _)| *pid)
            .collect();
        !left.is_empty()
            && self
                .threads
                .values()
                .any(|t| left.contains(&t.pid) && !t.ends)
    }

    /// In every group that lacks it.
    fn try_replace(&mut self, replica: usize) -> Result<Attempt> {
        if self.has_remains(replica) {
            return Ok(Attempt::Later("its processes are not gone yet".into()));
        }
        let mut lacking = self.lacking(replica);
        if lacking.is_empty()
            && self
                .groups
                .values()
                .all(|g| g.members[replica].pid.is_none())
        {
            return Ok(Attempt::Later("there is nothing to copy".into()));
        }
        let mut last = usize::MAX;
        while let Some(id) = lacking.first() {
            // (One may have come to share memory while another one was copied.)
            let kin = match last == usize::MAX || self.are_kin(&lacking) {
                true => self.kin(&lacking, replica),
                false => None,
            };
            let attempt = match kin {
                Some(kin) => self.replace_kin(&kin, replica)?,
                None => self.replace_in(*id, replica)?,
            };
            match attempt {
                Attempt::Done(source) => last = source,
                other => return Ok(other),
            }
            // Children may have been born meanwhile.
            lacking = self.lacking(replica);
        }
        if last == usize::MAX {
            last = self.groups.values().next().map_or(0, |g| g.leader);
        }
        Ok(Attempt::Done(last))
    }
}
