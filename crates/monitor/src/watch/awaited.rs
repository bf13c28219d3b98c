//! A leader that waits for its followers: until they have mapped a file whose descriptor is to go away, or
//! have confirmed what it is about to do. Who has come to the end of the log, and has not, will not.

use super::{Monitor, View};
use crate::state::GroupId;
use geryon_abi::layout::wait;
use geryon_tracee::Pid;
use std::sync::atomic::Ordering;

/// It may have done so just now.
const ROUNDS: u32 = 2;
/// What is said of a follower, and of a leader that all others wait for.
const UNMAPPED: [&str; 2] = [
    "has not mapped a file as the log says",
    "waits for a file to be mapped that none of the others has heard of",
];
const UNCONFIRMED: [&str; 2] = [
    "has read all and confirms nothing",
    "waits for the confirmation of what it has logged in part only",
];

/// A follower that the leader may be waiting for.
#[derive(Clone, Copy, Debug)]
struct Follower {
    replica: usize,
    /// How far it is with what is waited for.
    done: u64,
    /// Nothing is in the log that it has not read.
    at_end: bool,
}

/// Who is wrong when the leader waits until each is so far; None: nobody, as yet.
fn culprit(leader: usize, awaited: u64, followers: &[Follower]) -> Option<usize> {
    let late: Vec<&Follower> = followers.iter().filter(|f| f.done < awaited).collect();
    let first = late.first().filter(|_| late.iter().all(|f| f.at_end))?;
    let all_alike = late.len() == followers.len()
        && late.len() > 1
        && late.iter().all(|f| f.done == first.done);
    Some(if all_alike { leader } else { first.replica })
}

impl Monitor {
    /// Is there one that the leader will wait for in vain? It is taken out.
    pub(super) fn watch_awaited(
        &mut self,
        id: GroupId,
        leader: usize,
        lead: &[View],
        followers: &[(usize, Pid)],
    ) -> bool {
        let Some((replica, what)) = self.waits_in_vain_for(id, leader, lead, followers) else {
            self.watch.awaited.remove(&id);
            return false;
        };
        let (who, rounds) = self.watch.awaited.entry(id).or_insert((replica, 0));
        *rounds = if *who == replica { *rounds + 1 } else { 1 };
        *who = replica;
        if *rounds < ROUNDS {
            return false;
        }
        self.stuck(id, replica, what[usize::from(replica == leader)]);
        true
    }

    fn waits_in_vain_for(
        &mut self,
        id: GroupId,
        leader: usize,
        lead: &[View],
        followers: &[(usize, Pid)],
    ) -> Option<(usize, [&'static str; 2])> {
        let is_wait = |v: &View| matches!(v.waiting, wait::MAPS | wait::CONFIRM);
        if !lead.iter().any(is_wait) {
            return None;
        }
        let views: Vec<(usize, Vec<View>)> = followers
            .iter()
            .map(|(r, pid)| (*r, self.views(*pid)))
            .collect();
        let g = self.groups.get(&id)?;
        let header = g.segment.header();
        if header.joining.load(Ordering::SeqCst) != 0 {
            return None;
        }
        let taking_part =
            header.alive.load(Ordering::SeqCst) & !header.sleeping.load(Ordering::SeqCst);
        let views: Vec<_> = views
            .iter()
            .filter(|(r, _)| taking_part & (1 << r) != 0)
            .collect();
        let head = |v: &View| g.segment.ring(v.slot as usize).head.load(Ordering::Acquire);
        let at_end = |v: &View| v.waiting == wait::RECORD && v.pos >= head(v);
        lead.iter().filter(|v| is_wait(v)).find_map(|lead| {
            let maps = lead.waiting == wait::MAPS;
            let far: Vec<Follower> = views
                .iter()
                .map(|(r, views)| {
                    let own = views.iter().find(|v| v.slot == lead.slot);
                    Follower {
                        replica: *r,
                        done: match maps {
                            true => header.open.file_maps[*r].load(Ordering::SeqCst),
                            false => own.map_or(0, |v| v.verified),
                        },
                        at_end: match maps {
                            true => views.iter().all(at_end),
                            false => own.is_some_and(at_end),
                        },
                    }
                })
                .collect();
            let who = culprit(leader, lead.waiting_value, &far)?;
            Some((who, if maps { UNMAPPED } else { UNCONFIRMED }))
        })
    }

    /// Does a thread of the leader wait for mappings that all have made?
    pub(super) fn has_its_maps(&self, id: GroupId, leader: &[View]) -> bool {
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let header = g.segment.header();
        let mut waits = leader.iter().filter(|v| v.waiting == wait::MAPS);
        waits.any(|v| {
            let late = |r: usize| header.open.file_maps[r].load(Ordering::SeqCst) < v.waiting_value;
            // One that takes part may be yet to be born.
            let reads = header.alive.load(Ordering::SeqCst) | header.joining.load(Ordering::SeqCst);
            !(0..g.members.len()).any(|r| r != g.leader && reads & (1 << r) != 0 && late(r))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: usize = 0;

    fn far(replica: usize, done: u64, at_end: bool) -> Follower {
        Follower {
            replica,
            done,
            at_end,
        }
    }

    #[test]
    fn who_has_read_all_and_not_done_it_is_wrong() {
        let both = [far(1, 5, true), far(2, 4, true)];
        assert_eq!(culprit(LEADER, 5, &both), Some(2));
        assert_eq!(culprit(LEADER, 4, &both), None);
        assert_eq!(culprit(LEADER, 5, &[far(1, 4, true)]), Some(1));
    }

    #[test]
    fn who_has_still_to_read_may_yet_do_it() {
        assert_eq!(culprit(LEADER, 5, &[far(1, 4, false)]), None);
        let both = [far(1, 4, true), far(2, 4, false)];
        assert_eq!(culprit(LEADER, 5, &both), None);
    }

    #[test]
    fn the_leader_is_wrong_where_all_others_are_alike() {
        let both = [far(1, 4, true), far(2, 4, true)];
        assert_eq!(culprit(LEADER, 900, &both), Some(LEADER));
        let differ = [far(1, 3, true), far(2, 4, true)];
        assert_eq!(culprit(LEADER, 5, &differ), Some(1));
    }
}
