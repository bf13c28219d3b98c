//! Making a fault in one replica, at a chosen moment (`--fault`), as a campaign asks for it.

mod address;
mod segment;
mod thread;
mod watched;

use crate::journal::Event;
use crate::private_field;
use crate::state::{Group, GroupId, Monitor};
use anyhow::{Result, bail};
use geryon_abi::layout::sabotage;
use geryon_fault::fault::STUCK_SAMPLE_US;
use geryon_fault::{Fault, Target, When};
use geryon_tracee::{Pid, kill};
use std::time::{Duration, Instant};
pub use watched::Watched;

/// How often it is looked whether the record has come at which a fault is due.
const EVENT_POLL: Duration = Duration::from_micros(200);
/// Between two attempts to stop a thread.
const AGAIN: Duration = Duration::from_millis(1);
/// A thread that cannot be stopped for so long is not hit.
const GIVE_UP: Duration = Duration::from_secs(2);

/// The fault that is to be made, and how far it is.
#[derive(Debug)]
pub struct Injection {
    fault: Fault,
    /// Since the program's exec.
    due: Duration,
    /// How often it is still to be made.
    left: u32,
    /// It was made, or it was told why not.
    told: bool,
    /// Since when it is tried in vain.
    tried: Option<Instant>,
    /// The thread that was hit: a stuck register stays where it is.
    victim: Option<Pid>,
    /// The instruction that is waited for.
    watched: Watched,
    /// Threads that stand still until then.
    slowed: Option<(Instant, Vec<Pid>)>,
}

/// What came of an attempt.
enum Hit {
    /// The fault is made.
    Done,
    /// Its moment has not come.
    Wait,
    /// Not now.
    Later(&'static str),
    /// It cannot be made.
    Missed(String),
}

impl Injection {
    /// The plan of a fault.
    ///
    /// # Errors
    /// For one that the monitor cannot make.
    pub fn new(fault: Fault, replicas: usize) -> Result<Injection> {
        if fault.replica as usize >= replicas {
            bail!(
                "--fault: there is no replica {}\n  try: one from 0 to {}",
                fault.replica,
                replicas - 1
            );
        }
        let due = match fault.when {
            When::Delay { us } => Duration::from_micros(us),
            When::Event { .. } | When::Address { .. } => Duration::ZERO,
        };
        let left = match fault.target {
            Target::Stuck { samples, .. } => samples,
            _ => 1,
        };
        Ok(Injection {
            fault,
            due,
            left,
            told: false,
            tried: None,
            victim: None,
            watched: Watched::of(&fault),
            slowed: None,
        })
    }

    /// How long nothing has to be done, when so much time has passed since the exec.
    fn patience(&self, elapsed: Duration) -> Option<Duration> {
        if let Some((until, _)) = &self.slowed {
            return Some(until.saturating_duration_since(Instant::now()));
        }
        if self.left == 0 {
            return None;
        }
        Some(match self.fault.when {
            _ if self.tried.is_some() => AGAIN,
            When::Event { .. } if self.victim.is_none() => EVENT_POLL,
            // A stop tells.
            When::Address { .. } if self.watched.waits() => return None,
            _ => self.due.saturating_sub(elapsed),
        })
    }
}

impl Monitor {
    /// How long the fault leaves time to wait for something else; None: for ever.
    pub(crate) fn fault_patience(&self) -> Option<Duration> {
        let elapsed = self.console.journal.elapsed()?;
        self.injection.as_ref()?.patience(elapsed)
    }

    /// Make the fault if it is due.
    pub(crate) fn make_fault(&mut self) {
        let Some(elapsed) = self.console.journal.elapsed() else {
            return;
        };
        // Stops that are served meanwhile know nothing of it.
        let Some(mut i) = self.injection.take() else {
            return;
        };
        self.go_on_with(&mut i, elapsed);
        self.injection = Some(i);
    }

    /// The run is over: a fault that was not made is told.
    pub(crate) fn fault_missed_its_time(&mut self) {
        if let Some(mut i) = self.injection.take()
            && !i.told
        {
            let why = i.watched.why().unwrap_or("the program had ended").into();
            self.miss(&mut i, why);
        }
    }

