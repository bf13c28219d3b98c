//! What must hold, whatever happens.

use crate::event::{Copies, Event, Trouble, Verify};
use crate::world::{State, World};
use geryon_vote::crash::{Crash, Crashed};
use geryon_vote::loss::Loss;
use geryon_vote::{
    Blame, Difference, Found, NAMING, OnDivergence, Remedy, Ruling, Settlement, VOTERS,
};
use std::time::Duration;

/// Why a replica is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is wrong, or lost.
    Outvoted,
    /// Nobody knows, and the user has the leader believed.
    NotBelieved,
    /// A replay has agreed with the leader.
    Refuted,
    /// All go on from the leader's state.
    Follows,
    /// It has helped to find out who is wrong.
    Surplus,
}

impl World {
    /// What is true of the run is what one fault at a time leaves.
    pub fn is_simple(&self) -> bool {
        self.setup.trouble == Trouble::One && !self.many && !self.believed
    }

    /// An output is out.
    pub fn has_left(&mut self, pos: u64, agreed: usize, all: usize) {
        let is_majority = 2 * agreed > all;
        let needs_all = self.setup.verify == Verify::All;
        if self.setup.verify != Verify::Async && (!is_majority || (needs_all && agreed < all)) {
            self.breaks("an output has left that was not confirmed");
        }
        let is_wrong = self.log[pos as usize].says != 0;
        if is_wrong && agreed > 1 && self.is_simple() {
            self.breaks("what is wrong was confirmed");
        }
    }

    /// A verdict on a difference.
    pub fn is_fair(&mut self, d: &Difference, ruling: &Ruling) {
        let total = d.ballot.total;
        let is_over = d.age > d.limit && !d.is_arbitrating;
        let all_spoke = is_over || total < NAMING || d.ballot.silent == 0;
        let is_spoken = |blame| matches!(ruling, Ruling::Verdict(s) if s.blame == blame);
        let names_nobody = match ruling {
            Ruling::Believe(..) | Ruling::Descend(_) => true,
            _ => is_spoken(Blame::Unnamed),
        };
        if *ruling == Ruling::Wait && all_spoke {
            self.breaks("a verdict is put off for nothing");
        }
        if matches!(ruling, Ruling::Descend(_)) && self.serial {
            self.breaks("from serial order to serial order");
        }
        if names_nobody {
            self.is_undecidable(d, all_spoke);
        }
        if is_spoken(Blame::Follower(d.reporter)) && 2 * d.ballot.with_leader <= total {
            self.breaks("a follower is outvoted without a majority");
        }
        if is_spoken(Blame::Leader(d.leader)) {
            let asks_first = d.case.in_parallel && d.case.replicas >= NAMING;
            let is_replayed = d.case.found == Some(Found::Alike);
            if asks_first && d.case.can_replay && !d.is_nonsense && !is_replayed {
                self.breaks("the leader is outvoted and nothing was replayed");
            }
            if asks_first && d.case.found.is_some() && d.case.has_raced && !d.is_nonsense {
                self.breaks("a program that has raced is said not to");
            }
            if !d.is_nonsense && 2 * d.ballot.against_leader <= total {
                self.breaks("the leader is outvoted without a majority");
            }
        }
        let names = matches!(ruling, Ruling::Verdict(_)) && !names_nobody;
        if names && d.is_arbitrating && total < VOTERS {
            self.breaks("somebody is named and not all that were asked have said who");
        }
    }

    /// It is said that nobody can be named.
    fn is_undecidable(&mut self, d: &Difference, all_spoke: bool) {
        let (with, against) = (d.ballot.with_leader, d.ballot.against_leader);
        let total = d.ballot.total;
        let has_majority = 2 * with.max(against) > total && total >= NAMING;
        if !all_spoke && !has_majority {
            self.breaks("nobody is named before all have spoken");
        }
        if d.is_arbitrable {
            self.breaks("copies could say who is wrong, and are not asked");
        }
        let is_asked = d.is_arbitrating && total < VOTERS;
        if d.is_nonsense && !is_asked {
            self.breaks("what is no record is not the leader's");
        }
        if self.is_simple() && has_majority && !d.case.in_parallel && !is_asked {
            self.breaks("a majority was not believed");
        }
        if self.is_simple() && d.is_arbitrating && total == VOTERS {
            self.breaks("copies were asked, and not believed");
        }
    }

    pub fn is_fair_crash(&mut self, c: &Crash, ruling: &Crashed) {
        let v = c.votes;
        let total = v.total;
        let is_over = matches!(ruling, Crashed::Program | Crashed::InAgent);
        if v.living == 1 && v.alike == 1 && !is_over {
            self.breaks("who is alone differs from others");
        }
        let is_known =
            v.in_agent || c.expired || total < NAMING || 2 * (v.passed + v.ended) > total;
        if *ruling == Crashed::Alone && !is_known {
            self.breaks("a crash is one's own before a majority has gone on");
        }
        if let Crashed::Others(_) = ruling {
            if 2 * c.votes.alike <= total {
                self.breaks("a minority that crashed was believed");
            }
            let case = c.case;
            if c.others.contains(&c.leader)
                && case.in_parallel
                && case.replicas >= NAMING
                && case.can_replay
                && case.found != Some(Found::Alike)
            {
                self.breaks("a leader that did not crash is outvoted and nothing was replayed");
            }
        }
    }

