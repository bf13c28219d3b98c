//! What is mapped in a process: asked mapping by mapping where the kernel can (PROCMAP_QUERY, Linux
//! 6.11), else read from /proc/PID/maps as a whole, which with a hundred libraries costs more
//! than mapping one.

mod pages;

pub use pages::{PAGE_BYTES, Pages};

use anyhow::{Context, Result};
use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One executable file mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeMap {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// File offset of the first byte.
    pub offset: u64,
    /// File.
    pub path: PathBuf,
}

/// Names the object that is mapped: device and inode.
pub type ObjectId = (u32, u32, u64);

/// A mapping of an object whose other mappings show what is written to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMap {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Of the first byte in the object.
    pub offset: u64,
    /// As for mmap(2).
    pub protection: i32,
    /// What is mapped.
    pub object: ObjectId,
    /// It has no name in the file system, and never had one.
    pub anonymous: bool,
    /// It is what a replica has in the place of a file.
    pub stands_for_file: bool,
}

/// One mapping: what PROCMAP_QUERY tells of it.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    readable: bool,
    writable: bool,
    executable: bool,
    /// What is written is seen by others.
    shared: bool,
    object: ObjectId,
    name: Vec<u8>,
}

impl Mapping {
    /// Is it all of this?
    fn is(&self, kind: u64) -> bool {
        let has = |is: bool, bit: u64| is || kind & bit == 0;
        has(self.readable, READABLE)
            && has(self.writable, WRITABLE)
            && has(self.executable, EXECUTABLE)
            && has(self.shared, SHARED)
    }

    /// As the kernel names memory that was mapped to be shared without a file, and what stands for that in
    /// the copy of a process.
    fn is_anonymous(&self) -> bool {
        self.name.starts_with(b"/dev/zero (deleted)") || self.name.starts_with(SHARED_OBJECT)
    }
}

/// What [`memfd`](crate::image::memfd)s are called that stand for shared memory.
pub const SHARED_NAME: &str = "geryon-shared";
/// As the kernel shows what stands for files, see `crate::objects`.
const FILE_OBJECT: &[u8] = b"/memfd:geryon-object-";
/// As the kernel shows them.
const SHARED_OBJECT: &[u8] = b"/memfd:geryon-shared";

/// The mappings of a stopped process.
pub struct AddressSpace {
    file: File,
    /// All of them, on kernels that cannot be asked for one.
    all: OnceCell<Vec<Mapping>>,
}

