//! Writes to files below /proc that change a process or a thread: its name, its memory, how readily it is
//! killed. The leader's descriptor names the leader's process. When it has written, it notes which file that
//! was, of whom; each follower does the same to its own.
//!
//! A name can be given only by a thread of the same process, through a descriptor, and a follower may open
//! none: the table is the leader's. So names are kept in mind (`Block::name`) until the replica leads; what a
//! thread is called only the leader is asked. The rest is done by the monitor.

use crate::gate::{guarded, real, rpc};
use crate::ids::descriptor::{is_of_proc, link_of};
use crate::ids::path::{Text, number as id_in};
use crate::ids::{mine, shown_as, slot_of};
use crate::state::{Here, block, block_at, leads, private};
use crate::undo::place_of;
use core::sync::atomic::Ordering;
use geryon_abi::layout::rpc as number;
use geryon_abi::layout::{MAX_THREADS, NAME_BYTES};
use geryon_abi::proc_file::{COMM, MAX_VALUE, MEM, NAMES, Writing};
use geryon_abi::record::{detail_of, kind, low_of, word};
use geryon_abi::row::{Kind, Row};
use geryon_abi::table::kind_of;
use geryon_abi::table::nr;

const AT_FDCWD: u64 = -100i64 as u64;
const PROC: &[u8] = b"/proc/";
const TASK: &[u8] = b"task/";

/// All: a call that all have agreed on names a file. If that may be one below /proc, its descriptors are
/// looked at from now on.
#[inline(always)]
pub fn opened(k: u8, row: &Row, args: &[u64; 6], result: i64) {
    if k == kind::END && private().proc_files.get() == 0 && result >= 0 {
        look(row, args, result);
    }
}

fn look(row: &Row, args: &[u64; 6], result: i64) {
    for (i, at) in args.iter().enumerate().take(row.args.len()) {
        if row.args[i].kind == Kind::Path {
            let mut start = [0u8; PROC.len()];
            guarded(|| {
                for (k, byte) in start.iter_mut().enumerate() {
                    // SAFETY: inside `guarded`.
                    *byte = unsafe { ((at + k as u64) as *const u8).read() };
                    if *byte != PROC[k] {
                        break;
                    }
                }
            });
            let relative = start[0] != b'/';
            if start == PROC || (relative && leads() && is_of_proc(result as u64)) {
                private().proc_files.set(1);
            }
        }
    }
}

/// Which file is written, and where in it.
#[derive(Clone, Copy)]
pub struct Target {
    file: u8,
    /// As the program knows it.
    id: u32,
    offset: u64,
}

/// Leader, before a call that all have agreed on: is it to such a file?
#[inline(always)]
pub fn target(row: &Row, args: &[u64; 6]) -> Option<Target> {
    let may =
        private().proc_files.get() != 0 && row.args.first().is_some_and(|a| a.kind == Kind::Fd);
    if may { target_of(row, args) } else { None }
}

#[cold]
fn target_of(row: &Row, args: &[u64; 6]) -> Option<Target> {
    let fd = args[0] as u32 as u64;
    if !is_of_proc(fd) {
        return None;
    }
    let mut link = [0u8; LONGEST];
    let len = link_of(fd, &mut link)?;
    let (id, file) = named(link.get(..len)?)?;
    Some(Target {
        file,
        id: shown_as(id),
        offset: place_of(row.nr, args),
    })
}

/// Bytes of a path below /proc that is looked at.
const LONGEST: usize = 128;

