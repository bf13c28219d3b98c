//! In which order the run is, and whether that is about to change.

use super::Crowd;
use crate::kin::KinTurn;
use crate::meeting::Convergences;
use std::time::{Duration, Instant};

/// A program that seems to have raced so often (once, it may as well have been a fault in a follower: what is replayed, or
/// made anew, has neither)
pub const MOST_RACES: usize = 2;
/// within so long goes on in serial order.
pub const RACES_WITHIN: Duration = Duration::from_secs(60);

/// In which order the run is.
pub struct Running {
    /// One thread of a replica at a time. (Of groups that are on the way there, too.)
    pub serial: bool,
    /// May it change to clocks, or has it?
    pub ascent: Ascent,
    /// Since when replicas wait for copies to be made of them, before their second thread.
    pub rests: Option<Instant>,
    /// Since when one of the leader waits for others to follow in serial order.
    pub returns: Option<Instant>,
    /// It is on the way to serial order.
    pub descent: Option<Descent>,
    /// A copy is being made for one that was not lost, see [`Descent::is_foreseen`].
    pub follows_again: bool,
    /// Whether its threads wait for one another.
    pub crowd: Crowd,
    /// When the program has raced of late.
    pub races: Races,
    /// A descent that nothing forced has failed: none is tried again for the same reason.
    pub stays: bool,
    /// The turn of processes that share memory.
    pub kin: KinTurn,
    /// Threads that compute and are to be interrupted.
    pub convergences: Convergences,
}

/// Whether the order changes to clocks with the program's second thread (`--order auto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ascent {
    /// It stays.
    Never,
    /// It does, unless the program does before what clocks do not repeat.
    Open,
    /// It has.
    Done,
}

/// On the way from clocks to serial order.
#[derive(Debug)]
pub struct Descent {
    /// When that began.
    pub since: Instant,
    /// When it was tried last.
    pub tried: Option<Instant>,
    /// Why.
    pub why: String,
    /// What if it cannot be.
    pub otherwise: Otherwise,
    /// The program has done what clocks do not repeat, and no replica is lost by that.
    pub is_foreseen: bool,
    /// Replicas that are to be made anew afterwards.
    pub lacking: Vec<usize>,
}

/// What follows where a leader cannot go over to serial order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// The run is stopped: the program races.
    Stops,
    /// It goes on in parallel as before.
    Stays,
}

/// When the program has raced of late. Each time others, or a replay, have agreed with the leader where a follower did not:
/// a fault in the leader, which may bring several followers to differ, is none of these.
#[derive(Debug, Default)]
pub struct Races {
    seen: Vec<Instant>,
    /// Followers that were outvoted in what a fault may have done as well, each with the last time.
    outvoted: Vec<(usize, Instant)>,
}

impl Running {
    /// From the beginning on.
    pub fn new(serial: bool, ascends: bool, kin: KinTurn) -> Running {
        let ascent = match ascends {
            true => Ascent::Open,
            false => Ascent::Never,
        };
        Running {
            serial,
            ascent,
            rests: None,
            returns: None,
            descent: None,
            follows_again: false,
            crowd: Crowd::default(),
            races: Races::default(),
            stays: false,
            kin,
            convergences: Convergences::default(),
        }
    }
}

impl Races {
    /// Once more. True: often enough.
    pub fn add(&mut self, now: Instant) -> bool {
        self.seen.retain(|t| is_recent(*t, now));
        self.seen.push(now);
        self.seen.len() >= MOST_RACES
    }

    /// Has it at all?
    pub fn is_any(&self, now: Instant) -> bool {
        self.seen.iter().any(|t| is_recent(*t, now))
    }

    /// A follower is outvoted, which may be a fault.
    pub fn is_outvoted(&mut self, replica: usize, now: Instant) {
        self.outvoted.retain(|(r, _)| *r != replica);
        self.outvoted.push((replica, now));
    }

    /// Was another follower than this one?
    pub fn has_outvoted_other(&self, replica: usize, now: Instant) -> bool {
        let mut all = self.outvoted.iter();
        all.any(|(r, t)| *r != replica && is_recent(*t, now))
    }
}

fn is_recent(then: Instant, now: Instant) -> bool {
    now.duration_since(then) < RACES_WITHIN
}

#[cfg(test)]
mod tests {
    use super::{MOST_RACES, RACES_WITHIN, Races};
    use std::time::{Duration, Instant};

    #[test]
    fn those_of_long_ago_do_not_count() {
        let (mut races, start) = (Races::default(), Instant::now());
        assert!((1..MOST_RACES).all(|_| !races.add(start)));
        // The first ones are too long ago by now.
        let later = start + RACES_WITHIN;
        let second = |n: usize| later + Duration::from_secs(n as u64);
        assert!((1..MOST_RACES).all(|n| !races.add(second(n))));
        assert!(races.add(second(MOST_RACES)));
        assert!(races.is_any(start + RACES_WITHIN * 2));
        assert!(!races.is_any(start + RACES_WITHIN * 3));
    }
    /// (Stockfish, three replicas: the one differed in what it wrote, and 40 ms later the other one in an operation. With two left nobody
    /// could be named, and the run was stopped.)
    #[test]
    fn two_followers_that_differ_are_no_single_fault() {
        let (mut races, start) = (Races::default(), Instant::now());
        races.is_outvoted(2, start);
        assert!(!races.has_outvoted_other(2, start), "the same again");
        assert!(races.has_outvoted_other(1, start + RACES_WITHIN / 2));
        assert!(!races.has_outvoted_other(1, start + RACES_WITHIN));
        races.is_outvoted(2, start + RACES_WITHIN);
        assert!(races.has_outvoted_other(1, start + RACES_WITHIN));
        assert!(!races.is_any(start), "it may have been a fault");
    }
}
