//! Files that the program maps to be shared and writable. The leader's processes map the file itself, so
//! that other programs see it. Each other replica has an object of its own in its place, an unnamed file in
//! memory, kept here under the file's identity: whichever process of the replica maps the file maps that.
//!
//! An object is made when a leader's process maps a file that none of its replica has mapped so far: all
//! followers have come to that call by then, and its content is the file's at that moment. From there on the
//! program's own stores keep file and objects alike. What is written by calls is copied from the file, right
//! behind the call, before anybody has been told of its end.

use crate::image::{fd_path, memfd};
use crate::options::Verify;
use crate::state::Monitor;
use anyhow::{Context, Result};
use geryon_abi::layout::object;
use geryon_tracee::{Pid, RemoteMemory};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::sync::atomic::Ordering;

/// In place of a device, and with its id of an inode: a segment of System V.
const SEGMENTS: u64 = 1 << 63;
/// What objects are called in a process's mappings, with their numbers.
const OBJECT_NAME: &str = "geryon-object-";
/// Copied at once.
const PIECE: usize = 1 << 20;

/// A file of which each replica has its own.
pub struct Object {
    /// As the agents know it.
    number: u32,
    /// Device and inode, which nobody else has as long as the file is open here.
    identity: (u64, u64),
    /// None of a segment, which only stores change.
    file: Option<File>,
    /// By replica; none for the leader.
    copies: Vec<Option<File>>,
    /// Leaders' processes that were told its number, and have it not mapped in all replicas yet.
    promised: Vec<Pid>,
}

/// All of them.
#[derive(Default)]
pub struct Shared {
    objects: Vec<Object>,
    /// Files that are mapped to be shared and read only, themselves, by all replicas.
    plain: Vec<((u64, u64), File)>,
    last: u32,
    /// Bits of their inodes.
    bits: u64,
}

impl Shared {
    /// What a group's header is told.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Is there any?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The number of an object, for a leader's process that is about to map it.
    fn promise(&mut self, identity: (u64, u64), to: Pid) -> u32 {
        let found = self.objects.iter_mut().find(|o| o.identity == identity);
        found.map_or(0, |o| {
            o.promised.push(to);
            o.number
        })
    }

    fn find(&self, identity: (u64, u64)) -> Option<&Object> {
        self.objects.iter().find(|o| o.identity == identity)
    }
}

fn identity_of(file: &File) -> std::io::Result<(u64, u64)> {
    file.metadata().map(|m| (m.dev(), m.ino()))
}

impl Monitor {
    /// A leader is about to map a file, see `rpc::SHARE`.
    pub(crate) fn share(&mut self, pid: Pid, fd: u64, flags: u64) -> i64 {
        let path = format!("/proc/{pid}/fd/{fd}");
        let Ok(status) = std::fs::metadata(&path) else {
            // No descriptor: the kernel says so.
            return 0;
        };
        let is_shared = matches!(
            flags as i32 & libc::MAP_TYPE,
            libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE
        );
        let is_writable = access_mode(pid, fd) == Some(libc::O_RDWR);
        let identity = (status.dev(), status.ino());
        if !status.file_type().is_file() {
            /// What is mapped of it is nobody else's.
            const ZERO: u64 = 0x105;
            let is_zero = status.file_type().is_char_device() && status.rdev() == ZERO;
            if !is_writable || !is_shared || is_zero {
                return 0;
            }
            return self
                .refuse_mapping("only regular files can be mapped to be shared and writable");
        }
        self.sweep(status.ino());
        if self.shared.find(identity).is_none() {
            if !is_shared {
                return 0;
            }
            if !is_writable {
                return self.share_plain(identity, &path);
            }
            if let Some(why) = self.cannot_share(identity) {
                return self.refuse_mapping(why);
            }
            if let Err(e) = self.make_object(identity, &path) {
                return self.refuse_mapping(&format!("{e:#}"));
            }
        }
        let found = self.shared.promise(identity, pid);
        let reads = if is_shared && !is_writable {
            object::READ_ONLY
        } else {
            0
        };
        i64::from(found | reads)
    }

