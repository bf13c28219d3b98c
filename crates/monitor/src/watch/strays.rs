//! Replicas that wait elsewhere than the others: at the end of a thread's log the leader sleeps in one
//! call and the followers are about to make another. Nothing will ever be logged that could be
//! compared, and a leader that sleeps is nothing unusual; but each says in its block what it is about.

use super::{Monitor, View};
use crate::state::GroupId;
use geryon_abi::layout::{UNLOGGED, wait};
use geryon_tracee::Pid;
use geryon_vote::{Record, Verdict, Vote, judge};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;

/// It must be found so often in a row: what is read of a running process is not of one moment.
const ROUNDS: u32 = 4;

/// Who waits elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Who; None where two differ.
    replica: Option<usize>,
    slot: u32,
    pos: u64,
}

/// What a thread is about to do at the end of its log, if it waits there.
fn intent(view: &View, head: u64, waits: u32) -> Option<[u64; 2]> {
    let there = view.pos == head && view.intent_at == head && view.waiting == waits;
    there.then_some(view.intent)
}

/// The vote of a thread group whose leader's thread is `lead`: who is about to do what no other is.
/// None as long as somebody has not come to the end of the log, or all are about to do the same.
fn stray(leader: usize, lead: &View, head: u64, followers: &[(usize, View)]) -> Option<Stray> {
    let of_leader = intent(lead, head, wait::KERNEL)?;
    let mut votes = vec![(leader, of_leader)];
    for (replica, view) in followers {
        // Who has waited there as well may have been told otherwise by a word that the leader's
        // thread has not seen yet: that is nobody's fault.
        if of_leader[0] == UNLOGGED && view.unlogged_at == head {
            return None;
        }
        votes.push((*replica, intent(view, head, wait::RECORD)?));
    }
    let digest = |what: [u64; 2]| {
        let mut h = DefaultHasher::new();
        what.hash(&mut h);
        h.finish()
    };
    let record =
        |(r, what): &(usize, [u64; 2])| Record::new(*r as u32, Vote::Digest(digest(*what)));
    let records: Vec<Record> = votes.iter().map(record).collect();
    let replica = match judge(&records) {
        Verdict::Agree(_) => return None,
        Verdict::Outvoted { minority, .. } => minority.first().map(|r| r.0 as usize),
        Verdict::NoMajority => None,
    };
    Some(Stray {
        replica,
        slot: lead.slot,
        pos: head,
    })
}

impl Monitor {
    /// Look for one that waits elsewhere. True: the group was judged.
    pub(super) fn watch_strays(
        &mut self,
        id: GroupId,
        lead: &[View],
        followers: &[(usize, Pid)],
    ) -> bool {
        let views: Vec<(usize, Vec<View>)> = followers
            .iter()
            .map(|(r, p)| (*r, self.views(*p)))
            .collect();
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let leader = g.leader;
        let all_here = g.voters() == followers.len() + 1 && !followers.is_empty();
        let found = lead.iter().filter(|_| all_here).find_map(|v| {
            let theirs = views.iter().map(|(r, views)| {
                let same = views.iter().find(|x| x.slot == v.slot)?;
                Some((*r, *same))
            });
            let theirs: Vec<(usize, View)> = theirs.collect::<Option<_>>()?;
            let head = g.segment.ring(v.slot as usize).head.load(Ordering::SeqCst);
            stray(leader, v, head, &theirs)
        });
        let Some(stray) = found else {
            self.watch.strays.remove(&id);
            return false;
        };
        let seen = self.watch.strays.entry(id).or_insert((stray, 0));
        if seen.0 != stray {
            *seen = (stray, 0);
        }
        seen.1 += 1;
        if seen.1 < ROUNDS {
            return false;
        }
        self.watch.strays.remove(&id);
        // Where two differ it is the follower that would be taken out, should the leader be believed.
        let replica = stray.replica.unwrap_or(followers[0].0);
        self.stuck(
            id,
            replica,
            "does at this place what none of the others does",
        );
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: u64 = 40;

    fn view(waiting: u32, intent: u64) -> View {
        View {
            slot: 3,
            waiting,
            waiting_for: 0,
            waiting_value: 0,
            pos: HEAD,
            verified: HEAD,
            events: 5,
            intent: [intent, 7],
            intent_at: HEAD,
            unlogged_at: 0,
            last: [0; 16],
            tid: 1,
        }
    }

    fn found(lead: View, followers: &[View]) -> Option<Option<usize>> {
        let numbered: Vec<(usize, View)> = (1..).zip(followers.iter().copied()).collect();
        stray(0, &lead, HEAD, &numbered).map(|s| s.replica)
    }

    #[test]
    fn who_is_about_to_do_the_same_waits_with_the_leader() {
        let lead = view(wait::KERNEL, 1);
        assert_eq!(found(lead, &[view(wait::RECORD, 1); 2]), None);
    }

    #[test]
    fn the_majority_names_the_leader_or_a_follower() {
        let lead = view(wait::KERNEL, 1);
        let (with, against) = (view(wait::RECORD, 1), view(wait::RECORD, 2));
        assert_eq!(found(lead, &[against, against]), Some(Some(0)));
        assert_eq!(found(lead, &[with, against]), Some(Some(2)));
        assert_eq!(found(lead, &[against]), Some(None));
        assert_eq!(found(lead, &[against, view(wait::RECORD, 3)]), Some(None));
    }

    #[test]
    fn an_argument_counts_as_well() {
        let lead = view(wait::KERNEL, 1);
        let other = View {
            intent: [1, 8],
            ..view(wait::RECORD, 1)
        };
        assert_eq!(found(lead, &[other, other]), Some(Some(0)));
    }

    #[test]
    fn nobody_is_judged_before_all_are_there() {
        let lead = view(wait::KERNEL, 1);
        let against = view(wait::RECORD, 2);
        assert_eq!(found(lead, &[against, view(wait::NONE, 2)]), None);
        assert_eq!(found(view(wait::NONE, 1), &[against, against]), None);
        let behind = View {
            pos: HEAD - 3,
            ..against
        };
        assert_eq!(found(lead, &[against, behind]), None);
        let stale = View {
            intent_at: HEAD - 3,
            ..against
        };
        assert_eq!(found(lead, &[against, stale]), None);
    }

    #[test]
    fn a_wait_that_is_not_logged_may_be_over_for_the_others() {
        let lead = view(wait::KERNEL, UNLOGGED);
        let against = view(wait::RECORD, 2);
        assert_eq!(found(lead, &[against, against]), Some(Some(0)));
        let waited = View {
            unlogged_at: HEAD,
            ..against
        };
        assert_eq!(found(lead, &[waited, waited]), None);
    }
}
