//! Files of which each replica has its own: what is in them, and what processes map of them. An object is an
//! unnamed file in memory for each follower, kept under the file's identity; the leader maps the file itself.

use crate::image::memfd;
use anyhow::{Context, Result, bail};
use geryon_tracee::Pid;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// What objects are called in a process's mappings, with their numbers.
const OBJECT_NAME: &str = "geryon-object-";
/// Copied and compared at once.
const PIECE: usize = 1 << 20;

/// Device and inode, which nobody else has as long as the file is open here.
pub type Identity = (u64, u64);

/// A file of which each replica has its own.
pub struct Object {
    /// As the agents know it.
    pub number: u32,
    /// Which file it is.
    pub identity: Identity,
    /// How messages call it.
    pub name: String,
    /// The leader's processes that map it: one, or several that take turns. No other one may change it, but those
    /// that have inherited it see what is there.
    pub owners: BTreeSet<Pid>,
    /// An owner may have stored there what was not compared yet.
    pub is_open: bool,
    /// An owner was told its number, and has it not mapped in all replicas yet.
    pub promised: u32,
    file: File,
    /// By replica; none for the leader.
    copies: Vec<Option<File>>,
    /// The segment that the file stands for.
    segment: Option<Segment>,
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(segment) = &self.segment {
            // (One that the program has removed is nobody's any more.)
            let _ = segment.fill_from(&self.file);
        }
    }
}

/// A segment of System V, which the monitor has attached as long as the program has something that stands for it.
pub struct Segment {
    id: i32,
    at: *mut u8,
    bytes: usize,
}

impl Segment {
    /// Attach it.
    ///
    /// # Errors
    /// When it cannot be, or another process has it attached.
    pub fn attach(id: i32) -> Result<Segment> {
        // SAFETY: plain numbers, which the kernel fills; then a new mapping where the kernel likes.
        unsafe {
            let mut status: libc::shmid_ds = std::mem::zeroed();
            if libc::shmctl(id, libc::IPC_STAT, &raw mut status) != 0 {
                return Err(std::io::Error::last_os_error())
                    .context("what is known of the segment");
            }
            if status.shm_nattch != 0 {
                bail!(
                    "segment {id} is attached to a process that is none of this program's, which would not see what \
                     is stored there"
                );
            }
            let at = libc::shmat(id, std::ptr::null(), 0);
            if at.addr() == usize::MAX {
                return Err(std::io::Error::last_os_error()).context("the segment");
            }
            let bytes = status.shm_segsz.next_multiple_of(4096);
            // Who stands in for a lost leader is forked from the monitor, and is not to have it attached.
            libc::madvise(at, bytes, libc::MADV_DONTFORK);
            Ok(Segment {
                id,
                at: at.cast(),
                bytes,
            })
        }
    }

    /// The file becomes what is in it.
    ///
    /// # Errors
    /// When memory is short.
    pub fn save_to(&self, file: &File) -> std::io::Result<()> {
        file.set_len(self.bytes as u64)?;
        let zero = [0; 4096];
        for at in (0..self.bytes).step_by(zero.len()) {
            let mut page = zero;
            // SAFETY: inside the segment, which may change meanwhile; the copy does not.
            unsafe {
                std::ptr::copy_nonoverlapping(self.at.add(at), page.as_mut_ptr(), page.len())
            };
            if page != zero {
                file.write_all_at(&page, at as u64)?;
            }
        }
        Ok(())
    }

    /// It becomes what is in the file.
    fn fill_from(&self, file: &File) -> std::io::Result<()> {
        let mut page = [0; 4096];
        for at in (0..self.bytes).step_by(page.len()) {
            file.read_exact_at(&mut page, at as u64)?;
            // SAFETY: inside the segment; whoever has it attached beside the monitor takes it as it comes.
            unsafe { std::ptr::copy_nonoverlapping(page.as_ptr(), self.at.add(at), page.len()) };
        }
        Ok(())
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: attached by `attach`, and nobody has a reference into it.
        unsafe { libc::shmdt(self.at.cast()) };
    }
}