    /// A loss is settled.
    pub fn is_fair_loss(&mut self, l: &Loss, blame: Blame) {
        if l.is_arbitrating && !l.is_arbitrated {
            self.breaks("one that was asked is lost, and the others are believed");
        }
        match blame {
            Blame::Follower(r) if r == self.leader => {
                self.breaks("the leader is lost like a follower")
            }
            Blame::Leader(r) if r != self.leader => self.breaks("a follower is deposed"),
            Blame::Leader(_) if !l.succeeds => self.breaks("nobody can lead"),
            Blame::Follower(_) | Blame::Leader(_)
                if l.total < NAMING && !l.is_certain && l.on_divergence != OnDivergence::Leader =>
            {
                self.breaks("one of two was named by the other");
            }
            Blame::Unnamed if l.is_certain && !l.leads => {
                self.breaks("the run stops for a follower that is gone");
            }
            Blame::Unnamed if l.leads && l.succeeds && (l.is_certain || l.total >= NAMING) => {
                self.breaks("the run stops though another one could lead");
            }
            _ => {}
        }
    }

    /// A verdict leads to this.
    pub fn is_wanted(&mut self, blame: Blame, asked_out: bool, what: Remedy) {
        let goes_on = matches!(what, Remedy::TakeOut(_) | Remedy::Depose(_));
        let stops = self.setup.on_divergence == OnDivergence::Stop || self.setup.has_variants;
        if goes_on && stops && !asked_out {
            self.breaks("the run goes on against the user's wish");
        }
        if goes_on && blame == Blame::Unnamed {
            self.breaks("somebody goes whom nobody has named");
        }
        if self.setup.has_variants && !asked_out && what != Remedy::Alarm {
            self.breaks("replicas that differ on purpose differ, and nobody is warned");
        }
        let named = blame != Blame::Unnamed;
        if !goes_on && named && (!stops || asked_out) {
            self.breaks("the run stops though somebody is named");
        }
    }

    /// Somebody is taken out.
    pub fn is_rightly_taken(&mut self, r: usize, why: Taken) {
        let m = self.replicas[r];
        let is_hit = m.guilty || m.state != State::Runs;
        if matches!(why, Taken::Outvoted) && self.is_simple() && !is_hit {
            self.breaks(format!(
                "replica {r} is taken out, and another one is wrong"
            ));
        }
        if why == Taken::Refuted && r == self.leader {
            self.breaks("a replay agrees with the leader, and that one goes");
        }
    }

    /// All go on from the leader's state.
    pub fn is_rightly_descended(&mut self, why: &str) {
        let leader = self.replicas[self.leader];
        // (Two faults in a minute look like a race: that is what the bound is.)
        let looks_so =
            self.races.is_any(self.now) || self.races.has_outvoted_other(self.leader, self.now);
        if leader.guilty && self.is_simple() && !looks_so && self.total() > 1 {
            self.breaks(format!("all go on from a leader that is wrong: {why}"));
        }
        if leader.guilty {
            self.many = true;
        }
    }

    /// The same because the program seems to race.
    pub fn is_race(&mut self, is_certain: bool) {
        let within = geryon_vote::race::RACES_WITHIN;
        let times = self.strayed.iter().filter(|t| self.now - **t < within);
        if !is_certain && times.count() < geryon_vote::race::MOST_RACES {
            self.breaks("what has happened once is taken for a race");
        }
    }

    /// No more are made than the user allows.
    pub fn is_within_bound(&mut self) {
        let within = Duration::from_secs(self.setup.bound.within_s.into());
        let recent = self.made.iter().filter(|t| self.now - **t < within).count();
        if recent > self.setup.bound.most as usize {
            self.breaks("more were made anew than the user allows");
        }
    }

    /// After each event.
    pub fn check(&mut self) {
        if self.outcome.is_some() {
            return;
        }
        let l = &self.replicas[self.leader];
        if l.dropped || matches!(l.state, State::Dead | State::Exited) {
            self.breaks("nobody leads");
        }
        let gone = (0..self.replicas.len()).filter(|r| {
            let m = &self.replicas[*r];
            !m.dropped && m.state == State::Dead
        });
        if gone.count() > 0 {
            self.breaks("one is dead and takes part");
        }
        if self.total() == 0 {
            self.breaks("nobody is left");
        }
    }

    /// What was decided once at least.
    pub fn has_seen(&mut self, what: &'static str) {
        self.seen.insert(what);
    }

