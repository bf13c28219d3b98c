//! What agents ask when a replica has taken over: ids, descriptors and memory of those that are gone.

use crate::jobs::is_there;
use crate::state::{Group, Monitor};
use crate::whom::Whom;
use anyhow::{Context, Result, bail};
use geryon_abi::layout::{enclosed, letter, who};
use geryon_abi::proc_file::NAMES;
use geryon_tracee::{Pid, descriptor_of};
use std::fs::File;
use std::io::{Error, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

/// Close-on-exec in the list of descriptors.
const CLOSE_ON_EXEC: u64 = 1 << 32;
/// No call writes more at once.
const LARGEST: u64 = 1 << 31;

impl Monitor {
    /// Copy memory of the former leader to the same address in its successor.
    pub(super) fn inherit(
        &mut self,
        pid: Pid,
        slot: Option<u32>,
        address: u64,
        len: u64,
    ) -> Result<i64> {
        const PIECE: u64 = 1 << 20;
        if len > LARGEST {
            bail!("{len} bytes are too many to inherit");
        }
        self.memory(pid)?;
        let from = self
            .former_memory(pid, slot)
            .context("nothing to inherit")?;
        let to = self.processes[&pid].memory.as_ref().context("no memory")?;
        let mut buffer = vec![0; len.min(PIECE) as usize];
        let mut done = 0;
        while done < len {
            let n = (len - done).min(PIECE) as usize;
            from.read(address.wrapping_add(done), &mut buffer[..n])?;
            to.write(address.wrapping_add(done), &buffer[..n])?;
            done += n as u64;
        }
        Ok(0)
    }

    /// Send a descriptor of another process, or its working directory, to the socket of this name: see
    /// `rpc::FETCH`. 0, or an errno.
    pub(super) fn hand(&mut self, pid: Pid, fd: u32, socket: u64, whose: u64) -> i64 {
        let asked = letter::asked(fd, whose);
        if whose == enclosed::OBJECTS {
            let own = self.own_object(pid, fd);
            return errno(own.and_then(|own| self.kit.passage.send(socket, asked, &[own.as_fd()])));
        }
        let group = self.membership(pid).and_then(|(g, _)| self.groups.get(&g));
        if fd == enclosed::LOG {
            let log = group.ok_or(Error::from_raw_os_error(libc::ESRCH));
            let log = log.map(|g| g.segment.descriptor());
            return errno(log.and_then(|log| self.kit.passage.send(socket, asked, &[log])));
        }
        let from = match whose {
            enclosed::LEADERS => group.and_then(Group::leaders_holder),
            _ => self.former(pid),
        };
        let handed = from.ok_or(Error::from_raw_os_error(libc::ESRCH));
        let handed = handed.and_then(|from| {
            let found = match fd {
                enclosed::DIRECTORY => directory_of(from, "cwd")?,
                enclosed::ROOT => directory_of(from, "root")?,
                _ => descriptor_of(from, fd as i32)?,
            };
            self.kit.passage.send(socket, asked, &[found.as_fd()])
        });
        errno(handed)
    }

    /// Write the former leader's descriptors into an array: the highest, its umask, whether its root is
    /// another one (1), the same of its working directory, then one word each.
    /// The number of words written, from index `first` on.
    pub(super) fn descriptors(&mut self, pid: Pid, to: u64, first: u64, room: u64) -> Result<i64> {
        let Some(former) = self.former(pid) else {
            return Ok(0);
        };
        let status = geryon_tracee::text(format!("/proc/{former}/status")).unwrap_or_default();
        let umask = status
            .lines()
            .find_map(|l| l.strip_prefix("Umask:"))
            .and_then(|u| u64::from_str_radix(u.trim(), 8).ok())
            .unwrap_or(0o22);
        let fds = descriptors_of(former);
        let highest = fds.last().map_or(0, |w| w & 0xffff_ffff);
        // (What cannot be looked at counts as another one.)
        let is_there = identity(former, "cwd").is_some_and(|d| identity(pid, "cwd") == Some(d));
        let mut words = vec![
            highest,
            umask,
            u64::from(identity(former, "root") != identity(pid, "root")),
            u64::from(!is_there),
        ];
        words.extend(fds);
        let rest = words.into_iter().skip(first as usize).take(room as usize);
        let m = self.memory(pid)?;
        let mut n = 0;
        for w in rest {
            m.set_word(to.wrapping_add(8 * n), w)?;
            n += 1;
        }
        if n == 0 {
            self.has_inherited(pid);
        }
        Ok(n as i64)
    }

    /// Which epoll instances of a process watch descriptors of signals, see `rpc::WATCHES`.
    pub(super) fn watches(&mut self, pid: Pid, to: u64, room: u64, known: u64) -> Result<i64> {
        let all = watches_of(pid);
        let m = self.memory(pid)?;
        let mut n = 0;
        for words in all.iter().skip(known as usize).take(room as usize) {
            for (i, w) in words.iter().enumerate() {
                m.set_word(to.wrapping_add(32 * n + 8 * i as u64), *w)?;
            }
            n += 1;
        }
        Ok(n as i64)
    }

    /// A follower is to have what the leader has written to a file of its process's. What the monitor may not
    /// do the follower goes without, until it is asked for.
    pub(super) fn write_proc_file(&mut self, pid: Pid, at: u64) -> Result<()> {
        let memory = self.memory(pid)?;
        let [id, file, address, len, offset] = memory.words::<5>(at)?;
        let id = id as Pid;
        let is_of = |t: &crate::state::Thread| {
            let replica = |p: &Pid| self.processes.get(p).map(|p| p.replica);
            replica(&t.pid).is_some() && replica(&t.pid) == replica(&pid)
        };
        let name = NAMES.get(file as usize).context("no such file")?;
        let Some(whose) = self.threads.get(&id) else {
            // Whoever was to get it is gone here.
            return Ok(());
        };
        if len > LARGEST || !is_of(whose) {
            bail!("a replica may write to no other one");
        }
        let mut bytes = vec![0; len as usize];
        self.memory(pid)?.read(address, &mut bytes)?;
        let file = File::options()
            .write(true)
            .open(format!("/proc/{id}/{name}"));
        // Whoever was to get it may be gone here.
        if let Ok(mut file) = file {
            let done = file.write_all_at(&bytes, offset);
            if done.is_err_and(|e| e.kind() == ErrorKind::NotSeekable) {
                // (timerslack_ns knows no places.)
                let _ = file.write_all(&bytes);
            }
        }
        Ok(())
    }

    /// To whom a call of this number that the process `pid` makes sends a signal.
    pub(crate) fn whom(&self, pid: Pid, nr: u64, target: u64) -> Option<Whom> {
        let owner = |tid| self.threads.get(&tid).map(|t| t.pid);
        Whom::of(pid, nr, target, owner, |group| self.actual_group(group))
    }

    /// The program kills by force: what dies of it has not been lost.
    pub(super) fn announce_kill(&mut self, pid: Pid, nr: u64, target: u64) {
        let Some(whom) = self.whom(pid, nr, target) else {
            return;
        };
        let groups = self.groups.values_mut();
        let led = groups.filter(|g| g.leader_pid().is_some());
        let hit = led.filter(|g| whom.includes(g.name.shown, g.leader_pid(), g.process_group()));
        hit.for_each(|g| (g.ending, g.doomed) = (true, true));
        for (p, process) in &mut self.processes {
            let newborn = process.group.is_none() && process.birth.fork.is_some();
            if newborn || process.guest.is_some() {
                process.doomed |= whom.is_process(*p);
            }
        }
        self.announce_guests_kill(target);
    }

    /// Translate a process id; see `geryon_abi::layout::who`.
    pub(super) fn who(&mut self, pid: Pid, id: Pid, way: u64) -> Pid {
        let mut groups = self.groups.values();
        match way {
            who::GROUP_OF => self.shown_group_of(id),
            who::SHOWN_GROUP => self.shown_group(id),
            who::SHOWN => {
                let of = groups.find(|g| g.living().any(|(_, p)| p == id));
                let shown = of.map(|g| g.name.shown);
                shown.or_else(|| self.shown_before(id)).unwrap_or(id)
            }
            who::PARENT => {
                let own = self.membership(pid).and_then(|(g, _)| self.groups.get(&g));
                let parent = match own.map_or(0, |g| g.name.parent) {
                    // The program itself: it was made here.
                    0 => return std::process::id() as Pid,
                    parent => parent,
                };
                let lives = groups.any(|g| g.name.shown == parent);
                if lives { parent } else { 0 }
            }
            who::JOINS => self.joins(pid),
            who::APART => self.is_apart(pid).into(),
            who::MOVED => {
                self.moved(pid, id);
                0
            }
            who::GROUP_THERE => match self.actual_group(id) {
                group if is_there(group) => group,
                _ => 0,
            },
            who::GROUP => self.actual_group(id),
            _ => {
                let replica = self.processes.get(&pid).map(|p| p.replica);
                let named = groups.find(|g| g.name.shown == id);
                // (Where another one is about to take over, it is the replica that asks.)
                let mine = named.zip(replica).and_then(|(g, r)| g.members[r].pid);
                let theirs = || named.and_then(Group::leader_pid).unwrap_or(id);
                mine.unwrap_or_else(|| if way == who::MINE { 0 } else { theirs() })
            }
        }
    }
}

fn errno(result: std::io::Result<()>) -> i64 {
    result.map_or_else(
        |e| -i64::from(e.raw_os_error().unwrap_or(libc::EIO)),
        |()| 0,
    )
}

/// Also one that was removed.
fn directory_of(pid: Pid, which: &str) -> std::io::Result<OwnedFd> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
        .open(format!("/proc/{pid}/{which}"))?;
    Ok(file.into())
}

