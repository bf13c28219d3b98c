//! The few things that are read from an ELF file: segments, sections, symbols with
//! their versions, and the dynamic table. Every offset is checked.

use crate::Error;
use std::ops::Range;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const SHT_GNU_VERDEF: u32 = 0x6fff_fffd;
const SHT_GNU_VERSYM: u32 = 0x6fff_ffff;
const SHF_EXECINSTR: u64 = 4;
const EM_X86_64: u16 = 62;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const VERSION_HIDDEN: u16 = 0x8000;

/// Symbol types.
pub const STT_FUNC: u8 = 2;
pub const STT_GNU_IFUNC: u8 = 10;
/// Symbol binding that makes it invisible outside its object file.
pub const STB_LOCAL: u8 = 0;

/// A loadable segment: only its part that the file holds matters here.
#[derive(Debug, Clone)]
pub struct Segment {
    pub vaddr: u64,
    pub offset: usize,
    pub filesz: usize,
    pub exec: bool,
    pub write: bool,
}

impl Segment {
    pub fn range(&self) -> Range<u64> {
        self.vaddr..self.vaddr + self.filesz as u64
    }
}

#[derive(Debug, Clone)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    addr: u64,
    offset: u64,
    size: u64,
    link: u32,
}

/// A defined symbol.
#[derive(Debug, Clone)]
pub struct Symbol<'a> {
    pub name: &'a [u8],
    pub version: Option<&'a [u8]>,
    /// False for `name@VERSION`, true for `name@@VERSION` and unversioned.
    pub default: bool,
    pub value: u64,
    pub size: u64,
    pub kind: u8,
    pub bind: u8,
    pub dynamic: bool,
}

/// A parsed file.
pub struct Image<'a> {
    data: &'a [u8],
    pub segments: Vec<Segment>,
    sections: Vec<Section>,
    names: u32,
    dynamic: Vec<(u64, u64)>,
    eh_frame_hdr: Option<u64>,
    relro: Option<Range<u64>>,
    pub entry: u64,
    /// Fixed addresses (`ET_EXEC`): any word may be a code address.
    pub fixed: bool,
}

