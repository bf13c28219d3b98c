//! Leaders one of whose threads gets nowhere: it uses processor time, and all followers wait for its next record. They have
//! done the same work before, so it may use some more than several times what it took them (they had the cores, perhaps).
//!
//! A thread that polls logs nothing as long as it finds the same. Where all followers are about to make that load again they
//! agree that it is to be made; one that they have left is no excuse.

use super::{ENDLESS, Monitor, View};
use geryon_abi::layout::wait;
use geryon_abi::record::{kind, kind_of, short_of};
use geryon_tracee::{Pid, thread_ticks};
use std::collections::HashMap;

/// A thread may use this much more processor time (10 ms each), and so many times what it took a follower.
const SPARE_TICKS: u64 = 1_000;
const TIMES: u64 = 4;

/// What was seen of a group.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Followers' threads: where each was found computing, and what it had used by then.
    computed: HashMap<(Pid, u32), (u64, u64)>,
    /// Threads of the leader that all others wait for.
    awaited: HashMap<u32, Awaited>,
}

#[derive(Debug)]
struct Awaited {
    /// Changes when it gets on.
    progress: u64,
    /// What it had used when it did so last.
    ticks: u64,
    /// What it may use.
    most: u64,
}

/// A thread, as it was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    slot: u32,
    /// Of a follower: its place. Of the leader: changes when it gets on.
    at: u64,
    ticks: u64,
}

impl Ahead {
    /// A follower's thread computes.
    fn computes(&mut self, pid: Pid, t: Found) {
        let seen = self
            .computed
            .entry((pid, t.slot))
            .or_insert((t.at, t.ticks));
        if seen.0 != t.at {
            *seen = (t.at, t.ticks);
        }
    }

    /// How much it took a follower's thread to come to where it waits.
    fn took(&self, pid: Pid, t: Found) -> u64 {
        let seen = self.computed.get(&(pid, t.slot));
        let seen = seen.filter(|(at, _)| *at == t.at);
        seen.map_or(0, |(_, ticks)| t.ticks.saturating_sub(*ticks))
    }

    /// One more round: is one of the leader's threads waited for that will not come on? With each, how much it took the
    /// slowest of the followers.
    fn look(&mut self, waited_for: &[(Found, u64)]) -> bool {
        self.awaited
            .retain(|slot, _| waited_for.iter().any(|(t, _)| t.slot == *slot));
        waited_for.iter().any(|(t, took)| {
            let most = SPARE_TICKS + TIMES * took;
            let seen = self.awaited.entry(t.slot).or_insert(Awaited {
                progress: t.at,
                ticks: t.ticks,
                most,
            });
            if seen.progress != t.at {
                (seen.progress, seen.ticks) = (t.at, t.ticks);
            }
            seen.most = seen.most.max(most);
            t.ticks.saturating_sub(seen.ticks) > seen.most
        })
    }
}

/// Is a follower's thread about to make that load again which the leader's thread has logged last?
fn polls_alike(lead: &View, follower: &View) -> bool {
    let last = lead.last[(lead.events.wrapping_sub(1) % lead.last.len() as u64) as usize];
    let is_same = |w: u64| kind_of(w) == kind::LOAD && short_of(w) == short_of(last);
    is_same(last) && is_same(follower.intent[0]) && follower.intent_at == follower.pos
}

impl Monitor {
    /// Does a thread of the leader compute without end while all others wait for what it logs next? `ends`: where the log
    /// of a thread group ends.
    pub(super) fn is_waited_for_in_vain(
        &mut self,
        leader: Pid,
        lead: &[View],
        followers: &[(Pid, Vec<View>)],
        end: impl Fn(u32) -> u64,
    ) -> Option<&'static str> {
        let ahead = self.watch.ahead.entry(leader).or_default();
        let found = |pid, v: &View, at| Found {
            slot: v.slot,
            at,
            ticks: thread_ticks(pid, v.tid),
        };
        for (pid, views) in followers {
            let computing = views.iter().filter(|v| v.waiting == wait::NONE);
            computing.for_each(|v| ahead.computes(*pid, found(*pid, v, v.pos)));
        }
        let mut waited_for = Vec::new();
        for v in lead.iter().filter(|v| v.waiting == wait::NONE) {
            let at_end =
                |x: &&View| x.slot == v.slot && x.waiting == wait::RECORD && x.pos >= end(v.slot);
            let waits = |f: &(Pid, Vec<View>)| f.1.iter().find(at_end).map(|x| (f.0, *x));
            let waiting: Vec<(Pid, View)> = followers.iter().filter_map(waits).collect();
            if waiting.is_empty() || waiting.len() < followers.len() {
                continue;
            }
            let polls = waiting.iter().all(|(_, x)| polls_alike(v, x));
            let progress = v.events + if polls { v.polls } else { 0 };
            let took = waiting
                .iter()
                .map(|(pid, x)| ahead.took(*pid, found(*pid, x, x.pos)));
            let took = took.max().unwrap_or(0);
            waited_for.push((found(leader, v, progress), took));
        }
        ahead.look(&waited_for).then_some(ENDLESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::record::word;

    fn found(slot: u32, at: u64, ticks: u64) -> Found {
        Found { slot, at, ticks }
    }

    #[test]
    fn who_gets_nowhere_is_found_whatever_another_thread_does() {
        let mut a = Ahead::default();
        let first =
            (0..100).find(|k| a.look(&[(found(1, 7, 50 * k), 0), (found(2, *k, 50 * k), 0)]));
        assert_eq!(first, Some(21));
    }

    #[test]
    fn who_polls_or_waits_between_gets_on() {
        let mut a = Ahead::default();
        assert!(!(0..1_000).any(|k| a.look(&[(found(1, k, 50 * k), 0)])));
        let mut a = Ahead::default();
        assert!(!(0..1_000).any(|k| {
            let waited = [(found(1, 7, 50 * k), 0)];
            a.look(if k % 10 == 0 { &[] } else { &waited })
        }));
    }

    #[test]
    fn a_leader_that_had_no_core_is_given_the_followers_time() {
        let mut a = Ahead::default();
        // It took the follower an hour.
        a.computes(7, found(1, 90, 200));
        a.computes(7, found(1, 90, 80_000));
        let took = a.took(7, found(1, 90, 360_200));
        assert_eq!((took, a.took(7, found(1, 91, 360_200))), (360_000, 0));
        let first = (0..100_000).find(|k| a.look(&[(found(1, 5, 50 * k), took)]));
        assert_eq!(first, Some(28_821));
    }

    #[test]
    fn all_poll_who_are_about_to_make_the_same_load() {
        let load = |site| word(kind::LOAD, 0, site, 0);
        let mut lead = View {
            events: 18,
            ..View::default()
        };
        lead.last[1] = load(77);
        let follower = |site, intent_at| View {
            intent: [load(site), 0],
            intent_at,
            pos: 40,
            ..View::default()
        };
        assert!(polls_alike(&lead, &follower(77, 40)));
        assert!(!polls_alike(&lead, &follower(78, 40)));
        assert!(!polls_alike(&lead, &follower(77, 39)));
        lead.last[1] = word(kind::ATOMIC, 0, 77, 0);
        assert!(!polls_alike(&lead, &follower(77, 40)));
    }
}
