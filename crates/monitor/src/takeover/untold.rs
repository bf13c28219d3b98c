//! Signals that the kernel has given to a leader's thread which was killed before they were in its block: no
//! queue holds them any more, and its successor has them from here. What is in the block already it has from
//! there: whether the count of those was written is what tells the two apart, and it is written once.

use super::Takeover;
use super::flight::Legacy;
use super::heir::taken;
use super::signals::Waiting;
use crate::signals::{bit, ends, is_raised};
use crate::state::{GroupId, Monitor};
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::frame::Frame;
use geryon_abi::layout::sent::{bits_of, words_of};
use geryon_abi::layout::{block_address, flight};
use geryon_tracee::{Pid, RemoteMemory, Siginfo};
use std::mem::offset_of;

const LAST: i32 = 64;

/// All that is known of a signal whose thread was gone when it was asked.
pub(crate) fn bare(signal: i32) -> Siginfo {
    let mut info = [0; 16];
    info[0] = signal as u64;
    if signal == libc::SIGCHLD {
        // Which child it is is found out when it is taken.
        info[1] = libc::CLD_EXITED as u64;
    }
    info
}

/// Which signals the lost leader had sent itself (slot of the thread that each is for; none: the process), as it
/// noted them before it sent them, and that it had not been given.
fn sent(t: &Takeover, shown: Pid, slots: &[usize]) -> Vec<(Option<u32>, u64)> {
    let Some(memory) = t.memories.first() else {
        return Vec::new();
    };
    let bits = |at: u64| memory.words(at).map_or(0, bits_of);
    let mut sent = vec![(None, bits(private_field!(sent)))];
    for slot in slots {
        let own = bits(block_address(*slot) + block_field!(sent));
        sent.push((Some(*slot as u32), own));
    }
    for slot in slots {
        if let Some((to, unsent)) = unmade(t, memory, shown, *slot, slots) {
            let of = sent.iter_mut().filter(|(slot, _)| *slot == to);
            of.for_each(|(_, bits)| *bits &= !unsent);
        }
    }
    sent
}

/// What a thread had noted, and not sent yet: whoever makes the call sends it.
fn unmade(
    t: &Takeover,
    memory: &RemoteMemory,
    shown: Pid,
    slot: usize,
    slots: &[usize],
) -> Option<(Option<u32>, u64)> {
    let block = block_address(slot);
    let half = |at: u64| memory.word(at).map(|w| w as u32 as Pid).ok();
    let is_made = t
        .legacy
        .iter()
        .any(|l| l.slot == slot as u32 && l.call.is_some());
    if half(block + block_field!(flight))? as u32 != flight::BEGUN || is_made {
        return None;
    }
    let frame = memory.word(block + block_field!(frame)).ok()?;
    let arg = |o: usize| half(frame + o as u64);
    let [first, second, third] = [
        arg(offset_of!(Frame, rdi))?,
        arg(offset_of!(Frame, rsi))?,
        arg(offset_of!(Frame, rdx))?,
    ];
    let thread = |id: Pid| {
        let called = |s: &&usize| half(block_address(**s) + block_field!(shown_tid)) == Some(id);
        slots.iter().find(called).map(|s| *s as u32)
    };
    let (to, signal) = match i64::from(half(block + block_field!(flight_nr))?) {
        libc::SYS_kill if first == shown => (None, second),
        libc::SYS_tkill => (Some(thread(first)?), second),
        libc::SYS_tgkill if first == shown => (Some(thread(second)?), third),
        _ => return None,
    };
    (1..=LAST).contains(&signal).then(|| (to, bit(signal)))
}

/// As the program sends it.
pub(super) fn sent_by(shown: Pid, slot: Option<u32>, signal: i32) -> Waiting {
    let code = slot.map_or(libc::SI_USER, |_| libc::SI_TKILL);
    // SAFETY: plain call.
    let user = unsafe { libc::getuid() };
    let mut info = bare(signal);
    info[1] = u64::from(code as u32);
    info[2] = u64::from(shown as u32) | u64::from(user) << 32;
    Waiting { slot, info }
}

impl Monitor {
    /// What the program has sent itself, or another of its processes, and what has neither come nor waits: the kernel had given it to a thread
    /// that was killed before anybody was told. The successor notes as sent what its predecessor did.
    pub(super) fn unseen(&mut self, id: GroupId, t: &Takeover, pid: Pid) -> Result<Vec<Waiting>> {
        let Some(g) = self.groups.get(&id) else {
            return Ok(Vec::new());
        };
        let (shown, slots) = (g.name.shown, g.segment.touched());
        let sent = sent(t, shown, &slots);
        let m = self.memory(pid)?;
        let apart = m.word(private_field!(sent_apart))?;
        let mut all: Vec<Waiting> = Vec::new();
        for (slot, bits) in sent {
            let at = slot.map_or(private_field!(sent), |slot| {
                block_address(slot as usize) + block_field!(sent)
            });
            for (i, word) in words_of(bits).into_iter().enumerate() {
                m.set_word(at + 8 * i as u64, word)?;
            }
            let set = (1..=LAST).filter(|s| bits & bit(*s) != 0);
            all.extend(set.map(|s| sent_by(shown, slot, s)));
        }
        let caught = crate::signals::caught(pid) & !apart;
        let waits = |w: &Waiting| {
            let signal = |i: &Siginfo| i[0] as i32 == w.info[0] as i32;
            let is_for = |slot: Option<u32>| w.slot.is_none() || slot.is_none() || w.slot == slot;
            let noted = |l: &Legacy| is_for(Some(l.slot)) && l.signals.iter().any(signal);
            let told = |o: &&Waiting| o.info != bare(o.info[0] as i32);
            let mut waiting = t.waiting.iter().filter(told);
            waiting.any(|o| is_for(o.slot) && signal(&o.info))
                || t.legacy.iter().any(noted)
                || t.legacy
                    .iter()
                    .filter_map(|l| taken(t, l))
                    .any(|i| signal(&i))
        };
        all.retain(|w| caught & bit(w.info[0] as i32) != 0);
        let posted = self.posted(id).into_iter().filter(|w| {
            let signal = w.info[0] as i32;
            caught & bit(signal) != 0 || ends(pid, signal)
        });
        let is_new = |w: &Waiting| {
            all.iter()
                .all(|o| o.slot.is_some() || o.info[0] != w.info[0])
        };
        let posted: Vec<Waiting> = posted.filter(is_new).collect();
        all.extend(posted);
        all.retain(|w| !waits(w));
        Ok(all)
    }

    /// A leader's thread was killed between its stop for this signal and its being noted.
    pub(crate) fn untold(&mut self, tid: Pid, info: &Siginfo) {
        let signal = info[0] as i32;
        let Some(t) = self.threads.get_mut(&tid) else {
            return;
        };
        // (What an instruction has raised its successor finds itself.)
        if is_raised(signal) {
            return;
        }
        t.untold.push(*info);
        let child = info[2] as u32 as Pid;
        if signal == libc::SIGCHLD && info[1] as i32 > 0 {
            self.child_untold(child);
        }
    }

    /// What the lost leader's handler of SIGCHLD was to be told, and was not.
    pub(super) fn untold_child(&self, id: GroupId, pid: Pid) -> Option<Siginfo> {
        let caught = crate::signals::caught(pid) & bit(libc::SIGCHLD) != 0;
        let g = self.groups.get(&id).filter(|_| caught)?;
        self.news_of_children(g.name.shown)
    }
}
