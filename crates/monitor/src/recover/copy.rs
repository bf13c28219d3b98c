//! The copy of one process: an injected fork of its halted source, then its threads.

use super::Attempt;
use super::apart::Apart;
use super::demote::{self, Led, Resumes};
use super::parting::Part;
use super::replica::{Made, Seat};
use super::thread::State;
use crate::maps::AddressSpace;
use crate::state::{Group, GroupId, Monitor, Process, Thread};
use crate::{block_field, private_field};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::{block_address, repeat, touches_reserved};
use geryon_abi::point::FaultPoint;
use geryon_ring::seats;
use geryon_tracee::{Pid, RemoteMemory, Stopped, points, settle_forked};
use std::sync::atomic::Ordering;

/// A number that no call has (ENOSYS).
const NO_CALL: i64 = 0xffff;

/// A copy that was forked: of one thread yet, which has not come to its first stop.
pub(super) struct Forked {
    /// In which group.
    pub id: GroupId,
    seat: Seat,
    /// Of whom.
    pub source: usize,
    /// The source leads, and the copy is to follow.
    led: bool,
    /// It has the table of descriptors of its source.
    shares_files: bool,
    /// The copy.
    pub pid: Pid,
    states: Vec<State>,
    places: Vec<Place>,
    asleep: Vec<usize>,
    /// Memory of which forks have nothing.
    apart: Apart,
}

/// Whose table of descriptors a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// No process that leads has it.
    Own,
    /// That of its source, which leads.
    Sources,
    /// That of its group's leader.
    Leaders,
}

impl Forked {
    /// Whose descriptors are its own, too, and will be used while the copy is being completed?
    pub fn files(&self) -> Files {
        match (self.led, self.shares_files) {
            (true, _) => Files::Sources,
            (false, true) => Files::Leaders,
            (false, false) => Files::Own,
        }
    }

    /// Its replica, and its source's.
    pub fn seats(&self) -> (usize, usize) {
        (self.seat.replica, self.source)
    }

    /// It, to part from its source.
    pub fn part<'a>(&self, memory: &'a RemoteMemory) -> Part<'a> {
        Part {
            pid: self.pid,
            memory,
            block: self.states[0].block,
        }
    }
}

impl Monitor {
    /// Why a process that is halted cannot be copied as its threads stand; None: it can.
    pub(super) fn stands_amiss(
        &mut self,
        id: GroupId,
        (source, pid): (usize, Pid),
        halted: &[Pid],
    ) -> Result<Option<String>> {
        self.memory(pid)?;
        Ok(self.states(id, (source, pid), halted, false)?.err())
    }

