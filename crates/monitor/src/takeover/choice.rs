//! Who is to lead in place of a replica that is lost.

use crate::state::{Group, Monitor};
use geryon_tracee::Pid;

impl Monitor {
    /// The follower that has come farthest, of those that lack nothing.
    pub(super) fn successor(&mut self, former: usize) -> Option<usize> {
        let mut groups: Vec<_> = self
            .groups
            .iter()
            .filter(|(_, g)| g.leader == former)
            .collect();
        groups.sort_unstable_by_key(|(id, _)| **id);
        let lives = |g: &&Group| g.followers().next().is_some();
        let first = groups.into_iter().map(|(_, g)| g).find(lives)?;
        let candidates: Vec<(usize, Pid)> = first.followers().collect();
        let alive = candidates.into_iter().filter(|(r, _)| !self.is_dropped(*r));
        let whole: Vec<(bool, usize, Pid)> =
            alive.map(|(r, p)| (!self.lacks_child(r), r, p)).collect();
        let progress = whole
            .into_iter()
            .map(|(whole, r, p)| (whole, self.progress(p), r));
        progress.max().map(|(.., r)| r)
    }

    /// Has a child of the replica's been killed before it had said who it is? (It lacks one when the fork is the
    /// program's; where the leader's has failed it has ended its own.)
    pub(crate) fn lacks_child(&self, replica: usize) -> bool {
        let mut lost = self.groups.values().flat_map(|g| &g.forks.lost);
        lost.any(|n| n.replica == replica)
    }
}
