//! Files that a process of the program maps to be shared and writable. The leader maps the file itself, so
//! that other programs see it. Each other replica has an object of its own in its place.
//!
//! An object is made when a leader's process maps a file that none of its replica has mapped so far: all
//! followers have come to that call by then, and its content is the file's at that moment. From there on the
//! program's own stores keep file and objects alike. What is written by calls is copied from the file, right
//! behind the call, before anybody has been told of its end. Before a mapping goes away, they are compared.

mod compare;
mod segment;
mod stand;

use crate::descriptor::{flags_of, identity_of, written};
use crate::objects::{Identity, Mapped, Object, Plain, mapped};
use crate::options::{SharedFiles, Verify};
use crate::state::Monitor;
use anyhow::{Context, Result};
use geryon_abi::layout::object;
use geryon_tracee::Pid;
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::atomic::Ordering;

/// A replica is being made: ask again.
const LATER: i64 = -(libc::EAGAIN as i64);

/// /dev/zero: what is mapped of it is nobody else's.
const ZERO: u64 = 0x105;

impl Monitor {
    /// A leader is about to map a file, see `rpc::SHARE`.
    pub(crate) fn share(&mut self, pid: Pid, fd: u64, flags: u64, protection: u64) -> i64 {
        let path = format!("/proc/{pid}/fd/{fd}");
        let is_shared = matches!(
            flags as i32 & libc::MAP_TYPE,
            libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE
        );
        let status = match std::fs::metadata(&path) {
            Ok(status) => status,
            // No descriptor: the kernel says so.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return 0,
            Err(_) if !is_shared => return 0,
            Err(e) => {
                return self.refuse_mapping(&format!("it cannot be found out what it is: {e}"));
            }
        };
        // (Where that cannot be known, it may be.)
        let is_writable = access_mode(pid, fd).is_none_or(|mode| mode == libc::O_RDWR);
        if !self.may_map(&path) {
            let is_zero = status.file_type().is_char_device() && status.rdev() == ZERO;
            let writes = protection as i32 & libc::PROT_WRITE != 0;
            if !is_shared || !is_writable || is_zero || !writes {
                return 0;
            }
            let in_memory = is_in_memory(&path);
            return self.refuse_mapping(match in_memory {
                true if self.options.shared_files == SharedFiles::Memory => {
                    "files in memory are mapped with --order serial; --shared-files map allows it here, too, and \
                     says what that costs"
                }
                _ => {
                    "followers could not see what other programs write into it; --shared-files map allows it, and \
                     says what that costs"
                }
            });
        }
        let identity = (status.dev(), status.ino());
        if !status.file_type().is_file() {
            let is_zero = status.file_type().is_char_device() && status.rdev() == ZERO;
            if !is_writable || !is_shared || is_zero {
                return 0;
            }
            return self
                .refuse_mapping("only regular files can be mapped to be shared and writable");
        }
        self.sweep(pid);
        if self.shared.find(identity).is_none() {
            if !is_shared {
                return 0;
            }
            if !is_writable {
                return self.share_plain(pid, identity, &path);
            }
            if let Some(why) = self.cannot_share(identity) {
                return self.refuse_mapping(why);
            }
            if self.is_replacing() {
                return LATER;
            }
            if let Err(e) = self.make_object(pid, identity, &path) {
                return self.refuse_mapping(&format!("{e:#}"));
            }
        } else if let Some(why) = self.is_anothers(pid, identity) {
            return self.refuse_mapping(&why);
        }
        let found = self.shared.find(identity).map_or(0, |o| {
            o.owners.insert(pid);
            o.is_open |= is_shared;
            o.promised += 1;
            o.number
        });
        let reads = match is_shared && !is_writable {
            true => object::READ_ONLY,
            false => 0,
        };
        i64::from(found | reads)
    }

    /// Which files the program may map, the user has said.
    fn may_map(&self, path: &str) -> bool {
        match self.options.shared_files {
            SharedFiles::Map => true,
            SharedFiles::Memory => self.takes_turns() && is_in_memory(path),
            SharedFiles::Refuse => false,
        }
    }

    fn refuse_mapping(&mut self, why: &str) -> i64 {
        self.say(&format!(
            "mmap is refused (MAP_SHARED, a file open for writing: ENODEV): {why}"
        ));
        -i64::from(libc::ENODEV)
    }

