//! The plan: which windows of a file are replaced, and by what.

use crate::elf::{Image, STB_LOCAL, STT_GNU_IFUNC, Symbol};
use crate::{
    Error, coverage, datarefs, emit, frames,
    info::Info,
    mark,
    refs::Refs,
    spread::spread,
    sweep,
    window::{Around, Function},
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;

/// What is intercepted at a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SiteKind {
    /// `syscall`.
    Syscall,
    /// An atomic read-modify-write: `lock`-prefixed, or `xchg` with memory.
    Rmw,
    /// A place to which a loop comes in each turn that may wait for another thread: a load,
    /// `pause`, a fence, or a call.
    Wait,
    /// A load that decides about the order of threads (`loads.rs`).
    Load,
    /// A store of a word that such loads look at (`loads.rs`).
    Store,
    /// `rdtsc`.
    Rdtsc,
    /// `rdtscp`.
    Rdtscp,
    /// `rdrand` or `rdseed`.
    Rdrand,
    /// `xsavec` to the stack: which parts of the registers count as in use is the processor's affair.
    Xsavec,
    /// The entry of a function; the number is the caller's id for it.
    Entry(u16),
}

/// What to look for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Functions whose entry is redirected, each with the caller's id. A plain name
    /// means the default version; `name@VERSION` names another one. Names that the file does
    /// not define are ignored.
    pub entries: &'a [(&'a str, u16)],
    /// Whether atomics are sites.
    pub rmw: bool,
    /// Whether places where a loop may wait for another thread are (`spin.rs`).
    pub waits: bool,
    /// Whether loads that decide about the order of threads are, and stores of what they look at (`loads.rs`).
    pub loads: bool,
    /// Link-time addresses of plain loads, stores and updates of memory that are sites besides (`asked.rs`), where `loads` are.
    pub asked: &'a [u64],
}

/// One intercepted instruction or function entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Link-time address of the instruction.
    pub vaddr: u64,
    /// What it is.
    pub kind: SiteKind,
    /// Index into [`Plan::windows`]; several sites may share one.
    pub window: u32,
}

/// A site that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpatched {
    /// Link-time address of the instruction.
    pub vaddr: u64,
    /// What it is.
    pub kind: SiteKind,
    /// Why, for people.
    pub reason: String,
}

/// A run of whole instructions that is overwritten and moved to a trampoline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Link-time address of the first byte.
    pub start: u64,
    /// The original bytes, all of which are overwritten. Check them before writing.
    pub bytes: Vec<u8>,
    /// How many of the bytes are instructions to move; the rest is padding behind a
    /// `ret` or `jmp`.
    pub moved: u8,
    /// For a window shorter than [`crate::JUMP_LEN`]: the link-time address of its stepping stone (`stone.rs`), which
    /// lies in another window.
    pub stone: Option<u64>,
    /// Id of the function entry at the window's start, if it is one.
    pub entry: Option<u16>,
    /// A redirected entry of the same function to which moved branches go back: they must
    /// reach the original code, not the hook again.
    pub loops_to: Option<u64>,
    /// Link-time addresses of the compares whose expected value is a constant. That of any other may come
    /// from a plain load, which a follower may make earlier or later than the leader.
    pub constants: Vec<u64>,
    /// Those of the atomics by which a loop waits (`vain.rs`).
    pub spins: Vec<u64>,
    /// Those of the places where a loop may wait, of loads that decide about order, and of stores.
    pub waits: Vec<u64>,
    /// Those of other loads (arithmetic) and stores (on the stack), and of updates that are not atomic, which somebody asked
    /// for (`asked.rs`).
    pub asked: Vec<u64>,
}

impl Window {
    /// First address behind the window.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// Sizes and counts, for reports and for tests of coverage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Bytes of code that an FDE or a symbol covers, all of them decoded.
    pub covered_bytes: u64,
    /// Others in sections of code, which are left as they are.
    pub unseen_bytes: u64,
    /// Atomics among these, should they be code.
    pub unseen_rmw: u32,
    /// Ranges (functions) that were decoded.
    pub ranges: u32,
    /// Atomics on thread-local (fs or gs) memory, which need no order.
    pub rmw_thread_local: u32,
    /// Atomics on the stack that change nothing: used as fences.
    pub rmw_fences: u32,
}

impl Stats {
    /// Does so much of the code, with atomics in it, stay unseen that no table of an assembler's can be meant?
    #[must_use]
    pub fn leaves_much(&self) -> bool {
        self.unseen_rmw > 0 && self.unseen_bytes > self.covered_bytes / 4
    }
}

