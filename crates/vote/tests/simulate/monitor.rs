//! What the monitor does with a verdict, to made-up replicas: it puts what it knows into the values that are judged, and
//! carries out what comes of them.

use crate::rules::{Taken, name_of, name_of_crash, name_of_loss};
use crate::world::{BUG, Crash, Doubt, LED_AWAY, State, World};
use geryon_vote::crash::{self, Crashed, Votes};
use geryon_vote::loss::Loss;
use geryon_vote::{
    Ballot, Blame, Case, Difference, OnRace, Remedy, Ruling, Settlement, race, remedy,
};
use std::time::Duration;

/// A report that nobody confirms or refutes for so long is decided without them.
const UNDECIDED: Duration = Duration::from_secs(10);
/// Nobody gets on any more.
const STUCK: Duration = Duration::from_secs(4);

impl World {
    fn voters(&self) -> usize {
        self.living().count() + self.ended()
    }

    /// Followers that have ended by themselves.
    fn ended(&self) -> usize {
        let exited = |r: &usize| {
            let m = &self.replicas[*r];
            *r != self.leader && !m.dropped && m.state == State::Exited
        };
        (0..self.replicas.len()).filter(exited).count()
    }

    pub fn may_descend(&self) -> bool {
        self.setup.on_race == OnRace::Serial
            && !self.serial
            && !self.setup.has_variants
            && self.setup.on_divergence.replaces()
    }

    pub fn case(&self, of_order: bool) -> Case {
        let known = self.doubt.filter(|d| d.leader == self.leader);
        let sleeps = |s: &crate::replay::Sleepers| s.follower.seat != self.leader;
        Case {
            replicas: self.setup.replicas,
            in_parallel: !self.serial,
            of_order,
            found: known.and_then(|d| d.found),
            has_raced: self.has_raced,
            can_replay: self.sleepers.as_ref().is_some_and(sleeps),
        }
    }

    pub fn have_replayed(&mut self) {
        let leader = self.leader;
        self.doubt = Some(Doubt {
            leader,
            found: None,
        });
    }

    /// Decide the oldest report.
    pub fn judge_reports(&mut self, limit: Duration) {
        let Some(first) = self.reports.first().copied() else {
            return;
        };
        if self.takeover.is_some() || self.replay.is_some() || self.outcome.is_some() {
            return;
        }
        let followers: Vec<usize> = self.followers().collect();
        let silent = followers
            .iter()
            .filter(|r| self.reports.iter().all(|x| x.replica != **r));
        let silent: Vec<usize> = silent.copied().collect();
        let passed = silent.iter().filter(|r| self.replicas[**r].pos > first.pos);
        let passed = passed.count();
        let same = |x: &&crate::world::Report| x.pos == first.pos && x.ours == first.ours;
        let mut against: Vec<usize> = self.reports.iter().map(|r| r.replica).collect();
        against.sort_unstable();
        against.dedup();
        let raced_lately = self.races.is_any(self.now);
        let contradict = self
            .reports
            .iter()
            .any(|x| x.pos == first.pos && x.ours != first.ours);
        let is_nonsense = |x: &crate::world::Report| self.log[x.pos as usize].is_nonsense;
        let known = Difference {
            ballot: Ballot {
                total: self.voters(),
                with_leader: 1 + self.ended() + passed,
                against_leader: self.reports.iter().filter(same).count(),
                silent: silent.len() - passed,
            },
            reporter: first.replica,
            against,
            leader: self.leader,
            age: self.now - first.when,
            limit,
            is_arbitrating: self.is_arbitrating(),
            is_arbitrable: self.is_in_dispute(),
            is_nonsense: self.replicas.len() >= geryon_vote::NAMING
                && self.reports.iter().any(is_nonsense),
            contradict,
            raced_lately,
            other_outvoted: self.races.has_outvoted_other(first.replica, self.now),
            may_descend: self.may_descend(),
            has_checkpoints: self.setup.checkpoints,
            case: self.case(first.of_order),
            on_divergence: self.setup.on_divergence,
            on_race: self.setup.on_race,
        };
        let is_arbitrating = known.is_arbitrating;
        let ruling = known.clone().rule();
        self.is_fair(&known, &ruling);
        self.has_seen(name_of(&ruling));
        match ruling {
            Ruling::Wait | Ruling::AskSleepers => {}
            Ruling::AskReplay => self.have_replayed(),
            Ruling::StopForRace => self.stop("--on-race stop"),
            Ruling::Descend(why) => self.descend(why),
            Ruling::Believe(_, against) => {
                self.believed = true;
                for r in against {
                    self.take_out(r, Taken::NotBelieved);
                    self.lose(r);
                }
            }
            Ruling::Verdict(spoken) => {
                self.remedy(spoken.blame, &spoken.consequence);
                if let Some(r) = spoken.blame.outvoted().filter(|_| is_arbitrating) {
                    self.is_arbitrated(r);
                }
                if spoken.may_be_race {
                    self.note_race(false);
                } else if let Blame::Follower(r) = spoken.blame {
                    self.races.is_outvoted(r, self.now);
                }
            }
        }
    }

