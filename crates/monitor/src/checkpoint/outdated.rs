//! Sleepers that are in the way: a ring is full of what they have not read, and never will.

use super::{AGAIN_AT_MOST, Checkpoints, Pair};
use crate::state::Monitor;
use geryon_abi::layout::outdated;
use std::time::{Duration, Instant};

/// Which sleepers have read least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Oldest {
    /// The pair that a difference would be judged by.
    Pair,
    /// The leader's own copy.
    Own,
    /// Those of followers, from which races are replayed.
    Base,
}

/// By their ages; None: there are none. (What is made anew while the leader waits for room has read more than they.)
fn oldest(pair: Option<Duration>, own: Option<Duration>, base: Option<Duration>) -> Option<Oldest> {
    let ages = [
        (pair, Oldest::Pair),
        (own, Oldest::Own),
        (base, Oldest::Base),
    ];
    let there = ages.into_iter().filter_map(|(age, who)| Some((age?, who)));
    there.max_by_key(|(age, _)| *age).map(|(_, who)| who)
}

impl Checkpoints {
    fn oldest(&self) -> Option<Oldest> {
        let age = |p: &Option<Pair>| p.as_ref().map(|p| p.since.elapsed());
        oldest(
            age(&self.pair),
            age(&self.own.last),
            age(&self.base.older).max(age(&self.base.last)),
        )
    }
}

impl Monitor {
    /// The agent of a leader says that the sleepers are in its way.
    pub(crate) fn sleepers_are_outdated(&mut self, how: u64) {
        match how {
            outdated::FILE => self.end_sleepers(),
            outdated::NOW => self.end_oldest(),
            _ => {}
        }
        if let Some(c) = &mut self.checkpoints
            && !c.over
        {
            c.due = Some(Instant::now());
            c.tried = None;
            // (A ring may be full of what they have not read again in no time.)
            let is_old = |p: &Option<Pair>| {
                let age = p.as_ref().map(|p| p.since.elapsed());
                age.is_none_or(|a| a > AGAIN_AT_MOST)
            };
            if is_old(&c.base.last) {
                c.base.due = None;
            }
            if is_old(&c.own.last) {
                c.own.due = None;
            }
        }
    }

    /// Nothing can go on before those are gone that have read least.
    fn end_oldest(&mut self) {
        let Some(c) = &mut self.checkpoints else {
            return;
        };
        let ended = match c.oldest() {
            Some(Oldest::Own) => {
                c.own.due = None;
                c.own.last.take()
            }
            Some(Oldest::Base) => c.base.older.take().or_else(|| c.base.last.take()),
            Some(Oldest::Pair) | None => None,
        };
        if ended.is_some() {
            return self.end_pair(ended);
        }
        match self.coming_pair() {
            Some(id) => self.pair_is_made(id),
            None => self.end_sleepers(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (The pair stayed, and each copy that was made meanwhile was ended in its place, ten a second.)
    #[test]
    fn who_has_read_least_goes_first() {
        let age = |s| Some(Duration::from_secs(s));
        assert_eq!(oldest(age(9), age(1), age(2)), Some(Oldest::Pair));
        assert_eq!(oldest(age(1), age(9), age(2)), Some(Oldest::Own));
        assert_eq!(oldest(age(1), None, age(2)), Some(Oldest::Base));
        assert_eq!(oldest(age(1), None, None), Some(Oldest::Pair));
        assert_eq!(oldest(None, None, None), None);
    }
}
