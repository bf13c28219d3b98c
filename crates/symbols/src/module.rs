//! A loaded file: found, checked against what the process has mapped, and parsed.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::read::ReadCache;

use crate::Memory;
use crate::elf::{self, Extract, Segment};
use crate::image::rebuild_file;
use crate::maps::{Mapping, Maps};
use crate::unwind::Tables;

const PAGE_MASK: u64 = 4095;

/// A parsed module.
pub(crate) struct Module {
    parts: Extract,
    /// Symbols and lines from a separate file.
    debug: Option<Extract>,
}

/// The process and the place in it that a module is wanted for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub pid: i32,
    pub maps: &'a Maps,
    pub mapping: &'a Mapping,
    pub memory: &'a dyn Memory,
}

impl Module {
    /// Finds the file behind a mapping, or rebuilds from memory what is left of it.
    pub fn load(wanted: Wanted<'_>) -> Option<Module> {
        if wanted.mapping.is_file() {
            for path in candidates(wanted) {
                if let Some(parts) = extract_file(&path) {
                    let mut module = Module { parts, debug: None };
                    if module.is_mapped_at(wanted) {
                        module.find_debug_file(wanted.mapping);
                        return Some(module);
                    }
                }
            }
        }
        let parts = extract_memory(wanted)?;
        let mut module = Module { parts, debug: None };
        module.find_debug_file(wanted.mapping);
        Some(module)
    }

    /// Whether this is what the process has there: the same headers and build-id.
    pub fn is_mapped_at(&self, wanted: Wanted<'_>) -> bool {
        let Some(bias) = self.bias(wanted.mapping) else {
            return false;
        };
        for (address, bytes) in &self.parts.identity.parts {
            let mut mapped = vec![0; bytes.len()];
            if !wanted.memory.read(address.wrapping_add(bias), &mut mapped) {
                // Unreadable memory proves nothing; neither does a part that was never mapped.
                continue;
            }
            if mapped.len() == elf::HEADER_BYTES && mapped.starts_with(&object::elf::ELFMAG) {
                elf::clear_section_header_fields(&mut mapped);
            }
            if mapped != *bytes {
                return false;
            }
        }
        true
    }

    /// What the loader added to the module's addresses to give those of this mapping.
    pub fn bias(&self, mapping: &Mapping) -> Option<u64> {
        bias(&self.parts.segments, mapping)
    }

    pub fn tables(&self) -> &Tables {
        &self.parts.tables
    }

    /// The separate file's call frame information, which then is a `.debug_frame`.
    pub fn debug_tables(&self) -> Option<&Tables> {
        self.debug.as_ref().map(|debug| &debug.tables)
    }

    /// Demangled name and start of the function that covers an address of the module.
    pub fn function(&self, address: u64) -> Option<(String, u64)> {
        let in_debug = || self.debug.as_ref()?.symbols.find(address);
        // The separate file's symbols hold all of the module's own.
        let (name, start) = in_debug().or_else(|| self.parts.symbols.find(address))?;
        Some((
            addr2line::demangle_auto(name.into(), None).into_owned(),
            start,
        ))
    }

    /// `file:line` of an address of the module.
    pub fn source(&self, address: u64) -> Option<String> {
        let find = |parts: &Extract| {
            let location = parts.lines.as_ref()?.find_location(address).ok()??;
            let file = location.file?.to_owned();
            Some(
                location
                    .line
                    .map_or_else(|| file.clone(), |line| format!("{file}:{line}")),
            )
        };
        find(&self.parts).or_else(|| find(self.debug.as_ref()?))
    }

    fn find_debug_file(&mut self, mapping: &Mapping) {
        let link = &self.parts.debug_link;
        let complete = self.parts.full_symbols && self.parts.lines.is_some();
        let (Some(id), false, Some(path)) = (&link.build_id, complete, mapping.path()) else {
            return;
        };
        let same_build = |parts: &Extract| parts.debug_link.build_id.as_ref() == Some(id);
        self.debug = link
            .candidates(&path)
            .iter()
            .filter_map(|path| extract_file(path))
            .find(same_build);
    }
}

/// What the loader added to the file's addresses to give those of this mapping of it.
pub(crate) fn bias(segments: &[Segment], mapping: &Mapping) -> Option<u64> {
    let (first, behind) = (
        mapping.offset,
        mapping.offset.checked_add(mapping.end - mapping.start)?,
    );
    let overlaps = |segment: &&Segment| {
        let start = segment.offset & !PAGE_MASK;
        let end = segment.offset.saturating_add(segment.file_size);
        start < behind && first < end
    };
    // Neighbouring segments may share a page of the file, which then is mapped twice.
    let mut found = segments.iter().filter(overlaps);
    let wanted = found
        .clone()
        .find(|segment| segment.executable == mapping.executable);
    let segment = wanted.or_else(|| found.next())?;
    let address = mapping
        .offset
        .wrapping_sub(segment.offset)
        .wrapping_add(segment.address);
    Some(mapping.start.wrapping_sub(address))
}

