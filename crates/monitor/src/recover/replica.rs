//! One process of the missing replica: an injected fork of its source's process, then its threads.

use super::thread::{State, restartable};
use super::{Attempt, demote};
use crate::maps::AddressSpace;
use crate::state::{GroupId, Monitor, Process, Thread};
use crate::{block_field, private_field};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::{MAX_THREADS, block_address, touches_reserved};
use geryon_tracee::{Pid, RemoteMemory, Stopped, settle};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Monitor {
    /// Make the replica's member of a group anew. How long its source stood still is counted.
    pub(super) fn replace_in(&mut self, id: GroupId, replica: usize) -> Result<Attempt> {
        let since = Instant::now();
        self.pause = Duration::ZERO;
        let attempt = self.try_replace_in(id, replica);
        let stood = match self.pause {
            // Nothing was copied: it was let go at the end.
            Duration::ZERO => since.elapsed(),
            pause => pause,
        };
        self.journal.stood(stood);
        attempt
    }

    fn try_replace_in(&mut self, id: GroupId, replica: usize) -> Result<Attempt> {
        let Some((source, pid)) = self.source(id) else {
            return Ok(self.without_source(id, replica));
        };
        if self.is_yet_to_be_born(id, replica) {
            return Ok(Attempt::Later("its parent is about to fork it".into()));
        }
        if self
            .processes
            .values()
            .any(|p| p.guest.is_some() && p.replica == source)
        {
            return Ok(Attempt::Later(
                "its source waits for a vfork's child".into(),
            ));
        }
        self.memory(pid)?;
        let since = Instant::now();
        let Some(halted) = self.halt(pid)? else {
            return Ok(Attempt::Later("its source's threads did not stop".into()));
        };
        let in_flight = self
            .threads
            .values()
            .any(|t| t.pid == pid && (t.inject.is_some() || t.frame_mask.is_some()));
        let newborn = self
            .processes
            .values()
            .any(|p| p.group.is_none() && p.parent == Some((id, source)));
        if newborn {
            // The copy would stand behind that fork, and nobody would make its child.
            self.release(&halted);
            return Ok(Attempt::Later("a child of its source is being born".into()));
        }
        let healthy = self.source(id).is_some_and(|(s, _)| s == source);
        if in_flight || !healthy {
            self.release(&halted);
            return Ok(Attempt::Later(
                "a signal is on its way in its source".into(),
            ));
        }
        match self.copy(id, replica, (source, pid), &halted, since) {
            Ok(None) => Ok(Attempt::Done(source)),
            Ok(Some(attempt)) => Ok(attempt),
            Err(e) => {
                self.release(&halted);
                Ok(Attempt::Later(format!("{e:#}")))
            }
        }
    }

    /// There is nobody to copy; perhaps a follower is yet to be born.
    fn without_source(&self, id: GroupId, replica: usize) -> Attempt {
        let expected = self.groups.get(&id).is_some_and(|g| {
            if g.takeover.is_some() {
                return true;
            }
            let others = g.segment.header().alive.load(Ordering::SeqCst) & !(1 << replica);
            (0..g.members.len())
                .any(|r| r != g.leader && others & (1 << r) != 0 && g.members[r].pid.is_none())
        });
        if expected {
            Attempt::Later("its source is not born yet".into())
        } else {
            Attempt::Never("no healthy follower is left to copy".into())
        }
    }

    /// Was the replica's parent process copied before it forked this one?
    fn is_yet_to_be_born(&mut self, id: GroupId, replica: usize) -> bool {
        let parent = self.groups.values().find_map(|g| {
            let (sequence, _) = g.children.iter().find(|(_, child)| **child == id)?;
            Some((g.members[replica].pid?, *sequence))
        });
        let Some((pid, sequence)) = parent else {
            return false;
        };
        self.memory(pid)
            .and_then(|m| Ok(m.word(private_field!(forks))?))
            .is_ok_and(|forks| forks <= sequence)
    }

    /// A follower that nobody has said anything against; if there is no follower left, the leader.
    fn source(&self, id: GroupId) -> Option<(usize, Pid)> {
        let g = self.groups.get(&id)?;
        let healthy = |r: usize| {
            g.reports.iter().all(|x| x.replica != r) && g.crashes.iter().all(|c| c.replica != r)
        };
        let alone = g.followers().next().is_none() && g.takeover.is_none();
        g.followers()
            .find(|(r, _)| healthy(*r))
            .or_else(|| Some((g.leader, g.leader_pid()?)).filter(|(r, _)| alone && healthy(*r)))
    }

    /// The source is halted: fork it, let it go, and complete the copy. None when that is done.
    fn copy(
        &mut self,
        id: GroupId,
        replica: usize,
        (source, pid): (usize, Pid),
        halted: &[Pid],
        since: Instant,
    ) -> Result<Option<Attempt>> {
        self.memory(pid)?;
        let memory = self.processes[&pid].memory.as_ref();
        let memory = memory.context("its source's memory")?;
        let led = self.leads(id, source);
        let mut states = Vec::new();
        for t in halted {
            let mask = self.threads[t].held_mask;
            match State::read(*t, memory, &self.image, led, mask)? {
                Ok(s) => states.push(s),
                Err(why) => {
                    self.release(halted);
                    return Ok(Some(Attempt::Later(why)));
                }
            }
        }
        // The first thread, so that the copy's first is its copy, too.
        states.sort_by_key(|s| (s.tid != pid, s.tid));
        if states.first().is_none_or(|s| s.tid != pid) {
            self.release(halted);
            return Ok(Some(Attempt::Never(
                "its source's first thread has ended".into(),
            )));
        }
        let files = led || read32(memory, private_field!(shares_files))? != 0;
        let places = self.places(id, memory, led)?;
        self.take_seat(id, replica, source, &places, memory)?;
        let copy = match self.fork(&states[0], files) {
            Ok(copy) => copy,
            Err(e) => {
                self.leave_seat(id, replica);
                return Err(e);
            }
        };
        self.confine(replica, source, copy);
        // The end of the pause: what is done from here on the source need not wait for.
        self.release(halted);
        self.pause = since.elapsed();
        let living: Vec<u64> = states.iter().map(|s| s.block).collect();
        let made = settle(copy)
            .and_then(|()| RemoteMemory::open(copy))
            .map_err(anyhow::Error::from)
            .and_then(|m| {
                if shared_memory(copy)? {
                    return Ok(None);
                }
                if led {
                    demote::memory(&m, &places, &living)?;
                }
                m.write(private_field!(replica), &(replica as u32).to_le_bytes())?;
                self.sabotage(replica, &m)?;
                Ok(Some((self.complete(&states, copy, &m)?, m)))
            });
        let (threads, memory) = match made {
            Ok(Some(made)) => made,
            unmade => {
                geryon_tracee::kill(copy, libc::SIGKILL);
                self.leave_seat(id, replica);
                // It is known, so that its end is waited for.
                self.processes.insert(copy, Process::new(replica));
                self.threads.insert(copy, Thread::of(copy));
                return Ok(Some(match unmade {
                    Err(e) => Attempt::Later(format!("{e:#}")),
                    Ok(_) => {
                        Attempt::Never("its source has memory that several processes share".into())
                    }
                }));
            }
        };
        for tid in &threads {
            self.threads.insert(*tid, Thread::of(copy));
        }
        self.processes.insert(
            copy,
            Process {
                group: Some(id),
                memory: Some(memory),
                threads: threads.len(),
                ..Process::new(replica)
            },
        );
        if let Some(g) = self.groups.get_mut(&id) {
            g.members[replica].pid = Some(copy);
            g.members[replica].end = None;
            g.members[replica].missed = 0;
            g.areas.copied(source, replica);
            g.segment.join(replica);
        }
        if self.options.eager_copy {
            self.begin_unsharing(replica, copy);
        }
        self.release(&threads);
        Ok(None)
    }

    /// Fork the halted process. The copy, of one thread, comes to its first stop.
    fn fork(&self, first: &State, shares_files: bool) -> Result<Pid> {
        let gate = self.image.symbol("geryon_blocking_syscall");
        let flags = if shares_files {
            libc::CLONE_FILES | libc::CLONE_FS
        } else {
            0
        };
        let t = Stopped(first.tid);
        let before = t.regs()?;
        let got = t.remote_syscall(gate, libc::SYS_clone, [flags as u64, 0, 0, 0, 0, 0]);
        t.set_regs(&restartable(before))?;
        let copy = got?;
        if copy <= 0 {
            bail!(
                "cannot fork: {}",
                std::io::Error::from_raw_os_error(-copy as i32)
            );
        }
        Ok(copy as Pid)
    }

    /// Where a copy of the process stands in every ring that is in use.
    fn places(&self, id: GroupId, memory: &RemoteMemory, led: bool) -> Result<Vec<Place>> {
        let Some(g) = self.groups.get(&id) else {
            bail!("the group has ended");
        };
        let used = |slot: &usize| g.segment.ring(*slot).head.load(Ordering::Acquire) != 0;
        let place = |slot| Ok(Place::read(slot, memory, led)?);
        (0..MAX_THREADS).filter(used).map(place).collect()
    }

    fn leave_seat(&self, id: GroupId, replica: usize) {
        if let Some(g) = self.groups.get(&id) {
            g.segment.leave_seat(replica);
        }
    }

    /// The copy stands in every ring where its source stands: nothing that it has still to read is
    /// overwritten from now on.
    fn take_seat(
        &self,
        id: GroupId,
        replica: usize,
        source: usize,
        places: &[Place],
        memory: &RemoteMemory,
    ) -> Result<()> {
        let Some(g) = self.groups.get(&id) else {
            bail!("the group has ended");
        };
        for p in places {
            let ring = g.segment.ring(p.slot);
            let line = &ring.followers[replica];
            line.tail.store(p.pos, Ordering::SeqCst);
            line.ack.store(p.verified, Ordering::SeqCst);
            let bit = 1 << source;
            if ring.follower_sleeps.load(Ordering::SeqCst) & bit != 0 {
                ring.follower_sleeps
                    .fetch_or(1 << replica, Ordering::SeqCst);
            }
        }
        let header = g.segment.header();
        let maps = if self.leads(id, source) {
            memory.word(private_field!(file_maps))?
        } else {
            header.file_maps[source].load(Ordering::SeqCst)
        };
        header.file_maps[replica].store(maps, Ordering::SeqCst);
        header.joining.fetch_or(1 << replica, Ordering::SeqCst);
        Ok(())
    }

    /// The copy's other threads, and the state of all.
    fn complete(&self, states: &[State], copy: Pid, memory: &RemoteMemory) -> Result<Vec<Pid>> {
        memory.write(private_field!(own_pid), &(copy as u32).to_le_bytes())?;
        let first = Stopped(copy);
        let mut threads = vec![copy];
        for s in &states[1..] {
            threads.push(s.create(first, &self.image)?);
        }
        for (s, tid) in states.iter().zip(&threads) {
            s.put(*tid, *tid == copy, &self.image, memory)?;
        }
        Ok(threads)
    }
}

