//! Processes that share memory wait for one another.

use super::View;
use crate::state::Monitor;
use geryon_abi::layout::wait;
use std::sync::atomic::Ordering;

impl Monitor {
    /// Does one of these threads of a replica that follows wait for the turn of the kin, and the process that has it
    /// has something to do?
    pub(super) fn kin_goes_on(&mut self, replica: usize, views: &[View]) -> bool {
        if views.iter().all(|v| v.waiting != wait::KIN) {
            return false;
        }
        let owner = self
            .running
            .kin
            .owner(replica)
            .and_then(|id| self.groups.get(&id));
        let Some(pid) = owner.and_then(|g| g.members[replica].pid) else {
            return false;
        };
        let others = self.views(pid);
        let owner = self
            .running
            .kin
            .owner(replica)
            .and_then(|id| self.groups.get(&id));
        let head = |v: &View| {
            let ring = owner.map(|g| g.segment.ring(v.slot as usize));
            ring.map_or(0, |r| r.head.load(Ordering::Acquire))
        };
        others.iter().any(|v| !v.stands(head(v)))
    }
}