impl AddressSpace {
    /// Of a process.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn open(pid: i32) -> Result<AddressSpace> {
        let file = File::open(format!("/proc/{pid}/maps")).context("its mappings")?;
        Ok(AddressSpace {
            file,
            all: OnceCell::new(),
        })
    }

    /// Executable file mappings that touch a range.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn code(&self, start: u64, end: u64) -> Result<Vec<CodeMap>> {
        let mut out = Vec::new();
        let mut at = start;
        while let Some(m) = self.next(at, EXECUTABLE)?.filter(|m| m.start < end) {
            at = m.end;
            if m.executable && m.name.starts_with(b"/") && !m.name.starts_with(b"/memfd:") {
                out.push(CodeMap {
                    start: m.start,
                    end: m.end,
                    offset: m.offset,
                    path: PathBuf::from(OsString::from_vec(m.name)),
                });
            }
        }
        Ok(out)
    }

    /// Start and length of the writable mappings that other processes may share.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn shared_writable(&self) -> Result<Vec<(u64, u64)>> {
        self.those(WRITABLE | SHARED)
    }

    /// Start and length of all mappings that show what is written to a file, by whatever way.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn shared_any(&self) -> Result<Vec<(u64, u64)>> {
        self.those(SHARED)
    }

    /// The mappings that may show what another process has written, or it what this one has: those that are
    /// writable, and all of anonymous memory.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn shared(&self) -> Result<Vec<SharedMap>> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(m) = self.next(at, SHARED)? {
            at = m.end;
            let anonymous = m.is_anonymous();
            if m.shared && (m.writable || anonymous) {
                let bit = |is: bool, bit| if is { bit } else { libc::PROT_NONE };
                out.push(SharedMap {
                    start: m.start,
                    len: m.end - m.start,
                    offset: m.offset,
                    protection: bit(m.readable, libc::PROT_READ)
                        | bit(m.writable, libc::PROT_WRITE)
                        | bit(m.executable, libc::PROT_EXEC),
                    object: m.object,
                    anonymous,
                    stands_for_file: m.name.starts_with(FILE_OBJECT),
                });
            }
        }
        Ok(out)
    }

    /// Start and length of the writable mappings that belong to this process alone.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn own_writable(&self) -> Result<Vec<(u64, u64)>> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(m) = self.next(at, WRITABLE)? {
            at = m.end;
            if !m.shared {
                out.push((m.start, m.end - m.start));
            }
        }
        Ok(out)
    }

    /// Start and length of those that are all of this.
    fn those(&self, kind: u64) -> Result<Vec<(u64, u64)>> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(m) = self.next(at, kind)? {
            at = m.end;
            out.push((m.start, m.end - m.start));
        }
        Ok(out)
    }

    /// Start, length and name of all mappings.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn all(&self) -> Result<Vec<(u64, u64, Vec<u8>)>> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(m) = self.next(at, ANY)? {
            at = m.end;
            out.push((m.start, m.end - m.start, m.name));
        }
        Ok(out)
    }

    /// Is nothing mapped in these bytes, as far as can be known?
    pub fn is_free(&self, at: u64, len: u64) -> bool {
        self.next(at, ANY)
            .is_ok_and(|m| m.is_none_or(|m| m.start >= at + len))
    }

    /// The mapping that covers an address, or the next one, of those that are all of this ([`SHARED`] and so on).
    /// (The kernel passes over the others: a process has hundreds of them.)
    fn next(&self, at: u64, kind: u64) -> Result<Option<Mapping>> {
        if self.all.get().is_none() {
            match query(&self.file, at, kind) {
                Err(e) if e.raw_os_error() == Some(libc::ENOTTY) => {
                    let mut text = Vec::new();
                    (&self.file).read_to_end(&mut text)?;
                    let _ = self
                        .all
                        .set(text.split(|b| *b == b'\n').filter_map(line).collect());
                }
                result => return Ok(result?),
            }
        }
        let all = self.all.get().map_or(&[][..], |all| &all[..]);
        let next = all.partition_point(|m| m.end <= at);
        let mut rest = all[next..].iter();
        Ok(rest.find(|m| m.is(kind)).map(|m| Mapping {
            name: m.name.clone(),
            ..*m
        }))
    }
}

/// `struct procmap_query` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

/// `_IOWR('f', 17, struct procmap_query)`
const PROCMAP_QUERY: u64 = 0xc000_6611 | (size_of::<Query>() as u64) << 16;
const COVERING_OR_NEXT: u64 = 0x10;
/// Of a mapping, and which ones are asked for.
const ANY: u64 = 0;
const READABLE: u64 = 1;
const WRITABLE: u64 = 2;
const EXECUTABLE: u64 = 4;
const SHARED: u64 = 8;

/// The mapping of this kind that covers an address, or the next one; ENOTTY where the kernel knows no such question.
fn query(file: &File, at: u64, kind: u64) -> std::io::Result<Option<Mapping>> {
    let mut name = [0u8; libc::PATH_MAX as usize];
    let mut q = Query {
        size: size_of::<Query>() as u64,
        query_flags: COVERING_OR_NEXT | kind,
        query_addr: at,
        vma_name_size: name.len() as u32,
        vma_name_addr: name.as_mut_ptr() as u64,
        ..Query::default()
    };
    // SAFETY: the kernel writes within the struct and the named buffer, which outlive the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), PROCMAP_QUERY, &raw mut q) };
    if result != 0 {
        let e = std::io::Error::last_os_error();
        return match e.raw_os_error() {
            Some(libc::ENOENT) => Ok(None),
            _ => Err(e),
        };
    }
    let len = (q.vma_name_size as usize).saturating_sub(1); // with its NUL
    Ok(Some(Mapping {
        start: q.vma_start,
        end: q.vma_end,
        offset: q.vma_offset,
        readable: q.vma_flags & READABLE != 0,
        writable: q.vma_flags & WRITABLE != 0,
        executable: q.vma_flags & EXECUTABLE != 0,
        shared: q.vma_flags & SHARED != 0,
        object: (q.dev_major, q.dev_minor, q.inode),
        name: name[..len.min(name.len())].to_vec(),
    }))
}

