//! A group is founded: the process that has loaded a program gets the agent and leads, and its
//! copies follow.

use super::is_gone;
use crate::code::{self, Areas, Rewrite, Target};
use crate::layout;
use crate::maps::AddressSpace;
use crate::options::{Often, Sabotage, Variants};
use crate::segment::Segment;
use crate::setup::{self, Identity, Installer};
use crate::state::{Group, GroupId, Monitor, Name, Process, Thread};
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::layout::same::SAME_BASE;
use geryon_abi::layout::{Layout, block_address, children, sabotage};
use geryon_tracee::{Pid, RemoteMemory, Stopped};
use std::mem::take;
use std::sync::atomic::Ordering;

impl Monitor {
    /// Make the stopped process, before its program's first instruction, the leader of a new
    /// group with a copy for each other replica of the run; let them all go.
    pub(super) fn found(&mut self, pid: Pid, name: Name) -> Result<()> {
        let tracee = Stopped(pid);
        let start = tracee.regs()?;
        let leader = self.processes.get(&pid).map_or(0, |p| p.replica);
        let alive = self.alive_mask();
        let n = self.options.replicas;
        self.begins_anew();
        let space = AddressSpace::open(pid)?;
        let begun = space.code(0, u64::MAX)?;
        let planned = begun.iter().filter_map(|m| self.kit.plans.of(&m.path));
        if planned.into_iter().any(|p| p.needs_serial()) {
            self.stays_serial();
        }
        let words = self.ring_words();
        let segment = Segment::new(words, n, alive, leader as u32, self.family.taken_over)?;
        let id = self.family.next_group;
        self.family.next_group += 1;
        segment.header().group.store(id, Ordering::SeqCst);
        segment
            .header()
            .open
            .leader_pid
            .store(pid as u32, Ordering::Release);
        let memory = RemoteMemory::open(pid)?;
        let identity = self.identity(leader, name.shown);
        let mut installer = Installer {
            tracee,
            memory: &memory,
            image: &self.kit.image,
            passage: &self.kit.passage,
            start,
        };
        installer.install(&segment, identity)?;
        if let Some(filters) = self.processes.get_mut(&pid).and_then(|p| p.filters.take()) {
            installer.put_filters(&filters)?;
        }
        let (mut reaps_orphans, mut adopted) = (false, false);
        if let Some(p) = self.processes.get_mut(&pid) {
            let at = block_address(0) + block_field!(at_parents_end);
            memory.write(at, &take(&mut p.at_parents_end).to_le_bytes())?;
            reaps_orphans = take(&mut p.reaps_orphans);
            adopted = take(&mut p.adopted) || reaps_orphans;
        }
        let reaps = u32::from(reaps_orphans).to_le_bytes();
        memory.write(private_field!(reaps_orphans), &reaps)?;
        let children = match adopted {
            true => children::BY_MONITOR,
            false => children::BY_KERNEL,
        };
        memory.write(private_field!(children), &children.to_le_bytes())?;
        let mut areas = Areas::default();
        let planned = begun.iter().filter_map(|m| self.kit.plans.of(&m.path));
        let planned: Vec<_> = planned.collect();
        let glibc = planned.iter().any(|p| p.reads_tunables);
        installer.prepare_stack(glibc)?;
        let variants = self.options.variants;
        let programs = self.kit.programs.as_ref().filter(|p| p.is_first(pid));
        let first = match programs {
            Some(_) => Layout::UNRELATED,
            None => installer.first_layout(variants),
        };
        let fixed = match variants {
            Variants::Code | Variants::Data | Variants::Full if n > 1 => installer.fixed(first)?,
            _ => None,
        };
        let mut secrets = Vec::new();
        if variants != Variants::None {
            installer.unmap_kernels()?;
            secrets.push(installer.note_secrets(glibc)?);
        }
        // (Where no C library takes them they are the program's own.)
        let has_own = glibc || planned.iter().any(|p| p.has_canaries);
        let has_own = has_own && variants == Variants::Full;
        if first != Layout::default() {
            layout::tell(&memory, first)?;
        }
        let tolerated = |replica| self.options.tolerated.of(replica);
        if programs.is_some() {
            memory.write(SAME_BASE, &tolerated(leader))?;
        }
        let target = Target {
            tracee,
            memory: &memory,
            space: &space,
            replica: leader,
            layout: first,
        };
        // (Of variants each is rewritten where it lies.)
        let alike = self.options.patch && variants == Variants::None && programs.is_none();
        if alike {
            code::rewrite_all(&target, &self.kit.image, &mut self.kit.plans, &mut areas)?;
        }
        let gate = self.kit.image.symbol("geryon_blocking_syscall");
        // MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, see the agent's log.
        tracee.remote_syscall(gate, libc::SYS_membarrier, [4, 0, 0, 0, 0, 0])?;
        installer.note_timers()?;
        let mut group = Group::new(segment, self.replicas.len(), leader, areas);
        group.members[leader].pid = Some(pid);
        group.name = name;
        group.parenthood.reaps_orphans = reaps_orphans;
        group.parenthood.adopted = adopted;
        let mask = tracee.mask()?;
        let mut stillborn = Vec::new();
        for r in (0..self.replicas.len()).filter(|r| *r != leader && alive & (1 << *r) != 0) {
            let identity = Identity {
                replica: r as u32,
                layout: match variants {
                    Variants::None => Layout::default(),
                    _ => first.with_number(r as u32),
                },
                secrets: match has_own {
                    true => Some(setup::secrets::draw(&secrets)?),
                    false => None,
                },
                ..identity
            };
            secrets.extend(identity.secrets);
            let instead = programs.and_then(|p| p.instead(pid, r));
            let (copy, memory) = match installer.make_copy(identity, instead, mask) {
                Ok(made) => made,
                Err(e) if is_gone(&e) && self.processes.contains_key(&pid) => {
                    // Killed at its birth: it is replaced like one that is killed later.
                    group.segment.drop_replica(r);
                    stillborn.push(r);
                    continue;
                }
                Err(e) => return Err(e),
            };
            if programs.is_some() {
                memory.write(SAME_BASE, &tolerated(r))?;
            }
            group.members[r].pid = Some(copy);
            let process = Process {
                group: Some(id),
                memory: Some(memory),
                ..Process::new(r)
            };
            self.processes.insert(copy, process);
            self.threads.insert(copy, Thread::of(copy));
        }
        if self.options.patch && !alike {
            let plans = &mut self.kit.plans;
            let made = code::rewrite_all(&target, &self.kit.image, plans, &mut group.areas)?;
            self.rewrite_copies(&mut group, &made)?;
        }
        if let Some(path) = fixed {
            self.say(&format!(
                "{} is linked for a fixed address: its own code and data are the same in all variants\n  try: build it as a position-independent executable (-pie)",
                path.display()
            ));
        }
        if let Some(p) = self.processes.get_mut(&pid) {
            p.group = Some(id);
            p.memory = Some(memory);
        }
        for (r, copy) in group.followers() {
            self.confine(r, leader, copy);
        }
        for r in stillborn {
            self.replicas[r].dropped = true;
            self.recovery.want(r);
        }
        self.apply_sabotage(&group)?;
        self.open(id, group)
    }

