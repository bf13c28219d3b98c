//! In which order the run is, and whether that is about to change.

use super::Crowd;
use crate::kin::KinTurn;
use crate::meeting::Convergences;
use geryon_vote::Races;
use std::time::Instant;

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
