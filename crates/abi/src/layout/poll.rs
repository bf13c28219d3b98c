//! What a thread has found at loads that decide about order, until it does something else: a load that finds the same
//! again is not logged, but counted. So loops that poll cost no log, nor do flags that are asked for each line of a text.

use core::sync::atomic::{Ordering, compiler_fence};

/// So many loads are kept, the last ones.
pub const KEPT: usize = 8;
/// So often at most a thread finds the same before it logs that.
pub const MOST: u64 = (1 << COUNT_BITS) - 1;
/// So many loads a follower makes before it looks at the log again.
const AHEAD: u64 = 64;
/// Bits of what others are told that hold the count. The rest are the place's.
const COUNT_BITS: u32 = 24;

/// A row of such loads: no other record is among theirs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Poll {
    /// The place in the log behind the last record: who stands there has logged nothing since.
    pos: u64,
    /// How often loads have been made again since, with the result that they had before.
    pub count: u64,
    /// Which of them was made last.
    last: u32,
    /// Which of them is given up next.
    next: u32,
    /// Of each, the instruction; 0: there is none.
    sites: [u64; KEPT],
    /// Its operand.
    at: [u64; KEPT],
    /// What was found.
    values: [u64; KEPT],
    /// Where the clock of the operand is.
    clocks: [u64; KEPT],
    /// What it showed.
    shown: [u64; KEPT],
    /// Where the leader tells others what it has counted.
    tells: u64,
    /// What it had told when this thread last looked there. (Where both look at once the one waits for the other's cache.)
    seen: u64,
    /// What it has told there itself, last.
    own: u64,
    /// What the stub for loads has found, until it lies where the instruction is made on it.
    found: u64,
}

/// A load: the instruction and its operand.
pub type Which = (u64, u64);

/// A clock that nobody holds: where it is, and what it shows, whole.
pub type Clock = (u64, u64);

impl Poll {
    /// Where the place lies in it.
    pub const POS: usize = core::mem::offset_of!(Poll, pos);
    /// And what the stub for loads looks at.
    pub const COUNT: usize = core::mem::offset_of!(Poll, count);
    /// The same.
    pub const LAST: usize = core::mem::offset_of!(Poll, last);
    /// The same.
    pub const SITES: usize = core::mem::offset_of!(Poll, sites);
    /// The same.
    pub const AT: usize = core::mem::offset_of!(Poll, at);
    /// The same.
    pub const VALUES: usize = core::mem::offset_of!(Poll, values);
    /// The same.
    pub const CLOCKS: usize = core::mem::offset_of!(Poll, clocks);
    /// The same.
    pub const SHOWN: usize = core::mem::offset_of!(Poll, shown);
    /// The same.
    pub const TELLS: usize = core::mem::offset_of!(Poll, tells);
    /// The same.
    pub const SEEN: usize = core::mem::offset_of!(Poll, seen);
    /// The same.
    pub const OWN: usize = core::mem::offset_of!(Poll, own);
    /// The same.
    pub const FOUND: usize = core::mem::offset_of!(Poll, found);

    /// Has a thread that stands at `pos` logged such a load last?
    pub const fn goes_on(&self, pos: u64) -> bool {
        self.pos == pos
    }

    /// Which load is this, by a thread that stands at `pos`, if it has been made in this row?
    #[inline]
    pub fn again(&self, pos: u64, site: u64, at: u64) -> Option<usize> {
        if self.pos != pos {
            return None;
        }
        (0..KEPT).find(|k| self.sites[*k] == site && self.at[*k] == at)
    }

    /// What such a load has found.
    pub const fn value(&self, which: usize) -> u64 {
        self.values[which % KEPT]
    }

    /// Leader: need what such a load finds now not be logged? `awaited`: a follower sleeps until there is a record. (One
    /// that polls waits for others, and nobody for it.)
    pub fn is_known(&self, which: usize, value: u64, shown: u64, awaited: bool) -> bool {
        let which = which % KEPT;
        let polls = which == self.last as usize;
        let stays = self.shown[which] == shown;
        self.values[which] == value && self.count < MOST && (polls || stays && !awaited)
    }

    /// It has found the same again.
    pub fn found_again(&mut self, which: usize) {
        self.count += 1;
        self.last = which as u32;
    }

    /// A load has been logged, from `start` to `pos`. `tells`: where its thread's leader tells what it counts from now on.
    pub fn logged(
        &mut self,
        (start, pos): (u64, u64),
        of: Which,
        value: u64,
        clock: Clock,
        tells: u64,
    ) {
        let which = match self.again(start, of.0, of.1) {
            Some(which) => which,
            None => {
                if !self.goes_on(start) {
                    *self = Poll::default();
                }
                let which = self.next as usize % KEPT;
                self.next = (which + 1) as u32;
                which
            }
        };
        (self.sites[which], self.at[which]) = of;
        self.values[which] = value;
        (self.clocks[which], self.shown[which]) = clock;
        // (In this order: who reads the place first reads no count of the one before.)
        (self.count, self.last) = (0, which as u32);
        compiler_fence(Ordering::SeqCst);
        self.pos = pos;
        self.tells = tells;
    }

