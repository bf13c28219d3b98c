//! What follows a loss: another one leads, and copies are made.

use crate::event::Copies;
use crate::rules::Taken;
use crate::world::{State, Takeover, Wanted, World};
use geryon_vote::{Due, Failed, Sequel, TakenOut, Then, due};
use std::time::Duration;

/// Nobody comes to lead.
const BARREN: Duration = Duration::from_secs(20);

impl World {
    pub fn depose(&mut self, r: usize) {
        self.sleepers = None;
        self.end_replay_of_several();
        if self.replicas[r].dropped {
            return;
        }
        let heirs = self.followers().filter(|f| *f != r);
        let Some(successor) = heirs.max_by_key(|f| self.replicas[*f].pos) else {
            return self.stop("nobody is left who could lead");
        };
        self.take_out(r, Taken::Outvoted);
        let (former, since) = match self.takeover {
            Some(t) => (t.former, t.since),
            None => (r, self.now),
        };
        if former != r {
            self.lose(r);
        }
        self.takeover = Some(Takeover { former, since });
        self.leader = successor;
    }

    /// The survivors come to rest; what they do not agree with is cut off, and one of them leads.
    pub fn take_over(&mut self) {
        let Some(t) = self.takeover else {
            return;
        };
        for _ in 0..self.head() + 1 {
            let all: Vec<usize> = self.living().collect();
            all.into_iter().for_each(|r| self.step(r));
        }
        if self.now - t.since > BARREN {
            return self.stop("nobody gets on who is to follow the lost leader");
        }
        if !self.reports.is_empty() && !self.cut_off() {
            return;
        }
        if self.replicas[self.leader].pos < self.head() {
            return;
        }
        self.takeover = None;
        self.next_nonsense = false;
        self.replicas.iter_mut().for_each(|r| r.waits = false);
        let is_wanted = self.wanted.iter().any(|w| w.replica == t.former);
        if self.replicas[t.former].dropped && !is_wanted {
            self.lose(t.former);
        }
    }

    /// Those that cannot go on with the one that most can go on with are made anew; where that one stands the log ends.
    fn cut_off(&mut self) -> bool {
        let all: Vec<usize> = self.living().collect();
        let held = |w: &World, r: usize| {
            let of = w.reports.iter().find(|x| x.replica == r);
            of.map(|x| x.pos)
        };
        let can = |w: &World, a: usize, b: usize| {
            held(w, a).is_none_or(|at| held(w, b).map_or(w.replicas[b].pos <= at, |o| o == at))
        };
        let agree = |w: &World, a: usize, b: usize| can(w, a, b) && can(w, b, a);
        let rests = |r: &usize| self.stands(*r) || self.replicas[*r].pos == self.head();
        if !all.iter().all(rests) {
            return false;
        }
        let friends = |r: &usize| all.iter().filter(|o| agree(self, *r, **o)).count();
        let kept = all.iter().max_by_key(|r| (friends(r), **r == self.leader));
        let Some(kept) = kept.copied() else {
            return false;
        };
        let strays = all.iter().filter(|r| !agree(self, **r, kept));
        let strays: Vec<usize> = strays.copied().collect();
        if let Some(stray) = strays.first() {
            // (It has gone with what one of two wrong ones has said.)
            self.many |= !self.replicas[*stray].guilty;
            self.replicas[*stray].state = State::Dead;
            self.reports.retain(|x| x.replica != *stray);
            self.lost(*stray, true, false);
            return false;
        }
        let end = self.reports.iter().map(|x| x.pos).min();
        self.log.truncate(end.unwrap_or(0) as usize);
        self.left = self.left.min(self.head());
        self.reports.clear();
        let head = self.head();
        for c in &mut self.crashes {
            c.pos = c.pos.min(head);
        }
        true
    }

    /// It was taken out.
    pub fn lose(&mut self, r: usize) {
        let taken_out = TakenOut {
            is_given_up: self.replicas[r].given_up,
            is_alone_of_its_kind: self.setup.has_variants,
            are_lacking: self.total() + self.wanted.len() < self.setup.replicas,
            on_divergence: self.setup.on_divergence,
        };
        match taken_out.sequel() {
            Sequel::Nothing => {}
            Sequel::Without(_) => self.replicas[r].given_up = true,
            Sequel::Copy => self.want(r),
        }
    }

    pub fn want(&mut self, replica: usize) {
        if !self.setup.on_divergence.replaces() {
            self.breaks("one is made anew against the user's wish");
        }
        if self.replicas[replica].given_up {
            self.breaks("one that is done without is made anew");
        }
        self.wanted.push(Wanted {
            replica,
            since: self.now,
            tried: None,
        });
    }

    pub fn recover(&mut self) {
        let mut left = std::mem::take(&mut self.wanted).into_iter();
        while let Some(mut w) = left.next() {
            if self.outcome.is_some() {
                return;
            }
            match due(w.tried, &self.budget, self.now) {
                Due::NotYet => {
                    self.wanted.push(w);
                    continue;
                }
                Due::TooMany(_) => {
                    self.replicas[w.replica].given_up = true;
                    continue;
                }
                Due::Now => {}
            }
            w.tried = Some(self.now);
            let mut sources: Vec<usize> = self.living().filter(|r| self.runs(*r)).collect();
            sources.sort_unstable_by_key(|r| *r == self.leader);
            let place = self.replicas[w.replica].failed_at;
            let is_past = |s: usize| {
                let pos = self.replicas[s].pos;
                s == self.leader || pos >= self.head() || place.is_none_or(|p| pos > p)
            };
            let is_unproven = !sources.is_empty() && !sources.iter().any(|s| is_past(*s));
            sources.retain(|s| is_past(*s));
            let source = sources.first().filter(|_| self.takeover.is_none());
            if let (Copies::Made, Some(source)) = (self.copies, source) {
                self.is_made(w.replica, *source);
                continue;
            }
            let failed = Failed {
                is_final: self.copies == Copies::Never,
                since: self.now - w.since,
                is_unproven: is_unproven || self.copies == Copies::Unproven,
                is_last: self.total() == 1,
                stays: false,
                may_descend: self.may_descend(),
            };
            match failed.then() {
                Then::Again => self.wanted.push(w),
                Then::Descend => {
                    self.wanted.push(w);
                    self.wanted.extend(left);
                    if self.total() > 1 {
                        self.breaks("the order changes though there are others to be copied");
                    }
                    return self.descend("the leader cannot be copied");
                }
                Then::GiveUp => self.replicas[w.replica].given_up = true,
            }
        }
    }

    fn is_made(&mut self, r: usize, source: usize) {
        let mut copy = self.replicas[source];
        if source == self.leader {
            copy.pos = self.head();
        }
        copy.asked_out = false;
        copy.failed_at = None;
        copy.waits = false;
        copy.given_up = false;
        self.replicas[r] = copy;
        self.budget.spend(self.now);
        self.made.push(self.now);
        self.count_guilty();
        self.is_within_bound();
    }
}