/// A file that is mapped to be shared and read only, itself, by all replicas.
pub struct Plain {
    /// Which file it is.
    pub identity: Identity,
    /// A leader's process that maps it.
    pub by: Pid,
    /// Nobody else gets its inode.
    #[allow(dead_code)] // it is there to be open
    pub file: File,
}

/// All of them.
#[derive(Default)]
pub struct Shared {
    /// Those that are mapped, as far as anybody has looked.
    pub objects: Vec<Object>,
    /// See [`Plain`].
    pub plain: Vec<Plain>,
    /// Bits of the inodes of all objects that were ever made (`geryon_abi::layout::object::bit`).
    pub bits: u64,
    /// The user knows that something was not compared.
    pub is_left_out: bool,
    last: u32,
}

impl Shared {
    /// Is there any object?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The number of the next object.
    pub fn next_number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// The object of a file.
    pub fn find(&mut self, identity: Identity) -> Option<&mut Object> {
        self.objects.iter_mut().find(|o| o.identity == identity)
    }

    /// The object of this number.
    pub fn numbered(&mut self, number: u32) -> Option<&mut Object> {
        self.objects.iter_mut().find(|o| o.number == number)
    }
}

impl Object {
    /// With the file's content, for so many replicas of which `leader` leads.
    pub fn of_file(
        number: u32,
        file: File,
        name: String,
        owner: Pid,
        replicas: usize,
        leader: usize,
    ) -> Result<Object> {
        let status = file.metadata()?;
        let copy = |r| match r == leader {
            true => Ok(None),
            false => memfd(&format!("{OBJECT_NAME}{number}")).map(Some),
        };
        let copies = (0..replicas).map(copy).collect::<Result<_>>()?;
        let made = Object {
            number,
            identity: (status.dev(), status.ino()),
            name,
            owners: BTreeSet::from([owner]),
            is_open: false,
            promised: 0,
            file,
            copies,
            segment: None,
        };
        made.set_length()?;
        made.copy(0, u64::MAX)?;
        Ok(made)
    }

    /// A replica's own.
    pub fn copy_of(&self, replica: usize) -> Option<&File> {
        self.copies.get(replica)?.as_ref()
    }

    /// Of the file, and of each replica's own.
    pub fn inodes(&self) -> Vec<u64> {
        let own = self.copies.iter().flatten();
        let own = own.filter_map(|c| Some(c.metadata().ok()?.ino()));
        std::iter::once(self.identity.1).chain(own).collect()
    }

    /// What a replica maps: its own, or the file.
    ///
    /// # Errors
    /// When it cannot be opened for writing.
    pub fn opened(&self, replica: usize) -> std::io::Result<File> {
        writable(self.copy_of(replica).unwrap_or(&self.file))
    }

    /// A replica's own becomes what `source` has.
    ///
    /// # Errors
    /// When memory or descriptors are short.
    pub fn copy_for(&mut self, source: usize, replica: usize) -> Result<()> {
        let copy = memfd(&format!("{OBJECT_NAME}{}", self.number))?;
        let from = self.copy_of(source).unwrap_or(&self.file);
        copy.set_len(from.metadata()?.len())?;
        let mut buffer = vec![0; PIECE];
        self.by_piece(0, u64::MAX, |at, n| {
            if has_data(from, at, n as u64) {
                from.read_exact_at(&mut buffer[..n], at)?;
                copy.write_all_at(&buffer[..n], at)?;
            }
            Ok(())
        })?;
        if let Some(own) = self.copies.get_mut(replica) {
            *own = Some(copy);
        }
        Ok(())
    }