/// One line of /proc/PID/maps.
fn line(text: &[u8]) -> Option<Mapping> {
    let mut fields = text.splitn(6, |b| *b == b' ');
    let word = |f: &[u8]| u64::from_str_radix(std::str::from_utf8(f).ok()?, 16).ok();
    let range = fields.next()?;
    let dash = range.iter().position(|b| *b == b'-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;
    let device = fields.next()?;
    let colon = device.iter().position(|b| *b == b':')?;
    let inode = std::str::from_utf8(fields.next()?).ok()?;
    let name = fields.next().unwrap_or(b"");
    let has = |n: usize, letter: u8| permissions.get(n) == Some(&letter);
    Some(Mapping {
        start: word(&range[..dash])?,
        end: word(&range[dash + 1..])?,
        offset: word(offset)?,
        readable: has(0, b'r'),
        writable: has(1, b'w'),
        executable: has(2, b'x'),
        shared: has(3, b's'),
        object: (
            word(&device[..colon])? as u32,
            word(&device[colon + 1..])? as u32,
            inode.parse().ok()?,
        ),
        name: name.trim_ascii_start().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> AddressSpace {
        AddressSpace::open(std::process::id() as i32).unwrap()
    }

    fn whole() -> AddressSpace {
        let space = own();
        let text = std::fs::read("/proc/self/maps").unwrap();
        let all = text.split(|b| *b == b'\n').filter_map(line).collect();
        assert!(space.all.set(all).is_ok());
        space
    }

    #[test]
    fn both_ways_find_the_same_code() {
        let here = own as *const () as u64;
        let (one, all) = (
            own().code(0, u64::MAX).unwrap(),
            whole().code(0, u64::MAX).unwrap(),
        );
        assert_eq!(one, all);
        let mine = one
            .iter()
            .find(|m| m.start <= here && here < m.end)
            .unwrap();
        assert_eq!(mine.path, std::env::current_exe().unwrap());
        assert_eq!(own().code(here, here + 1).unwrap().first(), Some(mine));
    }

    #[test]
    fn what_is_mapped_is_not_free() {
        let here = own as *const () as u64;
        for space in [own(), whole()] {
            assert!(!space.is_free(here & !4095, 4096));
            assert!(!space.is_free(0x1_0000, here), "a mapping inside");
            assert!(space.is_free(0x1_0000, 4096));
        }
    }

    #[test]
    fn both_ways_find_the_same_shared_memory() {
        const BYTES: usize = 1 << 16;
        // SAFETY: a new mapping at an address that the kernel chooses; nobody uses it.
        let at = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let at = libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            );
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(at.byte_add(4096), 4096, libc::PROT_NONE), 0);
            at as u64
        };
        let there = |space: AddressSpace| {
            let all = space.shared().unwrap();
            let ours = all
                .into_iter()
                .filter(|m| (at..at + BYTES as u64).contains(&m.start));
            ours.collect::<Vec<_>>()
        };
        let parts = there(own());
        assert_eq!(parts, there(whole()));
        let told: Vec<_> = parts
            .iter()
            .map(|m| (m.offset, m.len, m.protection))
            .collect();
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let wanted = [
            (0, 4096, rw),
            (4096, 4096, 0),
            (8192, BYTES as u64 - 8192, rw),
        ];
        assert_eq!(told, wanted);
        assert!(
            parts
                .iter()
                .all(|m| m.anonymous && m.object == parts[0].object)
        );
        // SAFETY: nobody uses it.
        unsafe { libc::munmap(at as *mut libc::c_void, BYTES) };
    }

    #[test]
    fn a_line_of_maps() {
        let m = line(b"7f00a000-7f00b000 r-xp 00001000 fe:00 42                 /a b (deleted)")
            .unwrap();
        assert_eq!(
            (m.start, m.end, m.offset),
            (0x7f00_a000, 0x7f00_b000, 0x1000)
        );
        assert!(m.executable);
        assert_eq!(m.name, b"/a b (deleted)");
        assert!(line(b"").is_none());
    }
}
