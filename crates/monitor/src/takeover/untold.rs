//! Signals that the kernel has given to a leader's thread which was killed before they were in its block: no
//! queue holds them any more, and its successor has them from here. What is in the block already it has from
//! there: whether the count of those was written is what tells the two apart, and it is written once.

use super::Takeover;
use super::flight::Legacy;
use super::heir::taken;
use super::signals::Waiting;
use crate::signals::{bit, is_raised};
use crate::state::{GroupId, Monitor};
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::frame::Frame;
use geryon_abi::layout::block_address;
use geryon_tracee::{Pid, Siginfo};
use std::mem::offset_of;

/// Of the signals beyond these each that is sent comes: they are not known here.
const LAST: i32 = 31;

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

/// Which signal a thread has sent itself by a call that was made, and of which the log does not tell.
fn sends(t: &Takeover, legacy: &Legacy, shown: Pid) -> Option<Waiting> {
    let call = legacy.call.filter(|c| c.result == 0)?;
    let memory = t.memories.get(legacy.whose)?;
    let block = block_address(legacy.slot as usize);
    let frame = memory.word(block + block_field!(frame)).ok()?;
    let arg = |o: usize| memory.word(frame + o as u64).map(|w| w as u32 as Pid);
    let first = arg(offset_of!(Frame, rdi)).ok()?;
    let second = arg(offset_of!(Frame, rsi)).ok()?;
    let third = arg(offset_of!(Frame, rdx)).ok()?;
    let own = memory.word(block + block_field!(shown_tid)).ok()? as u32 as Pid;
    let alone = memory.word(private_field!(multi)).ok()? as u32 == 0;
    let (slot, signal) = match i64::from(call.nr) {
        libc::SYS_kill if first == shown && alone => (None, second),
        libc::SYS_tkill if first == own => (Some(legacy.slot), second),
        libc::SYS_tgkill if second == own => (Some(legacy.slot), third),
        _ => return None,
    };
    (1..=LAST)
        .contains(&signal)
        .then(|| sent_by(shown, slot, signal))
}

/// As the program sends it.
fn sent_by(shown: Pid, slot: Option<u32>, signal: i32) -> Waiting {
    let code = slot.map_or(libc::SI_USER, |_| libc::SI_TKILL);
    // SAFETY: plain call.
    let user = unsafe { libc::getuid() };
    let mut info = bare(signal);
    info[1] = u64::from(code as u32);
    info[2] = u64::from(shown as u32) | u64::from(user) << 32;
    Waiting { slot, info }
}

impl Monitor {
    /// What the program has sent itself, by the log or by the lost leader's last calls, and what has neither come
    /// nor waits: the kernel had given it to a thread that was killed before anybody was told.
    pub(super) fn unseen(&mut self, id: GroupId, t: &Takeover, pid: Pid) -> Result<Vec<Waiting>> {
        let Some(g) = self.groups.get(&id) else {
            return Ok(Vec::new());
        };
        let (shown, slots) = (g.name.shown, g.segment.touched());
        let m = self.memory(pid)?;
        let apart = m.word(private_field!(sent_apart))?;
        let mut sent = vec![(None, m.word(private_field!(sent))?)];
        for slot in slots {
            let own = m.word(block_address(slot) + block_field!(sent))?;
            sent.push((Some(slot as u32), own));
        }
        let mut all: Vec<Waiting> = Vec::new();
        for (slot, bits) in sent {
            let set = (1..=LAST).filter(|s| bits & bit(*s) != 0);
            all.extend(set.map(|s| sent_by(shown, slot, s)));
        }
        for made in t.legacy.iter().filter_map(|l| sends(t, l, shown)) {
            if !all.contains(&made) {
                all.push(made);
            }
        }
        let caught = crate::signals::caught(pid) & !apart;
        let waits = |w: &Waiting| {
            let signal = |i: &Siginfo| i[0] as i32 == w.info[0] as i32;
            let is_for = |slot: Option<u32>| w.slot.is_none() || slot.is_none() || w.slot == slot;
            let noted = |l: &Legacy| is_for(Some(l.slot)) && l.signals.iter().any(signal);
            t.waiting.iter().any(|o| is_for(o.slot) && signal(&o.info))
                || t.legacy.iter().any(noted)
                || t.legacy
                    .iter()
                    .filter_map(|l| taken(t, l))
                    .any(|i| signal(&i))
        };
        all.retain(|w| caught & bit(w.info[0] as i32) != 0 && !waits(w));
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

    /// Is there a child of whose end the lost leader's handler of SIGCHLD was not told, and is to be?
    pub(super) fn owes_child_signal(&self, id: GroupId, pid: Pid) -> bool {
        let shown = self.groups.get(&id).map(|g| g.name.shown);
        crate::signals::caught(pid) & bit(libc::SIGCHLD) != 0
            && shown.is_some_and(|shown| self.has_untold_child(shown))
    }
}
