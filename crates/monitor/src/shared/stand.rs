//! Do the other threads of a process stand at the same place in every replica? Then all replicas have stored the
//! same, and can be compared.
//!
//! A leader's thread stands when it sleeps in the kernel: it has made all of its stores since its last record,
//! and none that belongs to the next one. (Those that are about to make a call or to take a lock are stopped by
//! the agent meanwhile.) A follower's thread stands when it waits for the record that the leader's has not made yet.

use crate::state::Monitor;
use crate::watch::View;
use geryon_abi::layout::wait;
use geryon_tracee::Pid;

/// Where they stand. If it is the same at two moments, nobody has run in between.
#[derive(PartialEq, Eq)]
pub(super) struct Standing(Vec<Thread>);

#[derive(PartialEq, Eq)]
struct Thread {
    slot: u32,
    pos: u64,
    /// How often the leader's thread has left its core.
    switches: u64,
}

impl Monitor {
    /// The threads of the leader's process `pid` besides `caller`, which has come to the same call in all replicas.
    /// None: not all of them stand.
    pub(super) fn standing(&mut self, pid: Pid, caller: Pid) -> Option<Standing> {
        let (group, leader) = self.membership(pid)?;
        let living = self.groups.get(&group)?.living();
        let others: Vec<Pid> = living.filter(|(r, _)| *r != leader).map(|m| m.1).collect();
        let mut views = self.all_views(pid)?;
        let slot = views.iter().find(|v| v.tid == caller)?.slot;
        views.retain(|v| v.slot != slot);
        for other in others {
            // It waits there: not when it had come there, but later.
            let there = self.all_views(other)?;
            let waits = self.all_views(other)?;
            let is_it = |v: &&View| v.slot != slot;
            let places = |all: &[View]| -> Vec<(u32, u64)> {
                all.iter().filter(is_it).map(|v| (v.slot, v.pos)).collect()
            };
            let all_wait = waits.iter().filter(is_it).all(|v| {
                matches!(
                    v.waiting,
                    wait::RECORD | wait::TURN | wait::KIN | wait::KERNEL
                )
            });
            let same = places(&there) == places(&views) && places(&waits) == places(&views);
            if !same || !all_wait {
                return None;
            }
        }
        let thread = |v: &View| {
            Some(Thread {
                slot: v.slot,
                pos: v.pos,
                switches: switches_of_sleeper(pid, v.tid)?,
            })
        };
        views
            .iter()
            .map(thread)
            .collect::<Option<_>>()
            .map(Standing)
    }

    /// None: some are being born, or end.
    fn all_views(&mut self, pid: Pid) -> Option<Vec<View>> {
        let views = self.views(pid);
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let lives =
            |tid: &Pid| state_and_switches(pid, *tid).is_some_and(|(s, _)| s != 'Z' && s != 'X');
        let tids = tasks
            .flatten()
            .filter_map(|t| t.file_name().to_str()?.parse().ok());
        (tids.filter(lives).count() == views.len()).then_some(views)
    }
}

/// How often a thread that sleeps, or is stopped, has left its core so far.
fn switches_of_sleeper(pid: Pid, tid: Pid) -> Option<u64> {
    let (state, switches) = state_and_switches(pid, tid)?;
    matches!(state, 'S' | 't').then_some(switches)
}

fn state_and_switches(pid: Pid, tid: Pid) -> Option<(char, u64)> {
    let text = geryon_tracee::text(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let field = |name| {
        text.lines()
            .find_map(|l| l.strip_prefix(name))
            .map(str::trim)
    };
    let number = |name| field(name)?.parse::<u64>().ok();
    let state = field("State:")?.chars().next()?;
    let switches = number("voluntary_ctxt_switches:")? + number("nonvoluntary_ctxt_switches:")?;
    Some((state, switches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_sleeper_that_has_run_meanwhile_is_told_apart() {
        let (wake, woken) = channel::<()>();
        let (tell, told) = channel();
        let sleeper = std::thread::spawn(move || {
            // SAFETY: asks for the thread's own number.
            tell.send(unsafe { libc::gettid() }).expect("it is heard");
            while woken.recv().is_ok() {}
        });
        let (pid, tid) = (std::process::id() as Pid, told.recv().expect("it says so"));
        let sleeps = || loop {
            match switches_of_sleeper(pid, tid) {
                Some(switches) => break switches,
                None => std::thread::yield_now(),
            }
        };
        let first = loop {
            let seen = sleeps();
            std::thread::sleep(std::time::Duration::from_millis(20));
            if sleeps() == seen {
                break seen;
            }
        };
        wake.send(()).expect("it listens");
        while sleeps() == first {
            std::thread::yield_now();
        }
        drop(wake);
        sleeper.join().expect("it ends");
        assert!(switches_of_sleeper(pid, tid).is_none());
    }
}