    /// Rewrite the leader's copies, which lie elsewhere.
    fn rewrite_copies(&mut self, group: &mut Group, made: &[Rewrite]) -> Result<()> {
        let followers: Vec<(usize, Pid)> = group.followers().collect();
        for (replica, pid) in followers {
            let Some(memory) = self.processes.get(&pid).and_then(|p| p.memory.as_ref()) else {
                continue;
            };
            let target = Target {
                tracee: Stopped(pid),
                memory,
                space: &AddressSpace::open(pid)?,
                replica,
                layout: layout::of(memory)?,
            };
            let (image, plans, areas) = (&self.kit.image, &mut self.kit.plans, &mut group.areas);
            if target.layout.is_unrelated() {
                code::rewrite_all(&target, image, plans, areas)?;
            } else {
                code::rewrite_as_well(&target, image, plans, areas, made)?;
            }
        }
        Ok(())
    }

    /// What the agent of the leader is told.
    fn identity(&self, leader: usize, shown: Pid) -> Identity {
        Identity {
            replica: leader as u32,
            // Those that are missing may come later.
            replicas: self.options.replicas,
            leader: leader as u32,
            serial: self.is_serial(),
            ascends: self.ascends(),
            stamps: self.has_stamps(),
            verify: self.options.verify_code(),
            tsc_mult: self.kit.tsc_mult,
            shown: shown as u32,
            reaches_all: self.kit.reaches_all,
            related: self.family.has_forked,
            layout: Layout::default(),
            secrets: None,
        }
    }

    /// The group is complete: its members may go.
    fn open(&mut self, id: GroupId, group: Group) -> Result<()> {
        let members: Vec<(usize, Pid)> = group.living().collect();
        self.tell_shared(&group);
        self.groups.insert(id, group);
        for (_, p) in members {
            self.arm(p);
            // One that was killed meanwhile reports its end.
            Stopped(p).resume(0).ok();
        }
        Ok(())
    }

    /// Tell the agents whether a test has chosen a fault for them to make.
    fn apply_sabotage(&self, group: &Group) -> Result<()> {
        for (r, p) in group.living() {
            if let Some(m) = self.processes.get(&p).and_then(|p| p.memory.as_ref()) {
                self.sabotage(r, m)?;
                self.arm_points(r, m)?;
            }
        }
        Ok(())
    }

    /// The same for one replica, whose memory may be a copy of another one's.
    pub(crate) fn sabotage(&self, replica: usize, memory: &RemoteMemory) -> Result<()> {
        let mine = self
            .options
            .sabotage
            .iter()
            .find(|s| s.replica as usize == replica);
        // Its copy is the next one.
        let before = self.replicas[replica].replaced + u32::from(self.is_dropped(replica));
        let due = |s: &&Sabotage| before < s.times;
        let mine = mine.filter(due);
        let what = mine.map_or(sabotage::NONE, |s| s.what);
        let core = match mine.map_or(Often::Once, |s| s.often) {
            Often::Once => sabotage::ONCE,
            Often::OnCore(core) => core,
            Often::Always => sabotage::ALWAYS,
        };
        memory.write(private_field!(sabotage), &what.to_le_bytes())?;
        memory.write(private_field!(sabotage_core), &core.to_le_bytes())?;
        memory.set_word(private_field!(sabotage_at), mine.map_or(0, |s| s.at))?;
        Ok(())
    }
}
