//! The rewritten code of one process group: what was rewritten where, and where each replica is in it.

use super::{Rewrite, SENTRY_REACH};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// What happened at one mapping call: the rewrites, if any.
type Mapping = Rc<[Rewrite]>;

/// The rewritten code of one process group, and where each replica is in it.
#[derive(Clone, Default)]
pub struct Areas {
    /// For each address (its name) and length what was mapped there, in order. A mapping call is made by
    /// each replica once, so the n-th of one is the n-th of the others, however late.
    mappings: HashMap<(u64, u64), Vec<Mapping>>,
    /// How many of them each replica has had, by replica, address, length.
    had: HashMap<(usize, u64, u64), usize>,
    /// Addresses in trampolines and the program's own that they stand for, sorted; by the
    /// trampolines' address.
    pcs: BTreeMap<u64, Rc<[(u64, u64)]>>,
    /// Pages for code that stops a thread in the midst of computation.
    sentries: Vec<u64>,
}

/// Bytes of such a page.
pub const SENTRY_BYTES: u64 = 4096;

impl Areas {
    /// This replica has had another mapping call at this address (its name) and length: what was rewritten there in
    /// another one, if that has had it already.
    pub fn next(&mut self, replica: usize, at: (u64, u64)) -> Option<Mapping> {
        let had = self.had.entry((replica, at.0, at.1)).or_default();
        let n = *had;
        *had += 1;
        self.mappings.entry(at).or_default().get(n).cloned()
    }

    /// It was the first: what was rewritten.
    pub fn mapped(&mut self, at: (u64, u64), made: Vec<Rewrite>) {
        self.mappings.entry(at).or_default().push(made.into());
    }

    /// There are trampolines at this address, with such pairs of addresses.
    pub fn add_pcs(&mut self, area: u64, pcs: Vec<(u64, u64)>) {
        self.pcs.insert(area, pcs.into());
    }

    /// Are there trampolines that begin at this address, in any replica?
    pub fn has_area(&self, at: u64) -> bool {
        self.pcs.contains_key(&at)
    }

    /// The program's own address for one in a trampoline.
    pub fn original(&self, pc: u64) -> Option<u64> {
        let (_, pcs) = self.pcs.range(..=pc).next_back()?;
        let at = pcs.binary_search_by_key(&pc, |e| e.0).ok()?;
        Some(pcs[at].1)
    }

    /// Is this an address in a trampoline?
    pub fn contain(&self, pc: u64) -> bool {
        /// No trampoline is longer, behind the last instruction that it has of the program's.
        const LONGEST: u64 = 256;
        let area = self.pcs.range(..=pc).next_back();
        let end = area.and_then(|(_, pcs)| pcs.last());
        end.is_some_and(|(last, _)| pc < last + LONGEST) || self.has_sentry(pc)
    }

    /// Is it one in the pages for what stops a thread in the midst of computation?
    pub fn has_sentry(&self, pc: u64) -> bool {
        let mut pages = self.sentries.iter();
        pages.any(|at| (*at..at + SENTRY_BYTES).contains(&pc))
    }

    /// The pages within reach of this address that are there already.
    pub fn sentries_near(&self, site: u64) -> impl Iterator<Item = u64> {
        let all = self.sentries.iter().copied();
        all.filter(move |at| site.abs_diff(*at) < SENTRY_REACH)
    }

    /// Such a page has been mapped.
    pub fn add_sentry(&mut self, at: u64) {
        self.sentries.push(at);
    }

    /// What a child keeps of its parent's: the code that is there, none of the calls to come.
    pub fn inherited(&self) -> Areas {
        Areas {
            pcs: self.pcs.clone(),
            sentries: self.sentries.clone(),
            ..Areas::default()
        }
    }

    /// A replica that is a copy of another stands where that one stands.
    pub fn copied(&mut self, from: usize, to: usize) {
        self.had.retain(|(r, _, _), _| *r != to);
        let had: Vec<_> = self
            .had
            .iter()
            .filter(|((r, _, _), _)| *r == from)
            .map(|((_, a, l), n)| ((to, *a, *l), *n))
            .collect();
        self.had.extend(had);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sentry_pages;
    use super::*;

    #[test]
    fn a_sentry_is_found_by_who_is_near() {
        let mut areas = Areas::default();
        let site = 0x5555_0000_1234;
        let page = sentry_pages(site).next().expect("there is room below");
        assert_eq!(areas.sentries_near(site).next(), None);
        areas.add_sentry(page);
        assert_eq!(areas.sentries_near(site).next(), Some(page));
        assert_eq!(areas.sentries_near(0x7f00_0000_0000).next(), None);
        assert!(areas.contain(page + 100) && areas.inherited().has_sentry(page));
    }

    #[test]
    fn a_copy_stands_where_its_source_stands() {
        let mut areas = Areas::default();
        areas.had.insert((1, 0x1000, 0x2000), 3);
        areas.had.insert((2, 0x5000, 0x1000), 1);
        areas.copied(1, 2);
        assert_eq!(areas.had.get(&(2, 0x1000, 0x2000)), Some(&3));
        assert_eq!(areas.had.get(&(2, 0x5000, 0x1000)), None);
    }
}
