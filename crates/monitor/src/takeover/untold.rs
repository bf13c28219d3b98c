//! Signals that the kernel has given to a leader's thread which was killed before they were in its block: no
//! queue holds them any more, and its successor has them from here. What is in the block already it has from
//! there: whether the count of those was written is what tells the two apart, and it is written once.

use super::Takeover;
use super::flight::Legacy;
use super::heir::taken;
use super::signals::Waiting;
use super::undo::under_way;
use crate::block;
use crate::signals::{are_read_from, bit, ends, is_raised, keeps};
use crate::state::{GroupId, Monitor};
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::layout::sent::{LAST, count_of, word_of};
use geryon_abi::layout::{block_address, flight};
use geryon_tracee::{Pid, RemoteMemory, Siginfo};

/// How many of each signal, from 1 on.
type Counts = [u32; LAST as usize];

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

/// How many signals the lost leader had sent itself (slot of the thread that they are for; none: the process), as it
/// noted them before it sent them, and that it had not been given.
fn sent(t: &Takeover, shown: Pid, slots: &[usize]) -> Vec<(Option<u32>, Counts)> {
    let Some(memory) = t.estate.memory() else {
        return Vec::new();
    };
    let counts = |at: u64| {
        let words = memory.words::<{ LAST as usize }>(at);
        words.map_or([0; LAST as usize], |w| w.map(count_of))
    };
    let mut sent = vec![(None, counts(private_field!(sent)))];
    for slot in slots {
        let own = counts(block_address(*slot) + block_field!(sent));
        sent.push((Some(*slot as u32), own));
    }
    for slot in slots {
        if let Some((to, unsent)) = unmade(t, memory, shown, *slot, slots) {
            let of = sent.iter_mut().filter(|(slot, _)| *slot == to);
            let of = of.filter_map(|(_, counts)| counts.get_mut(unsent));
            of.for_each(|count| *count = count.saturating_sub(1));
        }
    }
    sent
}

/// What a thread had noted, and not sent yet (one less than its number): whoever makes the call sends it.
fn unmade(
    t: &Takeover,
    memory: &RemoteMemory,
    shown: Pid,
    slot: usize,
    slots: &[usize],
) -> Option<(Option<u32>, usize)> {
    let block = block_address(slot);
    let half = |at: u64| memory.word(at).map(|w| w as u32 as Pid).ok();
    let is_made = t
        .estate
        .legacy
        .iter()
        .any(|l| l.slot == slot as u32 && l.call.is_some());
    if half(block + block_field!(flight))? as u32 != flight::BEGUN || is_made {
        return None;
    }
    let frame = memory.word(block + block_field!(frame)).ok()?;
    let args = block::arguments(memory, frame).ok()?;
    let [first, second, third, ..] = args.map(|arg| arg as u32 as Pid);
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
    Some((to, usize::try_from(signal).ok()?.checked_sub(1)?))
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

/// The signals that the lost leader's last call on a slot has read from a descriptor, if it has.
fn read(t: &Takeover, l: &Legacy) -> Option<Vec<i32>> {
    const SIZE: u64 = size_of::<libc::signalfd_siginfo>() as u64;
    let call = l.call?;
    let len = u64::try_from(call.result).ok().filter(|len| *len >= SIZE)?;
    let memory = t.estate.memory_of(l)?;
    let (_, [fd, at, ..]) = under_way(memory, l.slot, call).ok()?;
    let holder = t.predecessor(Some(l.slot.into()));
    if i64::from(call.nr) != libc::SYS_read || !are_read_from(holder, u64::from(fd as u32)) {
        return None;
    }
    let signals = (0..len / SIZE).filter_map(|i| memory.word(at + i * SIZE).ok());
    Some(signals.map(|word| word as u32 as i32).collect())
}

/// May what waits be a signal as `sent`? (Of one that was sent on no more is known than which it is.)
fn may_be(sent: &Waiting, waits: &Waiting) -> bool {
    let is_for = || sent.slot.is_none() || waits.slot.is_none() || sent.slot == waits.slot;
    let is_as = match waits.info[1] as i32 {
        libc::SI_USER => sent.slot.is_none(),
        libc::SI_TKILL => sent.slot.is_some() && is_for(),
        _ => is_for(),
    };
    is_as && waits.info[0] as i32 == sent.info[0] as i32
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
        let told = |w: &&Waiting| w.info != bare(w.info[0] as i32);
        let mut known: Vec<Waiting> = t.estate.waiting.iter().filter(told).copied().collect();
        for l in &t.estate.legacy {
            let slot = Some(l.slot);
            known.extend(l.signals.iter().map(|info| Waiting { slot, info: *info }));
            known.extend(taken(t, l).map(|info| Waiting { slot: None, info }));
        }
        let waits = |w: &Waiting| known.iter().filter(|o| may_be(w, o)).count();
        let mut all: Vec<Waiting> = Vec::new();
        for (slot, counts) in sent {
            let at = slot.map_or(private_field!(sent), |slot| {
                block_address(slot as usize) + block_field!(sent)
            });
            m.write(at, counts.map(|n| word_of(n).to_le_bytes()).as_flattened())?;
            // (Each thread has been given one at most.)
            let most = slot.map_or(slots.len(), |_| 1);
            for (signal, count) in (1..).zip(counts).filter(|(_, count)| *count != 0) {
                let w = sent_by(shown, slot, signal);
                let unseen = (count as usize).saturating_sub(waits(&w));
                all.extend(std::iter::repeat_n(w, unseen.min(most)));
            }
        }
        let caught = crate::signals::caught(pid);
        all.retain(|w| {
            let signal = w.info[0] as i32;
            !apart & bit(signal) != 0 && (caught & bit(signal) != 0 || ends(pid, signal))
        });
        // (Its successor has that call from it.)
        for signal in t.estate.legacy.iter().filter_map(|l| read(t, l)).flatten() {
            self.came(id, signal);
        }
        let posted = self.family.post.sent_to(id).into_iter().filter(|w| {
            let signal = w.info[0] as i32;
            caught & bit(signal) != 0 || ends(pid, signal) || keeps(pid, signal)
        });
        let is_new = |w: &Waiting| {
            let is_it = |o: &Waiting| o.slot.is_none() && o.info[0] == w.info[0];
            !all.iter().any(is_it) && waits(w) == 0
        };
        let posted: Vec<Waiting> = posted.filter(is_new).collect();
        all.extend(posted);
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