/// What to do to one ELF file. All addresses are link-time addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`crate::PLAN_VERSION`] of the code that made it.
    pub version: u32,
    /// Intercepted sites, by address.
    pub sites: Vec<Site>,
    /// Windows, by address; they do not overlap.
    pub windows: Vec<Window>,
    /// Sites that stay as they are, by address.
    pub unpatched: Vec<Unpatched>,
    /// Link-time ranges of the executable segments.
    pub segments: Vec<Range<u64>>,
    /// Sizes and counts.
    pub stats: Stats,
    /// [`Options::rmw`] of the plan.
    pub rmw: bool,
    pub(crate) trampoline_bytes: u64,
}

impl Plan {
    /// Analyses the bytes of an ELF file.
    pub fn new(elf: &[u8], opts: &Options) -> Result<Plan, Error> {
        let image = Image::parse(elf)?;
        let mut asked = mark::marked(&image);
        asked.extend(opts.asked);
        let opts = &Options {
            asked: &asked,
            ..*opts
        };
        let symbols = image.code_symbols();
        let frames = frames::frames(&image);
        let mut pieces = coverage::pieces(&image, &frames, &symbols);
        let mut plan = Plan {
            version: crate::PLAN_VERSION,
            sites: Vec::new(),
            windows: Vec::new(),
            unpatched: Vec::new(),
            segments: image
                .segments
                .iter()
                .filter(|s| s.exec)
                .map(|s| s.range())
                .collect(),
            stats: Stats::default(),
            rmw: opts.rmw,
            trampoline_bytes: 0,
        };
        plan.stats.ranges = pieces.len() as u32;
        plan.stats.covered_bytes = pieces.iter().map(|p| p.end - p.start).sum();
        (plan.stats.unseen_bytes, plan.stats.unseen_rmw) = coverage::unseen(&image, &pieces);

        let mut refs = Refs::new(&plan.segments);
        pieces.iter().for_each(|p| refs.add(p.start));
        symbols.iter().for_each(|s| refs.add(s.value));
        for frame in &frames {
            // A table that cannot be read to its end has named the pads it could.
            let _ = frames::landing_pads(&image, frame, |pad| refs.add(pad));
        }
        datarefs::pointers(&image, &mut refs);
        let mut found = sweep::sweep(&image, &symbols, &mut pieces, &mut refs, opts);
        datarefs::jump_tables(&image, &found.taken, &mut refs);
        refs.finish();

        let entries = plan.find_entries(opts, &symbols);
        // (The dynamic linker is a part of it: whose turn it is to bind a function nobody orders.)
        found.words.in_c_library =
            !entries.is_empty() || symbols.iter().any(|s| s.name == b"__tls_get_addr");
        found.finish(&refs, plan.stats.covered_bytes);
        let piece_of = |addr: u64| pieces.partition_point(|p| p.end <= addr);
        let mut work = found.candidates;
        for &(addr, id) in &entries {
            let at = piece_of(addr);
            match pieces.get(at).filter(|p| p.start <= addr) {
                Some(_) => work.push(at),
                None => plan.leave(
                    addr,
                    SiteKind::Entry(id),
                    "not covered by an FDE or a symbol",
                ),
            }
        }
        work.sort_unstable();
        work.dedup();
        let is_known = |at: &usize| work.binary_search(at).is_ok();
        found.comparing.retain(|at| !is_known(at));
        let alone = found.comparing.iter().map(|at| (*at, true));
        let mut work: Vec<(usize, bool)> =
            work.iter().map(|at| (*at, false)).chain(alone).collect();
        work.sort_unstable();
        let solve = |(at, only_compares): &(usize, bool), (info, stats): &mut (Info, Stats)| {
            let piece = &pieces[*at];
            let limit = pieces.get(*at + 1).map_or(u64::MAX, |p| p.start);
            let bytes = image.tail(piece.start).unwrap_or_default();
            let bytes = &bytes[..bytes.len().min((limit - piece.start) as usize)];
            let begin = entries.partition_point(|e| e.0 < piece.start);
            let end = entries.partition_point(|e| e.0 < piece.end);
            let own = &entries[begin..end];
            let around = Around {
                refs: &refs,
                entries: own,
                words: &found.words,
                only_compares: *only_compares,
            };
            Function::decode(piece, bytes, around, opts, stats, info).solve()
        };
        let begin = || (Info::new(), Stats::default());
        let (outcomes, states) = spread(&work, begin, solve);
        for (_, stats) in states {
            plan.stats.rmw_thread_local += stats.rmw_thread_local;
            plan.stats.rmw_fences += stats.rmw_fences;
        }
        for outcome in outcomes {
            plan.unpatched.extend(outcome.unpatched);
            for (window, sites) in outcome.windows {
                let number = plan.windows.len() as u32;
                let site = |(vaddr, kind)| Site {
                    vaddr,
                    kind,
                    window: number,
                };
                plan.sites.extend(sites.into_iter().map(site));
                plan.windows.push(window);
            }
        }
        plan.unpatched.sort_by_key(|u| u.vaddr);
        plan.trampoline_bytes = emit::length(&plan)?;
        Ok(plan)
    }