    /// A leader has attached a segment, see `rpc::SHARE`.
    pub(crate) fn share_segment(&mut self, pid: Pid, id: u64, flags: u64, at: u64) -> i64 {
        let identity = (SEGMENTS, SEGMENTS | id);
        let reads = match flags as i32 & libc::SHM_RDONLY {
            0 => 0,
            _ => object::READ_ONLY,
        };
        if self.shared.find(identity).is_some() {
            // Known by another process, or by this one at another address.
            return i64::from(self.shared.promise(identity, pid) | reads);
        }
        let Some(length) = length_at(pid, at) else {
            return self.refuse_mapping("the segment was not found");
        };
        if let Some(why) = self.cannot_share(identity) {
            return self.refuse_mapping(why);
        }
        let made = self.begin_object(identity, None).and_then(|made| {
            for c in made.copies() {
                c.set_len(length)?;
            }
            copy_memory(self.memory(pid)?, at, length, &made)?;
            Ok(made)
        });
        match made {
            Ok(made) => {
                self.shared.objects.push(made);
                i64::from(self.shared.promise(identity, pid) | reads)
            }
            Err(e) => self.refuse_mapping(&format!("{e:#}")),
        }
    }

    /// How long what a follower has mapped there is, see `rpc::ATTACHED`.
    pub(crate) fn attached(pid: Pid, at: u64) -> i64 {
        length_at(pid, at).map_or(-i64::from(libc::EINVAL), |l| l as i64)
    }

    fn refuse_mapping(&mut self, why: &str) -> i64 {
        self.say(&format!(
            "memory that is shared and writable (mmap, shmat) is refused with ENODEV: {why}"
        ));
        -i64::from(libc::ENODEV)
    }

