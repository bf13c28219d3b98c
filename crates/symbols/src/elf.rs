//! What one ELF image says: segments, identity, unwind tables, symbols, DWARF. Everything is
//! copied out, so that nothing borrows from the file.

use std::path::PathBuf;
use std::sync::Arc;

use gimli::{EndianArcSlice, LittleEndian};
use object::elf as raw;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, ReadRef};

use crate::table::{Symbol, SymbolTable};
use crate::unwind::{TableSection, Tables};

/// The most that is read of a file's DWARF; beyond it, source lines are left out.
const DEBUG_MAX_BYTES: u64 = 1 << 30;
/// The largest note, and the most notes, that are compared.
const NOTE_MAX_BYTES: u64 = 4096;
const NOTES_MAX: usize = 8;
/// Size of the file header of a 64-bit ELF file.
pub(crate) const HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

pub(crate) type Lines = addr2line::Context<EndianArcSlice<LittleEndian>>;
type Elf<'d, R> = ElfFile64<'d, object::LittleEndian, R>;

/// A `PT_LOAD` program header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub offset: u64,
    pub file_size: u64,
    pub address: u64,
    pub executable: bool,
}

/// Bytes that tell one build of a file from another, with the address they are loaded to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub parts: Vec<(u64, Vec<u8>)>,
}

/// Where separate debug information is to be found.
#[derive(Default)]
pub(crate) struct DebugLink {
    pub build_id: Option<Vec<u8>>,
    pub file_name: Option<String>,
}

/// The wanted parts of one ELF image.
#[derive(Default)]
pub(crate) struct Extract {
    pub segments: Vec<Segment>,
    pub identity: Identity,
    pub tables: Tables,
    pub symbols: SymbolTable,
    pub lines: Option<Lines>,
    pub debug_link: DebugLink,
    /// Whether it has a `.symtab`.
    pub full_symbols: bool,
}

/// Reads a whole file: sections where there are any, else what program headers lead to.
/// `bias` is what the loader added to addresses when `data` is an image from memory, else 0.
pub(crate) fn extract<'d, R: ReadRef<'d>>(data: R, bias: u64) -> Option<Extract> {
    let elf = Elf::parse(data).ok()?;
    if elf.architecture() != object::Architecture::X86_64 {
        return None;
    }
    let raw_symbols = elf.dynamic_symbols().chain(elf.symbols());
    let mut symbols: Vec<Symbol<'_>> = raw_symbols
        .filter(|symbol| !symbol.is_undefined())
        .filter_map(|symbol| {
            let function = match symbol.kind() {
                object::SymbolKind::Text => true,
                object::SymbolKind::Unknown => false,
                _ => return None,
            };
            let name = symbol.name_bytes().ok()?;
            let (address, size) = (symbol.address(), symbol.size());
            Some(Symbol {
                name,
                address,
                size,
                function,
                local: symbol.is_local(),
            })
        })
        .collect();
    let mut code: Vec<(u64, u64)> = elf
        .sections()
        .filter(is_code)
        .map(|section| {
            (
                section.address(),
                section.address().saturating_add(section.size()),
            )
        })
        .collect();
    let segments = load_segments(&elf);
    if code.is_empty() {
        let executable = segments.iter().filter(|segment| segment.executable);
        code = executable
            .map(|s| (s.address, s.address.saturating_add(s.file_size)))
            .collect();
    }
    if symbols.is_empty() {
        symbols = Dynamic { elf: &elf, bias }.symbols().unwrap_or_default();
    }
    Some(Extract {
        identity: identity(&elf),
        tables: unwind_tables(&elf, &segments),
        symbols: SymbolTable::new(&symbols, code),
        lines: lines(&elf),
        debug_link: debug_link(&elf),
        full_symbols: elf.symbols().next().is_some(),
        segments,
    })
}

/// By its flag, for in a separate debug file the section has no bytes.
fn is_code<'d>(section: &impl object::ObjectSection<'d>) -> bool {
    match section.flags() {
        object::SectionFlags::Elf { sh_flags, .. } => sh_flags.0 & raw::SHF_EXECINSTR.0 != 0,
        _ => false,
    }
}

pub(crate) fn load_segments<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>) -> Vec<Segment> {
    let endian = elf.endian();
    let headers = elf.elf_program_headers().iter();
    headers
        .filter(|header| header.p_type(endian) == raw::PT_LOAD)
        .map(|header| Segment {
            offset: header.p_offset(endian),
            file_size: header.p_filesz(endian),
            address: header.p_vaddr(endian),
            executable: header.p_flags(endian).0 & raw::PF_X.0 != 0,
        })
        .collect()
}