    /// For whoever looks at a program that breaks a rule.
    pub fn picture(&self) -> String {
        let of = |(n, m): (usize, &crate::world::Replica)| {
            format!(
                "{n}:{}{:?}@{}{}{}",
                if m.dropped { "-" } else { "" },
                m.state,
                m.pos,
                if m.guilty { "!" } else { "" },
                if m.given_up { "x" } else { "" }
            )
        };
        let all: Vec<String> = self.replicas.iter().enumerate().map(of).collect();
        format!(
            "leader {} head {} left {} [{}] reports {:?} crashes {:?} takeover {:?} wanted {:?} many {}",
            self.leader,
            self.head(),
            self.left,
            all.join(" "),
            self.reports,
            self.crashes,
            self.takeover,
            self.wanted,
            self.many
        )
    }

    /// Long enough without another fault everything is settled.
    pub fn comes_to_rest(&mut self) {
        self.happens(Event::Copies(Copies::Made));
        for _ in 0..160 {
            if self.outcome.is_some() || self.broken.is_some() {
                return;
            }
            for r in 0..self.replicas.len() {
                self.happens(Event::Steps(r, 3));
                self.check();
            }
            self.happens(Event::Time(500));
            self.check();
        }
        if self.outcome.is_some() {
            return;
        }
        if !self.reports.is_empty() || !self.crashes.is_empty() {
            self.breaks("a dispute is never settled");
        }
        if self.takeover.is_some() || self.replay.is_some() || self.arbitration.is_some() {
            self.breaks("something about leaders is never settled");
        }
        if self.doubt.is_some_and(|d| d.found.is_none()) && self.sleepers.is_some() {
            self.breaks("a doubt is never settled");
        }
        if !self.wanted.is_empty() {
            self.breaks("one is to be made anew, for ever");
        }
        for r in 0..self.setup.replicas {
            let m = self.replicas[r];
            // (Nobody but the other one could tell, and a leader that comes to its end may take its time.)
            let waited_for = match r == self.leader {
                true => self.followers().count() > 0,
                false => m.pos < self.head(),
            };
            if !m.dropped && m.state != State::Runs && waited_for {
                self.breaks(format!("replica {r} does nothing, for ever"));
            }
            let speaks = self.is_simple() && self.total() > 1 && m.mark.is_some_and(|k| k.always);
            if !m.dropped && speaks {
                self.breaks(format!("replica {r} is wrong, and nobody sees it"));
            }
        }
        let given_up = self.replicas.iter().filter(|m| m.dropped && m.given_up);
        if self.total() + given_up.count() < self.setup.replicas {
            self.breaks("one is missing, and nothing was said");
        }
        if self.total() > self.setup.replicas {
            self.breaks("there are more replicas than were asked for");
        }
    }
}

/// All that can be decided, by name.
pub const DECISIONS: [&str; 21] = [
    "wait",
    "ask replay",
    "ask sleepers",
    "stop for race",
    "descend",
    "believe",
    "follower outvoted",
    "leader outvoted",
    "nobody outvoted",
    "crash: wait",
    "crash: in agent",
    "crash: program",
    "crash: alone",
    "crash: ask replay",
    "crash: doubtful",
    "crash: other",
    "loss: unsettled",
    "loss: irreplaceable",
    "loss: follower",
    "loss: leader",
    "loss: nobody",
];

pub fn name_of(ruling: &Ruling) -> &'static str {
    match ruling {
        Ruling::Wait => "wait",
        Ruling::AskReplay => "ask replay",
        Ruling::AskSleepers => "ask sleepers",
        Ruling::StopForRace => "stop for race",
        Ruling::Descend(_) => "descend",
        Ruling::Believe(..) => "believe",
        Ruling::Verdict(s) => match s.blame {
            Blame::Follower(_) => "follower outvoted",
            Blame::Leader(_) => "leader outvoted",
            Blame::Unnamed => "nobody outvoted",
        },
    }
}

pub fn name_of_crash(ruling: &Crashed) -> &'static str {
    match ruling {
        Crashed::Wait => "crash: wait",
        Crashed::AtItsEnd => "crash: at its end",
        Crashed::InAgent => "crash: in agent",
        Crashed::Program => "crash: program",
        Crashed::Alone => "crash: alone",
        Crashed::AskReplay => "crash: ask replay",
        Crashed::Doubtful(_) => "crash: doubtful",
        Crashed::Others(_) => "crash: other",
    }
}

pub fn name_of_loss(settlement: &Settlement) -> &'static str {
    match settlement {
        Settlement::Unsettled => "loss: unsettled",
        Settlement::Irreplaceable => "loss: irreplaceable",
        Settlement::Blamed(Blame::Follower(_), _) => "loss: follower",
        Settlement::Blamed(Blame::Leader(_), _) => "loss: leader",
        Settlement::Blamed(Blame::Unnamed, _) => "loss: nobody",
    }
}