/// New leader, before anybody leads: descriptors of files below /proc which name the former leader, and of processes, are of a
/// process that is about to be gone. Each is opened again, as this one's.
pub fn reopen() {
    const DIRECTORY_CLOEXEC: u64 = 0o200_000 | 0o2_000_000;
    /// Of struct linux_dirent64.
    const LEN_AT: usize = 16;
    const NAME_AT: usize = 19;
    let path = c"/proc/self/fd".as_ptr() as u64;
    let dir = real(nr::openat, [AT_FDCWD, path, DIRECTORY_CLOEXEC, 0, 0, 0]);
    if dir < 0 {
        return;
    }
    let mut list = [0u8; 1024];
    loop {
        let args = [
            dir as u64,
            list.as_mut_ptr() as u64,
            list.len() as u64,
            0,
            0,
            0,
        ];
        let n = real(nr::getdents64, args).max(0) as usize;
        if n == 0 {
            break;
        }
        let mut rest = list.get(..n).unwrap_or(&[]);
        while rest.len() > NAME_AT {
            let len = usize::from(u16::from_le_bytes([rest[LEN_AT], rest[LEN_AT + 1]]));
            let entry = rest.get(..len).unwrap_or(&[]);
            let name = entry
                .get(NAME_AT..)
                .and_then(|n| n.split(|c| *c == 0).next());
            let fd = match name {
                Some(b"0") => Some(0),
                Some(name) => id_in(name),
                None => break,
            };
            if let Some(fd) = fd.map(u64::from).filter(|fd| *fd != dir as u64) {
                crate::owner::is_followed(fd);
                reopen_one(fd);
            }
            rest = &rest[len..];
        }
    }
    real(nr::close, [dir as u64, 0, 0, 0, 0, 0]);
}

/// The same of this one.
pub fn reopen_one(fd: u64) -> Option<()> {
    const F_GETFD: u64 = 1;
    const F_GETFL: u64 = 3;
    const CLOEXEC: u64 = 0o2_000_000;
    /// Access, append, nonblock, directory, path: what makes, cuts off or excludes is not to happen twice.
    const AS_BEFORE: u64 = 0o3 | 0o2000 | 0o4000 | 0o200_000 | 0o10_000_000;
    const SET: u64 = 0;
    const CURRENT: u64 = 1;
    let (mut link, mut path) = ([0u8; LONGEST], [0u8; LONGEST]);
    let len = link_of(fd, &mut link[..LONGEST - 1])?;
    if !is_of_proc(fd) {
        return crate::pidfd::reopen(fd, &link);
    }
    crate::ids::content::opened();
    let named = |id| mine(shown_as(id));
    let mine = crate::ids::path::with(link.as_ptr() as u64, &mut path, &named);
    if len == 0 || mine != path.as_ptr() as u64 {
        return None;
    }
    let own = |nr, args: [u64; 3]| real(nr, [args[0], args[1], args[2], 0, 0, 0]);
    let flags = own(nr::fcntl, [fd, F_GETFL, 0]) as u64 & AS_BEFORE;
    let closes = match own(nr::fcntl, [fd, F_GETFD, 0]) {
        1 => CLOEXEC,
        _ => 0,
    };
    let at = own(nr::lseek, [fd, 0, CURRENT]);
    let new = own(nr::openat, [AT_FDCWD, mine, flags | CLOEXEC]);
    if new < 0 {
        return None;
    }
    if at > 0 {
        own(nr::lseek, [new as u64, at as u64, SET]);
    }
    own(nr::dup3, [new as u64, fd, closes]);
    own(nr::close, [new as u64, 0, 0]);
    Some(())
}

/// The process or thread, and the file, that a path names: /proc/ID/FILE or /proc/ID/task/ID/FILE.
fn named(path: &[u8]) -> Option<(u32, u8)> {
    let rest = path.strip_prefix(PROC)?;
    let (mut id, mut rest) = split(rest)?;
    if let Some(of_thread) = rest.strip_prefix(TASK) {
        (id, rest) = split(of_thread)?;
    }
    let file = NAMES.iter().position(|n| n.as_bytes() == rest)?;
    Some((id_in(id)?, file as u8))
}

fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().position(|c| *c == b'/')?;
    Some((&path[..end], &path[end + 1..]))
}

/// Follower: a call has ended.
#[inline(always)]
pub fn repeat(mut b: Here, k: u8, row: &Row, args: &[u64; 6], result: i64) {
    if k == kind::END {
        opened(k, row, args, result);
        if b.proc_file != 0 {
            let target = Target {
                file: detail_of(b.proc_file),
                id: low_of(b.proc_file),
                offset: b.proc_offset,
            };
            b.proc_file = 0;
            target.repeat(row, args, result);
        }
    }
}

impl Target {
    /// Leader: it was written. This stands before the record of the call's end.
    pub fn words(self, nr: u16) -> [u64; 2] {
        [word(kind::VALUE, self.file, nr, self.id), self.offset]
    }

