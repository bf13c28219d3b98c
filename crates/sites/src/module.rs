//! A file with code, and its places.

use object::{Object, ReadCache};
use std::fmt;
use std::path::Path;

/// What names a build of a program or library, whatever its file is called: its note NT_GNU_BUILD_ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Vec<u8>);

impl BuildId {
    /// From hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<BuildId> {
        let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
        let pair = |p: &[u8]| Some(digit(p[0])? << 4 | digit(*p.get(1)?)?);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        bytes.filter(|b| !b.is_empty()).map(BuildId)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// What an instruction does at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It loads.
    Load,
    /// It stores.
    Store,
    /// It loads and stores, not at once.
    Update,
}

impl Kind {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::Update => "update",
        }
    }
}

/// A place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Link-time address of the instruction.
    pub vaddr: u64,
    /// What it does.
    pub kind: Kind,
    /// Where it is, for people.
    pub note: String,
}

/// The places of one build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Which build.
    pub build: BuildId,
    /// What its file was called, for people.
    pub name: String,
    /// By address, each once.
    pub sites: Vec<Site>,
}

impl Module {
    /// Takes in what the other one has and this one has not; how many places.
    pub fn merge(&mut self, other: Module) -> usize {
        let before = self.sites.len();
        for site in other.sites {
            if let Err(at) = self.sites.binary_search_by_key(&site.vaddr, |s| s.vaddr) {
                self.sites.insert(at, site);
            }
        }
        self.sites.len() - before
    }
}

/// The build-id of an ELF file. None: it has none, or cannot be read.
#[must_use]
pub fn build_id(file: &Path) -> Option<BuildId> {
    let cache = ReadCache::new(std::fs::File::open(file).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    let id = elf.build_id().ok()??;
    Some(BuildId(id.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_written_in_hexadecimal() {
        let id = BuildId::parse("00fF3a").expect("digits");
        assert_eq!(id, BuildId(vec![0, 0xff, 0x3a]));
        assert_eq!(id.to_string(), "00ff3a");
        assert_eq!(BuildId::parse("0ff"), None);
        assert_eq!(BuildId::parse("0g"), None);
        assert_eq!(BuildId::parse(""), None);
    }

    #[test]
    fn this_test_has_a_build_of_its_own() {
        let own = std::env::current_exe().expect("a path");
        assert_eq!(build_id(&own), build_id(&own));
        assert_eq!(build_id(Path::new("/proc/self/status")), None);
        assert!(build_id(Path::new("/lib/x86_64-linux-gnu/libc.so.6")).is_some());
    }

    #[test]
    fn what_two_know_is_kept_once() {
        let site = |vaddr| Site {
            vaddr,
            kind: Kind::Load,
            note: String::new(),
        };
        let with = |sites: Vec<Site>| Module {
            build: BuildId(vec![1]),
            name: "a".into(),
            sites,
        };
        let mut m = with(vec![site(1), site(5)]);
        assert_eq!(m.merge(with(vec![site(3), site(5)])), 1);
        assert_eq!(m, with(vec![site(1), site(3), site(5)]));
    }
}
