//! Takeovers that come to nothing. A replica that follows without a leader, or is about to lead, shows that
//! it gets on by the records that it passes and makes; one that computes uses processor time. Where it does
//! neither the log's end is doubted first, and then the run is given up: that is better told than waited
//! for. Threads that nap (in the program's own futex calls) or look again and again at a word that does not
//! change do not get on by that.

use super::{Monitor, View};
use crate::block_field;
use crate::state::{GroupId, Process};
use crate::takeover::Takeover;
use geryon_abi::layout::{block_address, wait};
use geryon_tracee::{Pid, cpu_ticks, state};
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// Who was found at rest so often cannot replay what the lost leader has logged last.
const DOUBTFUL_ROUNDS: u32 = 4;
/// Who was found at rest so often does not come to have a leader.
const IDLE_ROUNDS: u32 = 30;
/// Who follows may use this much processor time (10 ms each) without passing a record, and four times what
/// its leader has used besides.
const SPARE_TICKS: u64 = 1_000;

/// What was seen of a takeover since its survivors last got on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Barren {
    /// Records that they had passed by then, and the stages that were over.
    progress: u64,
    /// Processor time that they had used by then.
    ticks: u64,
    /// How often all of them were found at rest since.
    rounds: u32,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hope {
    /// It may still come to something.
    Some,
    /// What the lost leader has logged last is in doubt.
    Doubt,
    /// None.
    None,
}

impl Barren {
    /// One more round. `budget`: processor time that they may use, if there is a limit.
    fn look(&mut self, progress: u64, ticks: u64, rests: bool, budget: Option<u64>) -> Hope {
        if self.progress != progress || ticks < self.ticks {
            *self = Barren {
                progress,
                ticks,
                rounds: 0,
            };
            return Hope::Some;
        }
        self.rounds += u32::from(rests);
        let spent = budget.is_some_and(|most| ticks - self.ticks > most);
        if spent || self.rounds >= IDLE_ROUNDS {
            Hope::None
        } else if rests && self.rounds == DOUBTFUL_ROUNDS {
            Hope::Doubt
        } else {
            Hope::Some
        }
    }
}

/// Does a thread in this state get on by itself?
pub(super) fn rests(state: Option<char>, view: Option<&View>, waits_for_child: bool) -> bool {
    match state {
        Some('S' | 't' | 'T' | 'Z' | 'X') => true,
        Some('D') => waits_for_child,
        // It looks whether what it waits for is there, or has done so and is about to sleep.
        Some('R') => view.is_some_and(|v| match v.waiting {
            wait::NONE => false,
            wait::KERNEL => v.waiting_for == libc::SYS_futex as u64,
            _ => true,
        }),
        _ => false,
    }
}

impl Monitor {
    /// A takeover that comes to nothing is better told than waited for.
    pub(super) fn watch_takeover(&mut self, id: GroupId) {
        let takeover = self.groups.get(&id).and_then(|g| g.takeover.as_ref());
        let Some((stage, former)) = takeover.map(|t| (t.stages_over(), t.former_ticks())) else {
            self.watch.barren.remove(&id);
            return;
        };
        // (A vfork's child that leads may sleep as long as it likes, and its parent with it.)
        if self.outcome.is_some() || self.leads_by_guest(id) {
            self.watch.barren.remove(&id);
            return;
        }
        let members: Vec<(usize, Pid)> = match self.groups.get(&id) {
            Some(g) => g.living().collect(),
            None => return,
        };
        let (mut progress, mut ticks, mut rest) = (stage, 0, true);
        for (_, pid) in &members {
            let views = self.views(*pid);
            let passed = |v: &View| v.pos.wrapping_add(v.events);
            progress = views.iter().map(passed).fold(progress, u64::wrapping_add);
            ticks += cpu_ticks(*pid);
            rest = rest && self.all_rest(*pid, &views);
        }
        // Who leads may compute as long as it likes.
        let budget = former.map(|used| SPARE_TICKS + 4 * used);
        let barren = self.watch.barren.entry(id).or_default();
        match barren.look(progress, ticks, rest, budget) {
            Hope::Some => {}
            Hope::Doubt => {
                if let Some(t) = self.groups.get_mut(&id).and_then(|g| g.takeover.as_mut()) {
                    t.doubts();
                }
            }
            Hope::None => self.tell_barren(id, &members),
        }
    }

