//! The lines on which followers say how far they are: what they say must be true, else the leader
//! waits for ever, or does not wait.

use super::{Monitor, View};
use crate::cores::CoreSet;
use crate::journal::Event;
use crate::segment::wake_half;
use crate::state::{End, GroupId};
use geryon_abi::layout::wait;
use geryon_tracee::Pid;
use std::sync::atomic::Ordering;

/// What a line says, and how its thread stood before and after it was read.
#[derive(Clone, Copy, Debug)]
struct Said {
    tail: u64,
    ack: u64,
    before: View,
    after: View,
    /// Up to where the leader waits for a confirmation.
    awaited: Option<u64>,
}

impl Said {
    /// A line is written before its thread waits, and never runs ahead of it.
    fn is_wrong(&self) -> bool {
        let Said {
            tail,
            ack,
            before,
            after,
            ..
        } = *self;
        let stands = before.waiting == wait::RECORD
            && after.waiting == wait::RECORD
            && (before.pos, before.events) == (after.pos, after.events);
        let unheard = self
            .awaited
            .is_some_and(|awaited| before.verified >= awaited && ack < awaited);
        tail > after.pos || ack > after.verified || (stands && (tail != after.pos || unheard))
    }
}

impl Monitor {
    /// Does the follower say something of itself that is not so? It is put right.
    pub(super) fn says_wrong(
        &mut self,
        id: GroupId,
        replica: usize,
        pid: Pid,
        before: &[View],
        leader: &[View],
    ) -> bool {
        let mut said = Vec::new();
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        for v in before {
            // Blocks that a fork has copied belong to threads that are not there.
            if self.threads.get(&v.tid).is_some_and(|t| t.pid == pid) {
                let line = &g.segment.ring(v.slot as usize).followers[replica];
                let tail = line.tail.load(Ordering::SeqCst);
                said.push((*v, tail, line.ack.load(Ordering::SeqCst)));
            }
        }
        let now = self.views(pid);
        let found = said.into_iter().find_map(|(before, tail, ack)| {
            let same = |v: &&View| v.slot == before.slot && v.tid == before.tid;
            let awaiting = |v: &&View| v.slot == before.slot && v.waiting == wait::CONFIRM;
            let after = *now.iter().find(same)?;
            let said = Said {
                tail,
                ack,
                before,
                after,
                awaited: leader.iter().find(awaiting).map(|v| v.waiting_value),
            };
            said.is_wrong().then_some(after)
        });
        if let (Some(v), Some(g)) = (found, self.groups.get(&id)) {
            // Any replica may have written there by mistake. Its own block says what is so; if it goes on
            // meanwhile it says the next thing itself.
            let line = &g.segment.ring(v.slot as usize).followers[replica];
            for (word, so) in [(&line.tail, v.pos), (&line.ack, v.verified)] {
                word.store(so, Ordering::SeqCst);
            }
            let sleeps = &g.segment.ring(v.slot as usize).leader_sleeps;
            sleeps.store(0, Ordering::SeqCst);
            wake_half(sleeps);
            let why = format!(
                "the line of replica {} in the log was damaged, and is put right",
                replica + 1
            );
            eprintln!("geryon: {why}");
            self.console.journal.tell(&Event::FaultSeen {
                replica: None,
                cores: CoreSet::new(),
                why,
            });
        }
        found.is_some()
    }

    /// Were the process's lines put right so often that it must be its own doing?
    pub(super) fn lines_are_hopeless(&mut self, pid: Pid) -> bool {
        const HOPELESS: u32 = 3;
        let times = self.watch.lines.entry(pid).or_insert(0);
        *times += 1;
        *times >= HOPELESS
    }

    /// Does a thread of the leader wait for a confirmation that it has, from all whom it may wait for?
    pub(super) fn is_confirmed(&self, id: GroupId, leader: &[View]) -> bool {
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let waits = leader.iter().filter(|v| v.waiting == wait::CONFIRM);
        let mut waits = waits.map(|v| (v.waiting_value, g.segment.ring(v.slot as usize)));
        waits.any(|(awaited, ring)| {
            let ack = |r: usize| ring.followers[r].ack.load(Ordering::SeqCst);
            // One that takes part may be yet to be born.
            let alive = g.segment.header().alive.load(Ordering::SeqCst);
            // (Where a majority is enough it may wait for others than those that are late.)
            (0..g.members.len())
                .filter(|r| *r != g.leader && alive & (1 << *r) != 0)
                .all(|r| ack(r) >= awaited)
        })
    }

    /// A follower that has ended and that the leader still waits for.
    pub(super) fn ended_too_early(&self, id: GroupId, leader: &[View]) -> Option<(usize, End)> {
        let g = self.groups.get(&id)?;
        let waits_for = |r: usize| {
            leader.iter().any(|v| {
                let line = &g.segment.ring(v.slot as usize).followers[r];
                let (tail, ack) = (&line.tail, &line.ack);
                match v.waiting {
                    wait::CONFIRM => ack.load(Ordering::SeqCst) < v.waiting_value,
                    // (For the slowest one.)
                    wait::ROOM => tail.load(Ordering::SeqCst) <= v.waiting_for,
                    _ => false,
                }
            })
        };
        g.members.iter().enumerate().find_map(|(r, m)| {
            let end = m.end.filter(|_| m.pid.is_none() && r != g.leader)?;
            (!self.is_dropped(r) && waits_for(r)).then_some((r, end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(waiting: u32, tail: u64, ack: u64) -> Said {
        let view = View {
            slot: 0,
            waiting,
            waiting_for: 0,
            waiting_value: 0,
            pos: 100,
            verified: 90,
            events: 5,
            contradicted: 0,
            polls: 0,
            intent: [0; 2],
            intent_at: 0,
            unlogged_at: 0,
            last: [0; 16],
            tid: 1,
        };
        Said {
            tail,
            ack,
            before: view,
            after: view,
            awaited: None,
        }
    }

    #[test]
    fn a_line_lags_behind_a_thread_that_gets_on() {
        assert!(!said(wait::NONE, 40, 30).is_wrong());
        assert!(!said(wait::RECORD, 100, 30).is_wrong());
        assert!(said(wait::RECORD, 40, 30).is_wrong());
    }

    #[test]
    fn no_line_is_ahead() {
        assert!(said(wait::NONE, 101, 30).is_wrong());
        assert!(said(wait::NONE, 40, 91).is_wrong());
    }

    #[test]
    fn a_confirmation_is_heard() {
        let heard = Said {
            awaited: Some(90),
            ..said(wait::RECORD, 100, 90)
        };
        assert!(!heard.is_wrong());
        assert!(Said { ack: 82, ..heard }.is_wrong());
        let busy = said(wait::NONE, 100, 82);
        let busy = Said {
            awaited: Some(90),
            ..busy
        };
        assert!(!busy.is_wrong());
    }
}