pub fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(
        data.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

pub fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        data.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

pub fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        data.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

fn cstr(data: &[u8], at: usize) -> &[u8] {
    let tail = data.get(at..).unwrap_or_default();
    let len = tail.iter().position(|&b| b == 0).unwrap_or(tail.len());
    &tail[..len]
}

impl<'a> Image<'a> {
    pub fn parse(data: &'a [u8]) -> Result<Image<'a>, Error> {
        let header = data
            .get(..64)
            .ok_or_else(|| Error::NotElf("too short".into()))?;
        if header[..7] != [0x7f, b'E', b'L', b'F', 2, 1, 1] {
            return Err(Error::NotElf("not a little-endian 64-bit ELF file".into()));
        }
        let half = |at| u16_at(header, at).expect("inside the header");
        let word = |at| u64_at(header, at).expect("inside the header");
        if half(18) != EM_X86_64 || !matches!(half(16), ET_EXEC | ET_DYN) {
            let (machine, kind) = (half(18), half(16));
            return Err(Error::NotElf(format!("machine {machine}, type {kind}")));
        }
        let mut image = Image {
            data,
            segments: Vec::new(),
            sections: Vec::new(),
            names: u32::from(half(62)),
            dynamic: Vec::new(),
            eh_frame_hdr: None,
            relro: None,
            entry: word(24),
            fixed: half(16) == ET_EXEC,
        };
        image.read_segments(word(32), half(54), half(56))?;
        image.read_sections(word(40), half(58), half(60));
        Ok(image)
    }

    /// Where nothing changes once the file has been loaded and relocated.
    pub fn constants(&self) -> Vec<Range<u64>> {
        let segments = self.segments.iter().filter(|s| !s.write);
        segments
            .map(Segment::range)
            .chain(self.relro.clone())
            .collect()
    }

    fn read_segments(&mut self, offset: u64, size: u16, count: u16) -> Result<(), Error> {
        let damaged = |what: &str| Error::Damaged(format!("program header: {what}"));
        let mut dynamic = None;
        for i in 0..usize::from(count) {
            let at = (offset as usize).saturating_add(i * usize::from(size));
            let header = at.checked_add(56).and_then(|end| self.data.get(at..end));
            let header = header.ok_or_else(|| damaged("outside the file"))?;
            let word = |at| u64_at(header, at).expect("inside the header");
            let flags = u32_at(header, 4).expect("inside the header");
            let (offset, vaddr, filesz) = (word(8) as usize, word(16), word(32) as usize);
            match u32_at(header, 0).expect("inside the header") {
                PT_LOAD => {
                    let inside = offset
                        .checked_add(filesz)
                        .is_some_and(|e| e <= self.data.len());
                    if !inside || vaddr > 1 << 47 {
                        return Err(damaged("segment outside the file"));
                    }
                    let (exec, write) = (flags & PF_X != 0, flags & PF_W != 0);
                    self.segments.push(Segment {
                        vaddr,
                        offset,
                        filesz,
                        exec,
                        write,
                    });
                }
                PT_DYNAMIC => dynamic = Some((vaddr, filesz)),
                PT_GNU_EH_FRAME => self.eh_frame_hdr = Some(vaddr),
                PT_GNU_RELRO => self.relro = Some(vaddr..vaddr.saturating_add(word(40))),
                _ => {}
            }
        }
        self.segments.sort_by_key(|s| s.vaddr);
        if self
            .segments
            .windows(2)
            .any(|w| w[0].range().end > w[1].vaddr)
        {
            return Err(damaged("segments overlap"));
        }
        if let Some(bytes) = dynamic.and_then(|(vaddr, len)| self.bytes(vaddr, len as u64)) {
            let entries = bytes.chunks_exact(16);
            let entries = entries.map_while(|e| Some((u64_at(e, 0)?, u64_at(e, 8)?)));
            self.dynamic = entries.take_while(|e| e.0 != 0).collect();
        }
        Ok(())
    }

    /// Section headers are optional: what is wrong with them is ignored.
    fn read_sections(&mut self, offset: u64, size: u16, count: u16) {
        for i in 0..usize::from(count) {
            let at = (offset as usize).saturating_add(i * usize::from(size));
            let Some(header) = at.checked_add(64).and_then(|end| self.data.get(at..end)) else {
                return;
            };
            let half = |at| u32_at(header, at).expect("inside the header");
            let word = |at| u64_at(header, at).expect("inside the header");
            self.sections.push(Section {
                name: half(0),
                kind: half(4),
                flags: word(8),
                addr: word(16),
                offset: word(24),
                size: word(32),
                link: half(40),
            });
        }
    }

    /// The sections that hold code. (A segment may hold more than that.)
    pub fn code_sections(&self) -> Vec<Range<u64>> {
        let code = self
            .sections
            .iter()
            .filter(|s| s.flags & SHF_EXECINSTR != 0);
        code.map(|s| s.addr..s.addr.saturating_add(s.size))
            .collect()
    }

    /// The segment whose file part holds this address.
    pub fn segment(&self, vaddr: u64) -> Option<&Segment> {
        let at = self.segments.partition_point(|s| s.vaddr <= vaddr);
        let segment = &self.segments[at.checked_sub(1)?];
        segment.range().contains(&vaddr).then_some(segment)
    }

    /// File bytes from an address to the end of its segment.
    pub fn tail(&self, vaddr: u64) -> Option<&'a [u8]> {
        let s = self.segment(vaddr)?;
        let skip = (vaddr - s.vaddr) as usize;
        Some(&self.data[s.offset + skip..s.offset + s.filesz])
    }

    pub fn bytes(&self, vaddr: u64, len: u64) -> Option<&'a [u8]> {
        self.tail(vaddr)?.get(..usize::try_from(len).ok()?)
    }

    pub fn is_code(&self, vaddr: u64) -> bool {
        self.segment(vaddr).is_some_and(|s| s.exec)
    }

    /// Value of a tag of the dynamic table.
    pub fn dynamic(&self, tag: u64) -> Option<u64> {
        self.dynamic.iter().find(|e| e.0 == tag).map(|e| e.1)
    }

    /// Address and content of `.eh_frame`.
    pub fn eh_frame(&self) -> Option<(u64, &'a [u8])> {
        let names = self.section_bytes(self.names as usize).unwrap_or_default();
        let named = |s: &&Section| s.addr != 0 && cstr(names, s.name as usize) == b".eh_frame";
        if let Some(s) = self.sections.iter().find(named) {
            return Some((s.addr, self.bytes(s.addr, s.size)?));
        }
        let hdr = self.eh_frame_hdr?;
        let bytes = self.bytes(hdr, 8)?;
        // Version 1, pointer to .eh_frame as a PC-relative signed 32-bit number: all linkers do so.
        if bytes[..2] != [1, 0x1b] {
            return None;
        }
        let relative = i64::from(u32_at(bytes, 4)? as i32);
        let addr = (hdr + 4).checked_add_signed(relative)?;
        Some((addr, self.tail(addr)?))
    }

    fn section_bytes(&self, index: usize) -> Option<&'a [u8]> {
        let s = self.sections.get(index)?;
        self.data
            .get(s.offset as usize..(s.offset as usize).checked_add(s.size as usize)?)
    }

    /// Defined symbols of `.dynsym` and `.symtab` whose value lies in code.
    pub fn code_symbols(&self) -> Vec<Symbol<'a>> {
        let mut out = Vec::new();
        for (index, section) in self.sections.iter().enumerate() {
            if !matches!(section.kind, SHT_SYMTAB | SHT_DYNSYM) {
                continue;
            }
            let dynamic = section.kind == SHT_DYNSYM;
            let table = self.section_bytes(index).unwrap_or_default();
            let names = self
                .section_bytes(section.link as usize)
                .unwrap_or_default();
            let versym = self.sections.iter().position(|s| s.kind == SHT_GNU_VERSYM);
            let versym = versym
                .filter(|_| dynamic)
                .and_then(|i| self.section_bytes(i));
            let versions = if dynamic {
                self.version_names()
            } else {
                Vec::new()
            };
            for (number, entry) in table.chunks_exact(24).enumerate() {
                let value = u64_at(entry, 8).expect("24 bytes");
                let section = u16_at(entry, 6).expect("24 bytes");
                if section == 0 || !self.is_code(value) {
                    continue;
                }
                let full = cstr(names, u32_at(entry, 0).expect("24 bytes") as usize);
                // Some linkers write `name@VERSION` into .symtab.
                let at = full.iter().position(|&b| b == b'@').filter(|&at| at > 0);
                let (name, written) = full.split_at(at.unwrap_or(full.len()));
                let version = versym.and_then(|v| u16_at(v, number * 2)).unwrap_or(0);
                let known = versions.iter().find(|v| v.0 == version & !VERSION_HIDDEN);
                let written_version = written.strip_prefix(b"@");
                let strip = |v: &'a [u8]| v.strip_prefix(b"@").unwrap_or(v);
                out.push(Symbol {
                    name,
                    version: known.map(|v| v.1).or(written_version.map(strip)),
                    default: version & VERSION_HIDDEN == 0
                        && (written.is_empty() || written.starts_with(b"@@")),
                    value,
                    size: u64_at(entry, 16).expect("24 bytes"),
                    kind: entry[4] & 15,
                    bind: entry[4] >> 4,
                    dynamic,
                });
            }
        }
        out
    }

    /// Index and name of each version that the file defines.
    fn version_names(&self) -> Vec<(u16, &'a [u8])> {
        let mut out = Vec::new();
        let Some(index) = self.sections.iter().position(|s| s.kind == SHT_GNU_VERDEF) else {
            return out;
        };
        let table = self.section_bytes(index).unwrap_or_default();
        let names = self
            .section_bytes(self.sections[index].link as usize)
            .unwrap_or_default();
        let mut at = 0usize;
        loop {
            let entry = (
                u16_at(table, at + 4),
                u32_at(table, at + 12),
                u32_at(table, at + 16),
            );
            let (Some(number), Some(aux), Some(next)) = entry else {
                return out;
            };
            if let Some(name) = u32_at(table, at.saturating_add(aux as usize)) {
                out.push((number, cstr(names, name as usize)));
            }
            if next == 0 || out.len() > usize::from(u16::MAX) {
                return out;
            }
            at = at.saturating_add(next as usize);
        }
    }
}
