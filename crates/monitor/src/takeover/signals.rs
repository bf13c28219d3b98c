//! Signals that waited in the kernel for a leader's process when it was lost, because they were blocked
//! or because it was killed before it could take them: its successor's process has them from then on. (Not
//! what an instruction of a thread has raised, which was killed before it could be told: there is nothing to
//! tell the successor, which executes that instruction itself, if it is the program's.)

use super::Takeover;
use super::flight::Call;
use super::untold::bare;
use crate::block_field;
use crate::signals::{bit, blocked, is_fault, is_sent, with_sender};
use crate::state::{GroupId, Monitor};
use anyhow::Result;
use geryon_abi::layout::{block_address, waited};
use geryon_tracee::{Pid, Queue, Siginfo, Stopped, kill, queue_signal, signal_thread};

/// Only so many of one process's are kept to be told apart later.
const MANY: usize = 256;

/// That a child has ended: which one is found out when it is taken.
const CHILD_SIGNAL: Siginfo = {
    let mut info = [0; 16];
    info[0] = libc::SIGCHLD as u64;
    info[1] = libc::CLD_EXITED as u64;
    info
};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// For the thread on this slot only.
    pub(super) slot: Option<u32>,
    pub(super) info: Siginfo,
}

fn signal_of(info: &Siginfo) -> i32 {
    info[0] as i32
}

fn code_of(info: &Siginfo) -> i32 {
    info[1] as i32
}

fn sender_of(info: &Siginfo) -> Pid {
    info[2] as Pid
}

/// As another process may send it: the kernel keeps the codes of `kill` and its own for itself.
fn as_sent(info: &Siginfo) -> Siginfo {
    let mut sent = *info;
    let code = code_of(info);
    if code >= 0 || code == libc::SI_TKILL {
        sent[1] = info[1] & !u64::from(u32::MAX) | u64::from(libc::SI_QUEUE as u32);
    }
    sent
}

/// What it showed before it was sent on, if it is one of these.
pub(crate) fn as_it_was(inherited: &mut Vec<Siginfo>, info: &Siginfo) -> Option<Siginfo> {
    // Number, error, code, sender, value: the rest is not of such a signal.
    let same = |i: &Siginfo| as_sent(i)[..4] == info[..4];
    let at = inherited.iter().position(same)?;
    Some(inherited.remove(at))
}

impl Monitor {
    /// The former leader's threads are at their ends: what waits for them there?
    pub(super) fn find_waiting(&mut self, id: GroupId, t: &mut Takeover) {
        let mut found = Vec::new();
        let (mut whole, mut unread) = (false, false);
        for (tid, regs) in &t.lost.bodies {
            let thread = self.threads.get(tid);
            if thread.is_none_or(|th| th.pid != t.lost.process) {
                // A vfork's child's.
                continue;
            }
            let slot = self.kit.image.slot_of(regs).map(|s| s as u32);
            if let (Some(slot), Some(th)) = (slot, thread) {
                let own = Stopped(*tid).queued(Queue::Thread);
                unread |= own.is_err();
                let mut own = own.unwrap_or_default();
                // Those that the monitor has sent: one of the log's, and others behind it.
                own.retain(|i| {
                    let logged = th.inject.is_some_and(|l| signal_of(&l) == signal_of(i));
                    let again = th.resent.iter().any(|r| signal_of(r) == signal_of(i));
                    !(is_ours(i) && (logged || again))
                });
                let sent = th.resent.iter().chain(&th.overtaken);
                let all = sent.chain(&th.untold).chain(&own);
                found.extend(all.map(|info| Waiting {
                    slot: Some(slot),
                    info: *info,
                }));
            }
            if !whole && let Ok(shared) = Stopped(*tid).queued(Queue::Process) {
                whole = true;
                found.extend(shared.iter().map(|info| Waiting {
                    slot: None,
                    info: *info,
                }));
            }
        }
        if unread || (!whole && !t.lost.bodies.is_empty()) {
            self.say("signals that waited for the lost leader could not be read; they are lost");
        }
        // That a child died which was killed with it is nothing that has happened.
        let killed_with_it =
            |i: &Siginfo| is_of_child(i) && self.family.deposed.contains(&sender_of(i));
        let broken_pipes = &t.estate.broken_pipes;
        let comes_again = |w: &Waiting| {
            signal_of(&w.info) == libc::SIGPIPE
                && code_of(&w.info) == libc::SI_USER
                && w.slot.is_some_and(|slot| broken_pipes.contains(&slot))
        };
        found.retain(|w| {
            let signal = signal_of(&w.info);
            !matches!(signal, libc::SIGKILL | libc::SIGSTOP)
                && !killed_with_it(&w.info)
                && !is_fault(signal, &w.info)
                && !comes_again(w)
        });
        let shown = self.groups.get(&id).map(|g| g.name.shown);
        if shown != Some(t.lost.process) {
            // What its kernel says speaks of children that the program does not know.
            let of_child = found.iter_mut().filter(|w| is_of_child(&w.info));
            of_child.for_each(|w| w.info = CHILD_SIGNAL);
        }
        // One that a call has taken comes with that. (Of what the first leader's kernel says no more is to be found out.)
        let takes = |c: Call| {
            i64::from(c.nr) == libc::SYS_rt_sigtimedwait && c.result == i64::from(libc::SIGCHLD)
        };
        let is_taken = t.estate.legacy.iter().filter_map(|l| l.call).any(takes);
        if let Some(g) = self.groups.get_mut(&id).filter(|_| is_taken) {
            g.parenthood.given_by_first = g.name.shown == t.lost.process;
        }
        if let Some(own) = shown.filter(|own| is_taken && *own == t.lost.process) {
            self.tell_of_all(own);
        }
        // One that it was sent and has not taken may show as one of those.
        let is_child = |w: &Waiting| signal_of(&w.info) == libc::SIGCHLD;
        let process = self.processes.get(&t.lost.process);
        let owed = process.and_then(|p| p.pending.child_owed);
        let untold = || self.untold_child(id, t.lost.process).filter(|_| !is_taken);
        if let Some(info) = owed.or_else(untold) {
            found.insert(0, Waiting { slot: None, info });
        } else if process.is_some_and(|p| p.pending.child_signal) && !found.iter().any(is_child) {
            found.push(Waiting {
                slot: None,
                info: CHILD_SIGNAL,
            });
        }
        if let Some(p) = self.processes.get_mut(&t.lost.process) {
            for w in &mut found {
                if let Some(info) = as_it_was(&mut p.pending.inherited, &w.info) {
                    w.info = info;
                }
            }
        }
        for w in &mut found {
            // Its own are its successor's.
            if let Some(shown) =
                shown.filter(|_| is_sent(&w.info) && sender_of(&w.info) == t.lost.process)
            {
                w.info = with_sender(w.info, shown);
            }
        }
        t.estate.waiting = found;
    }

