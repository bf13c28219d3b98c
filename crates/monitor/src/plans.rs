//! Patch plans of files, computed once for each file and kept.

use geryon_abi::hooks::{HOOKS, REPLACED};
use geryon_patch::{Options, Plan};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;

/// What identifies the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    dev: u64,
    ino: u64,
    size: u64,
    mtime: i64,
    mtime_ns: i64,
}

/// A plan with what else is needed of the file.
pub struct Planned {
    /// Windows and trampolines.
    pub plan: Plan,
    /// Link-time address of __errno_location, if the file defines it.
    pub errno_location: Option<u64>,
    /// Functions that are replaced as a whole: (hook, link-time address).
    pub replaced: Vec<(u16, u64)>,
    /// Loadable segments: (file offset, link-time address, length in the file).
    pub loads: Vec<(u64, u64, u64)>,
}

/// Plans by file.
#[derive(Default)]
pub struct Plans {
    known: HashMap<Key, Option<Rc<Planned>>>,
}

impl Plans {
    /// The plan for a file; None when it is not an ELF file for this machine.
    pub fn of(&mut self, path: &Path) -> Option<Rc<Planned>> {
        let m = std::fs::metadata(path).ok()?;
        let key = Key { dev: m.dev(), ino: m.ino(), size: m.size(), mtime: m.mtime(), mtime_ns: m.mtime_nsec() };
        self.known.entry(key).or_insert_with(|| make(path).map(Rc::new)).clone()
    }
}

fn make(path: &Path) -> Option<Planned> {
    use object::{Object, ObjectSegment, ObjectSymbol};
    let bytes = std::fs::read(path).ok()?;
    let elf = object::File::parse(&*bytes).ok()?;
    let plan = Plan::new(&bytes, &Options { entries: HOOKS, rmw: true }).ok()?;
    let errno_location = elf
        .dynamic_symbols()
        .chain(elf.symbols())
        .find(|s| s.is_definition() && s.name() == Ok("__errno_location"))
        .map(|s| s.address());
    let replaced = REPLACED
        .iter()
        .filter_map(|id| {
            let name = HOOKS.iter().find(|(_, n)| n == id)?.0;
            let at = elf.dynamic_symbols().chain(elf.symbols()).find(|s| s.is_definition() && s.name() == Ok(name))?;
            let wrapped = plan.windows.iter().any(|w| w.entry == Some(*id));
            (!wrapped).then(|| (*id, at.address()))
        })
        .collect();
    let loads = elf
        .segments()
        .map(|s| {
            let (offset, len) = s.file_range();
            (offset, s.address(), len)
        })
        .collect();
    Some(Planned { plan, errno_location, replaced, loads })
}