/// Makes a file header say that there are no section headers: place, number and names' index. An
/// image from memory lacks them.
pub(crate) fn clear_section_header_fields(header: &mut [u8]) {
    header[0x28..0x30].fill(0);
    header[0x3c..HEADER_BYTES].fill(0);
}

fn identity<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>) -> Identity {
    let endian = elf.endian();
    let mut parts = Vec::new();
    let segments = load_segments(elf);
    if let Some(first) = segments.iter().find(|segment| segment.offset == 0)
        && let Ok(header) = elf.data().read_bytes_at(0, HEADER_BYTES as u64)
    {
        let mut header = header.to_vec();
        clear_section_header_fields(&mut header);
        parts.push((first.address, header));
    }
    let notes = elf
        .elf_program_headers()
        .iter()
        .filter(|header| header.p_type(endian) == raw::PT_NOTE);
    for header in notes.take(NOTES_MAX) {
        let (address, size) = (header.p_vaddr(endian), header.p_filesz(endian));
        // A note that is not loaded cannot be compared.
        if size <= NOTE_MAX_BYTES
            && let Some(note) = bytes_from(elf, &segments, address)
            && let Some(note) = note.get(..size as usize)
        {
            parts.push((address, note.to_vec()));
        }
    }
    Identity { parts }
}

fn unwind_tables<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>, segments: &[Segment]) -> Tables {
    let endian = elf.endian();
    let section = |name| {
        let section = elf.section_by_name(name)?;
        let bytes: Arc<[u8]> = content(&section)?.as_ref().into();
        (!bytes.is_empty()).then_some(TableSection {
            address: section.address(),
            bytes,
        })
    };
    let address = |name| {
        elf.section_by_name(name)
            .map_or(0, |section| section.address())
    };
    let mut tables = Tables {
        eh_frame: section(".eh_frame"),
        eh_frame_hdr: section(".eh_frame_hdr"),
        debug_frame: section(".debug_frame"),
        text_address: address(".text"),
        got_address: address(".got"),
    };
    if tables.eh_frame.is_some() {
        return tables;
    }
    let header = elf
        .elf_program_headers()
        .iter()
        .find(|h| h.p_type(endian) == raw::PT_GNU_EH_FRAME);
    if let Some(header) = header
        && let Ok(bytes) = elf
            .data()
            .read_bytes_at(header.p_offset(endian), header.p_filesz(endian))
    {
        let hdr = TableSection {
            address: header.p_vaddr(endian),
            bytes: bytes.into(),
        };
        if let Some(start) = hdr.eh_frame_address()
            && let Some(bytes) = bytes_from(elf, segments, start)
        {
            tables.eh_frame = Some(TableSection {
                address: start,
                bytes: bytes.into(),
            });
            tables.eh_frame_hdr = Some(hdr);
        }
    }
    tables
}

/// From an address to the end of the segment that holds it, as far as the data reaches.
fn bytes_from<'d, R: ReadRef<'d>>(
    elf: &Elf<'d, R>,
    segments: &[Segment],
    address: u64,
) -> Option<&'d [u8]> {
    let inside = |segment: &&Segment| {
        address
            .checked_sub(segment.address)
            .is_some_and(|skip| skip < segment.file_size)
    };
    let segment = segments.iter().find(inside)?;
    let skip = address - segment.address;
    let offset = segment.offset.checked_add(skip)?;
    let length = (segment.file_size - skip).min(elf.data().len().ok()?.checked_sub(offset)?);
    elf.data().read_bytes_at(offset, length).ok()
}

/// The dynamic symbols of an image that has no section headers.
struct Dynamic<'e, 'd, R: ReadRef<'d>> {
    elf: &'e Elf<'d, R>,
    bias: u64,
}

