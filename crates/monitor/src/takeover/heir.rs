//! What the kernel keeps for a leader's process alone, and its successor is to know: which timers have rung, and
//! whom its ids name.

use super::Takeover;
use super::flight::Legacy;
use super::undo::under_way;
use crate::state::{Family, Monitor};
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::layout::{INTERVAL_TIMERS, MAX_TIMERS, Timer, block_address};
use geryon_tracee::{Pid, Siginfo};
use std::mem::offset_of;

/// Signals of the interval timers, in their order.
const SIGNALS: [i32; INTERVAL_TIMERS] = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF];
const SI_KERNEL: i32 = 0x80;
const NANOSECONDS: u64 = 1_000_000_000;

fn monotonic() -> u64 {
    // SAFETY: plain call with a local structure.
    let t = unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t);
        t
    };
    t.tv_sec as u64 * NANOSECONDS + t.tv_nsec as u64
}

impl Monitor {
    /// The successor will set its timers again, but for those that have rung once already and whose signals
    /// it has got.
    pub(super) fn pass_on_timers(&mut self, t: &Takeover, pid: Pid) -> Result<()> {
        let ago = t.since.elapsed().as_nanos() as u64;
        let waiting = t.estate.waiting.iter().map(|w| w.info);
        let signals: Vec<Siginfo> = waiting
            .chain(
                t.estate
                    .legacy
                    .iter()
                    .flat_map(|l| l.signals.iter().copied()),
            )
            .chain(t.estate.legacy.iter().filter_map(|l| taken(t, l)))
            .collect();
        let m = self.memory(pid)?;
        m.set_word(private_field!(lost_at), monotonic().saturating_sub(ago))?;
        let at = |i: usize| private_field!(timers) + (size_of::<Timer>() * i) as u64;
        for info in signals {
            let (signal, code) = (info[0] as i32, info[1] as i32);
            let found = match code {
                SI_KERNEL => SIGNALS.iter().position(|s| *s == signal),
                libc::SI_TIMER => (INTERVAL_TIMERS..MAX_TIMERS).find(|i| {
                    // Whether it exists, and its id.
                    let of_it = 1 | (u64::from(info[2] as u32) << 32);
                    m.word(at(*i)).is_ok_and(|w| w == of_it)
                }),
                _ => None,
            };
            if let Some(i) = found {
                m.set_word(at(i) + offset_of!(Timer, rung) as u64, 1)?;
            }
        }
        Ok(())
    }
}

impl Family {
    /// The leaders that this takeover has come after are gone.
    pub(crate) fn note_lost(&mut self, shown: Pid, t: &Takeover) {
        for pid in t.lost.formers.iter().chain([&t.lost.process]) {
            self.note_gone(*pid, shown);
        }
    }
}

impl Monitor {
    /// What the program calls a process or a thread of a leader that has just been lost (the descriptors that
    /// its successor has from it name it still), or a process that has led and is gone.
    pub(crate) fn shown_before(&self, id: Pid) -> Option<Pid> {
        let lost = self.groups.values().find_map(|g| {
            let t = g.takeover.as_ref()?;
            if t.lost.process == id || t.lost.formers.contains(&id) {
                return Some(g.name.shown);
            }
            let slot = self.kit.image.slot_of(t.lost.bodies.get(&id)?)?;
            let at = block_address(slot) + block_field!(shown_tid);
            t.estate.memory()?.word(at).ok().map(|w| w as u32 as Pid)
        });
        let gone = || self.family.gone.iter().rev().find(|(pid, _)| *pid == id);
        lost.or_else(|| gone().map(|(_, shown)| *shown))
    }
}

/// The signal that the lost leader's last call on a slot has taken, if it waited for one.
pub(super) fn taken(t: &Takeover, legacy: &Legacy) -> Option<Siginfo> {
    let call = legacy.call?;
    if i64::from(call.nr) != libc::SYS_rt_sigtimedwait || call.result <= 0 {
        return None;
    }
    let memory = t.estate.memory_of(legacy)?;
    let (_, [_, info, ..]) = under_way(memory, legacy.slot, call).ok()?;
    memory.words(info).ok()
}