    fn go_on_with(&mut self, i: &mut Injection, elapsed: Duration) {
        if let Some((until, threads)) = i.slowed.take() {
            if until > Instant::now() {
                i.slowed = Some((until, threads));
            } else {
                self.release(&threads);
            }
            return;
        }
        if i.left == 0 || elapsed < i.due || self.outcome.is_some() || i.watched.waits() {
            return;
        }
        // What goes wrong with a process of a replica is no failure of the run.
        let hit = self
            .hit(i)
            .unwrap_or_else(|e| Hit::Missed(format!("{e:#}")));
        self.went_on(i, hit);
    }

    /// What came of an attempt.
    fn went_on(&mut self, i: &mut Injection, hit: Hit) {
        match hit {
            Hit::Done => {
                let now = self.console.journal.elapsed().unwrap_or_default();
                i.tried = None;
                i.left -= 1;
                i.due = now + Duration::from_micros(STUCK_SAMPLE_US);
            }
            Hit::Wait => i.tried = None,
            Hit::Later(why) => {
                let since = *i.tried.get_or_insert_with(Instant::now);
                if since.elapsed() > GIVE_UP {
                    self.miss(i, why.into());
                }
            }
            Hit::Missed(why) => self.miss(i, why),
        }
    }

    fn miss(&mut self, i: &mut Injection, why: String) {
        i.left = 0;
        if !std::mem::replace(&mut i.told, true) {
            self.console.journal.tell(&Event::FaultMissed {
                replica: i.fault.replica as usize,
                why,
            });
        }
    }

    /// Before it is made, so that the journal has it even if the monitor is what is hit.
    fn tell_hit(&mut self, i: &mut Injection) {
        if !std::mem::replace(&mut i.told, true) {
            self.console.journal.tell(&Event::FaultInjected {
                replica: i.fault.replica as usize,
                target: i.fault.target.to_string(),
            });
        }
    }

    fn hit(&mut self, i: &mut Injection) -> Result<Hit> {
        let replica = i.fault.replica as usize;
        if i.fault.target == Target::Monitor {
            self.tell_hit(i);
            kill(std::process::id() as Pid, libc::SIGKILL);
            return Ok(Hit::Done);
        }
        // Between two programs there is no group.
        let Some((id, _)) = self.membership(self.family.root) else {
            return Ok(Hit::Later("the program has no replicas at the moment"));
        };
        let member = self.groups.get(&id).and_then(|g| g.members[replica].pid);
        let Some(pid) = member else {
            return Ok(Hit::Later("the replica is not there"));
        };
        if let When::Event { nth } = i.fault.when
            && i.victim.is_none()
            && self.words_of(id, replica) < nth
        {
            return Ok(Hit::Wait);
        }
        match i.fault.target {
            Target::Log { number, bit } => Ok(self.hit_log(i, id, number, bit)),
            Target::Progress { number, bit } => Ok(self.hit_progress(i, id, number, bit)),
            Target::Canary => self.hit_output(i, id),
            Target::Stop | Target::Slow { .. } => self.hit_all_threads(i, pid),
            _ => self.hit_thread(i, pid),
        }
    }

    /// Words of the log that the replica has written or read.
    fn words_of(&self, id: GroupId, replica: usize) -> u64 {
        self.groups.get(&id).map_or(0, |g| {
            segment::words(&g.segment, (replica != g.leader).then_some(replica))
        })
    }

    /// The first process is about to end: so many words are in its log.
    pub(crate) fn count_events(&mut self, tid: Pid) {
        if tid == self.family.root
            && let Some((id, replica)) = self.membership(tid)
        {
            self.console
                .journal
                .count_events(self.words_of(id, replica));
        }
    }

    fn hit_log(&mut self, i: &mut Injection, id: GroupId, number: u64, bit: u32) -> Hit {
        match self.groups.get(&id) {
            Some(g) if segment::flip_log(&g.segment, number, bit) => {
                self.tell_hit(i);
                Hit::Done
            }
            _ => Hit::Later("the log is empty"),
        }
    }

