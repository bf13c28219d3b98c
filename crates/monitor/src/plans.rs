//! Patch plans of files: computed once for each file, kept in memory and in the user's cache.

use geryon_abi::hooks::{HOOKS, REPLACED, SERIAL_HOOKS};
use geryon_patch::{Options, PLAN_VERSION, Plan, cancel_word, has_glibc};
use geryon_sites::{BuildId, build_id};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Changes when [`Planned`] does.
const CACHE_VERSION: u32 = 4;

/// What identifies the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    dev: u64,
    ino: u64,
    size: u64,
    mtime: i64,
    mtime_ns: i64,
    ctime: i64,
    ctime_ns: i64,
}

/// A plan with what else is needed of the file.
#[derive(Serialize, Deserialize)]
pub struct Planned {
    /// Windows and trampolines.
    pub plan: Plan,
    /// Link-time address of `__errno_location`, if the file defines it.
    pub errno_location: Option<u64>,
    /// Link-time address of `pthread_setcanceltype`, and where its code says that a thread's control block has its
    /// word about cancelling.
    pub cancel_word: Option<(u64, u64)>,
    /// Functions that are replaced as a whole: (hook, link-time address).
    pub replaced: Vec<(u16, u64)>,
    /// Segments with code: (file offset, link-time address, length in the file). (Others may lie in the same pages of
    /// the file, as lld has it.)
    pub loads: Vec<(u64, u64, u64)>,
    /// Its start-up code reads GLIBC_TUNABLES.
    pub reads_tunables: bool,
    /// It has functions whose return addresses are guarded, or what they call when one was overwritten.
    pub has_canaries: bool,
    /// It makes threads as a C library other than glibc does.
    pub has_other_threads: bool,
}

impl Planned {
    /// Is it known that clocks do not repeat what its threads do?
    pub fn needs_serial(&self) -> bool {
        self.has_other_threads || self.plan.stats.leaves_much()
    }
}

/// Plans by file.
pub struct Plans {
    known: HashMap<Key, Option<Rc<Planned>>>,
    /// Places where loops may wait are sites.
    waits: bool,
    /// The user is told of code that stays unseen.
    tells: bool,
    /// Places at which threads are known to race, by build.
    asked: Rc<Asked>,
    folder: Option<PathBuf>,
}

/// Addresses of places in builds.
pub type Asked = HashMap<BuildId, Vec<u64>>;

impl Plans {
    /// With the user's cache, if there is a place for it. `waits`: see [`Options::waits`]; else loads that decide
    /// about order are sites, and those places that are asked for. `tells`: the user is told of files much of whose code stays
    /// unseen.
    pub fn new(waits: bool, tells: bool, asked: Rc<Asked>) -> Plans {
        Plans {
            known: HashMap::new(),
            waits,
            tells,
            asked,
            folder: folder(),
        }
    }

    /// The same files' for serial order.
    pub fn for_serial(&self) -> Plans {
        Plans::new(true, false, Rc::clone(&self.asked))
    }

    /// Are they those of serial order?
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// The plan for a file; None when it is not an ELF file for this machine.
    pub fn of(&mut self, path: &Path) -> Option<Rc<Planned>> {
        let m = std::fs::metadata(path).ok()?;
        let key = Key {
            dev: m.dev(),
            ino: m.ino(),
            size: m.size(),
            mtime: m.mtime(),
            mtime_ns: m.mtime_nsec(),
            ctime: m.ctime(),
            ctime_ns: m.ctime_nsec(),
        };
        let (folder, waits, all) = (self.folder.as_deref(), self.waits, &self.asked);
        self.known
            .entry(key)
            .or_insert_with(|| {
                let asked = asked_of(path, waits, all);
                find(path, &key, waits, asked, folder).map(Rc::new)
            })
            .clone()
    }
}

impl Plans {
    /// Is the user to be told that much of this file's code stays unseen?
    pub fn tells_of(&self, planned: &Planned) -> bool {
        self.tells && planned.plan.stats.leaves_much()
    }
}

/// The places that are asked for in a file.
fn asked_of<'a>(path: &Path, waits: bool, all: &'a Asked) -> &'a [u64] {
    if waits || all.is_empty() {
        return &[];
    }
    let build = build_id(path);
    build.and_then(|b| all.get(&b)).map_or(&[], Vec::as_slice)
}

/// `$XDG_CACHE_HOME/geryon` or `~/.cache/geryon`, only ours to write.
pub fn folder() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))?;
    let path = base.join("geryon");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path)
        .ok()?;
    let m = std::fs::metadata(&path).ok()?;
    // SAFETY: plain call.
    let own = unsafe { libc::geteuid() };
    (m.uid() == own && m.mode() & 0o022 == 0).then_some(path)
}

