//! A leader that was outvoted has logged what the others do not believe, and its other threads may
//! have gone on from there. The survivors replay what they can; then each of their threads waits: for
//! a record, for a turn that will never come, or for a verdict. There the log is cut off.

use super::Takeover;
use super::quiet::Stand;
use super::rest::{Rest, is_held, naps};
use super::undo::undo;
use crate::block_field;
use crate::segment::Segment;
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_abi::layout::{block_address, wait};
use geryon_tracee::{Pid, RemoteMemory, Stopped, kill};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

const DISAGREE: &str = "stopped: the survivors do not agree on where the lost leader went wrong";
const TAKEN: &str = "stopped: what the leader that was outvoted has done last cannot be undone";

/// Where the log is cut off.
#[derive(Debug, Default)]
pub(super) struct Cut {
    /// Where the survivors were last found at rest.
    rest: Rest,
    /// The places, by thread group; none before it is done.
    places: HashMap<u32, u64>,
    /// Survivors that cannot follow the successor.
    dismissed: Vec<Pid>,
}

/// Threads whose birth is behind the cut: the former leader has made them, and nobody else ever will.
/// Their slots, and where their streams end for each survivor.
fn unborn<'a>(
    segment: &Segment,
    members: &[Pid],
    living: &[Stand],
    memory: impl Fn(Pid) -> Option<&'a RemoteMemory>,
) -> Vec<(u32, u64)> {
    let mut out = Vec::new();
    for slot in segment.touched() {
        let head = segment.ring(slot).head.load(Ordering::SeqCst);
        if head == 0 || living.iter().any(|s| s.slot as usize == slot) {
            continue;
        }
        let at = block_address(slot) + block_field!(pos);
        let ends = members.iter().filter_map(|p| memory(*p)?.word(at).ok());
        out.extend(ends.filter(|end| *end < head).map(|end| (slot as u32, end)));
    }
    out
}

/// Where a survivor's threads have come to rest, by thread group.
#[derive(Clone, Debug, Default)]
struct Survivor {
    /// Those at a record that is in doubt, and where it starts.
    held: HashMap<u32, u64>,
    /// Those that have replayed all that there is.
    others: HashMap<u32, u64>,
}

impl Survivor {
    /// Can both go on when the log is cut off where either is held?
    fn agrees(&self, with: &Survivor) -> bool {
        let can = |a: &Survivor, b: &Survivor| {
            a.held.iter().all(|(slot, at)| {
                b.held.get(slot).is_none_or(|other| other == at)
                    && b.others.get(slot).is_none_or(|pos| pos <= at)
            })
        };
        can(self, with) && can(with, self)
    }
}

/// Those that do not agree with the one that most agree with; `first`: with which, if there are several.
/// Each of them is by itself what the program does; the one that was outvoted has spoilt the log between
/// them.
fn strays(survivors: &[Survivor], first: usize) -> Vec<usize> {
    let friends = |i: usize| survivors.iter().filter(|s| s.agrees(&survivors[i])).count();
    let kept = (0..survivors.len()).max_by_key(|i| (friends(*i), *i == first));
    let Some(kept) = kept else {
        return Vec::new();
    };
    (0..survivors.len())
        .filter(|i| !survivors[*i].agrees(&survivors[kept]))
        .collect()
}

impl Monitor {
    /// Has a survivor reported that it differs from what the former leader logged?
    pub(super) fn disagrees(&self, id: GroupId) -> bool {
        self.groups
            .get(&id)
            .is_some_and(|g| !g.dispute.reports.is_empty())
    }

    /// Cut the log off once all survivors are at rest. True when that is done, or nothing has to be.
    pub(super) fn cut_off(&mut self, id: GroupId, t: &mut Takeover) -> Result<bool> {
        let members: Vec<Pid> = match self.groups.get(&id) {
            Some(g) => g.living().map(|(_, p)| p).collect(),
            None => return Ok(false),
        };
        let mut stands = Vec::new();
        for pid in members.iter().copied() {
            match self.stands(pid) {
                Some(s) => stands.push(s),
                None => return Ok(false),
            }
        }
        let all = stands.concat();
        let Some(g) = self.groups.get(&id) else {
            return Ok(false);
        };
        let head = |slot: u32| g.segment.ring(slot as usize).head.load(Ordering::SeqCst);
        if !t.cut.rest.is_reached(&all, head) {
            return Ok(false);
        }
        let is_held = |s: &&Stand| is_held(s, head(s.slot));
        let place = |s: &Stand| {
            let reported = g.dispute.reports.iter().find(|r| r.tid == s.tid);
            let before = match s.waiting {
                wait::KERNEL => s.pos,
                _ => s.standing,
            };
            (s.slot, reported.map_or(before, |r| r.report.pos))
        };
        let survivors: Vec<Survivor> = stands
            .iter()
            .map(|s| Survivor {
                held: s.iter().filter(is_held).map(place).collect(),
                others: s
                    .iter()
                    .filter(|s| !is_held(s))
                    .map(|s| (s.slot, s.pos))
                    .collect(),
            })
            .collect();
        let successor = g.members[t.successor].pid;
        let first = members.iter().position(|p| Some(*p) == successor);
        let strays = strays(&survivors, first.unwrap_or(0));
        if !strays.is_empty() {
            for pid in strays.into_iter().map(|i| members[i]) {
                self.dismiss(id, t, pid);
            }
            return Ok(false);
        }
        let mut cuts: HashMap<u32, u64> = HashMap::new();
        for s in survivors {
            cuts.extend(s.held);
        }
        for (slot, at) in unborn(&g.segment, &members, &all, |pid| {
            self.processes.get(&pid)?.memory.as_ref()
        }) {
            if *cuts.entry(slot).or_insert(at) != at {
                self.give_up(DISAGREE);
                return Ok(false);
            }
        }
        if cuts.iter().any(|(slot, at)| *at > head(*slot)) {
            // A place that a survivor made up.
            self.give_up(DISAGREE);
            return Ok(false);
        }
        if let Err(what) = undo(t, &cuts, &g.segment) {
            self.give_up(&format!("{TAKEN}: {what}"));
            return Ok(false);
        }
        for (slot, at) in &cuts {
            let ring = g.segment.ring(*slot as usize);
            ring.head.store(*at, Ordering::SeqCst);
        }
        self.answer_reports(id)?;
        t.outvoted = false;
        t.cut.places = cuts;
        Ok(true)
    }

