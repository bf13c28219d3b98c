//! One process of the missing replica: an injected fork of its source's process, then its threads.

use super::thread::State;
use super::{Attempt, demote};
use crate::maps::AddressSpace;
use crate::state::{Group, GroupId, Monitor, Process, Thread};
use crate::{block_field, private_field};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::{block_address, touches_reserved};
use geryon_abi::point::FaultPoint;
use geryon_ring::seats;
use geryon_tracee::{Pid, RemoteMemory, Stopped, points, settle_forked};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A number that no call has (ENOSYS).
const NO_CALL: i64 = 0xffff;

/// Where a copy is to sit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// As which replica.
    pub replica: usize,
    /// It stands still there until it is needed: a leader that it keeps from writing must not wait for
    /// it, from the first moment on.
    pub sleeps: bool,
}

/// A copy of a process of a replica, in its seat; its threads are stopped.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// Whose seat.
    pub replica: usize,
    /// Of whom it is a copy.
    pub source: usize,
    /// The process.
    pub pid: Pid,
    /// Its threads, the first one first.
    pub threads: Vec<Pid>,
    /// The rings at whose ends a thread of the source slept.
    pub asleep: Vec<usize>,
}

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
        let seat = Seat {
            replica,
            sleeps: false,
        };
        let made = match self.copy_of(id, seat, (source, pid))? {
            Ok(made) => made,
            Err(attempt) => return Ok(attempt),
        };
        self.enrol(id, &made);
        self.dies_at(FaultPoint::CopyJoined, made.pid);
        if self.options.eager_copy {
            self.begin_unsharing(replica, made.pid);
        }
        self.release(&made.threads);
        Ok(Attempt::Done(source))
    }

    /// A copy that was made is a member of its group from now on; it is left stopped.
    pub(crate) fn enrol(&mut self, id: GroupId, made: &Made) {
        if let Some(g) = self.groups.get_mut(&id) {
            let m = &mut g.members[made.replica];
            m.pid = Some(made.pid);
            m.end = None;
            m.missed = 0;
            g.segment.join(made.replica, &made.asleep);
        }
    }

    /// Copy a replica's process to the seat of another one, which lacks it. The copy is left stopped in
    /// its seat. The attempt's outcome when there is none.
    pub(crate) fn copy_of(
        &mut self,
        id: GroupId,
        seat: Seat,
        (source, pid): (usize, Pid),
    ) -> Result<std::result::Result<Made, Attempt>> {
        let later = |why: &str| Ok(Err(Attempt::Later(why.into())));
        if self
            .processes
            .values()
            .any(|p| p.guest.is_some() && p.replica == source)
        {
            return later("its source waits for a vfork's child");
        }
        let newborn = |m: &Monitor| {
            let expected = |p: &Process| p.group.is_none() && p.parent == Some((id, source));
            m.processes.values().any(expected) || m.has_early_child(id, source)
        };
        const BEING_BORN: &str = "a child of its source is being born";
        if newborn(self) {
            // The thread that has forked it stands still already.
            return later(BEING_BORN);
        }
        self.memory(pid)?;
        let since = Instant::now();
        let Some(halted) = self.halt(pid)? else {
            return later("its source's threads did not stop");
        };
        let in_flight = self
            .threads
            .values()
            .any(|t| t.pid == pid && (t.inject.is_some() || t.frame_mask.is_some()));
        if newborn(self) {
            // The copy would stand behind that fork, and nobody would make its child.
            self.release(&halted);
            return later(BEING_BORN);
        }
        if in_flight || !self.is_healthy(id, source, pid) {
            self.release(&halted);
            return later("a signal is on its way in its source");
        }
        match self.copy(id, seat, (source, pid), &halted, since) {
            Ok(made) => Ok(made),
            Err(e) => {
                self.release(&halted);
                later(&format!("{e:#}"))
            }
        }
    }

    /// Has a child of the replica's process come to its group before that has a leader? Who copied the
    /// process now would not find the child's group among those that lack the copy.
    fn has_early_child(&self, id: GroupId, replica: usize) -> bool {
        let children = self.groups.get(&id).into_iter();
        let children = children.flat_map(|g| g.children.values());
        children.filter_map(|c| self.groups.get(c)).any(|child| {
            child.members[replica].pid.is_some()
                && child.leader_pid().is_none()
                && child.leader_gone.is_none()
        })
    }

    /// Is this the replica's process still, and has nobody said anything against it?
    fn is_healthy(&self, id: GroupId, replica: usize, pid: Pid) -> bool {
        self.groups.get(&id).is_some_and(|g| {
            g.members[replica].pid == Some(pid)
                && g.reports.iter().all(|x| x.replica != replica)
                && g.crashes.iter().all(|c| c.replica != replica)
                && (replica != g.leader || g.takeover.is_none())
        })
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
        let alone = g.followers().next().is_none();
        g.followers()
            .find(|(r, p)| self.is_healthy(id, *r, *p))
            .or_else(|| {
                Some((g.leader, g.leader_pid()?))
                    .filter(|(r, p)| alone && self.is_healthy(id, *r, *p))
            })
    }

    /// The source is halted: fork it, let it go, and complete the copy.
    fn copy(
        &mut self,
        id: GroupId,
        seat: Seat,
        (source, pid): (usize, Pid),
        halted: &[Pid],
        since: Instant,
    ) -> Result<std::result::Result<Made, Attempt>> {
        let replica = seat.replica;
        self.dies_at(FaultPoint::SourceHalted, pid);
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
                    return Ok(Err(Attempt::Later(why)));
                }
            }
        }
        // The first thread, so that the copy's first is its copy, too.
        states.sort_by_key(|s| (s.tid != pid, s.tid));
        if states.first().is_none_or(|s| s.tid != pid) {
            self.release(halted);
            return Ok(Err(Attempt::Never(
                "its source's first thread has ended".into(),
            )));
        }
        let files = led || read32(memory, private_field!(shares_files))? != 0;
        let places = self.places(id, memory, led)?;
        let asleep = self.take_seat(id, seat, source, &places, memory)?;
        let seated = if led {
            self.keep_behind(id, replica, memory)
        } else {
            Ok(())
        };
        let copy = match seated.and_then(|()| self.fork(&states[0], files)) {
            Ok(copy) => copy,
            Err(e) => {
                self.leave_seat(id, replica);
                return Err(e);
            }
        };
        self.dies_at(FaultPoint::SourceCopied, pid);
        self.dies_at(FaultPoint::CopyForked, copy);
        if let Some(leader) = self.groups.get(&id).and_then(Group::leader_pid) {
            self.dies_at(FaultPoint::LeaderBeside, leader);
        }
        // The end of the pause: what is done from here on the source need not wait for.
        self.release(halted);
        self.pause = since.elapsed();
        self.confine(replica, source, copy);
        let living: Vec<u64> = states.iter().map(|s| s.block).collect();
        let made = settle_forked(copy)
            .and_then(|()| RemoteMemory::open(copy))
            .map_err(anyhow::Error::from)
            .and_then(|m| {
                if !self.shared.is_empty() || shared_memory(copy)? {
                    return Ok(None);
                }
                if led {
                    demote::memory(&m, &places, &living)?;
                }
                m.write(private_field!(replica), &(replica as u32).to_le_bytes())?;
                self.sabotage(replica, &m)?;
                self.arm_points(replica, &m)?;
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
                return Ok(Err(match unmade {
                    Err(e) => Attempt::Later(format!("{e:#}")),
                    Ok(_) if !self.shared.is_empty() => Attempt::Never(
                        "its source maps files (mmap) to be shared and writable".into(),
                    ),
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
            g.areas.copied(source, replica);
        }
        Ok(Ok(Made {
            replica,
            source,
            pid: copy,
            threads,
            asleep,
        }))
    }

    /// Fork the halted process. The copy, of one thread, comes to its first stop.
    fn fork(&self, first: &State, shares_files: bool) -> Result<Pid> {
        let flags = if shares_files {
            libc::CLONE_FILES | libc::CLONE_FS
        } else {
            0
        };
        let nr = match points::fails(FaultPoint::CopyFails) {
            true => NO_CALL,
            false => libc::SYS_clone,
        };
        let at = self.image.symbol("geryon_injected");
        let copy = Stopped(first.tid).fork(at, nr, flags)?;
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
        let touched = g.segment.touched().into_iter();
        touched.filter(used).map(place).collect()
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
        Seat { replica, sleeps }: Seat,
        source: usize,
        places: &[Place],
        memory: &RemoteMemory,
    ) -> Result<Vec<usize>> {
        let Some(g) = self.groups.get(&id) else {
            bail!("the group has ended");
        };
        let mut asleep = Vec::new();
        for p in places {
            let ring = g.segment.ring(p.slot);
            seats::stands(ring, replica, p.pos, p.verified);
            if seats::sleeps(ring, source) {
                asleep.push(p.slot);
            }
        }
        let header = g.segment.header();
        let maps = if self.leads(id, source) {
            memory.word(private_field!(file_maps))?
        } else {
            header.open.file_maps[source].load(Ordering::SeqCst)
        };
        header.open.file_maps[replica].store(maps, Ordering::SeqCst);
        seats::takes(header, replica, sleeps);
        Ok(asleep)
    }

    /// A leader's copy stands at the beginning of the calls that its source is in, and so behind what
    /// others may have read already: the source, which is halted, must not write a whole ring beyond
    /// those.
    fn keep_behind(&self, id: GroupId, replica: usize, memory: &RemoteMemory) -> Result<()> {
        let Some(g) = self.groups.get(&id) else {
            bail!("the group has ended");
        };
        for slot in g.segment.touched() {
            let ring = g.segment.ring(slot);
            if ring.head.load(Ordering::Acquire) == 0 {
                continue;
            }
            let at = block_address(slot) + block_field!(limit);
            let tail = ring.followers[replica].tail.load(Ordering::SeqCst);
            // Half of it, so that it looks for who holds it up in time.
            let limit = memory
                .word(at)?
                .min(tail.wrapping_add(g.segment.ring_words() as u64 / 2));
            memory.set_word(at, limit)?;
        }
        Ok(())
    }

    /// The copy's other threads, and the state of all.
    fn complete(&self, states: &[State], copy: Pid, memory: &RemoteMemory) -> Result<Vec<Pid>> {
        memory.write(private_field!(own_pid), &(copy as u32).to_le_bytes())?;
        let first = Stopped(copy);
        let mut threads = vec![copy];
        for s in &states[1..] {
            if points::fails(FaultPoint::CopyThreadFails) {
                bail!(
                    "cannot make a thread: {}",
                    std::io::Error::from_raw_os_error(libc::EAGAIN)
                );
            }
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