fn find(
    path: &Path,
    key: &Key,
    waits: bool,
    asked: &[u64],
    folder: Option<&Path>,
) -> Option<Planned> {
    let mut h = DefaultHasher::new();
    (
        key,
        waits,
        asked,
        are_loads_ordered(),
        PLAN_VERSION,
        CACHE_VERSION,
        (HOOKS, SERIAL_HOOKS),
        env!("CARGO_PKG_VERSION"),
    )
        .hash(&mut h);
    let file = folder.map(|f| f.join(format!("{:016x}.plan", h.finish())));
    if let Some(kept) = file.as_ref().and_then(|f| std::fs::read(f).ok())
        && let Ok(planned) = postcard::from_bytes::<Planned>(&kept)
        && planned.plan.version == PLAN_VERSION
    {
        return Some(planned);
    }
    let made = make(path, waits, asked)?;
    // A cache that cannot be written only costs time.
    if let Some(f) = file
        && let Ok(bytes) = postcard::to_stdvec(&made)
    {
        let temporary = f.with_extension(format!("{}", std::process::id()));
        if std::fs::write(&temporary, bytes).is_ok() {
            let _ = std::fs::rename(&temporary, &f);
        }
    }
    Some(made)
}

/// Are loads that decide about order repeated with clocks? (`GERYON_LOADS=0` leaves them out, to compare.)
pub fn are_loads_ordered() -> bool {
    std::env::var_os("GERYON_LOADS").is_none_or(|v| v != "0")
}

fn make(path: &Path, waits: bool, asked: &[u64]) -> Option<Planned> {
    /// Bytes of a function's code that are looked at.
    const MOST_CODE: u64 = 128;
    use object::elf::PF_X;
    use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags};
    let bytes = std::fs::read(path).ok()?;
    let elf = object::File::parse(&*bytes).ok()?;
    let has_glibc = has_glibc(&bytes);
    let hooks = match waits {
        _ if !has_glibc => &[],
        true => SERIAL_HOOKS,
        false => HOOKS,
    };
    let plan = Plan::new(
        &bytes,
        &Options {
            entries: hooks,
            rmw: true,
            waits,
            loads: !waits && are_loads_ordered(),
            asked,
        },
    )
    .ok()?;
    let address = |name: &str| {
        elf.dynamic_symbols()
            .chain(elf.symbols())
            .find(|s| s.is_definition() && s.name() == Ok(name))
            .map(|s| s.address())
    };
    let code_of = |at: u64| {
        let mut all = elf.segments();
        all.find_map(|s| s.data_range(at, MOST_CODE).ok().flatten())
    };
    let cancel_word = address("pthread_setcanceltype")
        .filter(|_| has_glibc)
        .and_then(|at| Some((at, cancel_word(code_of(at)?)?)));
    let replaced = REPLACED
        .iter()
        .filter(|id| hooks.iter().any(|(_, n)| n == *id))
        .filter(|id| plan.windows.iter().all(|w| w.entry != Some(**id)))
        .filter_map(|id| Some((*id, address(hooks.iter().find(|(_, n)| n == id)?.0)?)))
        .collect();
    let loads = elf
        .segments()
        .filter(
            |s| matches!(s.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X)),
        )
        .map(|s| {
            let (offset, len) = s.file_range();
            (offset, s.address(), len)
        })
        .collect();
    const TUNABLES: &[u8] = b"GLIBC_TUNABLES\0";
    let reads_tunables = memchr::memmem::find(&bytes, TUNABLES).is_some();
    let has_canaries = reads_canary(&bytes) || address("__stack_chk_fail").is_some();
    Some(Planned {
        has_canaries,
        errno_location: address("__errno_location"),
        cancel_word,
        has_other_threads: !has_glibc && address("pthread_create").is_some(),
        plan,
        replaced,
        loads,
        reads_tunables,
    })
}

/// Is there an instruction in it that has an operand of 64 bits at FS:0x28, where each compiler reads it?
fn reads_canary(bytes: &[u8]) -> bool {
    /// ModRM's neighbour for an address alone, and the address.
    const OPERAND: [u8; 5] = [0x25, 0x28, 0, 0, 0];
    const FS: u8 = 0x64;
    const REX_W: u8 = 0x48;
    memchr::memmem::find_iter(bytes, &OPERAND).any(|at| {
        let before = at.checked_sub(4).map_or(&[][..], |start| &bytes[start..at]);
        matches!(before, [FS, rex, _, _] if rex & !4 == REX_W)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::PF_X;
    use object::{Object, ObjectSegment, SegmentFlags};

    /// lld lets segments share pages of the file: what is mapped to be executed there was taken for the segment
    /// before, and nothing of such a program was rewritten. (Rust links this test with lld.)
    #[test]
    fn a_mapping_of_code_belongs_to_the_segment_of_code() {
        let own = std::env::current_exe().expect("a path");
        let bytes = std::fs::read(&own).expect("readable");
        let elf = object::File::parse(&*bytes).expect("ELF");
        let planned = make(&own, true, &[]).expect("a plan");
        let mut seen = 0;
        for s in elf.segments() {
            if !matches!(s.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X)) {
                continue;
            }
            let (offset, len) = s.file_range();
            let (vaddr, end) = planned.vaddr_of(offset & !4095).expect("it is known");
            assert_eq!(
                (vaddr, end),
                (s.address() - offset % 4096, s.address() + len)
            );
            let inside = |w: &&geryon_patch::Window| (vaddr..end).contains(&w.start);
            seen += planned.plan.windows.iter().filter(inside).count();
        }
        assert_eq!(seen, planned.plan.windows.len(), "all windows lie in code");
        assert!(seen > 0);
    }
}