    fn hit_progress(&mut self, i: &mut Injection, id: GroupId, number: u64, bit: u32) -> Hit {
        let replica = i.fault.replica as usize;
        match self.groups.get(&id) {
            Some(g) if segment::flip_progress(&g.segment, replica, number, bit) => {
                self.tell_hit(i);
                Hit::Done
            }
            _ => Hit::Later("the log is empty"),
        }
    }

    /// The leader's agent spoils its next output behind the confirmation.
    fn hit_output(&mut self, i: &mut Injection, id: GroupId) -> Result<Hit> {
        let Some(pid) = self.groups.get(&id).and_then(Group::leader_pid) else {
            return Ok(Hit::Later("the program has no leader at the moment"));
        };
        let what = sabotage::UNCHECKED.to_le_bytes();
        self.memory(pid)?.write(private_field!(sabotage), &what)?;
        self.tell_hit(i);
        Ok(Hit::Done)
    }

    /// All threads of the process stand still, for a while or for ever.
    fn hit_all_threads(&mut self, i: &mut Injection, pid: Pid) -> Result<Hit> {
        let Some(threads) = self.halt(pid)? else {
            return Ok(Hit::Later("its threads do not stop"));
        };
        self.tell_hit(i);
        if let Target::Slow { ms } = i.fault.target {
            i.slowed = Some((Instant::now() + Duration::from_millis(ms), threads));
        }
        Ok(Hit::Done)
    }

    /// One thread is stopped, hit, and let go.
    fn hit_thread(&mut self, i: &mut Injection, pid: Pid) -> Result<Hit> {
        let tid = match i.victim {
            Some(tid) if !self.threads.contains_key(&tid) => {
                return Ok(Hit::Missed("the thread has ended".into()));
            }
            Some(tid) => tid,
            None => self.choose_thread(pid, i.fault.thread),
        };
        if !self.hold(tid)? {
            return Ok(Hit::Later("the thread does not stop"));
        }
        if self.is_kernels(tid, pid, &i.fault.target)? {
            self.release(&[tid]);
            return Ok(Hit::Later(
                "the thread is in a call, and the kernel has what is to be hit",
            ));
        }
        let struck = self.strike(tid, pid, &i.fault.target);
        if matches!(struck, Ok(Ok(()))) {
            i.victim = Some(tid);
            self.tell_hit(i);
        }
        self.release(&[tid]);
        Ok(match struck? {
            Ok(()) => Hit::Done,
            Err(why) => Hit::Missed(why),
        })
    }

    /// In the order of their ids, modulo their number.
    fn choose_thread(&self, pid: Pid, nth: u64) -> Pid {
        let mut threads: Vec<Pid> = self
            .threads
            .iter()
            .filter(|(_, t)| t.pid == pid)
            .map(|(tid, _)| *tid)
            .collect();
        threads.sort_unstable();
        let nth = nth.checked_rem(threads.len() as u64).unwrap_or(0);
        threads.get(nth as usize).copied().unwrap_or(pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injection(spec: &str) -> Result<Injection> {
        Injection::new(spec.parse().expect("a fault"), 3)
    }

    #[test]
    fn a_delay_is_waited_for() {
        let i = injection("replica=1,when=delay:5000,target=crash").expect("a plan");
        let ms = Duration::from_millis;
        assert_eq!(i.patience(ms(2)), Some(ms(3)));
        assert_eq!(i.patience(ms(9)), Some(ms(0)));
        let done = Injection { left: 0, ..i };
        assert_eq!(done.patience(ms(9)), None);
    }

    #[test]
    fn a_stuck_register_is_set_again() {
        let i = injection("when=delay:1,target=stuck:rax:0x0:7").expect("a plan");
        assert_eq!(i.left, 7);
    }

    #[test]
    fn an_instruction_is_not_waited_for_by_the_clock() {
        let i = injection("when=at:main:3,target=crash").expect("a plan");
        assert_eq!(i.patience(Duration::from_secs(1)), None);
        assert!(i.watched.waits());
    }

    #[test]
    fn what_cannot_be_made_is_told_at_once() {
        let wrong = |spec: &str| format!("{:#}", injection(spec).expect_err("no such fault"));
        let text = wrong("replica=3,when=delay:1,target=crash");
        assert!(
            text.contains("no replica 3") && text.contains("try:"),
            "{text}"
        );
    }
}
