//! Leaders that stand still, or that have logged what no other can go on behind.

use super::{BLIND, MISLED, Seen, View, is_beyond};
use crate::state::{Group, GroupId, Monitor};
use geryon_abi::layout::wait;
use geryon_tracee::{Pid, cpu_ticks};

/// A free turn is taken at once.
const STARVED_ROUNDS: u32 = 6;
/// What is said of a replica whose arguments have changed while it slept.
const WRONG: &str = "sleeps in another call than it was to make";
/// What is said of a leader whose thread has lost its place, when all others have read more.
pub(super) const BACK: &str = "has gone back behind what it had logged";

impl Monitor {
    /// What the leader has logged brings all others to a stand: it is wrong, and what stands there is
    /// cut off.
    pub(super) fn leader_misled(&mut self, id: GroupId, leader: usize, what: &str) {
        if what == MISLED {
            self.charged_with_order(id, leader, what);
        } else {
            self.stuck(id, leader, what);
        }
        if let Some(t) = self.groups.get_mut(&id).and_then(|g| g.takeover.as_mut()) {
            t.distrust();
        }
    }

    /// Does the leader stand still, or does a thread of it use processor time without an event
    /// while every follower's thread has come to the next one ([`super::ahead`])?
    pub(super) fn leader_hangs(
        &mut self,
        id: GroupId,
        leader: Pid,
        lead: &[View],
        followers: &[(usize, Pid)],
    ) -> Option<&'static str> {
        let ticks = cpu_ticks(leader);
        let rest = self.rest(leader);
        let wrong = self.sleeps_wrongly(leader, lead);
        let deaf = self.is_confirmed(id, lead) || self.has_its_maps(id, lead);
        let followers: Vec<(Pid, Vec<View>)> = followers
            .iter()
            .map(|(_, p)| (*p, self.views(*p)))
            .collect();
        let g = self.groups.get(&id)?;
        let events = lead.iter().map(|v| v.events).sum();
        let judged = g.dispute.crashes.iter().any(|c| c.replica == g.leader);
        let back = has_gone_back(g, &followers);
        if self.watch.is_astray(leader, wrong || back) && !judged {
            return Some(if back { BACK } else { WRONG });
        }
        let seen = self
            .watch
            .seen
            .entry(leader)
            .or_insert(Seen::now(events, ticks));
        if seen.events != events || judged {
            *seen = Seen::now(events, ticks);
        }
        // Calls that are each replica's own may sleep; only being stopped is nobody's wish.
        // Calls that wait are announced by most, but not by all: only who sleeps on what is there,
        // or was stopped, will not go on.
        let verdict = seen.rested.add(rest, deaf);
        if let Some(what) = verdict.filter(|_| deaf).or(seen.rested.stands_still()) {
            return Some(what);
        }
        if seen.overlooks(deaf, ticks) {
            return Some(BLIND);
        }
        // Whoever has the turn runs, or waits for something else.
        let none_has_it = lead.iter().any(|v| v.waiting == wait::TURN)
            && lead
                .iter()
                .all(|v| matches!(v.waiting, wait::TURN | wait::KERNEL));
        seen.starved = if none_has_it { seen.starved + 1 } else { 0 };
        if seen.starved >= STARVED_ROUNDS {
            return Some("waits for a turn that none of its threads has");
        }
        let ends = self.groups.get(&id)?.segment.ends();
        let end = |slot: u32| ends.get(slot as usize).copied().unwrap_or(0);
        self.is_waited_for_in_vain(leader, lead, &followers, end)
    }
}

/// Do all followers, two at least, wait behind the end of the same ring? Then it is the leader that has
/// lost its place there.
fn has_gone_back(g: &Group, followers: &[(Pid, Vec<View>)]) -> bool {
    let beyond = |views: &[View], slot| views.iter().any(|v| v.slot == slot && is_beyond(g, v));
    let Some((first, others)) = followers.split_first().filter(|(_, o)| !o.is_empty()) else {
        return false;
    };
    let mut slots = first.1.iter().map(|v| v.slot);
    slots.any(|slot| beyond(&first.1, slot) && others.iter().all(|f| beyond(&f.1, slot)))
}