/// Where a copy stands in one ring.
pub(super) struct Place {
    /// Thread group.
    pub slot: usize,
    /// Position.
    pub pos: u64,
    /// Up to where it has confirmed.
    verified: u64,
}

impl Place {
    /// `led`: the block is a leader's, and the copy is to follow.
    fn read(slot: usize, memory: &RemoteMemory, led: bool) -> std::io::Result<Place> {
        let field = |at: u64| memory.word(block_address(slot) + at);
        let mut pos = field(block_field!(pos))?;
        if led && field(block_field!(repeatable))? as u32 != 0 {
            pos = field(block_field!(call_start))?;
        }
        let verified = if led {
            pos
        } else {
            field(block_field!(verified))?
        };
        Ok(Place {
            slot,
            pos,
            verified,
        })
    }
}

fn read32(memory: &RemoteMemory, at: u64) -> Result<u32> {
    let mut word = [0; 4];
    memory.read(at, &mut word)?;
    Ok(u32::from_le_bytes(word))
}

/// Has the process memory that a fork would share with the copy, besides the log?
fn shared_memory(pid: Pid) -> Result<bool> {
    Ok(AddressSpace::open(pid)?
        .shared_writable()?
        .iter()
        .any(|(start, len)| !touches_reserved(*start, *len)))
}
