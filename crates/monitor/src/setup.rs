//! After an exec, before the first instruction: map the agent, patch the code, make the
//! followers as copies of the leader.

mod auxv;
pub mod filters;
mod patience;
pub mod place;
pub mod program;
pub mod receive;
pub mod secrets;
mod stack;
mod timers;

use crate::image::Image;
use crate::segment::Segment;
use crate::{block_field, private_field};
use anyhow::{Result, bail};
use geryon_abi::layout::kin::{KIN_BASE, KIN_BYTES};
use geryon_abi::layout::secrets::Words;
use geryon_abi::layout::{
    ABI_VERSION, AGENT_BASE, BLOCK_BYTES, BLOCKS_BASE, GATE_BASE, GATE_BYTES, GUARD_BYTES, Layout,
    MAX_THREADS, PRIVATE_BASE, PRIVATE_BYTES, SEGMENT_BASE, SHUT_BYTES, ascent, block_address,
    dumpable, role, stack_top,
};
use geryon_tracee::{Passage, Pid, Regs, RemoteMemory, Stopped};
use program::Program;
use std::os::fd::{AsFd, BorrowedFd};

const PROT_READ: u64 = 1;
const PROT_RW: u64 = 3;
const PROT_RX: u64 = 5;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;

/// What is told to the agent of one process.
#[derive(Clone, Copy)]
pub struct Identity {
    /// Replica index.
    pub replica: u32,
    /// Replicas of the run; some may be missing from the group.
    pub replicas: u32,
    /// Index of the leader.
    pub leader: u32,
    /// One thread runs at a time.
    pub serial: bool,
    /// Its threads run in parallel from its second one on.
    pub ascends: bool,
    /// The leader stamps what it publishes.
    pub stamps: bool,
    /// `--verify` as a number.
    pub verify: u32,
    /// Time stamp counter ticks in 2^20 ns.
    pub tsc_mult: u64,
    /// Process id that the program knows.
    pub shown: u32,
    /// The monitor may reach processes that are not dumpable.
    pub reaches_all: bool,
    /// The program has had another process.
    pub related: bool,
    /// Where its memory is to lie.
    pub layout: Layout,
    /// What its C library is to take in place of the leader's words.
    pub secrets: Option<Words>,
}

/// A process at the end of its exec, ready to have calls injected.
pub struct Installer<'a> {
    /// The stopped process.
    pub tracee: Stopped,
    /// Its memory.
    pub memory: &'a RemoteMemory,
    /// The agent.
    pub image: &'a Image,
    /// From where it gets descriptors.
    pub passage: &'a Passage,
    /// Registers at the program's first instruction.
    pub start: Regs,
}

