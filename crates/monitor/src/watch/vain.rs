//! Leaders that compare in vain: with clocks what a failed compare-and-exchange saw is an input, so a
//! leader that has lost count of its own spin lock makes all others spin with it, for ever. In their
//! memory the lock is free.

use super::{Monitor, View};
use crate::state::GroupId;
use geryon_abi::layout::wait;
use geryon_abi::record::{FAILED, KEPT, KEPT_PLAIN, detail_of, kind, kind_of};
use geryon_tracee::Pid;
use std::collections::HashMap;

/// After so many rounds it is no longer one thread that is slow to store a word.
const ROUNDS: u32 = 12;
/// So many compares in each of them.
const OFTEN: u64 = 100;

const IN_VAIN: &str = "compares for ever with what no other has in its memory";

/// What was seen in the last round.
#[derive(Debug, Default)]
pub(super) struct Vain {
    /// Records of the leader's threads, by slot.
    events: HashMap<u32, u64>,
    /// Compares that failed in contradiction to their memory, by follower and slot.
    contradicted: HashMap<(usize, u32), u64>,
    rounds: u32,
}

impl Vain {
    /// One more round: does no thread of the leader do anything but wait, and compare in vain, as all
    /// followers say?
    fn look(&mut self, lead: &[View], followers: &[(usize, Vec<View>)]) -> bool {
        let before = std::mem::take(self);
        self.events = lead.iter().map(|v| (v.slot, v.events)).collect();
        for (replica, views) in followers {
            let counts = views.iter().map(|v| ((*replica, v.slot), v.contradicted));
            self.contradicted.extend(counts);
        }
        let grows = |v: &View| {
            let last = before.events.get(&v.slot);
            last.is_some_and(|last| v.events >= last + OFTEN)
        };
        let is_denied = |slot: u32| {
            followers.iter().all(|(replica, _)| {
                let key = (*replica, slot);
                let (now, then) = (self.contradicted.get(&key), before.contradicted.get(&key));
                matches!((now, then), (Some(now), Some(then)) if *now >= then + OFTEN)
            })
        };
        let in_vain = |v: &View| compares_only(v) && grows(v) && is_denied(v.slot);
        let waits = |v: &View| v.waiting == wait::KERNEL;
        let found = !followers.is_empty()
            && lead.iter().any(in_vain)
            && lead.iter().all(|v| waits(v) || in_vain(v));
        self.rounds = if found { before.rounds + 1 } else { 0 };
        self.rounds >= ROUNDS
    }
}

/// Are the thread's last records compares that failed, and what else has changed nothing?
fn compares_only(v: &View) -> bool {
    let in_vain = |w: &u64| {
        kind_of(*w) == kind::ATOMIC && matches!(detail_of(*w), FAILED | KEPT | KEPT_PLAIN)
    };
    v.last.iter().all(in_vain)
}

impl Monitor {
    /// Is the group's leader found to compare in vain?
    pub(super) fn watch_vain(
        &mut self,
        id: GroupId,
        lead: &[View],
        followers: &[(usize, Pid)],
    ) -> bool {
        // (As good as never: then nobody looks at the followers for that.)
        if !lead.iter().any(compares_only) {
            self.watch.vain.remove(&id);
            return false;
        }
        let views: Vec<(usize, Vec<View>)> = followers
            .iter()
            .map(|(replica, pid)| (*replica, self.views(*pid)))
            .collect();
        let found = self.watch.vain.entry(id).or_default().look(lead, &views);
        if found && let Some(leader) = self.groups.get(&id).map(|g| g.leader) {
            self.stuck(id, leader, IN_VAIN);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::record::word;

    fn spins(slot: u32, events: u64, contradicted: u64) -> View {
        View {
            events,
            contradicted,
            last: [word(kind::ATOMIC, FAILED, 0, 0); 16],
            slot,
            ..View::default()
        }
    }

    /// So many rounds in which the leader's threads log 1,000 records each, and the follower's memory
    /// contradicts so many of them.
    fn rounds(n: u64, denied: u64, also: Option<View>) -> bool {
        let mut vain = Vain::default();
        let mut found = false;
        for k in 0..n {
            let mut lead = vec![spins(0, 1000 * k, 0)];
            lead.extend(also);
            found = vain.look(&lead, &[(1, vec![spins(0, 1000 * k, denied * k)])]);
        }
        found
    }

    #[test]
    fn a_lock_that_is_free_elsewhere_is_not_waited_for() {
        assert!(rounds(20, 1000, None));
        assert!(!rounds(5, 1000, None));
    }

    #[test]
    fn so_is_an_exchange_that_changes_nothing() {
        let exchanges = |detail| View {
            last: [word(kind::ATOMIC, detail, 0, 0); 16],
            ..View::default()
        };
        assert!(compares_only(&exchanges(KEPT)) && compares_only(&exchanges(KEPT_PLAIN)));
        assert!(!compares_only(&exchanges(0)));
    }

    #[test]
    fn a_lock_that_others_see_taken_is_waited_for() {
        assert!(!rounds(50, 0, None));
    }

    #[test]
    fn a_thread_that_computes_may_hold_it() {
        let computes = View {
            slot: 1,
            ..View::default()
        };
        assert!(!rounds(50, 1000, Some(computes)));
        let asleep = View {
            waiting: wait::KERNEL,
            ..computes
        };
        assert!(rounds(50, 1000, Some(asleep)));
    }
}
