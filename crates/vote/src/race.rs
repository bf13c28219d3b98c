//! The program is found to race where its threads run in parallel: how often that was put right, and what follows.

use std::time::{Duration, Instant};

/// A program that seems to have raced so often (once, it may as well have been a fault in a follower: what is replayed, or
/// made anew, has neither)
pub const MOST_RACES: usize = 2;
/// within so long goes on in serial order.
pub const RACES_WITHIN: Duration = Duration::from_secs(60);

/// When the program has raced of late. Each time others, or a replay, have agreed with the leader where a follower did not:
/// a fault in the leader, which may bring several followers to differ, is none of these.
#[derive(Clone, Debug, Default)]
pub struct Races {
    seen: Vec<Instant>,
    /// Followers that were outvoted in what a fault may have done as well, each with the last time.
    outvoted: Vec<(usize, Instant)>,
}

impl Races {
    /// Once more. True: often enough.
    pub fn add(&mut self, now: Instant) -> bool {
        self.seen.retain(|t| is_recent(*t, now));
        self.seen.push(now);
        self.seen.len() >= MOST_RACES
    }

    /// Has it at all?
    pub fn is_any(&self, now: Instant) -> bool {
        self.seen.iter().any(|t| is_recent(*t, now))
    }

    /// A follower is outvoted, which may be a fault.
    pub fn is_outvoted(&mut self, replica: usize, now: Instant) {
        self.outvoted.retain(|(r, _)| *r != replica);
        self.outvoted.push((replica, now));
    }

    /// Was another follower than this one?
    pub fn has_outvoted_other(&self, replica: usize, now: Instant) -> bool {
        let mut all = self.outvoted.iter();
        all.any(|(r, t)| *r != replica && is_recent(*t, now))
    }
}

fn is_recent(then: Instant, now: Instant) -> bool {
    now.duration_since(then) < RACES_WITHIN
}

/// A follower has gone another way than its leader, with which a majority or a replay agrees: why do all go on from the
/// leader's state in serial order? None: they do not. `is_certain`: it was no fault; `is_enough`: see [`Races::add`].
pub fn descends(is_certain: bool, is_enough: bool, may_descend: bool) -> Option<String> {
    if !may_descend {
        None
    } else if is_certain {
        Some(
            "the program races: a replay agrees with the leader where several followers do not"
                .into(),
        )
    } else {
        is_enough.then(|| {
            format!(
                "replicas came to differ {MOST_RACES} times within {} s, as when a program races",
                RACES_WITHIN.as_secs()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_RACES, RACES_WITHIN, Races, descends};
    use std::time::{Duration, Instant};

    #[test]
    fn those_of_long_ago_do_not_count() {
        let (mut races, start) = (Races::default(), Instant::now());
        assert!((1..MOST_RACES).all(|_| !races.add(start)));
        // The first ones are too long ago by now.
        let later = start + RACES_WITHIN;
        let second = |n: usize| later + Duration::from_secs(n as u64);
        assert!((1..MOST_RACES).all(|n| !races.add(second(n))));
        assert!(races.add(second(MOST_RACES)));
        assert!(races.is_any(start + RACES_WITHIN * 2));
        assert!(!races.is_any(start + RACES_WITHIN * 3));
    }

    /// (Stockfish, three replicas: the one differed in what it wrote, and 40 ms later the other one in an operation. With two left nobody
    /// could be named, and the run was stopped.)
    #[test]
    fn two_followers_that_differ_are_no_single_fault() {
        let (mut races, start) = (Races::default(), Instant::now());
        races.is_outvoted(2, start);
        assert!(!races.has_outvoted_other(2, start), "the same again");
        assert!(races.has_outvoted_other(1, start + RACES_WITHIN / 2));
        assert!(!races.has_outvoted_other(1, start + RACES_WITHIN));
        races.is_outvoted(2, start + RACES_WITHIN);
        assert!(races.has_outvoted_other(1, start + RACES_WITHIN));
        assert!(!races.is_any(start), "it may have been a fault");
    }

    #[test]
    fn once_may_have_been_a_fault() {
        assert_eq!(descends(false, false, true), None);
        assert!(descends(false, true, true).is_some());
        assert!(descends(true, false, true).is_some());
        assert_eq!(descends(true, true, false), None);
    }
}