    pub fn on_crash(&mut self, crash: Crash) {
        if self.crashes.iter().any(|c| c.replica == crash.replica) {
            return self.judge_crashes(false);
        }
        let follows = crash.in_agent && crash.replica != self.leader;
        let now = follows.then_some((crash.replica, (0, crash.pos, crash.place)));
        let before = self.agent_crash.map(|c| c.0);
        let (last, is_again) = crash::crashes_again(self.agent_crash, now);
        self.agent_crash = last;
        self.crashes.push(crash);
        if is_again {
            if before == now.map(|c| c.0) {
                self.breaks("one that crashes twice is taken for two");
            }
            return self.stop("what the leader has logged makes the others crash");
        }
        self.judge_crashes(false);
    }

    /// Decide the oldest crash.
    pub fn judge_crashes(&mut self, expired: bool) {
        let Some(first) = self.crashes.first().copied() else {
            return;
        };
        if self.replay.is_some() || self.outcome.is_some() {
            return;
        }
        let alike: Vec<usize> = self
            .crashes
            .iter()
            .filter(|c| c.place == first.place)
            .map(|c| c.replica)
            .collect();
        let living: Vec<usize> = self.living().collect();
        let others = living.iter().filter(|r| !alike.contains(r));
        let others: Vec<usize> = others.copied().collect();
        let has_passed = |r: &&usize| {
            let m = &self.replicas[**r];
            match **r == self.leader {
                true => self.head() > first.pos || self.is_at_output() || self.is_full(),
                false => m.pos > first.pos || (m.pos == first.pos && m.waits),
            }
        };
        let passed = others.iter().filter(has_passed).count();
        let known = crash::Crash {
            votes: Votes {
                total: self.voters(),
                living: living.len(),
                alike: alike.len(),
                passed,
                ended: self.ended(),
                in_agent: first.in_agent,
            },
            expired,
            is_at_end: false,
            is_broken: first.in_agent && first.place % 2 == 0,
            others,
            leader: self.leader,
            case: self.case(true),
        };
        let ruling = known.rule();
        self.is_fair_crash(&known, &ruling);
        self.has_seen(name_of_crash(&ruling));
        match ruling {
            Crashed::Wait => {}
            Crashed::AskReplay => self.have_replayed(),
            Crashed::AtItsEnd => self.breaks("nobody has come to its end"),
            Crashed::InAgent => self.stop("in the agent, and no other replica is left"),
            Crashed::Program => {
                if first.place < LED_AWAY && !self.many && living.len() > 1 {
                    self.breaks("the fault of one became the program's");
                }
                self.outcome = Some("the program has crashed".into());
            }
            Crashed::Alone => {
                if first.place == BUG && self.voters() < 3 {
                    self.many = true;
                } else if first.place == BUG && self.is_simple() {
                    self.breaks("the program's fault is one replica's");
                }
                self.lost(first.replica, true, true);
            }
            Crashed::Doubtful(_) => self.stop("it may be a race"),
            Crashed::Others(others) => {
                for r in others {
                    self.lost(r, false, true);
                }
            }
        }
    }

    /// Has nobody who could come to the oldest crash done anything for long?
    fn crash_expired(&mut self) -> bool {
        let crashed = |r: &usize| self.crashes.iter().any(|c| c.replica == *r);
        let others = self.living().filter(|r| !crashed(r));
        let done = others
            .map(|r| self.replicas[r].pos)
            .sum::<u64>()
            .wrapping_add(self.head());
        let computes = self.living().any(|r| !crashed(&r) && self.computes(r));
        let now = self.now;
        let Some(first) = self.crashes.first_mut() else {
            return false;
        };
        if first.others_done != done || computes {
            first.others_done = done;
            first.when = now;
        }
        now - first.when > STUCK
    }