impl Installer<'_> {
    /// Map agent, private structure, blocks and segment; give the thread its block.
    ///
    /// # Errors
    /// When an injected call fails; the message says which.
    pub fn install(&mut self, segment: &Segment, id: Identity) -> Result<()> {
        let start = self.start.rip;
        let mut code = [0; 8];
        self.memory.read(start, &mut code)?;
        // No gate yet: a `syscall` instruction over the first bytes of the program.
        self.memory.write(start, &[0x0f, 0x05])?;
        let done = self.map_agent(start, segment);
        self.memory.write(start, &code)?;
        let log = done?;
        let gate = self.image.symbol("geryon_blocking_syscall");
        self.map_anonymous(gate, PRIVATE_BASE, PRIVATE_BYTES)?;
        self.map_anonymous(gate, BLOCKS_BASE, BLOCK_BYTES * MAX_THREADS as u64)?;
        let guard = [stack_top(0), GUARD_BYTES, libc::PROT_NONE as u64, 0, 0, 0];
        self.call(gate, libc::SYS_mprotect, guard, "guard a stack")?;
        self.map(
            gate,
            SEGMENT_BASE,
            segment.bytes(),
            PROT_RW,
            MAP_SHARED | MAP_NORESERVE,
            log,
            0,
        )?;
        self.close(gate, log)?;
        let shut = [SEGMENT_BASE, SHUT_BYTES, PROT_READ, 0, 0, 0];
        self.call(gate, libc::SYS_mprotect, shut, "protect the log's head")?;
        self.identify(id)?;
        Ok(())
    }

    /// The descriptor of the log comes with the agent's.
    fn map_agent(&self, at: u64, segment: &Segment) -> Result<u64> {
        let i = self.image;
        let [fd, log] = self.receive(at, [i.memfd.as_fd(), segment.descriptor()])?;
        self.map(at, AGENT_BASE, i.code, PROT_RX, MAP_PRIVATE, fd, 0)?;
        self.map(
            at,
            AGENT_BASE + i.code,
            i.len - i.code,
            PROT_RW,
            MAP_PRIVATE,
            fd,
            i.code,
        )?;
        self.map(at, GATE_BASE, GATE_BYTES, PROT_RX, MAP_PRIVATE, fd, i.len)?;
        let kin = i.kin_offset();
        self.map(at, KIN_BASE, KIN_BYTES, PROT_RW, MAP_SHARED, fd, kin)?;
        self.close(at, fd)?;
        Ok(log)
    }

    fn receive(&self, at: u64, from: [BorrowedFd<'_>; 2]) -> Result<[u64; 2]> {
        let call = |nr, args, what: &str| self.call(at, nr, args, what);
        let scratch = (self.start.rsp - 4096) & !15;
        receive::receive(&call, self.memory, self.passage, scratch, from)
    }

    fn close(&self, at: u64, fd: u64) -> Result<()> {
        self.call(at, libc::SYS_close, [fd, 0, 0, 0, 0, 0], "close")?;
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // the arguments of mmap
    fn map(
        &self,
        at: u64,
        address: u64,
        len: u64,
        prot: u64,
        flags: u64,
        fd: u64,
        offset: u64,
    ) -> Result<()> {
        let args = [address, len, prot, flags | MAP_FIXED_NOREPLACE, fd, offset];
        let got = self.call(at, libc::SYS_mmap, args, "map the agent")?;
        if got != address {
            bail!("the kernel mapped the agent at {got:#x} instead of {address:#x}");
        }
        Ok(())
    }

    fn map_anonymous(&self, at: u64, address: u64, len: u64) -> Result<()> {
        self.map(
            at,
            address,
            len,
            PROT_RW,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
            u64::MAX,
            0,
        )
    }

    fn call(&self, at: u64, nr: i64, args: [u64; 6], what: &str) -> Result<u64> {
        let r = self.tracee.remote_syscall(at, nr, args)?;
        if (-4095..0).contains(&r) {
            let e = std::io::Error::from_raw_os_error(-r as i32);
            bail!("cannot {what} in the program: {e}\n  try: geryon doctor");
        }
        Ok(r as u64)
    }

    /// Fill the private structure and the first thread's block.
    fn identify(&mut self, id: Identity) -> Result<()> {
        let m = self.memory;
        let word32 = |at: u64, v: u32| m.write(at, &v.to_le_bytes());
        word32(private_field!(version), ABI_VERSION)?;
        word32(private_field!(replicas), id.replicas)?;
        word32(private_field!(verify), id.verify)?;
        word32(private_field!(serial), u32::from(id.serial))?;
        let ascent = match id.ascends {
            true => ascent::OPEN,
            false => ascent::NEVER,
        };
        word32(private_field!(ascent), ascent)?;
        word32(private_field!(related), u32::from(id.related))?;
        word32(private_field!(shares_files), 1)?;
        word32(private_field!(shown_pid), id.shown)?;
        m.set_word(private_field!(tsc_mult), id.tsc_mult)?;
        m.set_word(private_field!(monitor), self.passage.name())?;
        let kept = if id.reaches_all {
            dumpable::KERNELS
        } else {
            dumpable::YES
        };
        word32(private_field!(dumpable), kept)?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
        word32(private_field!(cores), cores)?;
        word32(private_field!(patience), patience::turns())?;
        word32(
            private_field!(loads),
            crate::plans::are_loads_ordered().into(),
        )?;
        word32(private_field!(stamps), id.stamps.into())?;
        self.take_identity(id)?;
        let block = block_address(0);
        m.set_word(block + block_field!(this), block)?;
        m.set_word(block + block_field!(stack_top), stack_top(0))?;
        word32(block + block_field!(shown_tid), id.shown)?;
        self.start.gs_base = block;
        self.tracee.set_regs(&self.start)?;
        Ok(())
    }

    /// What differs between the copies.
    fn take_identity(&self, id: Identity) -> Result<()> {
        let m = self.memory;
        let r = if id.replica == id.leader {
            role::LEADER
        } else {
            role::FOLLOWER
        };
        m.write(private_field!(replica), &id.replica.to_le_bytes())?;
        m.write(private_field!(role), &r.to_le_bytes())?;
        m.write(
            private_field!(own_pid),
            &(self.tracee.0 as u32).to_le_bytes(),
        )?;
        m.write(
            block_address(0) + block_field!(own_tid),
            &(self.tracee.0 as u32).to_le_bytes(),
        )?;
        Ok(())
    }

    /// Copy the process, which was installed, and make the copy another replica of its group, with
    /// the given mask of blocked signals. It is left stopped where this process stands. `instead`: the program that it has,
    /// and the one that the copy gets.
    ///
    /// # Errors
    /// When clone fails or the copy's memory cannot be written.
    pub fn make_copy(
        &self,
        id: Identity,
        instead: Option<(&Program, &Program)>,
        mask: u64,
    ) -> Result<(Pid, RemoteMemory)> {
        let pid = self.clone_process()?;
        let memory = RemoteMemory::open(pid)?;
        let mut copy = Installer {
            tracee: Stopped(pid),
            memory: &memory,
            image: self.image,
            passage: self.passage,
            start: self.start,
        };
        copy.become_copy(id, mask)?;
        if id.layout.number != 0 {
            copy.take_layout(id.layout)?;
        }
        if let Some(own) = id.secrets {
            copy.take_secrets(own)?;
        }
        if let Some((old, new)) = instead {
            copy.load(old, new)?;
        }
        Ok((pid, memory))
    }

    /// Make this process one of the replicas of a group that its copy was installed for.
    fn become_copy(&self, id: Identity, mask: u64) -> Result<()> {
        // It was born while all signals were blocked for the injected call.
        self.tracee.set_mask(mask)?;
        self.take_identity(id)?;
        self.tracee.set_regs(&self.start)?;
        Ok(())
    }

    /// The copy shares descriptors and working directory with the process.
    fn clone_process(&self) -> Result<Pid> {
        let gate = self.image.symbol("geryon_blocking_syscall");
        let flags = (libc::CLONE_FILES | libc::CLONE_FS) as u64;
        let pid = self.call(
            gate,
            libc::SYS_clone,
            [flags, 0, 0, 0, 0, 0],
            "copy the program",
        )? as Pid;
        geryon_tracee::settle(pid)?;
        Ok(pid)
    }
}

/// Map a trampoline area at `address`; false when something is there already.
///
/// # Errors
/// When the thread dies.
pub fn map_area(tracee: Stopped, image: &Image, address: u64, len: u64) -> Result<bool> {
    let gate = image.symbol("geryon_blocking_syscall");
    let args = [
        address,
        len,
        PROT_RX,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
        u64::MAX,
        0,
    ];
    let got = tracee.remote_syscall(gate, libc::SYS_mmap, args)?;
    if got > 0 && got as u64 != address {
        tracee.remote_syscall(gate, libc::SYS_munmap, [got as u64, len, 0, 0, 0, 0])?;
    }
    Ok(got as u64 == address)
}
