//! A leader that was outvoted has logged what the others do not believe, and its other threads may
//! have gone on from there. The survivors replay what they can; then each of their threads waits: for
//! a record, for a turn that will never come, or for a verdict. There the log is cut off.

use super::Takeover;
use super::quiet::Stand;
use super::undo::undo;
use crate::block_field;
use crate::segment::Segment;
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_abi::layout::{MAX_THREADS, block_address, wait};
use geryon_tracee::{Pid, RemoteMemory, Stopped, state};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

const DISAGREE: &str = "stopped: the survivors do not agree on where the lost leader went wrong";
const TAKEN: &str = "stopped: what the leader that was outvoted has done last cannot be undone";

/// Does it stand at a record that is in doubt?
fn is_held(s: &Stand) -> bool {
    matches!(s.waiting, wait::DIVERGED | wait::TURN | wait::VALUE)
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
    for slot in 0..MAX_THREADS {
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

impl Monitor {
    /// Has a survivor reported that it differs from what the former leader logged?
    pub(super) fn disagrees(&self, id: GroupId) -> bool {
        self.groups.get(&id).is_some_and(|g| !g.reports.is_empty())
    }

    /// Cut the log off once all survivors are at rest. True when that is done, or nothing has to be.
    pub(super) fn cut_off(&mut self, id: GroupId, t: &mut Takeover) -> Result<bool> {
        let members: Vec<Pid> = match self.groups.get(&id) {
            Some(g) => g.living().map(|(_, p)| p).collect(),
            None => return Ok(false),
        };
        let mut all = Vec::new();
        for pid in members.iter().copied() {
            match self.stands(pid) {
                Some(s) => all.extend(s),
                None => return Ok(false),
            }
        }
        let Some(g) = self.groups.get(&id) else {
            return Ok(false);
        };
        let head = |slot: u32| g.segment.ring(slot as usize).head.load(Ordering::SeqCst);
        let rests = |s: &Stand| match s.waiting {
            wait::RECORD => s.pos >= head(s.slot),
            wait::KERNEL => !s.midway,
            _ => is_held(s),
        };
        let asleep = |s: &Stand| s.waiting == wait::DIVERGED || sleeps(s.tid);
        let seen: Vec<(u32, u64)> = all.iter().map(|s| (s.waiting, s.pos)).collect();
        if !all.iter().all(|s| rests(s) && asleep(s)) || t.rest != seen {
            t.rest = seen;
            return Ok(false);
        }
        let mut cuts: HashMap<u32, u64> = HashMap::new();
        for s in all.iter().filter(|s| is_held(s)) {
            let reported = g.reports.iter().find(|r| r.tid == s.tid);
            let at = reported.map_or(s.standing, |r| r.report.pos);
            if *cuts.entry(s.slot).or_insert(at) != at {
                self.give_up(DISAGREE);
                return Ok(false);
            }
        }
        let passed = |s: &Stand| !is_held(s) && cuts.get(&s.slot).is_some_and(|at| s.pos > *at);
        if all.iter().any(passed) {
            self.give_up(DISAGREE);
            return Ok(false);
        }
        for (slot, at) in unborn(&g.segment, &members, &all, |pid| {
            self.processes.get(&pid)?.memory.as_ref()
        }) {
            if *cuts.entry(slot).or_insert(at) != at {
                self.give_up(DISAGREE);
                return Ok(false);
            }
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
        t.cuts = cuts;
        Ok(true)
    }

    /// Have all survivors' threads seen where the log was cut off? One that still waits for a turn, as what
    /// was there said, would take what is written there next for that.
    pub(super) fn is_back(&mut self, id: GroupId, t: &Takeover) -> bool {
        if t.cuts.is_empty() {
            return true;
        }
        let members: Vec<Pid> = match self.groups.get(&id) {
            Some(g) => g.living().map(|(_, p)| p).collect(),
            None => return true,
        };
        let waits_there = |s: &Stand| match t.cuts.get(&s.slot) {
            Some(at) => s.waiting == wait::RECORD && s.pos <= *at,
            None => true,
        };
        members.into_iter().all(|p| {
            self.stands(p)
                .is_some_and(|all| all.iter().all(waits_there))
        })
    }

    /// Those that differed look at the log again.
    fn answer_reports(&mut self, id: GroupId) -> Result<()> {
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(());
        };
        for r in std::mem::take(&mut g.reports) {
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

/// Does the thread sleep in the kernel?
fn sleeps(tid: Pid) -> bool {
    matches!(state(tid), Some('S' | 't'))
}