    fn tell_barren(&mut self, id: GroupId, members: &[(usize, Pid)]) {
        let takeover = self.groups.get(&id).and_then(|g| g.takeover.as_ref());
        let what = takeover.map_or("takes over", Takeover::awaits);
        let mut text = String::new();
        for (replica, pid) in members {
            let whose = format!("replica {}, thread group", replica + 1);
            text.push_str(&self.threads_text(&whose, *pid));
            text.push_str(&self.left_text(id, &whose, *pid));
        }
        eprint!("{text}");
        let next = if self.is_serial() {
            "please report this"
        } else {
            "where threads meet by plain loads, try --order serial; else please report this"
        };
        self.give_up(&format!(
            "stopped: nobody gets on who is to follow the lost leader ({what}); {next}"
        ));
    }

    /// In which thread groups a process has not replayed everything.
    fn left_text(&self, id: GroupId, whose: &str, pid: Pid) -> String {
        let memory = self.processes.get(&pid).and_then(|p| p.memory.as_ref());
        let (Some(g), Some(m)) = (self.groups.get(&id), memory) else {
            return String::new();
        };
        let mut text = String::new();
        for slot in g.segment.touched() {
            let head = g.segment.ring(slot).head.load(Ordering::SeqCst);
            let pos = m.word(block_address(slot) + block_field!(pos));
            if let Some(pos) = pos.ok().filter(|p| head != 0 && *p != head) {
                let _ = writeln!(text, "geryon:   {whose} {slot}: is at word {pos} of {head}");
            }
        }
        text
    }

    /// Does no thread of a process get on by itself? One that waits for a plain store spins, one in the
    /// program's own futex call naps, and one that has vforked waits in the kernel for what its child does.
    fn all_rest(&self, pid: Pid, views: &[View]) -> bool {
        let of_it = self.membership(pid);
        let is_guest = |p: &Process| p.guest.is_some() && p.parent.is_some() && p.parent == of_it;
        let has_guest = self.processes.values().any(is_guest);
        let mut threads = self.threads.iter().filter(|(_, t)| t.pid == pid);
        threads.all(|(tid, _)| {
            let view = views.iter().find(|v| v.tid == *tid);
            rests(state(*tid), view, has_guest)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(n: u32, mut each: impl FnMut(u32) -> (u64, u64, bool)) -> Hope {
        let mut b = Barren::default();
        (0..n).fold(Hope::Some, |_, k| {
            let (progress, ticks, rests) = each(k);
            b.look(progress, ticks, rests, Some(50))
        })
    }

    #[test]
    fn who_rests_without_getting_on_is_doubted_and_then_given_up() {
        assert_eq!(rounds(DOUBTFUL_ROUNDS, |_| (7, 1, true)), Hope::Some);
        assert_eq!(rounds(DOUBTFUL_ROUNDS + 1, |_| (7, 1, true)), Hope::Doubt);
        assert_eq!(rounds(IDLE_ROUNDS + 1, |_| (7, 1, true)), Hope::None);
    }

    #[test]
    fn naps_between_looks_count_and_looks_do_not() {
        assert_eq!(
            rounds(2 * DOUBTFUL_ROUNDS + 1, |k| (7, 1, k % 2 == 0)),
            Hope::Doubt
        );
        assert_eq!(rounds(3 * IDLE_ROUNDS, |k| (7, 1, k % 2 == 0)), Hope::None);
    }

    #[test]
    fn who_gets_on_or_computes_is_waited_for() {
        assert_eq!(rounds(500, |k| (u64::from(k), 1, true)), Hope::Some);
        assert_eq!(rounds(500, |_| (7, 1, false)), Hope::Some);
        assert_eq!(rounds(50, |k| (7, u64::from(k), false)), Hope::Some);
    }

    #[test]
    fn who_computes_without_end_is_given_up() {
        assert_eq!(rounds(100, |k| (7, u64::from(k), false)), Hope::None);
    }

    #[test]
    fn a_nap_is_a_rest_and_a_computation_is_none() {
        let view = |waiting, waiting_for| View {
            waiting,
            waiting_for,
            ..View::default()
        };
        let futex = libc::SYS_futex as u64;
        let awake = |v: &View| rests(Some('R'), Some(v), false);
        assert!(awake(&view(wait::KERNEL, futex)) && awake(&view(wait::VALUE, 1)));
        assert!(!awake(&view(wait::KERNEL, 0)) && !awake(&view(wait::NONE, 0)));
        assert!(rests(Some('S'), None, false) && !rests(Some('R'), None, false));
        assert!(rests(Some('D'), None, true) && !rests(Some('D'), None, false));
    }
}
