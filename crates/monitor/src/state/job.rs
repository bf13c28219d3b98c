//! Job control: is a process stopped, and has its parent been told?

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

    /// A new leader leads: by which signal is it to be stopped?
    pub fn is_to_stop(&mut self) -> Option<i32> {
        self.stopped_by.or(self.later.take())
    }

    /// Is it stopped?
    fn is_stopped(&self) -> bool {
        self.stopped_by.is_some()
    }

    /// What a wait that asks so is told, if there is anything.
    pub fn tell(&mut self, asked: u64) -> Option<u64> {
        let of = match self.news? {
            GOES_ON => reap::CONTINUED,
            _ => reap::STOPPED,
        };
        if asked & of == 0 {
            return None;
        }
        match asked & reap::KEEPS {
            0 => self.news.take(),
            _ => self.news,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
        let mut job = Job::default();
        assert!(!job.changes(None) && job.tell(reap::CONTINUED).is_none());
        assert!(job.changes(Some(20)) && !job.changes(Some(19)));
        assert_eq!(job.tell(reap::ENDED | reap::CONTINUED), None);
        assert_eq!(job.tell(reap::STOPPED | reap::KEEPS), Some(20 << 8 | 0x7f));
        assert_eq!(job.tell(reap::STOPPED), Some(20 << 8 | 0x7f));
        assert_eq!(job.tell(reap::STOPPED), None);
        job.stops_later(21);
        assert!(job.changes(None) && !job.is_stopped());
        assert_eq!(job.tell(reap::CONTINUED), Some(GOES_ON));
        // One that is halted before it is stopped does not go on by that.
        job.stops_later(19);
        assert!(!job.changes(None) && job.is_to_stop() == Some(19));
        job.stops_later(19);
        assert!(!job.is_let_go_on() && job.is_to_stop().is_none());
    }
}
