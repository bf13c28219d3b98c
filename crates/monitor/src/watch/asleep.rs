//! Replicas that use no processor time although it is their turn: threads that nobody wakes, or
//! that were stopped and forgotten. Time in which the machine sleeps, or in which others have the
//! cores, does not count: a thread that waits for a core is runnable.

use super::{Monitor, ROUND};
use crate::state::GroupId;
use geryon_tracee::{Pid, state};
use std::time::Duration;

/// Threads that stand still by a debugger's means, which is the monitor's, do not wake up.
const STOPPED_ROUNDS: u32 = rounds(Duration::from_secs(4));
/// Threads are woken when the record comes that they wait for.
const DEAF_ROUNDS: u32 = rounds(Duration::from_secs(2));
/// Threads that sleep may still wake up.
const ASLEEP_ROUNDS: u32 = rounds(Duration::from_secs(10));

/// What is said of those that were stopped.
const STILL: &str = "stands still where it could go on";

const fn rounds(time: Duration) -> u32 {
    (time.as_millis() / ROUND.as_millis()) as u32
}

/// What the threads of a process do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// One of them runs, could run, or waits for a device.
    Busy,
    /// All sleep.
    Asleep,
    /// All are stopped.
    Stopped,
}

/// For how many rounds a process was found so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rested {
    asleep: u32,
    stopped: u32,
}

impl Rested {
    /// One more round; `deaf`: what is waited for is there. The sentence of a verdict when it is
    /// enough.
    pub fn add(&mut self, rest: Rest, deaf: bool) -> Option<&'static str> {
        match rest {
            Rest::Busy => *self = Rested::default(),
            Rest::Asleep => {
                self.asleep += 1;
                self.stopped = 0;
            }
            Rest::Stopped => {
                self.asleep += 1;
                self.stopped += 1;
            }
        }
        let patience = if deaf { DEAF_ROUNDS } else { ASLEEP_ROUNDS };
        let asleep = self.asleep >= patience;
        let patience = patience.min(STOPPED_ROUNDS);
        if self.stopped >= patience {
            Some(STILL)
        } else {
            asleep.then_some("sleeps where the others went on")
        }
    }

    /// The same for one that may sleep.
    pub fn stands_still(self) -> Option<&'static str> {
        (self.stopped >= STOPPED_ROUNDS).then_some(STILL)
    }
}

impl Monitor {
    /// What the threads of a process do at this moment.
    pub(crate) fn rest(&self, pid: Pid) -> Rest {
        let mut stopped = true;
        for (tid, _) in self.threads.iter().filter(|(_, t)| t.pid == pid) {
            match state(*tid) {
                Some('t' | 'T') if !self.threads[tid].listens => {}
                Some('S' | 't' | 'T') => stopped = false,
                // One that is gone is no reason to think so of the others.
                Some('Z' | 'X') => {}
                _ => return Rest::Busy,
            }
        }
        if stopped { Rest::Stopped } else { Rest::Asleep }
    }

    /// Has the replica's member a child that it may be waiting for?
    pub(super) fn has_children(&self, id: GroupId, replica: usize) -> bool {
        self.processes
            .values()
            .any(|p| p.parent == Some((id, replica)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_many_rounds_in_a_row() {
        let mut rested = Rested::default();
        for _ in 1..STOPPED_ROUNDS {
            assert_eq!(rested.add(Rest::Stopped, false), None);
        }
        assert_eq!(rested.add(Rest::Busy, false), None);
        for _ in 1..STOPPED_ROUNDS {
            assert_eq!(rested.add(Rest::Stopped, false), None);
        }
        assert!(rested.add(Rest::Stopped, false).is_some());
    }

    #[test]
    fn sleepers_get_more_time() {
        let mut rested = Rested::default();
        for _ in 1..ASLEEP_ROUNDS {
            assert_eq!(rested.add(Rest::Asleep, false), None);
        }
        assert!(rested.add(Rest::Asleep, false).is_some());
    }

    #[test]
    fn who_sleeps_on_what_is_there_gets_less() {
        let mut rested = Rested::default();
        for _ in 1..DEAF_ROUNDS {
            assert_eq!(rested.add(Rest::Asleep, true), None);
        }
        assert!(rested.add(Rest::Asleep, true).is_some());
    }
}