/// Which directory its root, or its working directory, is.
fn identity(pid: Pid, which: &str) -> Option<(u64, u64)> {
    let directory = std::fs::metadata(format!("/proc/{pid}/{which}")).ok()?;
    Some((directory.dev(), directory.ino()))
}

/// Instance, descriptor, events and data, where the descriptor is one of signals or of a process.
fn watches_of(pid: Pid) -> Vec<[u64; 4]> {
    let is = |fd: u64, kind: &[u8]| {
        let name = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
        name.is_ok_and(|n| n.as_os_str().as_bytes().starts_with(kind))
    };
    let fds = descriptors_of(pid).into_iter().map(|w| w & 0xffff_ffff);
    let instances = fds.filter(|fd| is(*fd, b"anon_inode:[eventpoll]"));
    let mut found = Vec::new();
    for instance in instances {
        let info = geryon_tracee::text(format!("/proc/{pid}/fdinfo/{instance}"));
        for [fd, events, data] in info.unwrap_or_default().lines().filter_map(watched) {
            let names_process = is(fd, b"anon_inode:[pidfd]") || is(fd, b"pidfd:[");
            if names_process || is(fd, b"anon_inode:[signalfd]") {
                found.push([instance, fd, events, data]);
            }
        }
    }
    found
}

/// A line of an epoll instance's fdinfo: descriptor, events, data.
fn watched(line: &str) -> Option<[u64; 3]> {
    let mut words = line.strip_prefix("tfd:")?.split_whitespace();
    let fd = words.next()?.parse().ok()?;
    let mut hex = |name: &str| {
        let named = words.next()? == name;
        u64::from_str_radix(words.next()?, 16)
            .ok()
            .filter(|_| named)
    };
    Some([fd, hex("events:")?, hex("data:")?])
}

/// In ascending order.
fn descriptors_of(pid: Pid) -> Vec<u64> {
    let Ok(dir) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
        return Vec::new();
    };
    let mut found: Vec<u64> = dir
        .filter_map(|e| {
            let e = e.ok()?;
            let fd: u64 = e.file_name().to_str()?.parse().ok()?;
            let info = geryon_tracee::text(e.path()).ok()?;
            let flags = info.lines().find_map(|l| l.strip_prefix("flags:"))?;
            let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
            let closes = flags & libc::O_CLOEXEC != 0;
            Some(fd | if closes { CLOSE_ON_EXEC } else { 0 })
        })
        .collect();
    found.sort_unstable_by_key(|w| w & 0xffff_ffff);
    found
}

#[cfg(test)]
mod tests {
    use super::watched;

    #[test]
    fn lines_of_an_epoll_instance() {
        let line = "tfd:       11 events:       19 data:     7fff1234abcd  pos:0 ino:41c sdev:f";
        assert_eq!(watched(line), Some([11, 0x19, 0x7fff_1234_abcd]));
        assert_eq!(watched("pos:\t0"), None);
        assert_eq!(watched("tfd: 1 data: 2 events: 3"), None);
    }
}
