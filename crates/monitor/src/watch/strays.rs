//! Replicas that wait elsewhere than the others: at the end of a thread's log the leader sleeps in one
//! call and the followers are about to make another, or one has lost a thread that the others have.
//! Nothing will ever be logged that could be compared, and a leader that sleeps is nothing unusual; but
//! each says in its block what it is about.

use super::{Monitor, View};
use crate::block_field;
use crate::state::GroupId;
use geryon_abi::layout::{UNLOGGED, block_address, wait};
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
    /// What is said of it.
    what: &'static str,
}

const ELSEWHERE: &str = "does at this place what none of the others does";
const LOST: &str = "has lost a thread";

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
        what: ELSEWHERE,
    })
}

/// A leader without the thread that all its followers wait for: one that ends says so in its log.
fn lost_by_leader(
    leader: usize,
    lead: &[View],
    followers: &[(usize, Vec<View>)],
    head: impl Fn(u32) -> u64,
) -> Option<Stray> {
    let waits = |v: &View| v.waiting == wait::RECORD && v.pos == head(v.slot);
    let (_, first) = followers.first().filter(|_| !lead.is_empty())?;
    let alone = |v: &&View| {
        let same = |x: &View| x.slot == v.slot;
        waits(v)
            && !lead.iter().any(same)
            && followers
                .iter()
                .all(|(_, f)| f.iter().any(|x| same(x) && waits(x)))
    };
    first.iter().find(alone).map(|v| Stray {
        replica: Some(leader),
        slot: v.slot,
        pos: v.pos,
        what: LOST,
    })
}

/// A follower that has replayed all that its threads have to, while there is more in the log of a thread
/// of the leader's that it does not have: `read` says up to where it has read a thread's log.
fn lost_by_follower(
    replica: usize,
    views: &[View],
    lead: &[View],
    head: impl Fn(u32) -> u64,
    read: impl Fn(u32) -> u64,
) -> Option<Stray> {
    let rests = |v: &View| v.waiting == wait::RECORD && v.pos == head(v.slot);
    if views.is_empty() || !views.iter().all(rests) {
        return None;
    }
    let missing = lead.iter().find(|v| {
        let there = views.iter().any(|x| x.slot == v.slot);
        !there && head(v.slot) > read(v.slot)
    });
    missing.map(|v| Stray {
        replica: Some(replica),
        slot: v.slot,
        pos: read(v.slot),
        what: LOST,
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
        let head = |slot: u32| g.segment.ring(slot as usize).head.load(Ordering::SeqCst);
        let found = found.or_else(|| lost_by_leader(leader, lead, &views, head));
        let found = found.or_else(|| {
            followers
                .iter()
                .zip(&views)
                .find_map(|((r, pid), (_, views))| {
                    let memory = self.processes.get(pid)?.memory.as_ref()?;
                    let read = |slot: u32| {
                        let at = block_address(slot as usize) + block_field!(pos);
                        memory.word(at).unwrap_or(u64::MAX)
                    };
                    lost_by_follower(*r, views, lead, head, read)
                })
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
        self.stuck(id, replica, stray.what);
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
            contradicted: 0,
            polls: 0,
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
    fn a_thread_that_its_leader_has_not_is_lost() {
        let waits = view(wait::RECORD, 1);
        let followers = [(1, vec![waits]), (2, vec![waits])];
        let other = View { slot: 4, ..waits };
        let lost = |lead: &[View]| lost_by_leader(0, lead, &followers, |_| HEAD);
        assert_eq!(lost(&[other]).map(|s| s.replica), Some(Some(0)));
        assert_eq!(lost(&[waits]), None);
        // It is ending.
        assert_eq!(lost(&[]), None);
        // There is more to be read.
        assert_eq!(lost_by_leader(0, &[other], &followers, |_| HEAD + 1), None);
    }

    #[test]
    fn a_thread_that_a_follower_has_not_is_lost() {
        let here = view(wait::RECORD, 1);
        let there = View {
            slot: 4,
            ..view(wait::KERNEL, 1)
        };
        let lost = |views: &[View], read| {
            lost_by_follower(2, views, &[here, there], |_| HEAD, |_| read).map(|s| s.replica)
        };
        assert_eq!(lost(&[here], HEAD - 1), Some(Some(2)));
        // The thread has ended there, too, or is yet to be made by one that gets on.
        assert_eq!(lost(&[here], HEAD), None);
        assert_eq!(lost(&[view(wait::NONE, 1)], HEAD - 1), None);
        assert_eq!(lost(&[here, there], HEAD - 1), None);
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