impl<'d, R: ReadRef<'d>> Dynamic<'_, 'd, R> {
    fn symbols(&self) -> Option<Vec<Symbol<'d>>> {
        let table = self.entry(raw::DT_SYMTAB.0)?;
        let names = self.entry(raw::DT_STRTAB.0)?;
        let count = self.count()?.min(table.len() / SYMBOL_BYTES);
        let parsed = table
            .chunks_exact(SYMBOL_BYTES)
            .take(count)
            .filter_map(|bytes| {
                let word =
                    |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
                let (info, section) = (bytes[4], u16::from_le_bytes([bytes[6], bytes[7]]));
                let function = match raw::SymbolType(info & 0xf) {
                    raw::STT_FUNC | raw::STT_GNU_IFUNC => true,
                    raw::STT_NOTYPE => false,
                    _ => return None,
                };
                let name = names.get(usize::try_from(word(0)? & 0xffff_ffff).ok()?..)?;
                let name = &name[..name.iter().position(|&byte| byte == 0)?];
                let defined = section != raw::SHN_UNDEF.0;
                let local = info >> 4 == raw::STB_LOCAL.0;
                defined.then_some(Symbol {
                    name,
                    address: word(8)?,
                    size: word(16)?,
                    function,
                    local,
                })
            });
        Some(parsed.collect())
    }

    fn count(&self) -> Option<usize> {
        if let Some(hash) = self.entry(raw::DT_GNU_HASH.0) {
            type Table<'d> =
                object::read::elf::GnuHashTable<'d, raw::FileHeader64<object::LittleEndian>>;
            let table = Table::parse(object::LittleEndian, hash).ok()?;
            return usize::try_from(table.symbol_table_length(object::LittleEndian)?).ok();
        }
        // The older table's second word is the number of chains, one for each symbol.
        let hash = self.entry(raw::DT_HASH.0)?;
        usize::try_from(u32::from_le_bytes(hash.get(4..8)?.try_into().ok()?)).ok()
    }

    /// What the dynamic entry `wanted` points to. A loader may have relocated it in place.
    fn entry(&self, wanted: i64) -> Option<&'d [u8]> {
        let endian = self.elf.endian();
        let segments = load_segments(self.elf);
        let mut headers = self.elf.elf_program_headers().iter();
        let header = headers.find(|header| header.p_type(endian) == raw::PT_DYNAMIC)?;
        let bytes = bytes_from(self.elf, &segments, header.p_vaddr(endian))?;
        let entries = bytes.chunks_exact(16).map(|entry| entry.split_at(8));
        for (tag, value) in entries {
            let tag = i64::from_le_bytes(tag.try_into().ok()?);
            let value = u64::from_le_bytes(value.try_into().ok()?);
            if tag == raw::DT_NULL.0 {
                break;
            }
            if tag == wanted {
                let relocated = || bytes_from(self.elf, &segments, value.checked_sub(self.bias)?);
                return bytes_from(self.elf, &segments, value).or_else(relocated);
            }
        }
        None
    }
}

/// The size of a section's bytes, decompressed; as large as can be where that is unknown.
fn content_size<'d>(section: &impl object::ObjectSection<'d>) -> u64 {
    section
        .compressed_file_range()
        .map_or(u64::MAX, |range| range.uncompressed_size)
}

/// A section's bytes, decompressed.
fn content<'d>(section: &impl object::ObjectSection<'d>) -> Option<std::borrow::Cow<'d, [u8]>> {
    if content_size(section) > DEBUG_MAX_BYTES {
        return None;
    }
    section.uncompressed_data().ok()
}

fn lines<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>) -> Option<Lines> {
    elf.section_by_name(".debug_info")?;
    let debug = elf
        .sections()
        .filter(|s| s.name().is_ok_and(|name| name.starts_with(".debug_")));
    let total = debug.fold(0u64, |sum, section| {
        sum.saturating_add(content_size(&section))
    });
    if total > DEBUG_MAX_BYTES {
        return None;
    }
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let section = elf.section_by_name(id.name());
        let bytes = section
            .and_then(|section| content(&section))
            .unwrap_or_default();
        Ok(EndianArcSlice::new(bytes.as_ref().into(), LittleEndian))
    };
    Lines::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
}

fn debug_link<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>) -> DebugLink {
    let name = elf.gnu_debuglink().ok().flatten().map(|(name, _)| name);
    DebugLink {
        build_id: elf.build_id().ok().flatten().map(<[u8]>::to_vec),
        // A name, not a path: it comes from the file and is joined to directories.
        file_name: name
            .and_then(|name| String::from_utf8(name.to_vec()).ok())
            .filter(|name| !name.contains('/') && name != ".."),
    }
}

impl DebugLink {
    /// Where the file may be, in the order that debuggers look.
    pub fn candidates(&self, module: &std::path::Path) -> Vec<PathBuf> {
        let root = PathBuf::from("/usr/lib/debug");
        let mut paths = Vec::new();
        if let Some((first, rest)) = self.build_id.as_deref().and_then(<[u8]>::split_first) {
            let hex = |bytes: &[u8]| {
                bytes
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
            };
            paths.push(root.join(format!(".build-id/{}/{}.debug", hex(&[*first]), hex(rest))));
        }
        if let (Some(name), Some(folder)) = (&self.file_name, module.parent()) {
            paths.push(folder.join(name));
            paths.push(folder.join(".debug").join(name));
            paths.push(
                root.join(folder.strip_prefix("/").unwrap_or(folder))
                    .join(name),
            );
        }
        paths
    }
}
