//! Which replay of the log comes next: on whose copy, and with threads placed how.

use crate::checkpoint::search::{self, Stretch};
use crate::recover::Made;
use crate::state::{GroupId, Monitor};
use geryon_abi::layout::strict;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the log is replayed from one sleeper on, at most, and how long that may take.
const TRIES: u32 = 64;
const SEARCHED: Duration = Duration::from_secs(3);
/// So long threads may be placed otherwise throughout, from one sleeper on, or so many times as long as the oldest one sleeps.
const SPREAD: Duration = Duration::from_secs(10);
const SPREAD_OF_AGE: u32 = 4;

/// From where the log is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A copy of a follower, the youngest first.
    Follower(usize),
    /// The leader's own copy.
    Leader,
    /// A copy of a follower, with threads placed as was right from the leader's copy.
    Again(usize),
    /// There is nothing left.
    Nowhere,
}

impl Monitor {
    /// Does the leader's own copy replay? It proves nothing: it may have inherited a fault.
    pub(super) fn is_of_leader(&self) -> bool {
        let replay = self.checkpoints.as_ref().and_then(|c| c.replay.as_ref());
        replay.is_some_and(|r| r.base == From::Leader)
    }

    /// The one from which it is replayed at present.
    pub(super) fn base(&self, leader: usize) -> Option<Made> {
        match self.checkpoints.as_ref()?.replay.as_ref()?.base {
            From::Follower(n) | From::Again(n) => self.bases(leader).get(n).map(|b| b.1.clone()),
            From::Leader => self.own_of(leader).map(|o| o.1.clone()),
            From::Nowhere => None,
        }
    }

    /// From where it is replayed when there is nothing left to try from the present place on.
    pub(super) fn next_base(&self, leader: usize) -> From {
        let replay = self.checkpoints.as_ref().and_then(|c| c.replay.as_ref());
        let Some(r) = replay else {
            return From::Nowhere;
        };
        let is_there = |n: &usize| *n < self.bases(leader).len();
        let own = || match r.findings.are_open() && self.own_of(leader).is_some() {
            true => From::Leader,
            false => From::Nowhere,
        };
        match r.base {
            From::Follower(n) => Some(n + 1)
                .filter(is_there)
                .map_or_else(own, From::Follower),
            From::Leader if r.repeats.as_ref().is_some_and(|l| !l.is_empty()) => From::Again(0),
            From::Again(n) => Some(n + 1)
                .filter(is_there)
                .map_or(From::Nowhere, From::Again),
            From::Leader | From::Nowhere => From::Nowhere,
        }
    }

    /// How threads are to be placed in the next replay from the present place on; None: there have been enough.
    pub(super) fn next_placement(&mut self, id: GroupId, leader: usize) -> Option<Vec<Stretch>> {
        let slots = self.groups.get(&id).map(|g| {
            let used = |slot: &usize| g.segment.ring(*slot).head.load(Ordering::Acquire) != 0;
            let touched = g.segment.touched().into_iter().filter(used);
            touched.map(|slot| slot as u32).collect::<Vec<u32>>()
        })?;
        let bases = self.bases(leader);
        let own = self.own_of(leader).map(|o| o.0);
        let oldest = bases.iter().map(|b| b.0).chain(own).min();
        let age = oldest.map_or(Duration::ZERO, |since| since.elapsed());
        let last = bases.len().checked_sub(1);
        // (Where it is certain that the program races, and all can go on from the leader's state, more replays would only
        // keep it waiting.)
        let is_to_go_on = self.may_descend();
        let last = last.filter(|_| self.has_pairs()).map(From::Follower);
        let r = self.replay_mut()?;
        let (tries, since) = r.of_base;
        if let From::Again(_) = r.base {
            return r.repeats.clone().filter(|_| tries == 0);
        }
        if r.base == From::Leader && !r.findings.are_open() {
            return None;
        }
        let is_searched = tries >= TRIES || since.elapsed() >= SEARCHED;
        if r.spread.is_none()
            && r.base != From::Leader
            && !is_searched
            && let Some(late) = r.search.next()
        {
            return Some(late);
        }
        // What is to be believed against the leader must not depend on how threads are placed, anywhere in the log.
        if r.base != From::Leader
            && (Some(r.base) != last || is_to_go_on && r.findings.contradict())
        {
            return None;
        }
        let is_early_too = r.base == From::Leader;
        let spread = r.spread.get_or_insert_with(|| {
            r.of_base.1 = Instant::now();
            let mut all = search::spread(&slots);
            all.extend(is_early_too.then(Vec::new));
            all
        });
        let late = spread.pop()?;
        let limit = SPREAD.max(SPREAD_OF_AGE * age);
        if r.of_base.1.elapsed() > limit || late.len() > strict::MOST_LATE {
            r.findings.are_cut_short();
            return None;
        }
        Some(late)
    }
}