    /// A replica is gone, or must go.
    pub fn lost(&mut self, replica: usize, is_certain: bool, own_fault: bool) {
        if self.outcome.is_some() {
            return;
        }
        let asked_out = self.replicas[replica].asked_out && !own_fault;
        let leads = replica == self.leader;
        let is_arbitrated = self.is_testified(replica);
        self.end_replay_of_several();
        let survives = self.followers().any(|r| r != replica);
        let known = Loss {
            replica,
            leads,
            total: self.total(),
            is_certain,
            own_fault,
            asked_out,
            is_arbitrated,
            is_arbitrating: self.is_arbitrating(),
            has_variants: self.setup.has_variants,
            succeeds: survives,
            on_divergence: self.setup.on_divergence,
        };
        let settled = known.settle();
        self.has_seen(name_of_loss(&settled));
        match settled {
            Settlement::Unsettled => self.stop("one who was asked was lost"),
            Settlement::Irreplaceable => self.stop("nobody else has its layout"),
            Settlement::Blamed(blame, text) => {
                self.is_fair_loss(&known, blame);
                self.remedy(blame, &text);
                if is_arbitrated {
                    self.is_arbitrated(replica);
                }
            }
        }
    }

    fn remedy(&mut self, blame: Blame, consequence: &str) {
        let asked_out = blame.outvoted().is_some_and(|r| self.replicas[r].asked_out);
        let policy = self.setup.on_divergence;
        let what = remedy(blame, asked_out, self.setup.has_variants, policy);
        self.is_wanted(blame, asked_out, what);
        match what {
            Remedy::Alarm => self.stop("replicas that differ on purpose did different things"),
            Remedy::StopAsAsked => self.stop("stopped, as --on-divergence stop says"),
            Remedy::Stop => self.stop(consequence),
            Remedy::TakeOut(r) => {
                let pos = self.replicas[r].pos;
                self.replicas[r].failed_at = (pos < self.head()).then_some(pos);
                self.take_out(r, Taken::Outvoted);
                self.lose(r);
            }
            Remedy::Depose(r) => self.depose(r),
        }
    }

    pub fn stop(&mut self, why: &str) {
        if why.is_empty() {
            self.breaks("a stop without a reason");
        }
        self.outcome = Some(why.to_owned());
    }

    /// What it said does not count, and nobody waits for it.
    pub fn take_out(&mut self, r: usize, why: Taken) {
        self.is_rightly_taken(r, why);
        self.replicas[r].dropped = true;
        self.reports.retain(|x| x.replica != r);
        self.crashes.retain(|c| c.replica != r);
    }

    pub fn note_race(&mut self, is_certain: bool) {
        if self.serial || self.outcome.is_some() {
            return;
        }
        self.strayed.push(self.now);
        let is_enough = self.races.add(self.now);
        if let Some(why) = race::descends(is_certain, is_enough, self.may_descend()) {
            self.is_race(is_certain);
            self.descend(&why);
        }
    }

    /// All go on from the leader's state, in serial order.
    pub fn descend(&mut self, why: &str) {
        self.is_rightly_descended(why);
        self.end_replays();
        let mut lacking: Vec<usize> = self.wanted.drain(..).map(|w| w.replica).collect();
        for r in 0..self.replicas.len() {
            if r != self.leader && !self.replicas[r].dropped {
                self.take_out(r, Taken::Follows);
                lacking.push(r);
            }
        }
        lacking.truncate(self.setup.replicas - 1);
        self.serial = true;
        lacking.into_iter().for_each(|r| self.want(r));
    }

    /// The watchdog finds those that do nothing.
    fn watch(&mut self) {
        let still = |w: &World, r: usize| {
            let m = &w.replicas[r];
            let hangs = matches!(m.state, State::Hangs | State::Exited);
            hangs && w.now - m.still > STUCK && !m.dropped && !w.stands(r)
        };
        let all: Vec<usize> = (0..self.replicas.len())
            .filter(|r| still(self, *r))
            .collect();
        for r in all {
            if self.outcome.is_some() || self.replay.is_some() || self.takeover.is_some() {
                return;
            }
            let is_behind = self.replicas[r].pos < self.head();
            let stands = |f: usize| self.replicas[f].pos == self.head();
            let is_waited_for = self.followers().count() > 0 && self.followers().all(stands);
            let is_due = match r == self.leader {
                true => is_waited_for && !self.is_arbitrating(),
                false => is_behind,
            };
            if is_due && !self.accuse(r) {
                self.lost(r, false, true);
            }
        }
    }

    /// Does what has to be done after each event, at the same moment.
    pub fn get_on(&mut self) {
        if self.outcome.is_none() {
            self.checkpoint();
        }
        if self.outcome.is_none() && self.replay.is_none() {
            self.recover();
        }
    }

    /// Time goes by, in steps that are no longer than what the monitor waits for.
    pub fn passes(&mut self, time: Duration) {
        const STEP: Duration = Duration::from_millis(500);
        let until = self.now + time;
        while self.now < until && self.outcome.is_none() {
            self.now = until.min(self.now + STEP);
            self.take_over();
            self.get_on();
            self.judge_reports(UNDECIDED);
            let expired = self.crash_expired();
            self.judge_crashes(expired);
            self.watch();
            self.rest();
        }
    }
}