    fn cannot_share(&self, identity: Identity) -> Option<&'static str> {
        if self.options.verify == Verify::Async {
            return Some(
                "with --verify async nobody waits until the followers have come there; use --verify output",
            );
        }
        if self.checkpoints.is_some() {
            return Some(
                "with --checkpoint copies that sleep would need the file as it was; leave --checkpoint out",
            );
        }
        if self.shared.plain.iter().any(|p| p.identity == identity) {
            return Some(
                "the same file is mapped to be read only already, by a descriptor that cannot write; \
                 open it for reading and writing there, too",
            );
        }
        None
    }

    /// In clocks order the order in which several processes come to one memory is not repeated.
    fn is_anothers(&mut self, pid: Pid, identity: Identity) -> Option<String> {
        if self.takes_turns() {
            return None;
        }
        let o = self.shared.find(identity)?;
        let mut owners = o.owners.iter();
        let owner = owners.find(|p| **p != pid && self.processes.contains_key(*p))?;
        Some(format!(
            "process {owner} of the program maps the same file, and the order in which several processes come \
             to it is repeated with --order serial only"
        ))
    }

    /// Do processes that share memory take turns?
    pub(crate) fn takes_turns(&self) -> bool {
        self.is_serial()
    }

    /// A leader's process was forked by this one, and takes turns with it.
    pub(crate) fn inherits_shared(&mut self, parent: Pid, child: Pid) {
        if !self.takes_turns() {
            return;
        }
        for o in &mut self.shared.objects {
            if o.owners.contains(&parent) {
                o.owners.insert(child);
            }
        }
    }

    /// A mapping that nobody can make writable: all replicas see the file.
    fn share_plain(&mut self, by: Pid, identity: Identity, path: &str) -> i64 {
        let is_it = |p: &Plain| p.identity == identity && p.by == by;
        if !self.shared.plain.iter().any(is_it)
            && let Ok(file) = File::open(path)
        {
            self.shared.plain.push(Plain { identity, by, file });
        }
        0
    }

    fn is_replacing(&self) -> bool {
        let joining = |g: &crate::state::Group| g.segment.header().joining.load(Ordering::SeqCst);
        self.groups.values().any(|g| joining(g) != 0)
    }

    fn make_object(&mut self, pid: Pid, identity: Identity, path: &str) -> Result<()> {
        let file = File::open(path).context("the file cannot be opened to be copied")?;
        let status = file.metadata()?;
        if (status.dev(), status.ino()) != identity {
            anyhow::bail!("the file has changed meanwhile");
        }
        if is_huge(&file) {
            anyhow::bail!("files of huge pages are not supported");
        }
        // Before the file is read: who writes to it from here on finds the object.
        self.shared.bits |= object::bit(identity.1);
        for g in self.groups.values() {
            self.tell_shared(g);
        }
        let (group, _) = self.membership(pid).context("it belongs to no group")?;
        let leader = self.groups[&group].leader;
        let name = std::fs::read_link(path).map_or_else(
            |_| "a file".to_owned(),
            |p| p.to_string_lossy().into_owned(),
        );
        let number = self.shared.next_number();
        let made = Object::of_file(number, file, name, pid, self.replicas.len(), leader);
        let made = made.context("the file cannot be copied")?;
        self.shared.objects.push(made);
        Ok(())
    }

    /// A group is to know which files may be objects.
    pub(crate) fn tell_shared(&self, group: &crate::state::Group) {
        let shared = &group.segment.header().shared;
        shared.store(self.shared.bits, Ordering::SeqCst);
    }

    /// A leader's process stands where it maps or unmaps something, and none of its threads does meanwhile
    /// (while they do, a list of mappings may lack one that moves): forget what it does not map any more. A
    /// file that is mapped again is copied again: others may have written to it meanwhile.
    pub(crate) fn sweep(&mut self, pid: Pid) {
        if self.shared.is_empty() && self.shared.plain.is_empty() {
            return;
        }
        let Ok(all) = mapped(pid) else {
            return;
        };
        let own: HashSet<u64> = all.iter().map(|m| m.inode).collect();
        let is_shared = |o: &Object| {
            let mut of = all.iter().filter(|m| m.inode == o.identity.1);
            o.promised != 0 || of.any(|m| m.is_shared)
        };
        let sole = BTreeSet::from([pid]);
        for o in self.shared.objects.iter_mut().filter(|o| o.owners == sole) {
            // What is not mapped any more was compared before.
            o.is_open &= is_shared(o);
        }
        let processes = &self.processes;
        let plain = &mut self.shared.plain;
        plain.retain(|p| match p.by == pid {
            true => own.contains(&p.identity.1),
            false => processes.contains_key(&p.by),
        });
        for o in &mut self.shared.objects {
            let maps = o.promised != 0 || own.contains(&o.identity.1);
            let is_one = |p: &Pid| {
                if *p == pid {
                    maps
                } else {
                    processes.contains_key(p)
                }
            };
            o.owners.retain(is_one);
        }
        self.forget(None);
    }

    /// Of some objects there may be no owner any more; who has inherited one may see it still, but for who is
    /// about to end.
    fn forget(&mut self, ends: Option<Pid>) {
        if self.shared.objects.iter().all(|o| !o.owners.is_empty()) {
            return;
        }
        let leads = |p: &crate::state::Process| match p.group {
            Some(g) => self.leads(g, p.replica),
            // One that is being born has what its parent has.
            None => true,
        };
        let leading = self.processes.iter().filter(|(_, p)| leads(p));
        let leading = leading.filter(|(pid, _)| Some(**pid) != ends);
        let Ok(inodes) = inodes_of(leading.map(|(pid, _)| *pid)) else {
            return;
        };
        let objects = &mut self.shared.objects;
        objects.retain(|o| !o.owners.is_empty() || inodes.contains(&o.identity.1));
    }

    /// The process ends, or has another program by now.
    pub(crate) fn leaves_shared(&mut self, pid: Pid) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.leaving.left_shared = true;
        }
        for o in &mut self.shared.objects {
            o.owners.remove(&pid);
        }
        self.shared.plain.retain(|p| p.by != pid);
        self.forget(Some(pid));
    }

    /// A replica's own, for a follower that is about to map it (see `enclosed::OBJECTS`).
    pub(crate) fn own_object(&mut self, pid: Pid, number: u32) -> std::io::Result<OwnedFd> {
        let lacks = || std::io::Error::from_raw_os_error(libc::ENODEV);
        let replica = self.membership(pid).map(|(_, r)| r).ok_or_else(lacks)?;
        let reads = number & object::READ_ONLY != 0;
        let found = self.shared.numbered(number & !object::READ_ONLY);
        let copy = found.and_then(|o| o.mapped_by(replica)).ok_or_else(lacks)?;
        let opened = File::options()
            .read(true)
            .write(!reads)
            .open(format!("/proc/self/fd/{}", copy.as_raw_fd()))?;
        Ok(opened.into())
    }

    /// All replicas have mapped it, see `rpc::SETTLED`.
    pub(crate) fn settled(&mut self, number: u64) {
        if let Some(o) = self.shared.numbered(number as u32 & !object::READ_ONLY) {
            o.promised = o.promised.saturating_sub(1);
        }
    }

    /// A leader has changed a file by a call, see `rpc::WROTE`.
    pub(crate) fn wrote(&mut self, pid: Pid, fd: u64, at: u64, len: u64) {
        let identity = identity_of(pid, fd);
        let (at, len) = written(pid, fd, at, len);
        let mut wrong = None;
        let takes_turns = self.is_kin(pid);
        let processes = &self.processes;
        for o in &self.shared.objects {
            let is_it = identity == Some(o.identity);
            let done = o.is_as_long().and_then(|is_as_long| {
                let mut owners = o.owners.iter();
                let other = owners.find(|p| **p != pid && processes.contains_key(*p));
                if let Some(owner) = other.filter(|_| !takes_turns && (is_it || !is_as_long)) {
                    wrong = Some(format!(
                        "stopped: process {pid} of the program has written to {}, which process {owner} maps \
                         to be shared and writable: in which order they come to it is not repeated",
                        o.name
                    ));
                }
                o.set_length()?;
                if is_it { o.copy(at, len) } else { Ok(()) }
            });
            if let Err(e) = done {
                wrong = Some(format!(
                    "stopped: what the program has written to {}, which it has mapped to be shared and \
                     writable, cannot be copied: {e}",
                    o.name
                ));
            }
        }
        if let Some(why) = wrong {
            self.give_up(&why);
        }
    }

    /// What a forked child has inherited and may store to, see `rpc::INHERITED`: addresses and lengths, as
    /// many as there is room for.
    pub(crate) fn inherited(&mut self, pid: Pid, to: u64, room: u64) -> Result<i64> {
        let found = self.shared_of(pid)?;
        let found = found.iter().filter(|m| m.is_writable);
        let found: Vec<[u64; 2]> = found.map(|m| [m.start, m.len]).collect();
        let memory = self.memory(pid)?;
        let mut n = 0;
        for [start, len] in found.into_iter().take(room as usize) {
            memory.set_word(to + 16 * n, start)?;
            memory.set_word(to + 16 * n + 8, len)?;
            n += 1;
        }
        Ok(n as i64)
    }

    /// What a process maps of objects, or of their files.
    fn shared_of(&self, pid: Pid) -> Result<Vec<Mapped>> {
        let is_one = |m: &Mapped| {
            let mut objects = self.shared.objects.iter();
            m.is_shared && (m.is_object || objects.any(|o| o.identity.1 == m.inode))
        };
        let all = mapped(pid).context("what a forked process has inherited is not known")?;
        Ok(all.into_iter().filter(is_one).collect())
    }

    /// Has a process touched what it has inherited and must not change? Then the run is over.
    pub(crate) fn stores_into_inherited(
        &mut self,
        pid: Pid,
        signal: i32,
        info: &[u64; 16],
    ) -> bool {
        const NO_RIGHT: i32 = 2;
        if self.shared.is_empty() || signal != libc::SIGSEGV || info[1] as i32 != NO_RIGHT {
            return false;
        }
        let at = info[2];
        let of = self.shared_of(pid).unwrap_or_default();
        if !of
            .iter()
            .any(|m| !m.is_writable && (m.start..m.start + m.len).contains(&at))
        {
            return false;
        }
        let owns = self.shared.objects.iter().any(|o| o.owners.contains(&pid));
        let led = self.membership(pid).is_some_and(|(g, r)| self.leads(g, r));
        if owns || !(led || self.options.replicas > 1) {
            return false;
        }
        self.give_up(
            "mmap is refused, and the run stopped: a forked process of the program stores to a file that its parent has mapped (mmap) to \
             be shared and writable: in which order several processes come to it is not repeated; run this \
             program without Geryon, or with -n 1",
        );
        true
    }

    /// A call of a process that has inherited something has failed, see `rpc::FAULTED`.
    pub(crate) fn faulted(&mut self, pid: Pid) {
        let of = self.shared_of(pid).unwrap_or_default();
        let may_not = of.iter().any(|m| !m.is_writable);
        if may_not && self.membership(pid).is_some_and(|(g, r)| self.leads(g, r)) {
            self.give_up(
                "mmap is refused, and the run stopped: a call of a forked process has failed (EFAULT): it may not change a file that its \
                 parent has mapped (mmap) to be shared and writable, as the order in which several processes \
                 come to it is not repeated",
            );
        }
    }

    /// May it make this writable, see `rpc::INHERITED`? Not what it has inherited.
    pub(crate) fn may_write(&mut self, pid: Pid, start: u64, len: u64) -> i64 {
        let end = start.saturating_add(len);
        let Ok(of) = self.shared_of(pid) else {
            return -i64::from(libc::EACCES);
        };
        if of.iter().any(|m| m.start < end && start < m.start + m.len) {
            self.say(
                "mprotect is refused (PROT_WRITE: EACCES): a forked process may not change a file \
                 that its parent has mapped to be shared and writable",
            );
            return -i64::from(libc::EACCES);
        }
        0
    }

    /// A leader is lost. If only it has mapped a file, nobody can lead in its place, and the run is over.
    pub(crate) fn ends_for_shared_files(&mut self) -> bool {
        let names: Vec<&str> = self
            .shared
            .objects
            .iter()
            .map(|o| o.name.as_str())
            .collect();
        if names.is_empty() || self.takes_turns() {
            return false;
        }
        let names = names.join(", ");
        self.give_up(&format!(
            "stopped: the lost leader has mapped files (mmap) to be shared and writable, and nobody can lead \
             in its place, as what it has stored is in them already: {names}; run the program again"
        ));
        true
    }
}

/// The inodes of all that these processes map.
fn inodes_of(pids: impl Iterator<Item = Pid>) -> std::io::Result<HashSet<u64>> {
    let mut inodes = HashSet::new();
    for pid in pids {
        inodes.extend(mapped(pid)?.iter().map(|m| m.inode));
    }
    Ok(inodes)
}

/// Does a descriptor (its path below /proc) name POSIX shared memory, or memory without a name?
fn is_in_memory(path: &str) -> bool {
    std::fs::read_link(path).is_ok_and(|of| {
        let of = of.as_os_str().as_bytes();
        of.starts_with(b"/dev/shm/") || of.starts_with(b"/memfd:")
    })
}

/// The flags that a process's descriptor was opened with.
fn access_mode(pid: Pid, fd: u64) -> Option<i32> {
    Some(flags_of(pid, fd)? & libc::O_ACCMODE)
}

fn is_huge(file: &File) -> bool {
    // SAFETY: plain system call that fills the structure.
    unsafe {
        let mut s: libc::statfs = std::mem::zeroed();
        libc::fstatfs(file.as_raw_fd(), &raw mut s) == 0 && s.f_type == libc::HUGETLBFS_MAGIC
    }
}
