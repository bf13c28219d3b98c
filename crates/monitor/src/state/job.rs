//! Job control: is a process stopped, and has its parent been told?

use super::GroupId;
use geryon_abi::layout::reap;

/// The status of a process that goes on, as wait4 shows it.
const GOES_ON: u64 = 0xffff;

/// One process's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// By which signal it was stopped.
    stopped_by: Option<i32>,
    /// This signal was to stop it, and has not yet.
    later: Option<i32>,
    /// The status that no wait has told of yet.
    news: Option<u64>,
    /// The one that a wait has told of, which may be lost before it is logged.
    lent: Option<Lent>,
}

/// What a parent's thread was told, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lent {
    status: u64,
    to: Asker,
}

/// A thread that waits: its group, its slot, and where its log ended at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Group.
    pub id: GroupId,
    /// Slot.
    pub slot: usize,
    /// All of its log that is published.
    pub head: u64,
}

impl Job {
    /// It was stopped by this signal, or (None) goes on. Is that new?
    pub fn changes(&mut self, stopped_by: Option<i32>) -> bool {
        if stopped_by.is_some() == self.is_stopped() {
            return false;
        }
        self.later = None;
        self.stopped_by = stopped_by;
        self.news = Some(stopped_by.map_or(GOES_ON, |s| (s as u64) << 8 | 0x7f));
        true
    }

    /// A signal that may stop it has come to its leader, or to a successor too early.
    pub fn stops_later(&mut self, signal: i32) {
        self.later = Some(signal);
    }

    /// The program lets it go on: what was to stop it does not. Is that new?
    pub fn is_let_go_on(&mut self) -> bool {
        self.later = None;
        self.changes(None)
    }

    /// A new leader leads: by which signal is it to be stopped? (It may be lost before that is heard of, too.)
    pub fn is_to_stop(&self) -> Option<i32> {
        self.stopped_by.or(self.later)
    }

    /// The signal that was to stop it does something else.
    pub fn does_not_stop(&mut self) {
        self.later = None;
    }

    /// Is it stopped?
    fn is_stopped(&self) -> bool {
        self.stopped_by.is_some()
    }

    /// What a wait that asks so is told, if there is anything. Who was told before, and is lost before its log says so, has a
    /// successor that asks again, and is told the same.
    pub fn tell(&mut self, asked: u64, to: Asker) -> Option<u64> {
        if let Some(lent) = self.lent {
            match lent.to {
                at if at == to && asked & kind(lent.status) != 0 => return Some(lent.status),
                // (It may be another thread that asks meanwhile.)
                at if at.id == to.id && at.slot != to.slot => {}
                _ => self.lent = None,
            }
        }
        let status = self.news.filter(|s| asked & kind(*s) != 0)?;
        if asked & reap::KEEPS == 0 {
            self.news = None;
            self.lent = Some(Lent { status, to });
        }
        Some(status)
    }

    /// A kernel has told the program of this status. (It may not have been heard of here yet, and never will be if who has it
    /// is lost.)
    pub fn was_told(&mut self, status: u64, to: Asker) {
        let kind = kind(status);
        if self.tell(kind, to).is_none() && self.news.is_none() {
            let signal = (status >> 8) as i32;
            self.changes((kind == reap::STOPPED).then_some(signal));
            self.tell(kind, to);
        }
    }
}

/// What a wait for this status asks for.
fn kind(status: u64) -> u64 {
    match status {
        GOES_ON => reap::CONTINUED,
        _ => reap::STOPPED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOPPED: u64 = 20 << 8 | 0x7f;

    fn at(slot: usize, head: u64) -> Asker {
        Asker { id: 1, slot, head }
    }

    #[test]
    fn each_change_is_told_once() {
        let mut job = Job::default();
        assert!(!job.changes(None) && job.tell(reap::CONTINUED, at(0, 1)).is_none());
        assert!(job.changes(Some(20)) && !job.changes(Some(19)));
        assert_eq!(job.tell(reap::ENDED | reap::CONTINUED, at(0, 1)), None);
        let kept = job.tell(reap::STOPPED | reap::KEEPS, at(0, 1));
        assert_eq!(kept, Some(STOPPED));
        assert_eq!(job.tell(reap::STOPPED, at(0, 2)), Some(STOPPED));
        assert_eq!(job.tell(reap::STOPPED, at(0, 3)), None);
        job.stops_later(21);
        assert!(job.changes(None) && !job.is_stopped());
        assert_eq!(job.tell(reap::CONTINUED, at(0, 4)), Some(GOES_ON));
        // One that is halted before it is stopped does not go on by that.
        job.stops_later(19);
        assert!(!job.changes(None) && job.is_to_stop() == Some(19));
        // Whose successor leads instead is stopped as well.
        assert_eq!(job.is_to_stop(), Some(19));
        assert!(!job.is_let_go_on() && job.is_to_stop().is_none());
    }

    #[test]
    fn a_wait_that_is_lost_before_it_is_logged_is_answered_again() {
        let mut job = Job::default();
        job.changes(Some(20));
        assert_eq!(job.tell(reap::STOPPED, at(0, 7)), Some(STOPPED));
        assert_eq!(job.tell(reap::STOPPED, at(1, 3)), None, "another thread");
        assert_eq!(job.tell(reap::STOPPED, at(0, 7)), Some(STOPPED));
        // Even if the child has gone on meanwhile.
        job.changes(None);
        assert_eq!(job.tell(reap::STOPPED, at(0, 7)), Some(STOPPED));
        assert_eq!(job.tell(reap::STOPPED, at(0, 9)), None);
        assert_eq!(job.tell(reap::CONTINUED, at(0, 9)), Some(GOES_ON));
    }

    #[test]
    fn what_a_kernel_has_told_first_is_no_news() {
        let mut job = Job::default();
        job.stops_later(20);
        job.was_told(STOPPED, at(0, 1));
        assert_eq!(job.is_to_stop(), Some(20));
        assert!(!job.changes(Some(20)));
        assert_eq!(job.tell(reap::STOPPED, at(0, 2)), None);
        // Who is sent a SIGCONT before that was heard goes on.
        assert!(job.is_let_go_on());
        assert_eq!(job.tell(reap::CONTINUED, at(0, 2)), Some(GOES_ON));
        job.changes(Some(20));
        job.tell(reap::STOPPED, at(0, 3));
        job.was_told(GOES_ON, at(0, 4));
        assert!(!job.changes(None));
        assert_eq!(job.tell(reap::CONTINUED, at(0, 5)), None);
        // Too late: it goes on already, and that is news.
        job.changes(Some(20));
        job.changes(None);
        job.was_told(STOPPED, at(0, 5));
        assert_eq!(job.tell(reap::CONTINUED, at(0, 6)), Some(GOES_ON));
    }
}