    /// The file becomes what the replica has, which is to map it. The file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn hand_over(&self, replica: usize) -> std::io::Result<File> {
        let file = writable(&self.file)?;
        let Some(own) = self.copy_of(replica) else {
            return Ok(file);
        };
        let length = own.metadata()?.len();
        if file.metadata()?.len() != length {
            file.set_len(length)?;
        }
        let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
        self.by_piece(0, u64::MAX, |at, n| {
            if !has_data(own, at, n as u64) && !has_data(&file, at, n as u64) {
                return Ok(());
            }
            own.read_exact_at(&mut ours[..n], at)?;
            file.read_exact_at(&mut theirs[..n], at)?;
            if ours[..n] != theirs[..n] {
                file.write_all_at(&ours[..n], at)?;
            }
            Ok(())
        })?;
        Ok(file)
    }

    /// The replica maps the file, in these processes, and has none of its own any more.
    pub fn leads(&mut self, replica: usize, owners: BTreeSet<Pid>) {
        self.owners = owners;
        self.promised = 0;
        if let Some(own) = self.copies.get_mut(replica) {
            *own = None;
        }
    }

    /// The file stands for this segment.
    pub fn of_segment(&mut self, segment: Segment) {
        self.segment = Some(segment);
    }

    /// Which one.
    pub fn segment_id(&self) -> Option<i32> {
        self.segment.as_ref().map(|s| s.id)
    }

    /// What the monitor has to hand to a replica that is to map it: its own, or what stands for a segment.
    pub fn mapped_by(&self, replica: usize) -> Option<&File> {
        let file = self.segment.as_ref().map(|_| &self.file);
        self.copy_of(replica).or(file)
    }

    /// Are they as long as the file?
    pub fn is_as_long(&self) -> std::io::Result<bool> {
        let length = self.file.metadata()?.len();
        for c in self.copies.iter().flatten() {
            if c.metadata()?.len() != length {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// They become as long as the file.
    pub fn set_length(&self) -> std::io::Result<()> {
        let length = self.file.metadata()?.len();
        for c in self.copies.iter().flatten() {
            if c.metadata()?.len() != length {
                c.set_len(length)?;
            }
        }
        Ok(())
    }

    /// So many bytes of the file, as far as there are any. What is a hole there is one in the copies.
    pub fn copy(&self, at: u64, len: u64) -> std::io::Result<()> {
        let mut buffer = vec![0; PIECE.min(len as usize).max(1)];
        self.by_piece(at, len, |at, n| {
            let is_hole = !has_data(&self.file, at, n as u64);
            if is_hole {
                buffer[..n].fill(0);
            } else {
                self.file.read_exact_at(&mut buffer[..n], at)?;
            }
            for c in self.copies.iter().flatten() {
                if !is_hole || has_data(c, at, n as u64) {
                    c.write_all_at(&buffer[..n], at)?;
                }
            }
            Ok(())
        })
    }

    /// The first byte of these at which a replica's own differs from the file.
    pub fn difference(&self, replica: usize, at: u64, len: u64) -> std::io::Result<Option<u64>> {
        let Some(copy) = self.copy_of(replica) else {
            return Ok(None);
        };
        let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
        let mut found = None;
        self.by_piece(at, len, |at, n| {
            let is_empty = !has_data(&self.file, at, n as u64) && !has_data(copy, at, n as u64);
            if found.is_some() || is_empty {
                return Ok(());
            }
            self.file.read_exact_at(&mut ours[..n], at)?;
            copy.read_exact_at(&mut theirs[..n], at)?;
            let differs = ours[..n].iter().zip(&theirs[..n]).position(|(a, b)| a != b);
            found = differs.map(|d| at + d as u64);
            Ok(())
        })?;
        Ok(found)
    }

    fn by_piece(
        &self,
        at: u64,
        len: u64,
        mut each: impl FnMut(u64, usize) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let end = at.saturating_add(len).min(self.file.metadata()?.len());
        let mut at = at;
        while at < end {
            let n = (end - at).min(PIECE as u64);
            each(at, n as usize)?;
            at += n;
        }
        Ok(())
    }
}

/// The same file, opened anew.
fn writable(file: &File) -> std::io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::options().read(true).write(true).open(path)
}

/// Is there anything but a hole in these bytes? (Yes, where the file cannot say so.)
fn has_data(file: &File, at: u64, len: u64) -> bool {
    // SAFETY: asks about the file; nobody uses its offset.
    let data = unsafe { libc::lseek(file.as_raw_fd(), at as i64, libc::SEEK_DATA) };
    match u64::try_from(data) {
        Ok(data) => data < at + len,
        Err(_) => std::io::Error::last_os_error().raw_os_error() != Some(libc::ENXIO),
    }
}

/// What a process maps to be shared of a file or an object.
pub struct Mapped {
    /// First address.
    pub start: u64,
    /// How many bytes.
    pub len: u64,
    /// Where in the file.
    pub offset: u64,
    /// Which file.
    pub inode: u64,
    /// May it write there?
    pub is_writable: bool,
    /// Is it mapped to be shared?
    pub is_shared: bool,
    /// Is it an object, and not the file?
    pub is_object: bool,
}

/// All that a process maps of files: nothing once it is gone.
///
/// # Errors
/// When it may not be known.
pub fn mapped(pid: Pid) -> std::io::Result<Vec<Mapped>> {
    let text = match std::fs::read(format!("/proc/{pid}/maps")) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => Vec::new(),
        read => read?,
    };
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(line_of_maps).collect())
}

