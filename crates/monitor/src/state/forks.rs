//! What has come of a process's forks, of which each replica makes its own.

use super::births::Births;
use super::group::GroupId;
use crate::run::Newborn;
use geryon_tracee::Pid;
use std::collections::{HashMap, HashSet};

/// All of them.
#[derive(Debug, Default)]
pub struct Forks {
    /// Forked processes that follow and have come before their leader.
    pub early: Vec<Pid>,
    /// Forked children that have said who they are and lead, by the fork's number: what the program calls
    /// them.
    pub names: HashMap<u64, Pid>,
    /// Followers' forked children that were killed before they came to their group.
    pub lost: Vec<Newborn>,
    /// Forks whose child the program has killed before it came to its group.
    pub stillborn: HashSet<u64>,
    /// Forks that each replica's process has made, or the one that it is a copy of.
    pub births: Vec<Births>,
    /// Groups of forked children by the fork's number.
    pub children: HashMap<u64, GroupId>,
}

impl Forks {
    /// A process of `n` replicas has made none yet.
    pub fn of(n: usize) -> Forks {
        Forks {
            births: vec![Births::default(); n],
            ..Forks::default()
        }
    }
}
