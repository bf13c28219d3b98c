//! Where in the leader's order a follower's threads do what they do between two records: in a replay one at a time, right
//! behind the first of them, unless it is to be late, right before the second. The leader's did it somewhere in between, and
//! nothing says where; but the place where a replay goes astray says which stretches can be the wrong way round: the one that
//! led there, which has found too little or too much, and those of other threads that the place falls into. They are turned, one
//! after the other, until a replay comes farther; what led that far stays. (As PRES does, Park et al. 2009.)

/// A thread's stretch of computation: its slot, and the record before which it ends; and whether all that follow are meant, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub slot: u32,
    pub pos: u64,
    pub onwards: bool,
}

impl Stretch {
    /// One.
    pub fn new(slot: u32, pos: u64) -> Stretch {
        Stretch {
            slot,
            pos,
            onwards: false,
        }
    }
}

/// A thread that was turned so often is so in general.
const OFTEN: usize = 2;

/// What is known so far, of replays from one place on.
#[derive(Debug, Default)]
pub struct Search {
    /// The stretches that are late in the replay that has come farthest, and the stamp up to which it has come.
    best: (u64, Vec<Stretch>),
    /// What to turn there, the likeliest last.
    ideas: Vec<Vec<Stretch>>,
    /// Has there been one?
    begun: bool,
}

impl Search {
    /// A replay has come to this stamp, and gone astray before the record `place`; other threads stood before `others`.
    pub fn has_failed(&mut self, late: &[Stretch], stamp: u64, place: Stretch, others: &[Stretch]) {
        if self.begun && stamp <= self.best.0 {
            return;
        }
        self.begun = true;
        self.best = (stamp, late.to_vec());
        let mut ideas = Vec::new();
        let of_slot = |l: &&Stretch| l.slot == place.slot && !l.onwards;
        if late.iter().filter(of_slot).count() >= OFTEN {
            ideas.push(vec![Stretch {
                onwards: true,
                ..place
            }]);
        }
        ideas.push(vec![place]);
        ideas.extend(others.iter().map(|o| vec![*o]));
        ideas.extend(others.iter().map(|o| vec![place, *o]));
        if others.len() > 1 {
            ideas.push(others.to_vec());
        }
        ideas.reverse();
        self.ideas = ideas;
    }

    /// A replay came to an end that says nothing.
    pub fn is_over(&mut self) {
        self.begun = true;
    }

    /// Which stretches are to be late in the next replay; None: there is nothing left to try.
    pub fn next(&mut self) -> Option<Vec<Stretch>> {
        if !self.begun {
            return Some(Vec::new());
        }
        let turned = self.ideas.pop()?;
        let mut late = self.best.1.clone();
        for stretch in turned {
            match late.iter().position(|l| *l == stretch) {
                Some(at) => drop(late.remove(at)),
                None => late.push(stretch),
            }
        }
        Some(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(slot: u32, pos: u64) -> Stretch {
        Stretch::new(slot, pos)
    }

    #[test]
    fn what_has_led_farther_stays() {
        let mut s = Search::default();
        assert_eq!(s.next(), Some(vec![]));
        s.has_failed(&[], 10, at(1, 5), &[at(2, 7)]);
        assert_eq!(s.next(), Some(vec![at(1, 5)]));
        s.has_failed(&[at(1, 5)], 20, at(1, 9), &[at(2, 8)]);
        let tried = vec![at(1, 5), at(1, 9)];
        assert_eq!(s.next(), Some(tried.clone()));
        // That was none.
        s.has_failed(&tried, 20, at(1, 9), &[at(2, 8)]);
        assert_eq!(s.next(), Some(vec![at(1, 5), at(2, 8)]));
        assert_eq!(s.next(), Some(vec![at(1, 5), at(1, 9), at(2, 8)]));
        assert_eq!(s.next(), None);
    }

    #[test]
    fn what_is_late_is_turned_back() {
        let mut s = Search::default();
        s.has_failed(&[at(1, 5)], 10, at(1, 5), &[]);
        assert_eq!(s.next(), Some(vec![]));
    }

    #[test]
    fn who_is_late_again_and_again_is_so_from_there_on() {
        let mut s = Search::default();
        let late = [at(1, 5), at(1, 7)];
        s.has_failed(&late, 10, at(1, 9), &[]);
        let onwards = Stretch {
            onwards: true,
            ..at(1, 9)
        };
        assert_eq!(s.next(), Some(vec![at(1, 5), at(1, 7), onwards]));
        assert_eq!(s.next(), Some(vec![at(1, 5), at(1, 7), at(1, 9)]));
    }
}
