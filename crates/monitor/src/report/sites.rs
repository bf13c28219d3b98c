//! Where in the program an instruction is of which a record has but a hash: the place in its file is hashed to 16 bits, so that
//! another path shows at once; among the sites of all files that a process has mapped, few have the same.

use super::words;
use crate::state::Monitor;
use crate::watch::View;
use geryon_abi::record::{self, kind};
use geryon_patch::SiteKind;
use geryon_symbols::Maps;
use geryon_tracee::Pid;
use std::collections::HashMap;

/// If more have the same, the hash says no less.
const MOST: usize = 2;

/// Where the sites are that have a kind of record and a hash.
pub(crate) struct Sites {
    pid: Pid,
    of: HashMap<(u8, u16), Vec<u64>>,
}

/// The kind of record of such a site.
fn record_of(site: SiteKind) -> Option<u8> {
    match site {
        SiteKind::Load => Some(kind::LOAD),
        SiteKind::Rmw | SiteKind::Store => Some(kind::ATOMIC),
        _ => None,
    }
}

/// As the agent hashes it.
fn hash(vaddr: u64) -> u16 {
    (vaddr ^ vaddr >> 16) as u16
}

impl Monitor {
    /// Those of a stopped process.
    pub(crate) fn sites(&mut self, pid: Pid) -> Sites {
        let mut of: HashMap<_, Vec<u64>> = HashMap::new();
        let maps = Maps::of_process(pid).ok();
        for m in maps.iter().flat_map(Maps::iter).filter(|m| m.executable) {
            let planned = m.path().and_then(|p| self.kit.plans.of(&p));
            let Some(planned) = planned else { continue };
            for (offset, vaddr, len) in &planned.loads {
                let base = m.start.wrapping_sub(m.offset).wrapping_add(*offset);
                let here = planned.plan.sites.iter().filter_map(|s| {
                    let within = s.vaddr.checked_sub(*vaddr).filter(|d| d < len)?;
                    let at = base.wrapping_add(within);
                    let is_here = (m.start..m.end).contains(&at);
                    Some((record_of(s.kind).filter(|_| is_here)?, hash(s.vaddr), at))
                });
                for (kind, hash, at) in here {
                    of.entry((kind, hash)).or_default().push(at);
                }
            }
        }
        Sites { pid, of }
    }

    /// What a record says was done, and where, from its first word.
    pub(crate) fn operation(&mut self, sites: &Sites, first: u64) -> String {
        let key = (record::kind_of(first), record::short_of(first));
        let found = sites.of.get(&key).filter(|at| at.len() <= MOST);
        let Some(found) = found else {
            return words::operation(first);
        };
        let mut place = |at: &u64| {
            self.console
                .symbolizer
                .symbol_at(sites.pid, *at)
                .to_string()
        };
        let places: Vec<String> = found.iter().map(&mut place).collect();
        let what = match key.0 {
            kind::LOAD => "load",
            _ => "atomic instruction",
        };
        format!("{what} at {}", places.join(", or at "))
    }

    /// The last records of a thread, the oldest first.
    pub(super) fn last_events(&mut self, sites: &Sites, v: &View) -> Vec<String> {
        let firsts = words::last_events(v);
        firsts.map(|w| self.operation(sites, w)).collect()
    }
}