    /// A replica that does not lead, or has not led until now: do to its own what the leader has done.
    pub fn repeat(self, row: &Row, args: &[u64; 6], result: i64) {
        let left = match self.file {
            MEM => result.max(0) as u64,
            _ => (result.max(0) as u64).min(MAX_VALUE as u64),
        };
        let buffer = |i: &usize| matches!(kind_of(row, *i, args), Kind::In(_) | Kind::IovecIn(_));
        let Some(i) = (0..row.args.len()).find(buffer) else {
            return;
        };
        if let Kind::IovecIn(count) = row.args[i].kind {
            let (mut offset, mut left) = (self.offset, left);
            for k in 0..args[count as usize] {
                let (mut at, mut len) = (0, 0);
                guarded(|| {
                    let entry = (args[i] + 16 * k) as *const u64;
                    // SAFETY: inside `guarded`.
                    unsafe { (at, len) = (entry.read_unaligned(), entry.add(1).read_unaligned()) };
                });
                let part = left.min(len);
                if part != 0 {
                    self.write(args[0], at, part, offset);
                }
                (offset, left) = (offset + part, left - part);
            }
        } else {
            self.write(args[0], args[i], left, self.offset);
        }
    }

    fn write(self, fd: u64, address: u64, len: u64, offset: u64) {
        if self.file == COMM && leads() {
            // (The descriptor is of this one's file by now. Where names wait nobody looks any more.)
            real(nr::write, [fd, address, len, 0, 0, 0]);
        } else if self.file == COMM {
            if let Some(slot) = slot_of(self.id) {
                keep_name(slot, address, len);
            }
        } else if let Some(id) = mine(self.id) {
            let what = Writing {
                id: id.into(),
                file: self.file.into(),
                address,
                len,
                offset,
            };
            rpc(number::WRITES, &raw const what as u64, 0, 0);
        }
    }
}

fn keep_name(slot: usize, address: u64, len: u64) {
    let mut name = [0u8; NAME_BYTES];
    guarded(|| {
        for (i, byte) in name.iter_mut().take(NAME_BYTES - 1).enumerate() {
            if i as u64 == len {
                break;
            }
            // SAFETY: inside `guarded`.
            *byte = unsafe { ((address + i as u64) as *const u8).read() };
        }
    });
    let mut b = block_at(slot);
    b.name = name;
    b.is_named = 1;
}

/// This thread has given itself a name.
pub fn named_by_itself() {
    block().is_named = 0;
}

/// New leader, before anybody leads: its threads are called now what the former one's were called. (Nobody
/// opens or closes a descriptor meanwhile.)
pub fn give_names() {
    for slot in 0..MAX_THREADS {
        let mut b = block_at(slot);
        if b.is_named != 0 && b.this != 0 {
            give_name(b.own_tid.load(Ordering::Relaxed), &b.name);
            b.is_named = 0;
        }
    }
}

fn give_name(tid: u32, name: &[u8; NAME_BYTES]) -> Option<()> {
    const WRITE_CLOEXEC: u64 = 0o1 | 0o2_000_000;
    let mut path = [0; 64];
    let mut text = Text {
        to: &mut path,
        len: 0,
    };
    text.put(b"/proc/self/task/")?;
    text.put_number(tid)?;
    text.put(b"/comm\0")?;
    let fd = real(
        nr::openat,
        [AT_FDCWD, path.as_ptr() as u64, WRITE_CLOEXEC, 0, 0, 0],
    );
    if fd < 0 {
        return None;
    }
    let len = name.iter().position(|c| *c == 0).unwrap_or(NAME_BYTES);
    real(
        nr::write,
        [fd as u64, name.as_ptr() as u64, len as u64, 0, 0, 0],
    );
    real(nr::close, [fd as u64, 0, 0, 0, 0, 0]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::named;
    use geryon_abi::proc_file::{COMM, MEM};

    #[test]
    fn files_of_processes_and_threads_are_found() {
        assert_eq!(named(b"/proc/12/comm"), Some((12, COMM)));
        assert_eq!(named(b"/proc/12/task/13/comm"), Some((13, COMM)));
        assert_eq!(named(b"/proc/12/mem"), Some((12, MEM)));
    }

    #[test]
    fn others_are_not() {
        for path in [
            &b"/proc/12/commx"[..],
            b"/proc/12",
            b"/proc/sys/kernel/comm",
            b"/proc/12/task/13/x/comm",
            b"/tmp/12/comm",
        ] {
            assert_eq!(named(path), None);
        }
    }
}