    fn leave(&mut self, vaddr: u64, kind: SiteKind, reason: &str) {
        self.unpatched.push(Unpatched {
            vaddr,
            kind,
            reason: reason.into(),
        });
    }

    /// Addresses and ids of the functions to redirect, by address.
    fn find_entries(&mut self, opts: &Options, symbols: &[Symbol]) -> Vec<(u64, u16)> {
        let wanted: HashMap<&[u8], u16> =
            opts.entries.iter().map(|e| (e.0.as_bytes(), e.1)).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut found: HashMap<u16, Vec<(u8, u64)>> = HashMap::new();
        for s in symbols {
            let full = s.version.map(|v| [s.name, b"@", v].concat());
            let exact = full.and_then(|full| wanted.get(full.as_slice()));
            let (Some(&id), rank) = (match exact {
                Some(id) => (Some(id), 0),
                None => (
                    wanted.get(s.name),
                    if s.default { 1 } else { 2 } + u8::from(!s.dynamic),
                ),
            }) else {
                continue;
            };
            if s.bind == STB_LOCAL || s.kind > STT_GNU_IFUNC {
                continue;
            }
            if s.kind == STT_GNU_IFUNC {
                self.leave(
                    s.value,
                    SiteKind::Entry(id),
                    "address is chosen by a resolver",
                );
                continue;
            }
            found.entry(id).or_default().push((rank, s.value));
        }
        // Of several versions only the best; of several names for one id all.
        let mut entries = Vec::new();
        for (id, mut places) in found {
            places.sort_unstable();
            let best = places[0].0;
            places.retain(|p| p.0 == best);
            entries.extend(places.into_iter().map(|p| (p.1, id)));
        }
        entries.sort_unstable();
        entries.dedup();
        let taken = |a: &(u64, u16), b: &(u64, u16)| a.0 == b.0;
        while let Some(at) = entries.windows(2).position(|w| taken(&w[0], &w[1])) {
            let (vaddr, id) = entries.remove(at + 1);
            self.leave(
                vaddr,
                SiteKind::Entry(id),
                "function has another id already",
            );
        }
        entries
    }

    /// Bytes that the trampolines of all sites need.
    #[must_use]
    pub fn trampoline_len(&self) -> usize {
        self.trampoline_bytes as usize
    }

    /// The site whose instruction starts at this link-time address.
    #[must_use]
    pub fn site_at(&self, vaddr: u64) -> Option<&Site> {
        let at = self.sites.partition_point(|s| s.vaddr < vaddr);
        self.sites.get(at).filter(|s| s.vaddr == vaddr)
    }
}

/// Has the file functions of glibc? (A shared one has its versions; one that is linked statically, what sets up its threads. Another
/// C library has other structures under the same names.)
#[must_use]
pub fn has_glibc(elf: &[u8]) -> bool {
    let is_one = |s: &Symbol| {
        let version = s.version.is_some_and(|v| v.starts_with(b"GLIBC_"));
        version || s.name == b"__libc_setup_tls"
    };
    Image::parse(elf).is_ok_and(|image| image.code_symbols().iter().any(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_left_where_a_fifth_of_the_code_is_unseen_and_atomics_in_it() {
        let stats = |covered_bytes, unseen_bytes, unseen_rmw| Stats {
            covered_bytes,
            unseen_bytes,
            unseen_rmw,
            ..Stats::default()
        };
        assert!(stats(4_000, 1_001, 1).leaves_much());
        assert!(!stats(4_000, 1_000, 1).leaves_much());
        assert!(!stats(0, 9_000, 0).leaves_much(), "tables in the code");
        assert!(stats(0, 4, 1).leaves_much());
    }
}
