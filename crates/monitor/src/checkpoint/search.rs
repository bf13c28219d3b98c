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

/// Ways to place the threads of these slots from the beginning on, all early excepted, in which any two of them are placed in
/// all four ways: what one did by plain loads and stores beside the other then came before it in one of them, and behind it in
/// another, wherever in the log that was. (The place of the difference does not say where, if it shows much later.)
pub fn spread(slots: &[u32]) -> Vec<Vec<Stretch>> {
    let late = |is_late: &dyn Fn(usize) -> bool| -> Vec<Stretch> {
        let slots = slots.iter().enumerate().filter(|(n, _)| is_late(*n));
        let onwards = |(_, slot): (usize, &u32)| Stretch {
            slot: *slot,
            pos: 0,
            onwards: true,
        };
        slots.map(onwards).collect()
    };
    let bits = usize::BITS - slots.len().saturating_sub(1).leading_zeros();
    let mut all = vec![late(&|_| true)];
    for bit in 0..bits {
        all.push(late(&|n| n >> bit & 1 != 0));
        all.push(late(&|n| n >> bit & 1 == 0));
    }
    all
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
    fn any_two_are_spread_in_all_four_ways() {
        let slots: Vec<u32> = (0..9).map(|n| 3 * n).collect();
        let mut all = spread(&slots);
        assert_eq!(all.len(), 9);
        all.push(Vec::new());
        let is_late = |late: &[Stretch], slot| late.iter().any(|l| l.slot == slot && l.onwards);
        for (n, one) in slots.iter().enumerate() {
            for other in &slots[n + 1..] {
                let ways = all.iter().map(|l| (is_late(l, *one), is_late(l, *other)));
                let ways: std::collections::BTreeSet<_> = ways.collect();
                assert_eq!(ways.len(), 4, "{one} and {other}");
            }
        }
        assert_eq!(spread(&[4]).len(), 1);
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