    fn cannot_share(&self, identity: (u64, u64)) -> Option<&'static str> {
        if self.options.verify == Verify::Async {
            return Some("with --verify async nobody waits until the followers have come there");
        }
        if self.checkpoints.is_some() {
            return Some("with --checkpoint copies that sleep would need the file as it was");
        }
        if self.shared.plain.iter().any(|(i, _)| *i == identity) {
            return Some(
                "the same file is mapped to be read only already, by a descriptor that cannot write; \
                 open it for reading and writing there, too",
            );
        }
        None
    }

    /// A mapping that nobody can make writable: all replicas see the file.
    fn share_plain(&mut self, identity: (u64, u64), path: &str) -> i64 {
        let known = self.shared.plain.iter().any(|(i, _)| *i == identity);
        if !known && let Ok(file) = File::open(path) {
            self.shared.plain.push((identity, file));
        }
        0
    }

    fn make_object(&mut self, identity: (u64, u64), path: &str) -> Result<()> {
        let file = File::open(path).context("the file cannot be opened to be copied")?;
        if identity_of(&file)? != identity {
            anyhow::bail!("the file has changed meanwhile");
        }
        if is_huge(&file) {
            anyhow::bail!("files of huge pages are not supported");
        }
        // Before the file is read: who writes to it from here on finds the object.
        self.shared.bits |= object::bit(identity.1);
        for g in self.groups.values() {
            let shared = &g.segment.header().shared;
            shared.store(self.shared.bits, Ordering::SeqCst);
        }
        let made = self.begin_object(identity, Some(file))?;
        made.set_length()?;
        made.copy_all().context("the file cannot be copied")?;
        self.shared.objects.push(made);
        Ok(())
    }

    /// An object without content.
    fn begin_object(&mut self, identity: (u64, u64), file: Option<File>) -> Result<Object> {
        self.shared.last += 1;
        let number = self.shared.last;
        let leader = self.groups.values().next().map_or(0, |g| g.leader);
        let mut copies = Vec::new();
        for r in 0..self.replicas.len() {
            let wanted = r != leader && !self.is_dropped(r);
            copies.push(if wanted {
                Some(memfd(&format!("{OBJECT_NAME}{number}"))?)
            } else {
                None
            });
        }
        Ok(Object {
            number,
            identity,
            file,
            copies,
            promised: Vec::new(),
        })
    }

    /// Forget what no process of the leading replica maps any more (a file that is mapped again is copied
    /// again: others may have written to it meanwhile), `inode` and, if there are many, all.
    fn sweep(&mut self, inode: u64) {
        const MANY: usize = 64;
        let s = &self.shared;
        let all = s.objects.len() + s.plain.len() > MANY;
        let inodes = s.objects.iter().map(|o| o.identity.1);
        let inodes = inodes.chain(s.plain.iter().map(|(i, _)| i.1));
        let asked: Vec<u64> = inodes.filter(|i| all || *i == inode).collect();
        if asked.is_empty() {
            return;
        }
        let mut mapped = std::collections::HashSet::new();
        for (pid, p) in &self.processes {
            let leads = match p.group {
                Some(g) => self.leads(g, p.replica),
                // One that is being born has what its parent has.
                None => true,
            };
            if leads {
                inodes_mapped(*pid, &mut mapped);
            }
        }
        let stays = |i: &(u64, u64)| !asked.contains(&i.1) || mapped.contains(&i.1);
        let processes = &self.processes;
        self.shared.objects.retain(|o| {
            let promised = o.promised.iter().any(|p| processes.contains_key(p));
            promised || stays(&o.identity)
        });
        self.shared.plain.retain(|(i, _)| stays(i));
    }

    /// Where a follower finds its replica's own, see `rpc::OBJECT`.
    pub(crate) fn object_path(&mut self, pid: Pid, number: u64, at: u64) -> Result<i64> {
        let number = number as u32 & !object::READ_ONLY;
        let replica = self.processes.get(&pid).map(|p| p.replica);
        let found = self.shared.objects.iter().find(|o| o.number == number);
        let copy = found.and_then(|o| o.copies.get(replica?)?.as_ref());
        let Some(copy) = copy else {
            return Ok(-i64::from(libc::ENODEV));
        };
        let mut path = fd_path(copy).into_bytes();
        path.push(0);
        let length = copy.metadata()?.len();
        self.memory(pid)?.write(at, &path)?;
        Ok(length as i64)
    }

    /// All replicas have mapped it, see `rpc::SETTLED`.
    pub(crate) fn settled(&mut self, pid: Pid, number: u64) {
        let number = number as u32 & !object::READ_ONLY;
        let found = self.shared.objects.iter_mut().find(|o| o.number == number);
        if let Some(o) = found
            && let Some(at) = o.promised.iter().position(|p| *p == pid)
        {
            o.promised.swap_remove(at);
        }
    }

    /// A leader has changed a file by a call, see `rpc::WROTE`.
    pub(crate) fn wrote(&mut self, pid: Pid, fd: u64, at: u64, len: u64) {
        let status = std::fs::metadata(format!("/proc/{pid}/fd/{fd}"));
        let identity = status.map(|m| (m.dev(), m.ino())).ok();
        let mut failed = None;
        for o in &self.shared.objects {
            let done = o.set_length().and_then(|()| match identity {
                Some(i) if i == o.identity => o.copy(at, len),
                _ => Ok(()),
            });
            if let Err(e) = done {
                failed = Some(e);
            }
        }
        if let Some(e) = failed {
            self.give_up(&format!(
                "stopped: what the program has written to a file that it has mapped cannot be copied: {e}"
            ));
        }
    }

    /// A leader is lost: is there anything that only it has mapped? Then nobody can lead in its place.
    pub(crate) fn shares_files(&mut self) -> bool {
        !self.shared.is_empty()
    }
}

impl Object {
    fn copies(&self) -> impl Iterator<Item = &File> {
        self.copies.iter().flatten()
    }