    /// A survivor that stands where the others cannot come, or cannot come to where they are: it has read
    /// what they have not, before or after the lost leader has spoilt it. A copy of another one takes its
    /// place.
    fn dismiss(&mut self, id: GroupId, t: &mut Takeover, pid: Pid) {
        if t.cut.dismissed.contains(&pid) {
            return;
        }
        t.cut.dismissed.push(pid);
        let replica = self.membership(pid).filter(|m| m.0 == id).map(|m| m.1);
        if let Some(r) = replica {
            self.say(&format!(
                "replica {} has read another log than the next leader, and is made anew",
                r + 1
            ));
        }
        kill(pid, libc::SIGKILL);
    }

    /// Have all survivors' threads seen where the log was cut off? One that still waits for a turn, as what
    /// was there said, would take what is written there next for that. One that has looked at the program's
    /// memory meanwhile, and passed the place, has gone astray.
    pub(super) fn is_back(&mut self, id: GroupId, t: &mut Takeover) -> bool {
        if t.cut.places.is_empty() {
            return true;
        }
        let members: Vec<Pid> = match self.groups.get(&id) {
            Some(g) => g.living().map(|(_, p)| p).collect(),
            None => return true,
        };
        let (mut back, mut astray) = (true, Vec::new());
        for pid in members.iter().copied() {
            let stands = self.stands(pid).unwrap_or_default();
            let cut = |s: &Stand| t.cut.places.get(&s.slot).copied();
            let waits_there = |s: &Stand| match s.waiting {
                wait::RECORD => cut(s).is_none_or(|at| s.pos <= at),
                wait::KERNEL | wait::WORD => !s.midway,
                _ => cut(s).is_none(),
            };
            // (Elsewhere it may be on its way back.)
            let has_passed = |s: &Stand| naps(s) && cut(s).is_some_and(|at| s.pos > at);
            back &= !stands.is_empty() && stands.iter().all(waits_there);
            if stands.iter().any(has_passed) {
                astray.push(pid);
            }
        }
        if !astray.is_empty() && astray.len() == members.len() {
            self.give_up(DISAGREE);
            return false;
        }
        back &= astray.is_empty();
        for pid in astray {
            self.dismiss(id, t, pid);
        }
        back
    }

    /// Those that differed look at the log again.
    fn answer_reports(&mut self, id: GroupId) -> Result<()> {
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(());
        };
        for r in std::mem::take(&mut g.dispute.reports) {
            let tracee = Stopped(r.tid);
            let mut regs = tracee.regs()?;
            regs.rax = 0;
            regs.orig_rax = u64::MAX;
            tracee.set_regs(&regs)?;
            tracee.resume(0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survivor(held: &[(u32, u64)], others: &[(u32, u64)]) -> Survivor {
        Survivor {
            held: held.iter().copied().collect(),
            others: others.iter().copied().collect(),
        }
    }

    #[test]
    fn who_is_held_where_the_others_can_stay_agrees() {
        let a = survivor(&[(0, 10)], &[(1, 5)]);
        assert!(a.agrees(&survivor(&[(0, 10)], &[(1, 5)])));
        assert!(a.agrees(&survivor(&[], &[(0, 10), (1, 5)])));
        assert!(a.agrees(&survivor(&[(1, 5)], &[(0, 8)])));
    }

    #[test]
    fn who_has_passed_the_place_does_not() {
        let a = survivor(&[(0, 10)], &[(1, 5)]);
        assert!(!a.agrees(&survivor(&[(0, 11)], &[(1, 5)])));
        assert!(!a.agrees(&survivor(&[], &[(0, 11), (1, 5)])));
        assert!(!a.agrees(&survivor(&[(1, 4)], &[(0, 10)])));
    }

    #[test]
    fn the_next_leader_stays_unless_most_say_otherwise() {
        let (a, b) = (survivor(&[(0, 10)], &[]), survivor(&[(0, 12)], &[]));
        let nobody: [usize; 0] = [];
        assert_eq!(strays(&[a.clone(), a.clone()], 1), nobody);
        assert_eq!(strays(&[a.clone(), b.clone()], 0), [1]);
        assert_eq!(strays(&[a.clone(), b.clone()], 1), [0]);
        assert_eq!(strays(&[a.clone(), b.clone(), a], 1), [1]);
        assert_eq!(strays(&[b], 0), nobody);
    }
}