fn line_of_maps(line: &str) -> Option<Mapped> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let offset = fields.next()?;
    let inode = fields.nth(1)?.parse().ok().filter(|i| *i != 0)?;
    let hex = |t| u64::from_str_radix(t, 16).ok();
    let start = hex(start)?;
    Some(Mapped {
        start,
        len: hex(end)? - start,
        offset: hex(offset)?,
        inode,
        is_writable: rights.contains('w'),
        is_shared: rights.ends_with('s'),
        is_object: fields.next().is_some_and(|n| n.contains(OBJECT_NAME)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn lines_of_maps() {
        let m = line_of_maps(
            "7f00-8f00 rw-s 00002000 00:01 77         /memfd:geryon-object-3 (deleted)",
        )
        .expect("a mapping of a file");
        assert_eq!(
            (m.start, m.len, m.offset, m.inode),
            (0x7f00, 0x1000, 0x2000, 77)
        );
        assert!(m.is_writable && m.is_shared && m.is_object);
        assert!(line_of_maps("7f00-8f00 rw-p 00000000 00:00 0 ").is_none());
    }

    #[test]
    fn copies_follow_the_file_and_differences_are_found() {
        let file = memfd("file").expect("a file");
        file.write_all_at(b"abc", 3 << 20).expect("written");
        let again = file.try_clone().expect("the same");
        let o = Object::of_file(1, file, String::new(), 1, 3, 0).expect("made");
        assert!(o.copy_of(0).is_none() && o.is_as_long().expect("known"));
        assert_eq!(o.difference(1, 0, u64::MAX).expect("compared"), None);
        let copy = o.copy_of(2).expect("one of its own");
        copy.write_all_at(b"x", 5000).expect("written");
        assert_eq!(o.difference(2, 0, u64::MAX).expect("compared"), Some(5000));
        assert_eq!(o.difference(2, 8192, u64::MAX).expect("compared"), None);
        // A hole in the file is one in the copies, too.
        o.copy(0, 1 << 20).expect("copied");
        assert_eq!(o.difference(2, 0, u64::MAX).expect("compared"), None);
        again.set_len(10).expect("cut off");
        assert!(!o.is_as_long().expect("known"));
        o.set_length().expect("cut off, too");
        assert_eq!(
            o.copy_of(1).expect("one").metadata().expect("known").len(),
            10
        );
    }
}