    /// The former leader's call had let signals in which shut the successor's thread still out, since it has that call
    /// before it: they wait in its kernel, and not in its block, from where they would come too early.
    pub(super) fn hold_back(&mut self, t: &mut Takeover, pid: Pid) -> Result<()> {
        let mut back = Vec::new();
        for l in t.estate.legacy.iter_mut().filter(|l| !l.signals.is_empty()) {
            let Some(thread) = self.thread_on(pid, l.slot)? else {
                continue;
            };
            let blocked = match self.threads.get(&thread) {
                Some(th) if !th.takes_signal() => blocked(thread),
                _ => continue,
            };
            let (shut_out, others) = l.signals.iter().partition(|i| {
                let signal = signal_of(i);
                (1..=64).contains(&signal) && blocked & bit(signal) != 0
            });
            l.signals = others;
            let shut_out: Vec<Siginfo> = shut_out;
            back.extend(shut_out.into_iter().map(|info| Waiting {
                slot: (code_of(&info) == libc::SI_TKILL).then_some(l.slot),
                info,
            }));
        }
        // (The kernel had given them before those that wait.)
        t.estate.waiting.splice(0..0, back);
        Ok(())
    }

    /// The process's thread with this block, if it is alive.
    fn thread_on(&mut self, pid: Pid, slot: u32) -> Result<Option<Pid>> {
        let mut tid = [0; 4];
        let at = block_address(slot as usize) + block_field!(own_tid);
        self.memory(pid)?.read(at, &mut tid)?;
        let tid = Pid::from_le_bytes(tid);
        let is_its = self.threads.get(&tid).is_some_and(|th| th.pid == pid);
        Ok(is_its.then_some(tid))
    }

    /// The successor is about to lead: they wait for it now.
    pub(super) fn pass_on_waiting(&mut self, id: GroupId, t: &Takeover, pid: Pid) -> Result<()> {
        let unseen = self.unseen(id, t, pid)?;
        // (Of one that nobody could ask about more is known here.)
        let is_same = |w: &Waiting, o: &Waiting| signal_of(&w.info) == signal_of(&o.info);
        let is_unknown = |w: &&Waiting| w.info == bare(signal_of(&w.info));
        let waiting = t.estate.waiting.iter();
        let waiting = waiting.filter(|w| !is_unknown(w) || !unseen.iter().any(|o| is_same(w, o)));
        for w in waiting.chain(&unseen) {
            // It would stop before it leads.
            if let Some(g) = self.groups.get_mut(&id)
                && crate::signals::stops(pid, signal_of(&w.info))
            {
                g.job.stops_later(signal_of(&w.info));
                continue;
            }
            let tid = match w.slot {
                Some(slot) => match self.thread_on(pid, slot)? {
                    // What waits for a thread that has ended ends with it.
                    None => continue,
                    tid => tid,
                },
                None => None,
            };
            self.pass_on(pid, tid, &w.info);
        }
        Ok(())
    }