    /// What the leader tells others: its place, and how often it has found the same there.
    pub const fn told(&self) -> u64 {
        Poll::tells(self.pos, self.count)
    }

    /// What a thread tells that has found the same so often at this place.
    pub const fn tells(pos: u64, count: u64) -> u64 {
        pos << COUNT_BITS | count
    }

    /// Are two that have told this at the same place?
    pub const fn is_same_place(one: u64, other: u64) -> bool {
        one >> COUNT_BITS == other >> COUNT_BITS
    }

    /// The leader has gone on from this thread's place, and had found the same so often there. (Some of that is enough to go on
    /// with: what a lost leader has logged may yet be withdrawn.)
    pub fn has_seen(&mut self, count: u64) {
        self.seen = self.pos << COUNT_BITS | count.min(self.count + AHEAD).min(MOST);
    }

    /// Has a leader that has told this found the same more often here than this thread?
    pub const fn is_behind(&self, told: u64) -> bool {
        Poll::is_same_place(told, self.told()) && told > self.told()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// A record: where it ends, of which load, what it found, the count before it if it has one.
    #[derive(Clone, Copy, Debug)]
    struct Record(u64, u64, u64, Option<u64>);

    fn lead(p: &mut Poll, pos: &mut u64, site: u64, value: u64) -> Option<Record> {
        let again = p.again(*pos, site, site);
        if let Some(which) = again
            && p.is_known(which, value, 0, false)
        {
            p.found_again(which);
            return None;
        }
        let count = (again.is_some() || p.goes_on(*pos) && p.count > 0).then_some(p.count);
        let start = *pos;
        *pos += 3;
        p.logged((start, *pos), (site, site), value, (0, 0), 0);
        Some(Record(*pos, site, value, count))
    }

    #[test]
    fn a_follower_finds_what_its_leader_found() {
        let mut random = 7u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        let (mut leader, mut pos) = (Poll::default(), 0);
        let (mut found, mut records) = (Vec::new(), Vec::new());
        let mut memory = [0u64; 12];
        for _ in 0..20_000 {
            if next(50) == 0 {
                pos += 1; // another record
                records.push(Record(pos, 0, 0, None));
                found.push((0, 0));
            }
            if next(9) == 0 {
                memory[next(12) as usize] = next(3);
            }
            let range = if next(40) == 0 { 12 } else { 4 };
            let site = 1 + next(range);
            let value = memory[site as usize - 1];
            records.extend(lead(&mut leader, &mut pos, site, value));
            found.push((site, value));
        }
        assert!(records.len() < found.len() / 2);
        let (mut follower, mut pos, mut records) =
            (Poll::default(), 0, records.into_iter().peekable());
        for (site, value) in found {
            let record = records.peek().copied();
            if site == 0 {
                pos = records.next().expect("it is there").0;
                continue;
            }
            if let Some(which) = follower.again(pos, site, site)
                && record.is_none_or(|r| r.3.is_none_or(|count| follower.count < count))
            {
                follower.found_again(which);
                assert_eq!(follower.value(which), value);
                continue;
            }
            let Record(end, of, seen, count) = records.next().expect("it is there");
            assert_eq!((of, seen), (site, value));
            assert!(count.is_none_or(|c| c == follower.count));
            follower.logged((pos, end), (site, site), seen, (0, 0), 0);
            pos = end;
        }
        assert!(records.next().is_none());
    }

    #[test]
    fn what_is_told_is_of_one_place() {
        let mut p = Poll::default();
        p.logged((0, 5), (1, 1), 9, (0, 0), 0);
        let mut behind = p;
        p.found_again(0);
        assert!(behind.is_behind(p.told()));
        behind.found_again(0);
        assert!(!behind.is_behind(p.told()));
        p.logged((5, 8), (2, 2), 9, (0, 0), 0);
        p.found_again(1);
        p.found_again(1);
        assert!(!behind.is_behind(p.told()));
    }

    #[test]
    fn what_was_counted_since_is_logged_but_where_one_polls() {
        let mut p = Poll::default();
        p.logged((0, 5), (1, 1), 9, (0, 3), 0);
        p.logged((5, 8), (2, 2), 9, (0, 3), 0);
        assert!(p.is_known(1, 9, 4, true), "it polls");
        assert!(p.is_known(0, 9, 3, false));
        assert!(!p.is_known(0, 9, 4, false), "its clock has gone on");
        assert!(!p.is_known(0, 9, 3, true), "somebody waits");
        assert!(!p.is_known(0, 8, 3, false));
    }
}
