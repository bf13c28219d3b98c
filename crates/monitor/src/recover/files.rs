//! Files that are mapped to be shared and writable, of which each replica has its own (see `crate::objects`): a copy
//! gets them as its source's are at that moment, and a successor maps the files themselves.

use super::parting::Part;
use super::thread::SCRATCH;
use crate::objects::{Mapped, Object, mapped};
use crate::setup::receive::receive;
use crate::state::Monitor;
use anyhow::{Context, Result};
use geryon_tracee::Pid;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::os::fd::AsFd;

impl Monitor {
    /// The inodes of all such files, and of what replicas have in their place.
    pub(super) fn inodes_of_objects(&self) -> HashSet<u64> {
        let all = self.shared.objects.iter();
        all.flat_map(|o| o.inodes()).collect()
    }

    /// A replica gets what `source` has, whose processes stand still.
    pub(super) fn copy_objects(&mut self, source: usize, replica: usize) -> Result<()> {
        for o in &mut self.shared.objects {
            o.copy_for(source, replica)
                .with_context(|| format!("{} cannot be copied", o.name))?;
        }
        Ok(())
    }

    /// These copies map what their replica has, where their sources map theirs.
    pub(super) fn map_objects(&self, parts: &[Part<'_>], replica: usize) -> Result<()> {
        for part in parts {
            self.map_other(part, &|n| self.shared.objects[n].opened(replica))?;
        }
        Ok(())
    }

    /// The successor's processes, which stand still: what they have stored comes into the files, and they map those.
    pub(crate) fn map_files(&mut self, successor: usize, threads: &[Pid]) -> Result<()> {
        let mut files = Vec::new();
        for o in &self.shared.objects {
            let file = o.hand_over(successor);
            files.push(file.with_context(|| format!("{} cannot be written", o.name))?);
        }
        let mut owners: Vec<BTreeSet<Pid>> = files.iter().map(|_| BTreeSet::new()).collect();
        for tid in threads {
            let regs = geryon_tracee::Stopped(*tid).regs()?;
            let block = self.kit.image.block_of(&regs).context("its block")?;
            let pid = self.threads.get(tid).context("its process")?.pid;
            let process = self.processes.get(&pid).context("its process")?;
            let part = Part {
                pid: *tid,
                memory: process.memory.as_ref().context("its memory")?,
                block,
            };
            for n in self.map_other(&part, &|n| files[n].try_clone())? {
                owners[n].insert(pid);
            }
        }
        for (o, owners) in self.shared.objects.iter_mut().zip(owners) {
            o.leads(successor, owners);
        }
        Ok(())
    }

    /// Have a process map other files in the place of objects; which ones `of` says, by their number in the list.
    /// Those that it maps.
    fn map_other(
        &self,
        part: &Part<'_>,
        of: &dyn Fn(usize) -> std::io::Result<File>,
    ) -> Result<Vec<usize>> {
        let mut all: BTreeMap<usize, Vec<Mapped>> = BTreeMap::new();
        let objects = self.shared.objects.iter();
        // (Asked for once: a process has hundreds of mappings.)
        let inodes: Vec<Vec<u64>> = objects.map(Object::inodes).collect();
        for m in mapped(part.pid)? {
            let is_it = |inodes: &Vec<u64>| m.is_shared && inodes.contains(&m.inode);
            if let Some(n) = inodes.iter().position(is_it) {
                all.entry(n).or_default().push(m);
            }
        }
        let call = |nr, args, what: &str| part.call(&self.kit.image, nr, args, what);
        let found = all.keys().copied().collect();
        for (n, maps) in all {
            let file = of(n).with_context(|| self.shared.objects[n].name.clone())?;
            let scratch = part.block + SCRATCH;
            let [fd] = receive(
                &call,
                part.memory,
                &self.kit.passage,
                scratch,
                [file.as_fd()],
            )?;
            for m in maps {
                let protection = match m.is_writable {
                    true => libc::PROT_READ | libc::PROT_WRITE,
                    false => libc::PROT_READ,
                };
                let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
                let args = [m.start, m.len, protection as u64, flags, fd, m.offset];
                call(libc::SYS_mmap, args, "map a file")?;
            }
            call(libc::SYS_close, [fd, 0, 0, 0, 0, 0], "close a descriptor")?;
        }
        Ok(found)
    }
}