    /// The states of a halted process's threads. `Err` with the reason when it cannot be copied as they stand.
    fn states(
        &self,
        id: GroupId,
        (source, pid): (usize, Pid),
        halted: &[Pid],
        testifies: bool,
    ) -> Result<std::result::Result<Vec<State>, String>> {
        let memory = self.processes[&pid].memory.as_ref();
        let memory = memory.context("its source's memory")?;
        let led = self.leads(id, source).then_some(Led { testifies });
        let mut states = Vec::new();
        for t in halted {
            let mask = self.threads[t].held_mask;
            match State::read(*t, memory, &self.kit.image, led, mask)? {
                Ok(s) => states.push(s),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(states))
    }

    /// The source is halted, and stays so: fork it into its seat.
    pub(super) fn fork_halted(
        &mut self,
        id: GroupId,
        seat: Seat,
        (source, pid): (usize, Pid),
        halted: &[Pid],
    ) -> Result<std::result::Result<Forked, Attempt>> {
        let replica = seat.replica;
        self.dies_at(FaultPoint::SourceHalted, pid);
        self.inherit_births(id, seat, source);
        self.memory(pid)?;
        let memory = self.processes[&pid].memory.as_ref();
        let memory = memory.context("its source's memory")?;
        let led = self.leads(id, source);
        let mut states = match self.states(id, (source, pid), halted, seat.testifies)? {
            Ok(states) => states,
            Err(why) => return Ok(Err(Attempt::Later(why))),
        };
        // The first thread, so that the copy's first is its copy, too.
        states.sort_by_key(|s| (s.tid != pid, s.tid));
        if states.first().is_none_or(|s| s.tid != pid) {
            return Ok(Err(Attempt::Never(
                "its source's first thread has ended".into(),
            )));
        }
        let files = led || read32(memory, private_field!(shares_files))? != 0;
        let places = self.places(id, memory, led)?;
        // (smaps is long to read, and few programs ask for this.)
        let apart = match read32(memory, private_field!(forks_apart))? {
            0 => Apart::default(),
            _ => Apart::of(pid, self.kit.image.symbol("geryon_injected"))?,
        };
        let asleep = self.take_seat(id, seat, source, &places, memory)?;
        let seated = if led {
            self.keep_behind(id, replica, memory)
        } else {
            Ok(())
        };
        let first = Stopped(states[0].tid);
        let forked = seated.and_then(|()| {
            apart.join(first)?;
            let copy = self.fork(&states[0], files);
            apart.mark(first)?;
            copy
        });
        let copy = match forked {
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
        Ok(Ok(Forked {
            id,
            seat,
            source,
            led,
            shares_files: files,
            pid: copy,
            states,
            places,
            asleep,
            apart,
        }))
    }

    /// The copy does not make again what its source has forked.
    fn inherit_births(&mut self, id: GroupId, seat: Seat, source: usize) {
        if let Some(g) = self.groups.get_mut(&id) {
            g.forks.births[seat.replica] = g.forks.births[source].clone();
        }
    }

    /// The copy comes to its first stop, and its memory can be got at.
    pub(super) fn settle_copy(&mut self, forked: &Forked) -> Result<RemoteMemory> {
        self.confine(forked.seat.replica, forked.source, forked.pid);
        settle_forked(forked.pid)?;
        Ok(RemoteMemory::open(forked.pid)?)
    }

    /// What a copy still lacks: its threads, and who it is. They are left stopped.
    pub(super) fn complete_copy(&mut self, forked: &Forked, memory: RemoteMemory) -> Result<Made> {
        let (replica, copy) = (forked.seat.replica, forked.pid);
        forked.apart.mark(Stopped(copy))?;
        if forked.led {
            let living: Vec<(u64, Resumes)> =
                forked.states.iter().map(|s| (s.block, s.resumes)).collect();
            demote::memory(&memory, &forked.places, &living)?;
        }
        memory.write(private_field!(replica), &(replica as u32).to_le_bytes())?;
        self.sabotage(replica, &memory)?;
        self.arm_points(replica, &memory)?;
        let threads = self.make_threads(&forked.states, copy, &memory)?;
        for tid in &threads {
            self.threads.insert(*tid, Thread::of(copy));
        }
        self.processes.insert(
            copy,
            Process {
                group: Some(forked.id),
                memory: Some(memory),
                threads: threads.len(),
                ..Process::new(replica)
            },
        );
        if let Some(g) = self.groups.get_mut(&forked.id) {
            g.areas.copied(forked.source, replica);
        }
        Ok(Made {
            replica,
            source: forked.source,
            pid: copy,
            threads,
            asleep: forked.asleep.clone(),
        })
    }

    /// A copy that was forked is a member of its group, although its threads are still to be made: what the leader
    /// does from here on waits for it.
    pub(super) fn enrol_forked(&mut self, forked: &Forked) {
        self.enrol_process(forked.id, forked.seat.replica, forked.pid, &forked.asleep);
    }

    /// The copy is of no use: its end is all that is waited for.
    pub(super) fn unmake(&mut self, forked: &Forked) {
        geryon_tracee::kill(forked.pid, libc::SIGKILL);
        let replica = forked.seat.replica;
        // First, see `seats::leaves`.
        self.leave_seat(forked.id, replica);
        if let Some(g) = self.groups.get_mut(&forked.id) {
            g.forget(replica);
        }
        // (Its threads, if it has some by now, are known.)
        self.processes.insert(forked.pid, Process::new(replica));
        self.threads
            .entry(forked.pid)
            .or_insert_with(|| Thread::of(forked.pid));
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
        let at = self.kit.image.symbol("geryon_injected");
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
        seat: Seat,
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
            seats::stands(ring, seat.replica, p.pos, p.verified);
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
        header.open.file_maps[seat.replica].store(maps, Ordering::SeqCst);
        seats::takes(header, seat.replica, seat.sleeps);
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
    fn make_threads(&self, states: &[State], copy: Pid, memory: &RemoteMemory) -> Result<Vec<Pid>> {
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
            threads.push(s.create(first, &self.kit.image)?);
        }
        for (s, tid) in states.iter().zip(&threads) {
            s.put(*tid, *tid == copy, &self.kit.image, memory)?;
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
    /// It is in a call whose beginning it has confirmed, and waits for its end.
    pub is_begun: bool,
}

impl Place {
    /// `led`: the block is a leader's, and the copy is to follow.
    fn read(slot: usize, memory: &RemoteMemory, led: bool) -> std::io::Result<Place> {
        let field = |at: u64| memory.word(block_address(slot) + at);
        let mut pos = field(block_field!(pos))?;
        let repeatable = match led {
            true => field(block_field!(repeatable))? as u32,
            false => repeat::NOTHING,
        };
        if !matches!(repeatable, repeat::NOTHING | repeat::END) {
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
            is_begun: repeatable == repeat::END,
        })
    }
}

fn read32(memory: &RemoteMemory, at: u64) -> Result<u32> {
    let mut word = [0; 4];
    memory.read(at, &mut word)?;
    Ok(u32::from_le_bytes(word))
}

/// Does the process map files of which it finds what is written to them, by a call perhaps?
pub(super) fn shows_files(pid: Pid) -> Result<bool> {
    Ok(AddressSpace::open(pid)?
        .shared_any()?
        .iter()
        .any(|(start, len)| !touches_reserved(*start, *len)))
}

/// Has the process memory that a fork would share with the copy, besides the log?
pub(super) fn shares_memory(pid: Pid) -> Result<bool> {
    Ok(AddressSpace::open(pid)?
        .shared_writable()?
        .iter()
        .any(|(start, len)| !touches_reserved(*start, *len)))
}