/// Paths under which the file behind a mapping may be opened.
fn candidates(wanted: Wanted<'_>) -> Vec<PathBuf> {
    let Wanted { pid, mapping, .. } = wanted;
    let mut paths = Vec::new();
    if let (false, Some(path)) = (mapping.deleted, mapping.path()) {
        // The process may have another root than we have.
        paths.push(PathBuf::from(format!("/proc/{pid}/root{}", path.display())));
        paths.push(path);
    }
    // Needs a privilege, but reaches deleted files.
    paths.push(PathBuf::from(format!(
        "/proc/{pid}/map_files/{:x}-{:x}",
        mapping.start, mapping.end
    )));
    let executable = PathBuf::from(format!("/proc/{pid}/exe"));
    if std::fs::metadata(&executable).is_ok_and(|file| file.ino() == mapping.inode) {
        paths.push(executable);
    }
    paths
}

fn extract_file(path: &Path) -> Option<Extract> {
    // Opening a pipe that took the file's name would block.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let cache = ReadCache::new(File::open(path).ok()?);
    elf::extract(&cache, 0)
}

fn extract_memory(wanted: Wanted<'_>) -> Option<Extract> {
    let image = wanted.maps.image(wanted.mapping);
    let mut bytes = rebuild_file(&image, wanted.memory)?;
    if bytes.len() < elf::HEADER_BYTES {
        return None;
    }
    // The section headers are not mapped, except with the vDSO, which is mapped whole.
    if wanted.mapping.is_file() {
        elf::clear_section_header_fields(&mut bytes);
    }
    let segments = elf::extract(bytes.as_slice(), 0)?.segments;
    elf::extract(bytes.as_slice(), bias(&segments, wanted.mapping)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{ProcessMemory, read_u64};

    fn own(name: &str, test: impl Fn(Wanted<'_>)) {
        let pid = std::process::id() as i32;
        let (maps, memory) = (
            Maps::of_process(pid).unwrap(),
            ProcessMemory::open(pid).unwrap(),
        );
        let is_wanted = |mapping: &&Mapping| {
            mapping.executable
                && mapping
                    .short_name()
                    .is_some_and(|short| short.starts_with(name))
        };
        let mapping = maps.iter().find(is_wanted).expect(name);
        test(Wanted {
            pid,
            maps: &maps,
            mapping,
            memory: &memory,
        });
    }

    #[test]
    fn memory_stands_in_for_a_file() {
        own("libc.so", |wanted| {
            let file = extract_file(&wanted.mapping.path().unwrap()).unwrap();
            let memory = extract_memory(wanted).unwrap();
            assert_eq!(file.identity, memory.identity);
            assert!(file.identity.parts.len() > 1);
            let bias = bias(&file.segments, wanted.mapping).unwrap();
            assert_eq!(Some(bias), super::bias(&memory.segments, wanted.mapping));
            let names = [
                libc::getpid as *const () as u64,
                libc::qsort as *const () as u64,
            ];
            for (address, name) in names.into_iter().zip(["getpid", "qsort"]) {
                let found = memory.symbols.find(address - bias + 1).unwrap();
                assert_eq!(found.0, name);
                assert_eq!(Some(found), file.symbols.find(address - bias + 1));
            }
            let of = |parts: &Extract| {
                let section = |section: &Option<crate::unwind::TableSection>, take| {
                    let section = section.as_ref().unwrap();
                    (section.address, section.bytes[..take].to_vec())
                };
                let length = file.tables.eh_frame.as_ref().unwrap().bytes.len();
                (
                    section(&parts.tables.eh_frame, length),
                    section(&parts.tables.eh_frame_hdr, 64),
                )
            };
            assert!(of(&file) == of(&memory));
        });
    }

    #[test]
    fn the_vdso_is_read_from_memory() {
        own("[vdso]", |wanted| {
            let module = Module::load(wanted).unwrap();
            assert!(module.is_mapped_at(wanted));
            let mut functions =
                (0..wanted.mapping.end - wanted.mapping.start).filter_map(|at| module.function(at));
            assert!(functions.any(|(name, _)| name == "clock_gettime"));
            assert!(module.tables().eh_frame.is_some());
        });
    }

    #[test]
    fn another_file_is_not_taken_for_the_mapped_one() {
        own("libc.so", |wanted| {
            let module = Module {
                parts: extract_file(Path::new("/proc/self/exe")).unwrap(),
                debug: None,
            };
            assert!(!module.is_mapped_at(wanted));
            assert!(read_u64(wanted.memory, wanted.mapping.start).is_some());
        });
    }
}