    /// A leader's thread has waited for a signal, and its siginfo is here, if anywhere: what it is to show. `is_given`: a leader before
    /// it has, and may have asked.
    ///
    /// # Errors
    /// The process is gone.
    pub(crate) fn show_waited_for(
        &mut self,
        (tid, pid): (Pid, Pid),
        at: u64,
        signal: i32,
        is_given: bool,
    ) -> Result<i64> {
        /// Number, error, code, sender, value.
        const TOLD: usize = 4;
        let mut info = [0; 16];
        let told = self.memory(pid)?.words::<TOLD>(at);
        match told {
            Ok(told) => info[..TOLD].copy_from_slice(&told),
            Err(_) => {
                info = CHILD_SIGNAL;
                info[2] = std::process::id().into();
            }
        }
        let group = self.membership(pid).map(|(id, _)| id);
        let adopted = group.and_then(|id| self.groups.get(&id));
        let adopted = adopted.is_some_and(|g| g.parenthood.adopted);
        let (shows, answer) = match (signal, group) {
            (libc::SIGCHLD, Some(id)) if !adopted => {
                self.child_signal_came(id, &info);
                (None, waited::KNOWN)
            }
            (libc::SIGCHLD, Some(id)) if is_given && self.speaks_of_child(id, &info) => {
                (None, waited::SHOWN)
            }
            (libc::SIGCHLD, Some(_)) => match self.child_signal(tid, pid, &info) {
                Some(info) => (Some(info), waited::SHOWN),
                None if is_given && told.is_err() => (None, waited::SHOWN),
                None => return Ok(waited::NONE),
            },
            _ => {
                let process = self.processes.get_mut(&pid);
                let was = process.and_then(|p| as_it_was(&mut p.pending.inherited, &info));
                (was, waited::KNOWN)
            }
        };
        if let Some(info) = shows.filter(|_| told.is_ok()) {
            for (i, word) in info[..TOLD].iter().enumerate() {
                self.memory(pid)?.set_word(at + 8 * i as u64, *word)?;
            }
        }
        Ok(answer)
    }

    /// Send a process a signal, to be seen as `info` says.
    pub(crate) fn pass_on(&mut self, pid: Pid, tid: Option<Pid>, info: &Siginfo) {
        let signal = signal_of(info);
        if is_of_child(info) || (signal == libc::SIGCHLD && is_ours(info)) {
            if let Some(p) = self.processes.get_mut(&pid)
                && is_of_child(info)
                && sender_of(info) != 0
            {
                // (That child may have been waited for, and the program has been told of it nevertheless.)
                p.pending.child_owed.get_or_insert(*info);
            }
            // Otherwise it is found out when it is taken of which child it speaks.
            return self.send_child_signal(pid);
        }
        let sent = as_sent(info);
        if queue_signal(pid, tid, &sent).is_err() {
            // It says less of itself, but it is there.
            match tid {
                Some(tid) => drop(signal_thread(pid, tid, signal)),
                None => kill(pid, signal),
            }
            return;
        }
        if sent != *info
            && let Some(p) = self.processes.get_mut(&pid)
            && p.pending.inherited.len() < MANY
        {
            p.pending.inherited.push(*info);
        }
    }
}

/// Does it say that a child has ended? (The program may have sent itself a SIGCHLD, too.)
fn is_of_child(info: &Siginfo) -> bool {
    signal_of(info) == libc::SIGCHLD && code_of(info) > 0
}

/// Was it sent by this process?
fn is_ours(info: &Siginfo) -> bool {
    sender_of(info) == std::process::id() as Pid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(code: i32) -> Siginfo {
        let mut info = [0; 16];
        info[0] = libc::SIGUSR2 as u64;
        info[1] = u64::from(code as u32);
        info[2] = 77;
        info
    }

    #[test]
    fn what_others_may_send_is_sent_as_it_is() {
        for code in [libc::SI_QUEUE, libc::SI_TIMER, libc::SI_ASYNCIO] {
            assert_eq!(as_sent(&info(code)), info(code));
        }
    }

    #[test]
    fn what_others_may_not_send_is_known_again() {
        for code in [libc::SI_USER, libc::SI_TKILL, 0x80] {
            let sent = as_sent(&info(code));
            assert_eq!(sent, info(libc::SI_QUEUE));
            let mut inherited = vec![info(code)];
            let mut other = sent;
            other[2] = 78;
            assert_eq!(as_it_was(&mut inherited, &other), None);
            assert_eq!(as_it_was(&mut inherited, &sent), Some(info(code)));
            assert_eq!(as_it_was(&mut inherited, &sent), None);
        }
    }
}
