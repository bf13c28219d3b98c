//! A leader that waits until followers have mapped a file, before its descriptor goes away: who has come
//! to the end of the log, and has not mapped it, will not.

use super::{Monitor, View};
use crate::state::GroupId;
use geryon_abi::layout::wait;
use std::sync::atomic::Ordering;

/// It may have done so just now.
const ROUNDS: u32 = 2;
const UNMAPPED: &str = "has not mapped a file as the log says";
const UNHEARD: &str = "waits for a file to be mapped that none of the others has heard of";

/// A follower that the leader may be waiting for.
#[derive(Clone, Copy, Debug)]
struct Mapper {
    replica: usize,
    /// Files that it has mapped.
    maps: u64,
    /// Nothing is in the log that it has not read.
    at_end: bool,
}

/// Who is wrong when the leader waits until each has mapped so many files; None: nobody, as yet.
fn culprit(leader: usize, awaited: u64, followers: &[Mapper]) -> Option<usize> {
    let late: Vec<&Mapper> = followers.iter().filter(|f| f.maps < awaited).collect();
    let first = late.first().filter(|_| late.iter().all(|f| f.at_end))?;
    let all_alike = late.len() == followers.len()
        && late.len() > 1
        && late.iter().all(|f| f.maps == first.maps);
    Some(if all_alike { leader } else { first.replica })
}

impl Monitor {
    /// Is there one that the leader will wait for in vain? It is taken out.
    pub(super) fn watch_maps(
        &mut self,
        id: GroupId,
        leader: usize,
        lead: &[View],
        followers: &[(usize, geryon_tracee::Pid)],
    ) -> bool {
        let found = self.waits_in_vain_for(id, leader, lead, followers);
        let Some(replica) = found else {
            self.watch.unmapped.remove(&id);
            return false;
        };
        let (who, rounds) = self.watch.unmapped.entry(id).or_insert((replica, 0));
        *rounds = if *who == replica { *rounds + 1 } else { 1 };
        *who = replica;
        if *rounds < ROUNDS {
            return false;
        }
        let what = if replica == leader { UNHEARD } else { UNMAPPED };
        self.stuck(id, replica, what);
        true
    }

    fn waits_in_vain_for(
        &mut self,
        id: GroupId,
        leader: usize,
        lead: &[View],
        followers: &[(usize, geryon_tracee::Pid)],
    ) -> Option<usize> {
        let waits = lead.iter().filter(|v| v.waiting == wait::MAPS);
        let awaited = waits.map(|v| v.waiting_value).max()?;
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
        let head = |v: &View| g.segment.ring(v.slot as usize).head.load(Ordering::Acquire);
        let mappers: Vec<Mapper> = views
            .iter()
            .filter(|(r, _)| taking_part & (1 << r) != 0)
            .map(|(r, views)| Mapper {
                replica: *r,
                maps: header.open.file_maps[*r].load(Ordering::SeqCst),
                at_end: views
                    .iter()
                    .all(|v| v.waiting == wait::RECORD && v.pos >= head(v)),
            })
            .collect();
        culprit(leader, awaited, &mappers)
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

    fn mapper(replica: usize, maps: u64, at_end: bool) -> Mapper {
        Mapper {
            replica,
            maps,
            at_end,
        }
    }

    #[test]
    fn who_has_read_all_and_not_mapped_is_wrong() {
        let both = [mapper(1, 5, true), mapper(2, 4, true)];
        assert_eq!(culprit(LEADER, 5, &both), Some(2));
        assert_eq!(culprit(LEADER, 4, &both), None);
        assert_eq!(culprit(LEADER, 5, &[mapper(1, 4, true)]), Some(1));
    }

    #[test]
    fn who_has_still_to_read_may_yet_map() {
        assert_eq!(culprit(LEADER, 5, &[mapper(1, 4, false)]), None);
        let both = [mapper(1, 4, true), mapper(2, 4, false)];
        assert_eq!(culprit(LEADER, 5, &both), None);
    }

    #[test]
    fn the_leader_is_wrong_where_all_others_are_alike() {
        let both = [mapper(1, 4, true), mapper(2, 4, true)];
        assert_eq!(culprit(LEADER, 900, &both), Some(LEADER));
        let differ = [mapper(1, 3, true), mapper(2, 4, true)];
        assert_eq!(culprit(LEADER, 5, &differ), Some(1));
    }
}
