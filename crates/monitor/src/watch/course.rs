//! How far a leader had come with how much processor time: from where its log ended when the watchdog looked.

use geryon_tracee::Pid;
use std::collections::VecDeque;

/// So many samples are kept.
const SAMPLES: usize = 256;

/// What a leader had used at some moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
    /// All of it, and those that led before.
    process: u64,
    /// Its threads, by thread group: which one, and what it had used.
    threads: Vec<(Pid, u64)>,
}

impl Used {
    /// What the thread of a group has used since an earlier moment. If it was not the same one then, or nothing is known
    /// of that moment: what the process has.
    pub fn since(&self, earlier: Option<&Used>, slot: u32) -> u64 {
        let of = |used: &Used| used.threads.get(slot as usize).copied();
        let pair = of(self).zip(earlier.and_then(of));
        match pair.filter(|((now, _), (then, _))| now == then && *now != 0) {
            Some(((_, now), (_, then))) => now.saturating_sub(then),
            None => self.process - earlier.map_or(0, |e| e.process.min(self.process)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Course {
    samples: VecDeque<Sample>,
    /// The process that was seen last, and what it had used.
    last: (Pid, u64),
    /// What others had used that led before.
    former: u64,
}

#[derive(Debug)]
pub(super) struct Sample {
    /// Where the log ends, by thread group.
    ends: Vec<u64>,
    /// What the leader had used when that was first seen.
    pub first: Used,
    /// And last.
    last: Used,
}

impl Sample {
    pub fn end(&self, slot: u32) -> u64 {
        self.ends.get(slot as usize).copied().unwrap_or(0)
    }

    /// Did the log end nowhere later than in the other one?
    fn is_before(&self, other: &Sample) -> bool {
        (0..)
            .zip(&self.ends)
            .all(|(slot, end)| *end <= other.end(slot))
    }
}

impl Course {
    /// The log ends here, and the process that leads has used so much, its threads so much.
    pub fn sample(&mut self, pid: Pid, ticks: u64, threads: Vec<(Pid, u64)>, ends: Vec<u64>) {
        let (before, used) = self.last;
        if before != pid {
            self.former += used;
        }
        self.last = (pid, ticks);
        let used = Used {
            process: self.former + ticks,
            threads,
        };
        let mut now = Sample {
            ends,
            first: used.clone(),
            last: used,
        };
        // What has been cut off is written anew.
        while self.samples.back().is_some_and(|s| !s.is_before(&now)) {
            self.samples.pop_back();
        }
        if self.samples.back().is_some_and(|s| now.is_before(s))
            && let Some(same) = self.samples.pop_back()
        {
            now.first = same.first;
        }
        self.samples.push_back(now);
        if self.samples.len() > SAMPLES {
            // The less is known of what is long ago, the more the leader seems to have used.
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index > SAMPLES / 2 || index % 2 == 0
            });
        }
    }

    /// When the record at a place had been published.
    pub fn published(&self, slot: u32, pos: u64) -> Option<&Sample> {
        let first = self.samples.partition_point(|s| s.end(slot) <= pos);
        self.samples.get(first)
    }

    /// Where the log ended when that record had been published for certain: the ends of a sample are read one after the other.
    pub fn told(&self, slot: u32, pos: u64) -> Option<&Sample> {
        let first = self.samples.partition_point(|s| s.end(slot) <= pos);
        // (If nothing has been published since then the last sample was looked at again and again.)
        self.samples.get(first + 1).or(self.samples.get(first))
    }

    /// What the leader had used, at least, when it published the record before a place.
    pub fn reached(&self, slot: u32, pos: u64) -> Option<&Used> {
        let behind = self.samples.partition_point(|s| s.end(slot) < pos);
        let last = behind.checked_sub(1).and_then(|i| self.samples.get(i));
        last.map(|s| &s.last)
    }

    /// Where the log of a thread group ended when it was last looked at.
    pub fn end(&self, slot: u32) -> u64 {
        self.samples.back().map_or(0, |s| s.end(slot))
    }

    pub fn now(&self) -> Option<&Used> {
        self.samples.back().map(|s| &s.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: Pid = 100;
    const W: u32 = 1;

    fn process(used: Option<&Used>) -> Option<u64> {
        used.map(|u| u.process)
    }

    #[test]
    fn a_new_leaders_time_counts_besides_its_predecessors() {
        let mut c = Course::default();
        c.sample(LEADER, 100, vec![], vec![0, 10, 5]);
        c.sample(LEADER, 150, vec![], vec![0, 11, 5]);
        c.sample(LEADER + 1, 70, vec![], vec![0, 10, 5]);
        assert_eq!((process(c.now()), c.end(W)), (Some(220), 10));
        assert!(c.published(W, 10).is_none());
        c.sample(LEADER + 1, 80, vec![], vec![0, 12, 5]);
        assert_eq!(process(c.published(W, 10).map(|s| &s.first)), Some(230));
        assert_eq!(process(c.reached(W, 11)), Some(220));
    }

    #[test]
    fn what_is_forgotten_gives_more_time() {
        let mut c = Course::default();
        (1..=2_000).for_each(|k| c.sample(LEADER, k, vec![], vec![0, k]));
        assert!(c.samples.len() <= SAMPLES);
        for pos in [3, 100, 1_500, 1_990] {
            assert!(process(c.reached(W, pos)).is_none_or(|used| used < pos));
            assert!(process(c.published(W, pos).map(|s| &s.first)) > Some(pos));
        }
        assert_eq!(process(c.reached(W, 2_000)), Some(1_999));
    }

    #[test]
    fn a_thread_is_measured_by_itself_where_it_is_the_same() {
        let used = |process, tid, ticks| Used {
            process,
            threads: vec![(0, 0), (tid, ticks)],
        };
        let now = used(900, 7, 40);
        assert_eq!(now.since(Some(&used(500, 7, 10)), W), 30);
        assert_eq!(now.since(Some(&used(500, 8, 10)), W), 400);
        assert_eq!(now.since(None, W), 900);
        assert_eq!(used(900, 0, 0).since(Some(&used(500, 0, 0)), W), 400);
    }
}
