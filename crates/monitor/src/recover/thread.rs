//! The state of one thread: read from the source, put into the copy.

use super::demote::{self, Led, Resumes};
use crate::block_field;
use crate::image::Image;
use anyhow::{Result, bail};
use geryon_tracee::{
    Pid, Regs, RemoteMemory, Scheduling, Stopped, restartable, robust_list, scheduling,
    set_scheduling, settle,
};

/// Where in a block's stack area nothing lies as long as its thread does not run.
pub(super) const SCRATCH: u64 = 0x4800;

/// All of a thread that the kernel keeps.
pub struct State {
    /// In the source.
    pub tid: Pid,
    /// The agent's block.
    pub block: u64,
    /// As they are to be set.
    pub regs: Regs,
    /// Where the copy goes on.
    pub resumes: Resumes,
    extended: Vec<u8>,
    mask: u64,
    robust: (u64, u64),
    altstack: [u64; 3],
    clear_tid: u64,
    scheduling: Option<Scheduling>,
}

impl State {
    /// Of a halted thread. `Err` with the reason when it cannot be copied as it stands.
    ///
    /// `led`: its process leads, and the copy is to follow; `mask`: what it blocks, where the monitor
    /// holds signals back.
    pub fn read(
        tid: Pid,
        memory: &RemoteMemory,
        image: &Image,
        led: Option<Led>,
        mask: Option<u64>,
    ) -> Result<Result<State, String>> {
        let t = Stopped(tid);
        let regs = t.regs()?;
        let Some(block) = image.block_of(&regs) else {
            return Ok(Err("a thread has no block yet".into()));
        };
        if memory.word(block + block_field!(this))? != block {
            return Ok(Err("a thread has no block yet".into()));
        }
        if memory.word(block + block_field!(publishing))? as u32 != 0 {
            return Ok(Err(
                "a thread is writing to the log's control page, or is being born".into(),
            ));
        }
        let mut copied = restartable(regs);
        let mut resumes = Resumes::AsItIs;
        if let Some(led) = led {
            match demote::thread(&mut copied, &regs, block, memory, image, led)? {
                Ok(how) => resumes = how,
                Err(why) => return Ok(Err(why)),
            }
        }
        let altstack = memory.words(block + block_field!(altstack))?;
        Ok(Ok(State {
            tid,
            block,
            regs: copied,
            resumes,
            extended: t.xstate()?,
            mask: mask.map_or_else(|| t.mask(), Ok)?,
            robust: robust_list(tid)?,
            altstack,
            clear_tid: memory.word(block + block_field!(clear_tid))?,
            scheduling: scheduling(tid),
        }))
    }

    /// Make the thread in the copy, whose first thread is stopped; it is left stopped.
    pub fn create(&self, first: Stopped, image: &Image) -> Result<Pid> {
        make(first, image, self.clear_tid)
    }

    /// Give the copy's thread this state. `memory` is the copy's.
    pub fn put(&self, tid: Pid, first: bool, image: &Image, memory: &RemoteMemory) -> Result<()> {
        let t = Stopped(tid);
        let at = image.symbol("geryon_injected");
        let scratch = self.block + SCRATCH;
        // Off the alternate stack, which cannot be set from on it.
        let mut regs = self.regs;
        regs.rsp = scratch - 512;
        regs.orig_rax = u64::MAX;
        t.set_regs(&regs)?;
        let call = |nr, args| t.injected_syscall(at, nr, args);
        if first && self.clear_tid != 0 {
            call(libc::SYS_set_tid_address, [self.clear_tid, 0, 0, 0, 0, 0])?;
        }
        if self.robust.0 != 0 {
            call(
                libc::SYS_set_robust_list,
                [self.robust.0, self.robust.1, 0, 0, 0, 0],
            )?;
        }
        if self.altstack[2] != 0 {
            let mut bytes = Vec::new();
            for w in self.altstack {
                bytes.extend(w.to_le_bytes());
            }
            memory.write(scratch, &bytes)?;
            call(libc::SYS_sigaltstack, [scratch, 0, 0, 0, 0, 0])?;
        }
        // One that is renamed from here on is renamed in the copy, too.
        let name = |tid| std::fs::read(format!("/proc/{tid}/comm")).ok();
        if let (Some(wanted), Some(own)) = (name(self.tid), name(tid))
            && wanted != own
        {
            let mut bytes = wanted.strip_suffix(b"\n").unwrap_or(&wanted).to_vec();
            bytes.push(0);
            memory.write(scratch, &bytes)?;
            call(
                libc::SYS_prctl,
                [libc::PR_SET_NAME as u64, scratch, 0, 0, 0, 0],
            )?;
        }
        if let Some(wanted) = self.scheduling.filter(|_| !first) {
            // (The first thread's is what a fork passes on.)
            set_scheduling(tid, wanted);
        }
        memory.write(
            self.block + block_field!(own_tid),
            &(tid as u32).to_le_bytes(),
        )?;
        t.set_xstate(&self.extended)?;
        t.set_regs(&self.regs)?;
        t.set_mask(self.mask)?;
        Ok(())
    }
}

/// Make a thread in the process of a stopped one, by a clone that is injected there; it is left
/// stopped. At its end the kernel clears the word `clear_tid`, if that is not 0.
pub fn make(in_process_of: Stopped, image: &Image, clear_tid: u64) -> Result<Pid> {
    const FLAGS: i32 = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM;
    let at = image.symbol("geryon_injected");
    let clear = match clear_tid {
        0 => 0,
        _ => libc::CLONE_CHILD_CLEARTID,
    };
    let args = [(FLAGS | clear) as u64, 0, 0, clear_tid, 0, 0];
    let tid = in_process_of.injected_syscall(at, libc::SYS_clone, args)?;
    if tid <= 0 {
        let e = std::io::Error::from_raw_os_error(-tid as i32);
        bail!("cannot create a thread in the copy: {e}");
    }
    settle(tid as Pid)?;
    Ok(tid as Pid)
}