    /// They are as long as the file.
    fn set_length(&self) -> std::io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let length = file.metadata()?.len();
        for c in self.copies() {
            if c.metadata()?.len() != length {
                c.set_len(length)?;
            }
        }
        Ok(())
    }

    /// Everything but holes.
    fn copy_all(&self) -> std::io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let fd = file.as_raw_fd();
        // SAFETY: asks about the file; nobody uses its offset.
        let seek = |at: u64, whence| unsafe { libc::lseek(fd, at as i64, whence) };
        let mut at = 0;
        loop {
            let Ok(data) = u64::try_from(seek(at, libc::SEEK_DATA)) else {
                return match std::io::Error::last_os_error() {
                    e if e.raw_os_error() == Some(libc::ENXIO) => Ok(()),
                    _ => self.copy(at, u64::MAX),
                };
            };
            let Ok(end) = u64::try_from(seek(data, libc::SEEK_HOLE)) else {
                return self.copy(data, u64::MAX);
            };
            self.copy(data, end - data)?;
            at = end;
        }
    }

    /// So many bytes, as far as there are any.
    fn copy(&self, at: u64, len: u64) -> std::io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut buffer = vec![0; PIECE.min(len as usize).max(1)];
        let (mut at, mut left) = (at, len);
        while left > 0 {
            let piece = (buffer.len() as u64).min(left) as usize;
            let n = file.read_at(&mut buffer[..piece], at)?;
            if n == 0 {
                break;
            }
            for c in self.copies() {
                c.write_all_at(&buffer[..n], at)?;
            }
            at += n as u64;
            left -= n as u64;
        }
        Ok(())
    }
}

/// `O_ACCMODE` of a process's descriptor.
fn access_mode(pid: Pid, fd: u64) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let flags = text.lines().find_map(|l| l.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    Some(flags & libc::O_ACCMODE)
}

/// The inodes of what a process maps.
fn inodes_mapped(pid: Pid, into: &mut std::collections::HashSet<u64>) {
    let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    for line in text.split(|b| *b == b'\n') {
        let field = line.split(|b| *b == b' ').nth(4);
        let inode = field.and_then(|f| std::str::from_utf8(f).ok()?.parse::<u64>().ok());
        let is_segment = line.windows(SEGMENT_NAME.len()).any(|w| w == SEGMENT_NAME);
        match inode {
            Some(id) if is_segment => _ = into.insert(SEGMENTS | id),
            Some(0) | None => {}
            Some(inode) => _ = into.insert(inode),
        }
    }
}

/// How the kernel calls segments.
const SEGMENT_NAME: &[u8] = b"/SYSV";

/// The length of the segment that a process has attached there, or of the object in its place, in however
/// many pieces it lies by now.
fn length_at(pid: Pid, at: u64) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let (mut end, mut of) = (at, None);
    for line in text.lines() {
        let mut fields = line.split(' ').filter(|f| !f.is_empty());
        let (from, to) = fields.next()?.split_once('-')?;
        let hex = |t| u64::from_str_radix(t, 16).ok();
        let (from, to) = (hex(from)?, hex(to)?);
        let offset = fields.nth(1).and_then(hex);
        let inode = fields.nth(1);
        let is_one = line.contains("/SYSV") || line.contains(OBJECT_NAME);
        // (Another attachment of the same may lie right behind it.)
        let goes_on = from == end && offset == Some(end - at);
        if goes_on && is_one && (of.is_none() || of.as_deref() == inode) {
            of = inode.map(str::to_owned);
            end = to;
        }
    }
    (end > at).then(|| end - at)
}

fn copy_memory(from: &RemoteMemory, at: u64, length: u64, to: &Object) -> Result<()> {
    let mut buffer = vec![0; PIECE];
    let mut done = 0;
    while done < length {
        let n = (length - done).min(PIECE as u64) as usize;
        from.read(at + done, &mut buffer[..n])?;
        if buffer[..n].iter().any(|b| *b != 0) {
            for c in to.copies() {
                c.write_all_at(&buffer[..n], done)?;
            }
        }
        done += n as u64;
    }
    Ok(())
}

fn is_huge(file: &File) -> bool {
    // SAFETY: plain system call that fills the structure.
    unsafe {
        let mut s: libc::statfs = std::mem::zeroed();
        libc::fstatfs(file.as_raw_fd(), &raw mut s) == 0 && s.f_type == libc::HUGETLBFS_MAGIC
    }
}
